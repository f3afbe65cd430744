//! The `file` toolset: specification 001.

mod delete;
mod list;
mod patch;
mod read;
mod search;
mod write;

use crate::errors;
use crate::plain::PlainDialect;
use std::sync::Arc;
use toolrest_core::Toolset;

/// Returns the toolset with its tools.
pub fn toolset() -> Toolset {
    let dialect = PlainDialect { code: errors::file_code, message: |error| error.message.clone(), pending: |_, _| {} };
    Toolset::new("file", Arc::new(dialect))
        .with(read::Read)
        .with(write::Write)
        .with(patch::Patch)
        .with(delete::Delete)
        .with(list::List)
        .with(search::Search)
}

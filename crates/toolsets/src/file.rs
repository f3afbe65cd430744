//! The `file` toolset: specification 001.

mod delete;
mod list;
mod patch;
mod read;
mod search;
mod write;

use crate::errors;
use serde::Serialize;
use std::sync::Arc;
use toolrest_core::{CallId, ContentHash, Dialect, Result, ToolError, Toolset, WsPath};

/// The toolset with its tools.
pub fn toolset() -> Toolset {
    Toolset::new("file", Arc::new(FileDialect))
        .with(read::Read)
        .with(write::Write)
        .with(patch::Patch)
        .with(delete::Delete)
        .with(list::List)
        .with(search::Search)
}

/// How specification 001 wraps answers: not at all, and errors as `{"error", "message"}`.
struct FileDialect;

impl Dialect for FileDialect {
    fn success(&self, result: &str, _: CallId) -> Vec<u8> {
        result.as_bytes().to_vec()
    }

    fn failure(&self, error: &ToolError, _: CallId) -> Vec<u8> {
        #[derive(Serialize)]
        struct Failure<'a> {
            error: &'a str,
            message: &'a str,
        }
        let body = Failure { error: errors::row(error.kind).file, message: &error.message };
        // Strings always serialise.
        serde_json::to_vec(&body).unwrap_or_default()
    }

    fn status(&self, error: &ToolError) -> u16 {
        errors::row(error.kind).status
    }
}

/// Reads a path argument: relative to the workspace's root, which it may not leave.
fn path(argument: &str, text: &str) -> Result<WsPath> {
    WsPath::relative(text).map_err(|error| error.about(argument))
}

/// Reads an optional hash argument.
fn expected(hash: Option<&str>) -> Option<ContentHash> {
    hash.map(ContentHash::claimed)
}

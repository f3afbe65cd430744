//! The published tool dialects. A toolset translates and does nothing else: one small file per tool.

mod arguments;
mod coding;
pub mod errors;
mod file;
mod plain;
mod reference;
mod system;
pub mod workspace;

pub use reference::reference;
use toolrest_core::Toolsets;

/// Every toolset there is.
pub fn all() -> Toolsets {
    Toolsets::default().with(workspace::toolset()).with(file::toolset()).with(system::toolset()).with(coding::toolset())
}

/// A count as answers have it: only where there is something to tell.
fn counted(number: u64) -> Option<u64> {
    (number > 0).then_some(number)
}

//! The published tool dialects. A toolset translates and does nothing else: one small file per tool.

pub mod errors;
mod reference;
pub mod workspace;

pub use reference::reference;
use toolrest_core::Toolsets;

/// Every toolset there is.
pub fn all() -> Toolsets {
    Toolsets::default().with(workspace::toolset())
}

//! The published tool dialects. A toolset translates and does nothing else: one small file per tool.

mod aftermath;
mod arguments;
mod backend;
mod coding;
mod error_text;
pub mod errors;
mod file;
mod not_listed;
mod plain;
mod system;
pub mod workspace;

use std::sync::Arc;
use toolrest_core::Toolsets;
use toolrest_ops::exec::{ExecOptions, Executor, ProcessOptions, Processes};

/// What tools need beside the workspace.
#[derive(Clone)]
pub struct Services {
    /// Runs programs.
    pub executor: Arc<Executor>,
    /// Runs programs in the background.
    pub processes: Arc<Processes>,
}

impl Services {
    /// Services that refuse everything, for looking at the tools without calling them.
    pub fn none() -> Self {
        let executor = Arc::new(Executor::refusing(ExecOptions::default(), "this server runs no programs"));
        let processes = Arc::new(Processes::new(Arc::clone(&executor), ProcessOptions::default()));
        Self { executor, processes }
    }
}

/// Every toolset there is.
pub fn all(services: &Services) -> Toolsets {
    Toolsets::default()
        .with(workspace::toolset())
        .with(file::toolset())
        .with(system::toolset(services))
        .with(backend::toolset(services))
        .with(coding::toolset())
}

/// A count as answers have it: only where there is something to tell.
fn counted(number: u64) -> Option<u64> {
    (number > 0).then_some(number)
}

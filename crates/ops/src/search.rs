//! Searching the lines of files for a regular expression.

mod path_pattern;
mod postgres;
mod ripgrep;
mod scope;

pub use path_pattern::PathPattern;
pub use scope::{Extent, TreeSearch, search_tree};

use std::{sync::Arc, time::Instant};
use toolrest_core::{CallCx, ErrorKind, Found, LineMatcher, PathFilter, Result, Search, ToolError};

/// What to search for.
#[derive(Clone)]
pub struct SearchOptions {
    /// The regular expression.
    pub pattern: String,
    /// The language that it is written in.
    pub syntax: Syntax,
    /// Whether case counts.
    pub case: Case,
    /// The files to search; without it, all of them.
    pub paths: Option<Arc<dyn PathFilter>>,
    /// The most lines to find.
    pub limit: usize,
    /// How many lines to give before and after each.
    pub context: usize,
}

/// The languages of regular expressions, which differ in more than their words: what a letter is, which letters are the
/// same without case, where a line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// PostgreSQL's advanced regular expressions, as `~` and `~*` take them.
    Postgres,
    /// Those of ripgrep.
    Ripgrep,
}

/// Whether case counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// It does.
    Sensitive,
    /// It does not.
    Ignored,
}

/// Finds the lines that match, by path and then by line, as the workspace is at one moment.
pub async fn search(cx: &CallCx, options: SearchOptions) -> Result<Found> {
    let deadline = Instant::now() + cx.limits.search_timeout;
    let SearchOptions { pattern, syntax, case, paths, limit, context } = options;
    // A large pattern takes milliseconds to prepare; the threads that serve requests have none to spare.
    let matcher = tokio::task::spawn_blocking(move || compile(&pattern, syntax, case));
    let search = Search {
        matcher: matcher.await.map_err(ToolError::internal)??,
        paths,
        limit,
        context,
        // The lines are written as JSON, which makes them longer.
        limit_bytes: cx.limits.response_bytes / 2,
        deadline,
    };
    cx.workspace.search(search).await
}

fn compile(pattern: &str, syntax: Syntax, case: Case) -> Result<Arc<dyn LineMatcher>> {
    Ok(match syntax {
        Syntax::Postgres => Arc::new(postgres::Pattern::new(pattern, case)?),
        Syntax::Ripgrep => Arc::new(ripgrep::Pattern::new(pattern, case)?),
    })
}

fn invalid(message: impl Into<String>) -> ToolError {
    ToolError::new(ErrorKind::InvalidPattern, message).about("pattern")
}

fn interrupted() -> ToolError {
    ToolError::new(ErrorKind::Cancelled, "The search was stopped")
}

//! Searching the lines of files for a regular expression.

mod path_pattern;
mod postgres;
mod ripgrep;
mod scope;

pub use path_pattern::PathPattern;
pub use scope::{Below, Extent, TreeSearch, search_tree};

use std::{sync::Arc, time::Instant};
use toolrest_core::{
    CallCx, ErrorKind, Found, IgnoredFiles, LineMatcher, LinePattern, PathFilter, Result, Search, ToolError, WsPath,
};

/// What to search for.
#[derive(Clone)]
pub struct SearchOptions {
    /// The regular expression.
    pub pattern: String,
    /// The language that it is written in.
    pub syntax: Syntax,
    /// Whether case counts.
    pub case: Case,
    /// Where to look: a folder, or one file.
    pub within: WsPath,
    /// The files to search; without it, all of them.
    pub paths: Option<Arc<dyn PathFilter>>,
    /// What to do about files that `.gitignore` leaves out.
    pub ignored: IgnoredFiles,
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

/// What an answer has besides its matches, at most.
const ENVELOPE_BYTES: usize = 4 << 10;

/// Finds the lines that match, by path and then by line, as the workspace is at one moment.
pub async fn search(cx: &CallCx, options: SearchOptions) -> Result<Found> {
    let deadline = Instant::now() + cx.limits.search_timeout;
    let SearchOptions { pattern, syntax, case, within, paths, ignored, limit, context } = options;
    let search = Search {
        pattern: Arc::new(Pattern { text: pattern, syntax, case }),
        within,
        paths,
        ignored,
        limit,
        context,
        limit_bytes: cx.limits.response_bytes.saturating_sub(ENVELOPE_BYTES),
        deadline,
    };
    cx.workspace.search(search).await
}

/// A pattern that is compiled when it is its turn.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// The regular expression.
    pub text: String,
    /// The language that it is written in.
    pub syntax: Syntax,
    /// Whether case counts.
    pub case: Case,
}

impl LinePattern for Pattern {
    fn compile(&self) -> Result<Arc<dyn LineMatcher>> {
        Ok(match self.syntax {
            Syntax::Postgres => Arc::new(postgres::Pattern::new(&self.text, self.case)?),
            Syntax::Ripgrep => Arc::new(ripgrep::Pattern::new(&self.text, self.case)?),
        })
    }
}

fn invalid(message: impl Into<String>) -> ToolError {
    ToolError::new(ErrorKind::InvalidPattern, message).about("pattern")
}

fn interrupted() -> ToolError {
    ToolError::new(ErrorKind::Cancelled, "The search was stopped")
}

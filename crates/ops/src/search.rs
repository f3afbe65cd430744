//! Searching the lines of files for a regular expression.

mod in_text;
mod path_pattern;
mod postgres;
mod ripgrep;
mod scope;

pub use in_text::{MatchFinder, TextLimits, TextMatch, plain_pattern, search_text};
pub use path_pattern::PathPattern;
pub use scope::{FolderFilter, SkipRules, TreeSearch, search_tree};

use std::{sync::Arc, time::Instant};
use toolrest_core::{
    CallCx, ErrorKind, IgnoredFiles, LineMatcher, LinePattern, PathFilter, Result, Search, SearchResult, ToolError,
    WsPath,
};

/// Options of [`search`].
#[derive(Clone)]
pub struct SearchOptions {
    /// The regular expression.
    pub pattern: String,
    /// The syntax of the pattern.
    pub syntax: Syntax,
    /// Whether upper and lower case are distinguished.
    pub case: Case,
    /// The folder or file to search.
    pub within: WsPath,
    /// The files to search; all if there is no filter.
    pub paths: Option<Arc<dyn PathFilter>>,
    /// Whether to search files that `.gitignore` excludes.
    pub ignored: IgnoredFiles,
    /// Maximum number of matching lines.
    pub limit: usize,
    /// Number of lines to return before and after each match.
    pub context: usize,
}

/// The syntaxes of regular expressions. They also differ in which characters are letters, in case folding and in line
/// ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// PostgreSQL's advanced regular expressions, as in `~` and `~*`.
    Postgres,
    /// The syntax of ripgrep's default engine, which is that of the `regex` crate.
    Ripgrep,
}

/// Whether upper and lower case are distinguished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// Upper and lower case are distinguished.
    Sensitive,
    /// Upper and lower case are not distinguished.
    Ignored,
}

/// Maximum size of an answer without its matches.
const ENVELOPE_BYTES: usize = 4 << 10;

/// Finds matching lines, sorted by path, then by line, in one snapshot of the workspace.
pub async fn search(cx: &CallCx, options: SearchOptions) -> Result<SearchResult> {
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
    let mut found = cx.workspace.search(search).await?;
    for warning in std::mem::take(&mut found.warnings) {
        cx.warn(warning);
    }
    Ok(found)
}

/// A pattern that is compiled when its search starts.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// The regular expression.
    pub text: String,
    /// The syntax of the pattern.
    pub syntax: Syntax,
    /// Whether upper and lower case are distinguished.
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

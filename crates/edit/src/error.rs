//! The errors of edits and patches. Their messages say what the caller can do about them.

use crate::match_level::MatchLevel;
use std::fmt::Write as _;
use thiserror::Error;

/// Maximum length of a message.
pub const MAX_MESSAGE_BYTES: usize = 4_000;

/// Why an edit or a patch was refused. Nothing of it was applied.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EditError {
    /// The text to find is empty.
    #[error("the text to find is empty; give the text to replace")]
    NothingToFind,
    /// The text, or the old lines of a hunk, were not found.
    #[error("{}", limited(message))]
    NotFound {
        /// The looser level at which exactly one match would be found.
        looser_level: Option<MatchLevel>,
        message: String,
        /// The lines that are most similar, if any are.
        closest: Option<Box<ClosestLines>>,
    },
    /// There are several matches, and nothing says which one is meant.
    #[error("{}", limited(message))]
    NotUnique {
        /// The line numbers of the matches that the message lists.
        lines: Vec<usize>,
        /// The number of all matches.
        count: usize,
        message: String,
    },
    /// The file already has the result of the change.
    #[error("already applied: the result of this change is already there, at line {line}")]
    AlreadyApplied { line: usize },
    /// The patch cannot be parsed.
    #[error("patch line {line}: {}", limited(problem))]
    Syntax { line: usize, problem: String },
    /// Two hunks change the same lines.
    #[error("hunks {first} and {second} overlap at line {line}; join them into one hunk")]
    Overlap { first: usize, second: usize, line: usize },
    /// The result could be larger than allowed.
    #[error("the result could be larger than the limit of {limit_bytes} bytes; change less at once")]
    TooLarge { limit_bytes: usize },
    /// The file has too many lines for a patch.
    #[error("the file has more than {max_lines} lines, which is too many to apply a patch to")]
    TooManyLines { max_lines: usize },
    /// The patch was made for another content of the file.
    #[error("{}", limited(message))]
    BaseMismatch { message: String },
    /// The caller set the stop flag.
    #[error("the work was stopped before it was done")]
    Stopped,
    /// One of several edits failed.
    #[error("{}", limited(&format!("edit {number} of {count}: {error}")))]
    Edit {
        /// Counted from 1.
        number: usize,
        count: usize,
        error: Box<EditError>,
    },
    /// Hunks of a patch failed. `failures` has all of them, not only the first.
    #[error("{}", hunks_message(file, failures))]
    Hunks { file: String, failures: Vec<HunkFailure> },
}

/// The lines of a file that are most similar to a text that was not found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosestLines {
    /// The number of the first line, counted from 1.
    pub first: usize,
    /// The lines, each shortened if it is long; at most twelve.
    pub lines: Vec<String>,
    /// The number of all these lines.
    pub count: usize,
    /// The line of the first difference, and what differs there.
    pub difference: Option<(usize, String)>,
}

/// One hunk that cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HunkFailure {
    /// Counted from 1, within its file.
    pub hunk: usize,
    /// The line of the patch at which the hunk starts.
    pub patch_line: usize,
    pub error: EditError,
}

/// The kind of an error, for callers that treat kinds differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    InvalidArgument,
    NotFound,
    NotUnique,
    AlreadyApplied,
    Syntax,
    Overlap,
    TooLarge,
    BaseMismatch,
    Stopped,
}

impl EditError {
    /// Returns the kind of the error. For failed hunks it is `AlreadyApplied` only if all of them are already applied.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NothingToFind => ErrorKind::InvalidArgument,
            Self::NotFound { .. } => ErrorKind::NotFound,
            Self::NotUnique { .. } => ErrorKind::NotUnique,
            Self::AlreadyApplied { .. } => ErrorKind::AlreadyApplied,
            Self::Syntax { .. } => ErrorKind::Syntax,
            Self::Overlap { .. } => ErrorKind::Overlap,
            Self::TooLarge { .. } | Self::TooManyLines { .. } => ErrorKind::TooLarge,
            Self::BaseMismatch { .. } => ErrorKind::BaseMismatch,
            Self::Stopped => ErrorKind::Stopped,
            Self::Edit { error, .. } => error.kind(),
            Self::Hunks { failures, .. } => {
                let mut kinds = failures.iter().map(|failure| failure.error.kind());
                kinds.find(|kind| *kind != ErrorKind::AlreadyApplied).unwrap_or(ErrorKind::AlreadyApplied)
            }
        }
    }

    pub(crate) fn syntax(line: usize, problem: impl Into<String>) -> Self {
        Self::Syntax { line, problem: problem.into() }
    }
}

/// Builds the message about failed hunks. Each hunk gets an equal share of the length, so that all are mentioned.
fn hunks_message(file: &str, failures: &[HunkFailure]) -> String {
    const SHARE_MIN_BYTES: usize = 160;
    let share = ((MAX_MESSAGE_BYTES - 500) / failures.len().max(1)).max(SHARE_MIN_BYTES);
    let mut message = format!("{}: ", truncated(file, 200));
    match failures {
        [_] => {}
        several => _ = write!(message, "{} hunks cannot be applied. ", several.len()),
    }
    for (n, failure) in failures.iter().enumerate() {
        if message.len() + SHARE_MIN_BYTES > MAX_MESSAGE_BYTES - 100 {
            _ = write!(message, "\n(and {} more hunks)", failures.len() - n);
            break;
        }
        let separator = if n == 0 { "" } else { "\n" };
        let error = failure.error.to_string();
        let shown = truncated(&error, share - 60);
        _ = write!(message, "{separator}hunk {} (patch line {}): {shown}", failure.hunk, failure.patch_line);
    }
    limited(&message)
}

/// Shortens a message, and leaves room for what is added to it.
fn limited(message: &str) -> String {
    truncated(message, MAX_MESSAGE_BYTES - 100)
}

/// Returns the text, or its start up to a character boundary and `…` if it is longer than the limit.
pub(crate) fn truncated(text: &str, limit_bytes: usize) -> String {
    if text.len() <= limit_bytes {
        return text.to_owned();
    }
    let end = (0..=limit_bytes).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}…", &text[..end])
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;

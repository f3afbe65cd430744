//! What can go wrong, in words that a reader can act on.

use crate::level::Level;
use std::fmt::Write as _;
use thiserror::Error;

/// No message is longer than this.
pub const MAX_MESSAGE_BYTES: usize = 4_000;

/// Why an edit was refused. Nothing of it was done.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EditError {
    /// The text to find is empty.
    #[error("the text to find is empty; give the text to replace")]
    NothingToFind,
    /// The text, or what a hunk deletes and keeps, is not there.
    #[error("{}", fitted(lesson))]
    NotFound {
        /// The level at which there would be exactly one place.
        looser: Option<Level>,
        lesson: String,
    },
    /// There are several places, and nothing tells which is meant.
    #[error("{}", fitted(lesson))]
    NotUnique {
        /// The first lines of the places, as far as they are listed.
        lines: Vec<usize>,
        count: usize,
        lesson: String,
    },
    /// The result of the change is already there.
    #[error("already applied: the result of this change is already there, at line {line}")]
    AlreadyApplied { line: usize },
    /// The patch cannot be read.
    #[error("patch line {line}: {}", fitted(problem))]
    Syntax { line: usize, problem: String },
    /// Two hunks claim the same lines.
    #[error("hunks {first} and {second} overlap at line {line}; join them into one hunk")]
    Overlap { first: usize, second: usize, line: usize },
    /// The result would be larger than allowed.
    #[error("the result could be larger than the limit of {limit_bytes} bytes; change less at once")]
    TooLarge { limit_bytes: usize },
    /// The file has more lines than a patch is applied to.
    #[error("the file has more than {most_lines} lines, which is too many to apply a patch to")]
    TooManyLines { most_lines: usize },
    /// The file is not the one the patch was made for.
    #[error("{}", fitted(lesson))]
    OtherBase { lesson: String },
    /// The caller stopped the work.
    #[error("the work was stopped before it was done")]
    Stopped,
    /// One of several edits failed.
    #[error("{}", fitted(&format!("edit {number} of {count}: {error}")))]
    Edit {
        /// Counted from 1, as hunks are.
        number: usize,
        count: usize,
        error: Box<EditError>,
    },
    /// Hunks of a patch failed: all that did, not just the first.
    #[error("{}", hunks_message(file, failures))]
    Hunks { file: String, failures: Vec<HunkFailure> },
}

/// One hunk that cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HunkFailure {
    /// Counted from 1, within its file.
    pub hunk: usize,
    /// Where the hunk begins in the patch.
    pub patch_line: usize,
    pub error: EditError,
}

/// The kinds of refusal a caller tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    InvalidArgument,
    NotFound,
    NotUnique,
    AlreadyApplied,
    Syntax,
    Overlap,
    TooLarge,
    OtherBase,
    Stopped,
}

impl EditError {
    /// The kind of the refusal. Several failed hunks are already applied only if all of them are.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NothingToFind => ErrorKind::InvalidArgument,
            Self::NotFound { .. } => ErrorKind::NotFound,
            Self::NotUnique { .. } => ErrorKind::NotUnique,
            Self::AlreadyApplied { .. } => ErrorKind::AlreadyApplied,
            Self::Syntax { .. } => ErrorKind::Syntax,
            Self::Overlap { .. } => ErrorKind::Overlap,
            Self::TooLarge { .. } | Self::TooManyLines { .. } => ErrorKind::TooLarge,
            Self::OtherBase { .. } => ErrorKind::OtherBase,
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

/// Every failed hunk gets its share of the room, so that none is left unsaid.
fn hunks_message(file: &str, failures: &[HunkFailure]) -> String {
    const LEAST_SHARE: usize = 160;
    let share = ((MAX_MESSAGE_BYTES - 500) / failures.len().max(1)).max(LEAST_SHARE);
    let mut message = format!("{}: ", cut(file, 200));
    match failures {
        [_] => {}
        several => _ = write!(message, "{} hunks cannot be applied. ", several.len()),
    }
    for (n, failure) in failures.iter().enumerate() {
        if message.len() + LEAST_SHARE > MAX_MESSAGE_BYTES - 100 {
            _ = write!(message, "\n(and {} more hunks)", failures.len() - n);
            break;
        }
        let separator = if n == 0 { "" } else { "\n" };
        let error = failure.error.to_string();
        let shown = cut(&error, share - 60);
        _ = write!(message, "{separator}hunk {} (patch line {}): {shown}", failure.hunk, failure.patch_line);
    }
    fitted(&message)
}

fn fitted(message: &str) -> String {
    cut(message, MAX_MESSAGE_BYTES - 100)
}

/// The text, cut at a character's boundary if it is longer than so many bytes.
pub(crate) fn cut(text: &str, limit_bytes: usize) -> String {
    if text.len() <= limit_bytes {
        return text.to_owned();
    }
    let end = (0..=limit_bytes).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}…", &text[..end])
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;

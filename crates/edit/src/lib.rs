//! Finds and replaces text, parses and applies patches, and creates diffs.
//!
//! All functions take bytes and return bytes or an error with an explanation. Nothing here reads or writes files, and
//! nothing here depends on the response format of a tool. Three rules hold everywhere:
//!
//! - Only what the caller asks for changes. All other bytes stay: line endings, the final newline, encodings.
//! - A text has to occur exactly once. If it occurs several times, that is an error; the code does not choose one.
//! - An error says what was expected, what is there, and where.

pub mod diff;
mod error;
mod explain;
mod indent;
mod limits;
mod lines;
mod match_level;
pub mod merge;
mod near_miss;
pub mod patch;
mod replace;
mod similarity;

pub use error::{ClosestLines, EditError, ErrorKind, HunkFailure, MAX_MESSAGE_BYTES};
pub use limits::{Limits, StopFlag};
pub use match_level::MatchLevel;
pub use replace::{Edit, Leniency, Occurrences, ReplaceInOrderResult, ReplaceResult, replace, replace_in_order};

//! The editing engine: finding and replacing text, reading and applying patches, making diffs.
//!
//! Bytes come in, and bytes or a lesson go out. Nothing here reads or writes files, and nothing here knows how a tool
//! words its answers. Three promises hold everywhere:
//!
//! - What was not asked to change keeps its bytes: line endings, the final newline, encodings.
//! - A place is found once or not at all: never the first of several, never the nearest.
//! - A refusal says what was expected, what is there, and where.

pub mod diff;
mod error;
mod explain;
mod indent;
mod level;
mod limits;
mod lines;
mod near_miss;
pub mod patch;
mod replace;
mod similarity;

pub use error::{EditError, ErrorKind, HunkFailure, MAX_MESSAGE_BYTES};
pub use level::Level;
pub use limits::{Limits, Stop};
pub use replace::{Edit, Leniency, Replaced, ReplacedInOrder, Which, replace, replace_in_order};

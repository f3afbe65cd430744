//! What tools do, in no dialect.
//!
//! Each operation exists once. Where the published specifications differ in behaviour, the difference is an argument
//! that the tool's file passes here. Every change is a pure step from what was read to a changeset.

pub mod document;
mod edit;
mod list;
mod place;
mod read;
mod replace;
mod search;
mod undo;
mod write;

pub use edit::{EditOptions, edit};
pub use list::list;
pub use place::{make_dir, move_to, remove, touch};
pub use read::read;
pub use replace::{Occurrences, replace};
pub use search::{Case, PathPattern, SearchOptions, Syntax, search};
pub use undo::undo;
pub use write::{WriteOptions, write};

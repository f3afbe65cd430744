//! The operations of tools, independent of any toolset.
//!
//! Each operation exists once. Where the specifications differ in behaviour, the difference is an option that the tool
//! passes. An operation computes a changeset from what it read; it changes nothing before the commit.

mod commit_diff;
pub mod data;
pub mod document;
mod edit;
mod edits;
mod excerpt;
pub mod exec;
mod files;
pub mod github;
mod glob;
mod heavy;
mod list;
mod locate;
mod move_remove;
mod net_change;
pub mod outside;
mod patch;
mod picture;
mod read;
mod search;
mod text;
mod tree;
mod undo;
pub mod web;
mod write;
mod write_text;

pub use commit_diff::{DiffSide, SMALL_BYTES, commit_diff, effect_diff, file_diff, make_room, merge_moves};
pub use edit::{EditOptions, Edited, Replacement, edit};
pub use edits::{ChangedLines, EditedFile, EditsError, EditsResult, FileEdit, NoPlace, changed_lines, edit_files};
pub use excerpt::{Excerpt, ExcerptLine, ExcerptOptions, excerpt, excerpt_of_text};
pub use files::{FilesOptions, all_files, files};
pub use glob::{Glob, SlashlessPattern};
pub use heavy::blocking;
pub use list::list;
pub use locate::{locate_absolute, locate_pattern, locate_posix, locate_relative};
pub use move_remove::{Overwrite, make_dir, move_to, remove, remove_tree, rename, touch};
pub use net_change::{NetChange, NetDiff, net_changes, net_diff};
pub use patch::{PatchAction, PatchOptions, PatchResult, PatchedFile, patch};
pub use picture::{Picture, is_picture, picture};
pub use read::{open, read};
pub use search::{
    Case, FolderFilter, MatchFinder, PathPattern, Pattern, SearchOptions, SkipRules, Syntax, TextLimits, TextMatch,
    TreeSearch, plain_pattern, search, search_text, search_tree,
};
pub use text::{FilePage, LinePage, PageLimits, read_page};
pub use toolrest_edit::merge::MergeConflict;
pub use toolrest_edit::{ClosestLines, EditError, Leniency, MatchLevel, Occurrences};
pub use tree::tree_files;
pub use undo::{ChangedSince, Force, UndoError, UndoOptions, Undone, inverse_of_commit, undo};
pub use write::{WriteOptions, write};
pub use write_text::{ContentForm, ExpectedFile, TextOptions, WriteResult, write_text};

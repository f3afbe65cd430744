//! The operations of tools, independent of any toolset.
//!
//! Each operation exists once. Where the specifications differ in behaviour, the difference is an option that the tool
//! passes. An operation computes a changeset from what it read; it changes nothing before the commit.

mod commit_diff;
pub mod data;
pub mod document;
mod edit;
pub mod exec;
mod files;
pub mod github;
mod glob;
mod heavy;
mod list;
mod locate;
mod move_remove;
pub mod outside;
mod patch;
mod read;
mod search;
mod text;
mod undo;
pub mod web;
mod write;
mod write_text;

pub use commit_diff::{effect_diff, merge_moves};
pub use edit::{EditOptions, Edited, Replacement, edit};
pub use files::{FilesOptions, all_files, files};
pub use glob::{Glob, SlashlessPattern};
pub use list::list;
pub use locate::{locate_absolute, locate_pattern, locate_posix, locate_relative};
pub use move_remove::{Overwrite, make_dir, move_to, remove, remove_tree, rename, touch};
pub use patch::{PatchAction, PatchOptions, PatchResult, PatchedFile, patch};
pub use read::{open, read};
pub use search::{
    Case, FolderFilter, PathPattern, Pattern, SearchOptions, SkipRules, Syntax, TreeSearch, search, search_tree,
};
pub use text::{FilePage, LinePage, PageLimits, read_page};
pub use toolrest_edit::{Leniency, MatchLevel, Occurrences};
pub use undo::{Force, undo};
pub use write::{WriteOptions, write};
pub use write_text::{ContentForm, TextOptions, WriteResult, write_text};

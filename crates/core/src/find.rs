//! Finding files by their paths: what is asked, and what is found.

use crate::{Depth, PathFilter, Timestamp, WsPath};
use std::{sync::Arc, time::Instant};

/// Which files to find.
#[derive(Clone)]
pub struct Find {
    /// Where to look.
    pub folder: WsPath,
    /// How far down to look.
    pub depth: Depth,
    /// Chooses the files; without it, all of them.
    pub paths: Option<Arc<dyn PathFilter>>,
    /// What to do about files that `.gitignore` leaves out.
    pub ignored: IgnoredFiles,
    /// The most files to give; all of them are counted.
    pub limit: usize,
    /// When to give up.
    pub deadline: Instant,
}

/// What to do about files that `.gitignore` leaves out.
///
/// A rule is for what is found on the way: a folder or file that the caller named is looked at whatever the rules say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoredFiles {
    /// Leave them out, and count them.
    LeaveOut,
    /// Take them too.
    Include,
}

/// Files that were found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FindResult {
    /// The files, sorted by path in byte order.
    pub files: Vec<FileFound>,
    /// How many there are, also those past the limit.
    pub total: usize,
    /// How many files, or folders with all that is in them, the rules of `.gitignore` left out.
    pub ignored: u64,
    /// How many folders could not be looked into.
    pub unreadable: u64,
    /// How many files and folders have a name that no path can have.
    pub unnamed: u64,
}

/// A file that was found: what is known of it without a look at its content.
#[derive(Clone, Debug, PartialEq)]
pub struct FileFound {
    /// Where it is.
    pub path: WsPath,
    /// The size of its content in bytes.
    pub size: i64,
    /// When it last changed.
    pub updated_at: Timestamp,
}

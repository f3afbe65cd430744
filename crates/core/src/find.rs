//! Finding files by their paths: the request and its result.

use crate::{Depth, Notice, PathFilter, Timestamp, WsPath};
use std::{sync::Arc, time::Instant};

/// Which files to find.
#[derive(Clone)]
pub struct Find {
    /// The folder to search.
    pub folder: WsPath,
    /// Whether to search subfolders.
    pub depth: Depth,
    /// The files to find; all if there is no filter.
    pub paths: Option<Arc<dyn PathFilter>>,
    /// Whether to find files that `.gitignore` excludes.
    pub ignored: IgnoredFiles,
    /// The maximum number of files to return; all are counted.
    pub limit: usize,
    /// When the search ends with an error.
    pub deadline: Instant,
}

/// Whether files that `.gitignore` excludes are found.
///
/// A folder or file that the caller named itself is always included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoredFiles {
    /// They are left out and counted.
    LeaveOut,
    /// They are found too.
    Include,
}

/// The result of [`Find`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FindResult {
    /// The files, sorted by path in byte order.
    pub files: Vec<FoundFile>,
    /// The number of all files that match, including those past the limit.
    pub total: usize,
    /// The number of files and folders that `.gitignore` excluded. A folder counts as one.
    pub ignored: u64,
    /// The number of folders that could not be read.
    pub unreadable: u64,
    /// The number of files and folders with invalid names.
    pub unnamed: u64,
    /// What the caller must know about the result.
    pub warnings: Vec<Notice>,
}

/// A file that was found, without its content.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundFile {
    /// Its path.
    pub path: WsPath,
    /// The size of its content in bytes.
    pub size: i64,
    /// When it last changed.
    pub updated_at: Timestamp,
}

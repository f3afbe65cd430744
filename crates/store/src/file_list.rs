//! The list of a workspace's files, for working copies: all files at first, then what changed.

use crate::error::Result;
use crate::plan::FileRow;
use crate::search::Cursor;
use async_trait::async_trait;
use std::collections::HashMap;
use toolrest_core::{Access, ContentHash, FileId, WorkspaceId, WorkspaceSettings};

/// Lists the files of a workspace, and what changed in it.
#[async_trait]
pub trait FileList: Send + Sync {
    /// Checks the caller's rights and lists what changed since the cursor. Lists all files without a cursor, or if the
    /// changes since then are no longer recorded.
    async fn listed_since(&self, access: Access, since: Option<ListCursor>) -> Result<FilesSince>;

    /// Reads the stored bytes of contents, decompressed. Contents that no longer exist are left out.
    async fn stored(&self, workspace: WorkspaceId, keys: Vec<ContentHash>) -> Result<HashMap<ContentHash, Vec<u8>>>;
}

/// A position in the sequence of changes of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListCursor(pub Cursor);

/// The files of a workspace that changed since a cursor, or all of them, and its settings at the same time. `settings`
/// is `None` if they cannot be read.
pub struct FilesSince {
    pub settings: Option<WorkspaceSettings>,
    pub cursor: ListCursor,
    pub listed: Rows,
}

impl FilesSince {
    /// Whether no file has changed since the cursor.
    pub fn is_nothing(&self) -> bool {
        matches!(&self.listed, Rows::Changed(rows) if rows.is_empty())
    }
}

/// Files and folders, including virtual ones.
pub enum Rows {
    /// All files and folders.
    All(Vec<FileRow>),
    /// The changed files and folders, each with its current row, or `None` if it was deleted.
    Changed(Vec<(FileId, Option<FileRow>)>),
}

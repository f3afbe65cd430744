//! Which files a workspace has, for those who keep a copy of them: all of them at first, then what changed.

use crate::error::Result;
use crate::plan::FileRow;
use crate::search::Cursor;
use async_trait::async_trait;
use std::collections::HashMap;
use toolrest_core::{Access, ContentHash, FileId, WorkspaceId, WorkspaceSettings};

/// Tells what a workspace holds, and what changed in it.
#[async_trait]
pub trait FileList: Send + Sync {
    /// Checks the caller's rights and tells what changed since a moment; all there is, if that is not known any more.
    async fn listed_since(&self, access: Access, since: Option<Moment>) -> Result<FilesSince>;

    /// The bytes of contents as they are stored, of those that are still there.
    async fn stored(&self, workspace: WorkspaceId, keys: Vec<ContentHash>) -> Result<HashMap<ContentHash, Vec<u8>>>;
}

/// A moment in the life of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment(pub Cursor);

/// What a workspace holds, and what its owner has set for it if that can be read, as of a moment.
pub struct FilesSince {
    pub settings: Option<WorkspaceSettings>,
    pub moment: Moment,
    pub listed: Rows,
}

impl FilesSince {
    /// Whether nothing has changed.
    pub fn is_nothing(&self) -> bool {
        matches!(&self.listed, Rows::Changed(rows) if rows.is_empty())
    }
}

/// Files and folders, the virtual ones among them.
pub enum Rows {
    /// All there are.
    All(Vec<FileRow>),
    /// Those that changed: as they are now, or none where they are gone.
    Changed(Vec<(FileId, Option<FileRow>)>),
}

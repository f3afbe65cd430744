//! The history of a workspace: versions, commits and the trash.

use crate::{CommitId, CommitInfo, Content, Entry, File, FileId, Result, Version, VersionId};
use async_trait::async_trait;

/// A page of a long list, newest first.
#[derive(Clone, Copy, Debug)]
pub struct Page<T> {
    /// Only entries older than this.
    pub before: Option<T>,
    /// Maximum number of entries.
    pub limit: u32,
}

/// The history of a workspace, opened for one caller. Every method checks the caller's rights.
#[async_trait]
pub trait History: Send + Sync {
    /// Reads a file by its id, in the trash or not. The content is left out if it has more than `max_bytes` bytes.
    async fn file_by_id(&self, file: FileId, max_bytes: i64) -> Result<File>;

    /// Lists a file's versions, newest first.
    async fn versions(&self, file: FileId, page: Page<i64>) -> Result<Vec<Version>>;

    /// Reads one version of a file. The content is left out if it has more than `max_bytes` bytes.
    async fn version(&self, file: FileId, version: VersionId, max_bytes: i64) -> Result<(Version, Option<Content>)>;

    /// Lists the trash, newest first.
    async fn trash(&self, page: Page<FileId>) -> Result<Vec<Entry>>;

    /// Lists commits, newest first.
    async fn commits(&self, page: Page<CommitId>) -> Result<Vec<CommitInfo>>;

    /// Returns one commit.
    async fn commit_info(&self, commit: CommitId) -> Result<CommitInfo>;

    /// Returns the commit that undid another, if there is one and it was not undone itself.
    async fn undone_by(&self, commit: CommitId) -> Result<Option<CommitId>>;
}

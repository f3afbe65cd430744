//! The history of workspaces, which is in the store for every kind of workspace.

use crate::database_workspace::DatabaseWorkspace;
use crate::folder::FolderWorkspace;
use async_trait::async_trait;
use toolrest_core::{CommitId, CommitInfo, Content, Entry, File, FileId, History, Page, Result, Version, VersionId};

/// Implements [`History`] for a workspace with a `store` and an `access`.
macro_rules! history_in_store {
    ($workspace:ty) => {
        #[async_trait]
        impl History for $workspace {
            async fn file_by_id(&self, file: FileId, max_bytes: i64) -> Result<File> {
                Ok(self.store.file(self.access, file, max_bytes).await?)
            }

            async fn versions(&self, file: FileId, page: Page<i64>) -> Result<Vec<Version>> {
                Ok(self.store.versions(self.access, file, page).await?)
            }

            async fn version(
                &self,
                file: FileId,
                version: VersionId,
                max_bytes: i64,
            ) -> Result<(Version, Option<Content>)> {
                Ok(self.store.version(self.access, file, version, max_bytes).await?)
            }

            async fn trash(&self, page: Page<FileId>) -> Result<Vec<Entry>> {
                Ok(self.store.trash(self.access, page).await?)
            }

            async fn commits(&self, page: Page<CommitId>) -> Result<Vec<CommitInfo>> {
                Ok(self.store.commits(self.access, page).await?)
            }

            async fn commit_info(&self, commit: CommitId) -> Result<CommitInfo> {
                Ok(self.store.commit_info(self.access, commit).await?)
            }

            async fn undone_by(&self, commit: CommitId) -> Result<Option<CommitId>> {
                Ok(self.store.undone_by(self.access, commit).await?)
            }
        }
    };
}

history_in_store!(DatabaseWorkspace);
history_in_store!(FolderWorkspace);

//! The history of folders.

use super::Sqlite;
use super::commits::{record, view};
use super::row::{LISTED_COLUMNS, authorised, collect, find, listed};
use crate::blob::stored_bytes;
use crate::history::{FolderCommit, FolderHistory, Recorded};
use async_trait::async_trait;
use toolrest_core::{Access, Changeset, ContentHash, Listed, Result, ToolError, WorkspaceId};

#[async_trait]
impl FolderHistory for Sqlite {
    async fn recorded(&self, access: Access, changes: &Changeset) -> Result<Recorded> {
        let changes = changes.clone();
        self.read(move |db| {
            authorised(db, access)?;
            view(db, access.workspace, &changes).map(Recorded)
        })
        .await
    }

    async fn record(&self, commit: FolderCommit) -> Result<()> {
        self.write(move |db| record(db, &commit)).await
    }

    async fn kept(&self, workspace: WorkspaceId, content: ContentHash) -> Result<Vec<u8>> {
        let sql = "SELECT encoding, size, data FROM blobs WHERE ws = ?1 AND key = ?2";
        let found = self.read(move |db| {
            find(db, sql, (workspace.0, content.0), |row| {
                Ok(stored_bytes(row.get(0)?, row.get(1)?, row.get_ref(2)?.as_blob()?).map(Vec::from))
            })
        });
        found.await?.ok_or_else(|| ToolError::internal(format!("the blob {content} is missing")))?
    }

    async fn virtual_files(&self, access: Access) -> Result<Vec<Listed>> {
        self.read(move |db| {
            authorised(db, access)?;
            let sql = format!(
                "SELECT {LISTED_COLUMNS} FROM files f
                 WHERE f.ws = ?1 AND f.is_virtual = 1 AND f.deleted_at IS NULL ORDER BY f.path"
            );
            collect(db, &sql, [access.workspace.0], listed)
        })
        .await
    }
}

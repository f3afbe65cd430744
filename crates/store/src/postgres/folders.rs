//! The history of folders.

use super::Postgres;
use super::row::{authorised, listed};
use crate::blob::stored_bytes;
use crate::history::{FolderCommit, FolderHistory, Recorded};
use async_trait::async_trait;
use toolrest_core::{Access, Changeset, ContentHash, Listed, Result, ToolError, WorkspaceId, WsPath};

const VIRTUAL_FILES: &str = "SELECT path, display_name, kind, is_virtual, size, updated_at FROM files
    WHERE ws = $1 AND is_virtual AND deleted_at IS NULL ORDER BY path";

#[async_trait]
impl FolderHistory for Postgres {
    async fn recorded(&self, access: Access, changes: &Changeset) -> Result<Recorded> {
        self.recorded_view(access, changes).await.map(Recorded)
    }

    async fn record(&self, commit: FolderCommit) -> Result<()> {
        self.record_folder_commit(&commit).await
    }

    async fn kept(&self, workspace: WorkspaceId, content: ContentHash) -> Result<Vec<u8>> {
        let sql = "SELECT encoding, size, data FROM blobs WHERE ws = $1 AND key = $2";
        let rows = self.look(sql, &[&workspace.0, &&content.0[..]]).await?;
        let row = rows.first().ok_or_else(|| ToolError::internal(format!("the blob {content} is missing")))?;
        stored_bytes(row.get(0), row.get(1), row.get(2)).map(Vec::from)
    }

    async fn virtual_files(&self, access: Access) -> Result<Vec<Listed>> {
        let (ws, user) = (access.workspace.0, access.user.0);
        let role = "SELECT role FROM members WHERE ws = $1 AND user_id = $2";
        let (members, rows) = self.look_twice((role, &[&ws, &user]), (VIRTUAL_FILES, &[&ws])).await?;
        authorised(access, &members, 0)?;
        rows.iter().map(|row| listed(row, WsPath::from_normal(row.get(0)))).collect()
    }
}

//! The history of folders.

use super::Postgres;
use super::row::{authorised, listed};
use crate::blob::stored_bytes;
use crate::error::{Result, StoreError};
use crate::history::{FolderCommit, FolderHistory, Recorded, TrimmedHistory, excess};
use async_trait::async_trait;
use toolrest_core::{Access, Changeset, ContentHash, Listed, WorkspaceId, WsPath};

const VIRTUAL_FILES: &str = "SELECT path, display_name, kind, is_virtual, CASE WHEN is_virtual THEN octet_length(coalesce(display_name, name))::bigint + 1 + (
        SELECT coalesce(sum(octet_length(m.role) + octet_length(m.content) + 4), 0)::bigint FROM chat_messages m
        WHERE m.ws = files.ws AND m.chat_id = files.id) ELSE size END, updated_at FROM files
    WHERE ws = $1 AND is_virtual AND deleted_at IS NULL ORDER BY path";

/// The oldest contents of a folder's history. Current contents stay, because the next change is compared with them.
const OLDEST: &str = "SELECT b.key, octet_length(b.data)::bigint FROM blobs b JOIN (
        SELECT blob, max(created_at) AS last FROM versions WHERE ws = $1 GROUP BY blob
    ) v ON v.blob = b.key
    WHERE b.ws = $1 AND b.encoding <> 2 AND NOT EXISTS (
        SELECT 1 FROM files f WHERE f.ws = $1 AND f.head_blob = b.key AND f.deleted_at IS NULL)
    ORDER BY v.last LIMIT 500";

const DROP: &str = "UPDATE blobs SET encoding = 2, data = '' WHERE ws = $1 AND key = ANY($2) RETURNING 1";

impl Postgres {
    /// Keeps the history of each folder within the limit.
    pub(super) async fn limit_folder_history(&self, limit_bytes: u64) -> Result<u64> {
        let limit = i64::try_from(limit_bytes).unwrap_or(i64::MAX);
        let sql = "SELECT w.id FROM workspaces w JOIN blobs b ON b.ws = w.id
                   WHERE w.kind = 1 AND w.deleted_at IS NULL GROUP BY w.id HAVING sum(octet_length(b.data)) > $1";
        let mut dropped = 0;
        for row in self.fetch(sql, &[&limit]).await? {
            dropped += self.limit_history(WorkspaceId(row.get(0)), limit_bytes).await?.dropped;
        }
        Ok(dropped)
    }
}

#[async_trait]
impl FolderHistory for Postgres {
    async fn recorded(&self, access: Access, changes: &Changeset) -> Result<Recorded> {
        self.unlocked_view(access, changes).await.map(Recorded)
    }

    async fn record(&self, commit: FolderCommit) -> Result<()> {
        self.record_folder_commit(&commit).await?;
        self.signals.changed(commit.workspace.0);
        Ok(())
    }

    async fn kept(&self, workspace: WorkspaceId, content: ContentHash) -> Result<Vec<u8>> {
        let sql = "SELECT encoding, size, data FROM blobs WHERE ws = $1 AND key = $2";
        let rows = self.fetch(sql, &[&workspace.0, &&content.0[..]]).await?;
        let row = rows.first().ok_or_else(|| StoreError::internal(format!("the blob {content} is missing")))?;
        stored_bytes(row.get(0), row.get(1), row.get(2)).map(Vec::from)
    }

    async fn history_bytes(&self, access: Access) -> Result<u64> {
        let sql = "SELECT m.rights, (SELECT coalesce(sum(octet_length(data)), 0)::bigint FROM blobs WHERE ws = $1)
                   FROM members m WHERE m.ws = $1 AND m.user_id = $2";
        let rows = self.fetch(sql, &[&access.workspace.0, &access.user.0]).await?;
        authorised(access, &rows, 0)?;
        Ok(rows.first().map_or(0, |row| row.get::<_, i64>(1).unsigned_abs()))
    }

    async fn limit_history(&self, workspace: WorkspaceId, limit_bytes: u64) -> Result<TrimmedHistory> {
        let limit = i64::try_from(limit_bytes).unwrap_or(i64::MAX);
        let sql = "SELECT coalesce(sum(octet_length(data)), 0)::bigint FROM blobs WHERE ws = $1";
        let rows = self.fetch(sql, &[&workspace.0]).await?;
        let mut total: i64 = rows.first().map_or(0, |row| row.get(0));
        let mut dropped = 0;
        while total > limit {
            let oldest = self.fetch(OLDEST, &[&workspace.0]).await?;
            let count = excess(oldest.iter().map(|row| row.get::<_, i64>(1)), total, limit);
            let keys: Vec<&[u8]> = oldest[..count].iter().map(|row| row.get(0)).collect();
            if keys.is_empty() {
                break;
            }
            dropped += self.execute(DROP, &[&workspace.0, &keys]).await?.len() as u64;
            total -= oldest[..count].iter().map(|row| row.get::<_, i64>(1)).sum::<i64>();
        }
        Ok(TrimmedHistory { dropped, left_bytes: total.unsigned_abs() })
    }

    async fn virtual_files(&self, access: Access) -> Result<Vec<Listed>> {
        let (ws, user) = (access.workspace.0, access.user.0);
        let rights = "SELECT rights FROM members WHERE ws = $1 AND user_id = $2";
        let (members, rows) = self.fetch_both((rights, &[&ws, &user]), (VIRTUAL_FILES, &[&ws])).await?;
        authorised(access, &members, 0)?;
        rows.iter().map(|row| listed(row, WsPath::from_normal(row.get(0)))).collect()
    }
}

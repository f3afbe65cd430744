//! The history of folders.

use super::commits::{record, view};
use super::row::{LISTED_COLUMNS, authorised, collect, find, listed, run};
use super::{Sqlite, slices};
use crate::history::{FolderCommit, FolderHistory, Recorded, excess};
use async_trait::async_trait;
use rusqlite::Connection;
use std::sync::Arc;
use toolrest_core::{Access, Changeset, ContentHash, Listed, Result, ToolError, WorkspaceId};
use uuid::Uuid;

/// How many contents are dropped at a time.
const TURN: i64 = 500;

fn total_bytes(db: &Connection, ws: Uuid) -> Result<i64> {
    let sql = "SELECT (SELECT coalesce(sum(length(data)), 0) FROM blobs WHERE ws = ?1)
                    + (SELECT coalesce(sum(length(data)), 0) FROM blob_slices WHERE ws = ?1)";
    Ok(find(db, sql, [ws], |row| row.get(0))?.unwrap_or(0))
}

/// Drops some of the oldest contents of a folder whose history is over the limit; tells how many. What a file holds now
/// stays: it is what the next change is compared with.
fn drop_oldest(db: &Connection, ws: Uuid, limit: i64) -> Result<usize> {
    let total = total_bytes(db, ws)?;
    if total <= limit {
        return Ok(0);
    }
    let sql = "SELECT b.key, length(b.data) + coalesce((
                   SELECT sum(length(s.data)) FROM blob_slices s WHERE s.ws = b.ws AND s.key = b.key), 0) FROM blobs b JOIN (
                   SELECT blob, max(created_at) AS last FROM versions WHERE ws = ?1 GROUP BY blob
               ) v ON v.blob = b.key
               WHERE b.ws = ?1 AND b.encoding <> 2 AND b.key NOT IN (
                   SELECT head_blob FROM files WHERE ws = ?1 AND deleted_at IS NULL AND head_blob IS NOT NULL)
               ORDER BY v.last LIMIT ?2";
    let oldest: Vec<([u8; 32], i64)> = collect(db, sql, (ws, TURN), |row| Ok((row.get(0)?, row.get(1)?)))?;
    let count = excess(oldest.iter().map(|(_, bytes)| *bytes), total, limit);
    for (key, _) in &oldest[..count] {
        run(db, "UPDATE blobs SET encoding = 2, data = x'' WHERE ws = ?1 AND key = ?2", (ws, key))?;
    }
    Ok(count)
}

impl Sqlite {
    /// Keeps the history of each folder within its limit.
    pub(super) async fn limit_folder_history(&self, limit_bytes: u64) -> Result<u64> {
        let limit = i64::try_from(limit_bytes).unwrap_or(i64::MAX);
        let sql = "SELECT id FROM workspaces WHERE kind = 1 AND deleted_at IS NULL";
        let mut dropped = 0;
        for ws in self.read(move |db| collect(db, sql, [], |row| row.get::<_, Uuid>(0))).await? {
            loop {
                match self.write(move |db| drop_oldest(db, ws, limit)).await? {
                    0 => break,
                    count => dropped += count as u64,
                }
            }
        }
        Ok(dropped)
    }
}

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
        let commit = Arc::new(commit);
        self.stage(commit.workspace, None, &commit, |commit| commit.contents.iter().collect()).await?;
        self.write(move |db| record(db, &commit)).await
    }

    async fn kept(&self, workspace: WorkspaceId, content: ContentHash) -> Result<Vec<u8>> {
        let found = self.read(move |db| slices::bytes(db, workspace.0, content)).await?;
        found.ok_or_else(|| ToolError::internal(format!("the blob {content} is missing")))
    }

    async fn history_bytes(&self, access: Access) -> Result<u64> {
        self.read(move |db| {
            authorised(db, access)?;
            total_bytes(db, access.workspace.0).map(i64::unsigned_abs)
        })
        .await
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

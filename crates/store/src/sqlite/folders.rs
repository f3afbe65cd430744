//! The history of folders.

use super::commits::{record, view};
use super::row::{LISTED_COLUMNS, authorised, collect, find, listed, run};
use super::staging::{BATCH_BYTES, Staged};
use super::{Sqlite, slices};
use crate::error::{Result, StoreError};
use crate::history::{FolderCommit, FolderHistory, Recorded, TrimmedHistory, excess};
use async_trait::async_trait;
use rusqlite::Connection;
use std::sync::Arc;
use toolrest_core::{Access, Changeset, ContentHash, Listed, WorkspaceId};
use uuid::Uuid;

/// Maximum number of droppable contents read at a time.
const MAX_FOUND: i64 = 500;
/// Maximum number of attempts that fail because the folder was changed concurrently.
const TRIES: usize = 3;

fn total_bytes(db: &Connection, ws: Uuid) -> Result<i64> {
    let sql = "SELECT (SELECT coalesce(sum(length(data)), 0) FROM blobs WHERE ws = ?1)
                    + (SELECT coalesce(sum(length(data)), 0) FROM blob_slices WHERE ws = ?1
                       AND key IN (SELECT key FROM blobs WHERE ws = ?1 AND encoding >= 3))";
    Ok(find(db, sql, [ws], |row| row.get(0))?.unwrap_or(0))
}

fn last_change(db: &Connection, ws: Uuid) -> Result<Option<i64>> {
    Ok(find(db, "SELECT max(place) FROM changes WHERE ws = ?1", [ws], |row| row.get(0))?.flatten())
}

/// The contents that can be dropped from the history of a folder.
struct Droppable {
    /// The size of the history.
    total: i64,
    /// The contents to drop, oldest first, with their sizes.
    oldest: Vec<([u8; 32], i64)>,
    /// The last change of the folder when they were read.
    last_change: Option<i64>,
}

/// Finds the oldest contents of a history that is over the limit. Current contents stay, because the next change is
/// compared with them.
fn droppable(db: &Connection, ws: Uuid, limit: i64) -> Result<Droppable> {
    let (total, last_change) = (total_bytes(db, ws)?, last_change(db, ws)?);
    if total <= limit {
        return Ok(Droppable { total, oldest: Vec::new(), last_change });
    }
    let sql = "SELECT b.key, length(b.data) + coalesce((
                   SELECT sum(length(s.data)) FROM blob_slices s
                   WHERE s.ws = b.ws AND s.key = b.key AND b.encoding >= 3), 0) FROM blobs b JOIN (
                   SELECT blob, max(created_at) AS last FROM versions WHERE ws = ?1 GROUP BY blob
               ) v ON v.blob = b.key
               WHERE b.ws = ?1 AND b.encoding <> 2 AND b.key NOT IN (
                   SELECT head_blob FROM files WHERE ws = ?1 AND deleted_at IS NULL AND head_blob IS NOT NULL)
               ORDER BY v.last LIMIT ?2";
    let mut oldest: Vec<([u8; 32], i64)> = collect(db, sql, (ws, MAX_FOUND), |row| Ok((row.get(0)?, row.get(1)?)))?;
    oldest.truncate(excess(oldest.iter().map(|(_, bytes)| *bytes), total, limit));
    Ok(Droppable { total, oldest, last_change })
}

/// Drops the first of these contents, up to the limit of one transaction; returns how many. Returns zero if the folder
/// was changed since they were found, because a file may have one of these contents now.
fn drop_some(db: &Connection, ws: Uuid, found: &Droppable, from: usize) -> Result<usize> {
    if last_change(db, ws)? != found.last_change {
        return Ok(0);
    }
    let count = excess(found.oldest[from..].iter().map(|(_, bytes)| *bytes), BATCH_BYTES, 0);
    for (key, _) in &found.oldest[from..from + count] {
        run(db, "UPDATE blobs SET encoding = 2, data = x'' WHERE ws = ?1 AND key = ?2", (ws, key))?;
    }
    Ok(count)
}

impl Sqlite {
    /// Keeps the history of each folder within the limit.
    pub(super) async fn limit_folder_history(&self, limit_bytes: u64) -> Result<u64> {
        let sql = "SELECT id FROM workspaces WHERE kind = 1 AND deleted_at IS NULL";
        let mut dropped = 0;
        for ws in self.read(move |db| collect(db, sql, [], |row| row.get::<_, Uuid>(0))).await? {
            dropped += self.limit_history(WorkspaceId(ws), limit_bytes).await?.dropped;
        }
        Ok(dropped)
    }

    /// Drops the contents that were found; returns how many were dropped.
    async fn drop_found(&self, ws: Uuid, found: Droppable) -> Result<usize> {
        let found = Arc::new(found);
        let mut dropped = 0;
        while dropped < found.oldest.len() {
            let found = Arc::clone(&found);
            match self.write(move |db| drop_some(db, ws, &found, dropped)).await? {
                0 => break,
                count => dropped += count,
            }
        }
        Ok(dropped)
    }
}

impl Sqlite {
    /// Stages large contents, then records the commit.
    async fn record_staged(&self, commit: FolderCommit, staged: Staged) -> Result<()> {
        let commit = Arc::new(commit);
        self.stage(commit.workspace, None, &commit, |commit| commit.contents.iter().collect()).await?;
        let (wakeups, ws) = (self.wakeups.clone(), commit.workspace);
        let note = move |recorded: &Result<bool>| {
            if matches!(recorded, Ok(true)) {
                staged.committed(0);
                wakeups.wake(ws.0);
            }
        };
        self.write_then(move |db| record(db, &commit), note).await.map(drop)
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
        let ws = commit.workspace;
        let staged = self.staging.begin(ws, &commit.contents.iter().collect::<Vec<_>>(), None);
        let recorded = self.record_staged(commit, staged).await;
        if recorded.is_err() {
            self.remove_abandoned(ws).await;
        }
        recorded
    }

    async fn kept(&self, workspace: WorkspaceId, content: ContentHash) -> Result<Vec<u8>> {
        let found = self.read(move |db| slices::bytes(db, workspace.0, content)).await?;
        found.ok_or_else(|| StoreError::internal(format!("the blob {content} is missing")))
    }

    async fn history_bytes(&self, access: Access) -> Result<u64> {
        self.read(move |db| {
            authorised(db, access)?;
            total_bytes(db, access.workspace.0).map(i64::unsigned_abs)
        })
        .await
    }

    async fn limit_history(&self, workspace: WorkspaceId, limit_bytes: u64) -> Result<TrimmedHistory> {
        let limit = i64::try_from(limit_bytes).unwrap_or(i64::MAX);
        let (mut dropped, mut failed_attempts) = (0, 0);
        loop {
            let found = self.read(move |db| droppable(db, workspace.0, limit)).await?;
            let left_bytes = found.total.unsigned_abs();
            if found.oldest.is_empty() || failed_attempts == TRIES {
                return Ok(TrimmedHistory { dropped, left_bytes });
            }
            match self.drop_found(workspace.0, found).await? {
                0 => failed_attempts += 1,
                count => (dropped, failed_attempts) = (dropped + count as u64, 0),
            }
        }
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

//! Maintenance and purging.

use super::row::{collect, find, micros, run};
use super::slices::number;
use super::staging::{self, BATCH_BYTES};
use super::{Sqlite, memories, sessions, storage};
use crate::approvals::IS_OPEN;
use crate::error::Result;
use crate::feed::Source;
use crate::keys::KeyStore;
use crate::quota;
use crate::store::{Purge, Purged, Store, StoreLoad};
use async_trait::async_trait;
use rusqlite::Connection;
use std::collections::BTreeMap;
use toolrest_core::{Timestamp, now};
use uuid::Uuid;

/// Maximum number of rows that one transaction of a purge deletes, so that writers wait only milliseconds.
const BATCH_ROWS: i64 = 500;
/// Maximum number of versions and messages that one transaction deletes.
const BATCH_VERSIONS: usize = 5_000;

/// Sign-in attempts are counted in windows of at most a day.
const DAY_MICROS: i64 = 24 * 60 * 60 * 1_000_000;

#[async_trait]
impl Store for Sqlite {
    async fn ready(&self) -> Result<()> {
        self.read(|db| find(db, "SELECT 1", [], |_| Ok(())).map(drop)).await
    }

    fn load(&self) -> StoreLoad {
        let queued_writes = self.writes.as_ref().map(crossbeam_channel::Sender::len);
        StoreLoad { database: "sqlite", queued_writes, ..self.searcher.load() }
    }

    async fn stored_bytes(&self) -> Result<u64> {
        let sql = "SELECT coalesce(sum(bytes), 0) FROM storage_used";
        let found = self.read(move |db| find(db, sql, [], |row| row.get::<_, i64>(0))).await?;
        Ok(found.unwrap_or(0).unsigned_abs())
    }

    /// Updates usage counts, and removes the contents that commits of this process have abandoned.
    async fn synchronise(&self) -> Result<()> {
        quota::synchronise(self).await?;
        self.remove_all_abandoned().await
    }

    /// Removes unused contents and compresses contents that are no longer current.
    async fn maintain(&self) -> Result<()> {
        self.synchronise().await?;
        self.remove_unused_contents().await?;
        self.compress_history().await
    }

    async fn renew_versions(&self) -> Result<bool> {
        self.renew_some().await
    }

    async fn purge(&self, purge: Purge) -> Result<Purged> {
        let mut purged = Purged::default();
        let (now, day_ago) = (micros(now()), micros(now()) - DAY_MICROS);
        self.write(move |db| {
            run(db, "DELETE FROM sessions WHERE expires_at < ?1", [now])?;
            run(db, "DELETE FROM grants WHERE expires_at < ?1", [now])?;
            run(db, "DELETE FROM sign_in_attempts WHERE window_start < ?1", [day_ago])
        })
        .await?;
        self.end_expired_keys(Timestamp::UNIX_EPOCH).await?;
        self.in_batches(sessions::delete_expired).await?;
        self.in_batches(|db| memories::delete_expired(db, None, toolrest_core::now())).await?;
        if let Some(before) = purge.calls_before {
            // The records of their calls are deleted too.
            let ended = "DELETE FROM keys WHERE min(expires_at, coalesce(revoked_at, expires_at)) < ?1";
            self.write(move |db| run(db, ended, [micros(before)])).await?;
            let noted = "DELETE FROM session_commits WHERE at < ?1";
            self.write(move |db| run(db, noted, [micros(before)])).await?;
            purged.calls += self
                .in_batches(move |db| {
                    let sql = "DELETE FROM calls WHERE (ws, pos) IN (
                                   SELECT ws, pos FROM calls WHERE started_at < ?1 LIMIT ?2
                               ) RETURNING ws, pos";
                    let deleted = collect(db, sql, (micros(before), BATCH_ROWS), |row| Ok((row.get(0)?, row.get(1)?)))?;
                    note_purged(db, Source::Call, &deleted)?;
                    Ok(deleted.len())
                })
                .await?;
            self.in_batches(move |db| purge_approvals(db, micros(before))).await?;
        }
        if let Some(before) = purge.trash_before {
            while let Some(files) = self.write(move |db| purge_trash(db, micros(before))).await? {
                purged.files += files;
            }
        }
        purged.blobs = self.check_possibly_unused().await?;
        if let Some(limit_bytes) = purge.folder_history_bytes {
            purged.dropped = self.limit_folder_history(limit_bytes).await?;
        }
        self.remove_unused_contents().await?;
        self.forget_changes().await?;
        purged.workspaces = self.purge_workspaces().await?;
        Ok(purged)
    }
}

impl Sqlite {
    /// Repeats a deletion of a few rows, in a transaction each, until none is left.
    async fn in_batches<F>(&self, delete: F) -> Result<u64>
    where
        F: Fn(&Connection) -> Result<usize> + Send + Copy + 'static,
    {
        let mut total = 0;
        loop {
            match self.write(move |db| delete(db)).await? {
                0 => return Ok(total),
                deleted => total += deleted as u64,
            }
        }
    }

    /// Deletes the oldest recorded changes of workspaces that have many.
    async fn forget_changes(&self) -> Result<()> {
        let sql = "SELECT min(ws) FROM changes WHERE ws > ?1";
        let mut last = Uuid::nil();
        while let Some(ws) =
            self.read(move |db| find(db, sql, [last], |row| row.get::<_, Option<Uuid>>(0))).await?.flatten()
        {
            let forget = move |db: &Connection| {
                let sql = "DELETE FROM changes WHERE ws = ?1
                           AND place <= (SELECT max(place) FROM changes WHERE ws = ?1) - ?2
                           AND place < (SELECT min(place) FROM changes WHERE ws = ?1) + ?3";
                run(db, sql, (ws, CHANGES_KEPT, BATCH_ROWS))
            };
            self.in_batches(forget).await?;
            last = ws;
        }
        Ok(())
    }

    async fn purge_workspaces(&self) -> Result<u64> {
        let mut workspaces = 0;
        let dead = |db: &Connection| {
            find(db, "SELECT id FROM workspaces WHERE deleted_at IS NOT NULL LIMIT 1", [], |row| row.get::<_, Uuid>(0))
        };
        while let Some(ws) = self.read(dead).await? {
            for (table, key, bytes) in [
                ("files", "id", "0"),
                ("versions", "file_id, seq", "0"),
                ("blobs", "key", "length(data)"),
                ("blob_slices", "key, n", "length(data)"),
                ("staged_blobs", "key", "0"),
                ("superseded", "place", "0"),
                ("changes", "place", "0"),
                ("commits", "id", "octet_length(changes)"),
                ("calls", "id", "0"),
                ("calls_running", "id", "0"),
                ("chat_messages", "chat_id, seq", "octet_length(content)"),
                ("suspended_members", "user_id", "0"),
                ("keys", "id", "0"),
                ("feed_purged", "source", "0"),
                ("rules", "rev", "0"),
                ("grants", "id", "0"),
                ("approvals", "id", "length(args) + length(diff)"),
                ("approval_events", "pos", "0"),
                ("memories", "key", "bytes"),
                ("memory_tags", "tag, key", "0"),
                ("memory_counts", "memories", "0"),
                ("workspace_secrets", "name", "0"),
                ("results", "principal, id", "bytes"),
                ("session_commits", "commit_id", "0"),
            ] {
                // Selects rows until their bytes reach the limit of one transaction, and at least one.
                let sql = format!(
                    "DELETE FROM {table} WHERE (ws, {key}) IN (SELECT ws, {key} FROM (
                         SELECT ws, {key}, sum(bytes) OVER (ROWS UNBOUNDED PRECEDING) - bytes AS before FROM (
                             SELECT ws, {key}, {bytes} AS bytes FROM {table} WHERE ws = ?1 LIMIT ?2
                         )
                     ) WHERE before < ?3)"
                );
                while {
                    let sql = sql.clone();
                    self.write(move |db| run(db, &sql, (ws, BATCH_ROWS, BATCH_BYTES))).await? > 0
                } {}
            }
            self.write(move |db| {
                run(db, "DELETE FROM storage_used WHERE ws = ?1", [ws])?;
                run(db, "DELETE FROM workspaces WHERE id = ?1", [ws])
            })
            .await?;
            workspaces += 1;
        }
        Ok(workspaces)
    }
}

/// Deletes a batch of approvals that ended before a time, with their events.
fn purge_approvals(db: &Connection, before: i64) -> Result<usize> {
    let sql = format!("SELECT ws, id FROM approvals WHERE changed_at < ?1 AND NOT {IS_OPEN} LIMIT ?2");
    let ended: Vec<(Uuid, Uuid)> = collect(db, &sql, (before, BATCH_ROWS), |row| Ok((row.get(0)?, row.get(1)?)))?;
    for (ws, id) in &ended {
        let sql = "DELETE FROM approval_events WHERE ws = ?1 AND approval_id = ?2 RETURNING ws, pos";
        let deleted = collect(db, sql, (ws, id), |row| Ok((row.get(0)?, row.get(1)?)))?;
        note_purged(db, Source::Approval, &deleted)?;
        run(db, "DELETE FROM approvals WHERE ws = ?1 AND id = ?2", (ws, id))?;
    }
    Ok(ended.len())
}

/// Notes up to which position events were deleted, by workspace, so that readers of the feed learn of the gap.
fn note_purged(db: &Connection, source: Source, deleted: &[(Uuid, i64)]) -> Result<()> {
    let mut newest: BTreeMap<Uuid, i64> = BTreeMap::new();
    for (ws, position) in deleted {
        let upto = newest.entry(*ws).or_default();
        *upto = (*upto).max(*position);
    }
    for (ws, upto) in newest {
        let sql = "INSERT INTO feed_purged (ws, source, upto) VALUES (?1, ?2, ?3)
                   ON CONFLICT (ws, source) DO UPDATE SET upto = max(upto, excluded.upto)";
        run(db, sql, (ws, source.code(), upto))?;
    }
    Ok(())
}

/// Minimum number of recorded changes per workspace. An index that is further behind is rebuilt from the whole list.
const CHANGES_KEPT: i64 = 10_000;

/// Deletes a batch of files from the trash permanently, with their versions, and marks their contents as possibly
/// unused. Returns none if the trash has no such files.
fn purge_trash(db: &Connection, before: i64) -> Result<Option<u64>> {
    let sql = "SELECT ws, id FROM files WHERE deleted_at IS NOT NULL AND deleted_at < ?1 LIMIT ?2";
    let files: Vec<(Uuid, Uuid)> = collect(db, sql, (before, BATCH_ROWS), |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (mut rows, mut purged) = (0, 0);
    for (ws, file) in &files {
        let of_it = match BATCH_VERSIONS - rows {
            0 => None,
            max_rows => purge_file(db, *ws, *file, max_rows)?,
        };
        let Some(of_it) = of_it else { break };
        rows += of_it;
        purged += 1;
    }
    Ok((!files.is_empty()).then_some(purged))
}

/// Deletes a file with its versions and messages; returns how many there were. If there are too many for one
/// transaction, deletes only the oldest and returns none: the file itself stays for the next batch.
fn purge_file(db: &Connection, ws: Uuid, file: Uuid, max_rows: usize) -> Result<Option<usize>> {
    let versions = "DELETE FROM versions WHERE ws = ?1 AND file_id = ?2 AND seq IN (
                        SELECT seq FROM versions WHERE ws = ?1 AND file_id = ?2
                        AND seq < (SELECT max(seq) FROM versions WHERE ws = ?1 AND file_id = ?2)
                        ORDER BY seq LIMIT ?3)
                    RETURNING blob";
    let messages = "DELETE FROM chat_messages WHERE ws = ?1 AND chat_id = ?2 AND seq IN (
                        SELECT seq FROM chat_messages WHERE ws = ?1 AND chat_id = ?2 ORDER BY seq LIMIT ?3)
                    RETURNING octet_length(content)";
    let newest = "DELETE FROM versions WHERE ws = ?1 AND file_id = ?2 RETURNING blob";
    let mut blobs: Vec<[u8; 32]> = collect(db, versions, (ws, file, number(max_rows)?), |row| row.get(0))?;
    let sizes: Vec<i64> = collect(db, messages, (ws, file, number(max_rows)?), |row| row.get(0))?;
    let is_all = blobs.len() < max_rows && sizes.len() < max_rows;
    if is_all {
        blobs.extend(collect(db, newest, (ws, file), |row| row.get::<_, [u8; 32]>(0))?);
        run(db, "DELETE FROM files WHERE ws = ?1 AND id = ?2", (ws, file))?;
    }
    for blob in &blobs {
        staging::mark_possibly_unused(db, ws, blob)?;
    }
    storage::add(db, ws, -sizes.iter().sum::<i64>())?;
    Ok(is_all.then_some((blobs.len() + sizes.len()).min(max_rows)))
}

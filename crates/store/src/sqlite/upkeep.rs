//! The records of calls, and what is past its time.

use super::row::{authorised, collect, find, micros, run, time};
use super::{Sqlite, storage};
use crate::files::Page;
use crate::quota;
use crate::store::{CallStore, Purge, Purged, Store};
use async_trait::async_trait;
use rusqlite::{Connection, Row};
use std::collections::BTreeSet;
use toolrest_core::{Access, CallId, CallRecord, CommitId, Result, UserId, WorkspaceId, now};
use uuid::Uuid;

/// How many rows one turn of a purge takes, so that writers wait milliseconds for it and not minutes.
const TURN: i64 = 500;

/// No window in which sign-in attempts are counted is longer.
const DAY_MICROS: i64 = 24 * 60 * 60 * 1_000_000;

fn record(row: &Row<'_>) -> rusqlite::Result<CallRecord> {
    Ok(CallRecord {
        workspace: WorkspaceId(row.get(0)?),
        id: CallId(row.get(1)?),
        toolset: row.get(2)?,
        tool: row.get(3)?,
        caller: UserId(row.get(4)?),
        started_at: time(row, 5)?,
        duration_us: row.get(6)?,
        outcome: row.get(7)?,
        commit_id: row.get::<_, Option<Uuid>>(8)?.map(CommitId),
    })
}

#[async_trait]
impl CallStore for Sqlite {
    async fn record_calls(&self, records: Vec<CallRecord>) -> Result<()> {
        self.write(move |db| {
            for record in records {
                run(
                    db,
                    "INSERT INTO calls (ws, id, toolset, tool, caller, started_at, duration_us, outcome, commit_id)
                     SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 WHERE EXISTS (SELECT 1 FROM workspaces WHERE id = ?1)
                     ON CONFLICT (ws, id) DO UPDATE SET outcome = excluded.outcome, duration_us = excluded.duration_us,
                         commit_id = coalesce(calls.commit_id, excluded.commit_id)",
                    (
                        record.workspace.0,
                        record.id.0,
                        record.toolset,
                        record.tool,
                        record.caller.0,
                        micros(record.started_at),
                        record.duration_us,
                        record.outcome,
                        record.commit_id.map(|id| id.0),
                    ),
                )?;
            }
            Ok(())
        })
        .await
    }

    async fn calls(&self, access: Access, page: Page<CallId>) -> Result<Vec<CallRecord>> {
        self.read(move |db| {
            authorised(db, access)?;
            let sql = "SELECT ws, id, toolset, tool, caller, started_at, duration_us, outcome, commit_id FROM calls
                       WHERE ws = ?1 AND (?2 IS NULL OR id < ?2) ORDER BY id DESC LIMIT ?3";
            collect(db, sql, (access.workspace.0, page.before.map(|id| id.0), page.limit), record)
        })
        .await
    }
}

#[async_trait]
impl Store for Sqlite {
    async fn ready(&self) -> Result<()> {
        self.read(|db| find(db, "SELECT 1", [], |_| Ok(())).map(drop)).await
    }

    /// Compresses contents that are history by now, and counts what was stored.
    async fn tend(&self) -> Result<()> {
        quota::synchronise(self).await?;
        self.compress_history().await
    }

    async fn purge(&self, purge: Purge) -> Result<Purged> {
        let mut purged = Purged::default();
        let (now, day_ago) = (micros(now()), micros(now()) - DAY_MICROS);
        self.write(move |db| {
            run(db, "DELETE FROM sessions WHERE expires_at < ?1", [now])?;
            run(db, "DELETE FROM sign_in_attempts WHERE window_start < ?1", [day_ago])
        })
        .await?;
        if let Some(before) = purge.calls_before {
            purged.calls += self
                .in_turns(move |db| {
                    run(
                        db,
                        "DELETE FROM calls WHERE (ws, id) IN
                            (SELECT ws, id FROM calls WHERE started_at < ?1 LIMIT ?2)",
                        (micros(before), TURN),
                    )
                })
                .await?;
        }
        if let Some(before) = purge.trash_before {
            loop {
                let (files, blobs) = self.write(move |db| purge_trash(db, micros(before))).await?;
                purged.files += files;
                purged.blobs += blobs;
                if files == 0 {
                    break;
                }
            }
        }
        if let Some(limit_bytes) = purge.folder_history_bytes {
            purged.dropped = self.limit_folder_history(limit_bytes).await?;
        }
        self.purge_staged().await?;
        self.forget_changes().await?;
        purged.workspaces = self.purge_workspaces().await?;
        Ok(purged)
    }
}

impl Sqlite {
    /// Repeats a deletion of a few rows, each in a transaction of its own, until none is left.
    async fn in_turns<F>(&self, delete: F) -> Result<u64>
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

    /// Forgets the oldest changes of workspaces that have many.
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
                run(db, sql, (ws, CHANGES_KEPT, TURN))
            };
            self.in_turns(forget).await?;
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
            for (table, key) in [
                ("files", "id"),
                ("versions", "file_id, seq"),
                ("blobs", "key"),
                ("blob_slices", "key, n"),
                ("staged_blobs", "key"),
                ("superseded", "place"),
                ("changes", "place"),
                ("commits", "id"),
                ("calls", "id"),
                ("chat_messages", "chat_id, seq"),
                ("suspended_members", "user_id"),
            ] {
                let sql = format!(
                    "DELETE FROM {table} WHERE (ws, {key}) IN (SELECT ws, {key} FROM {table} WHERE ws = ?1 LIMIT ?2)"
                );
                while {
                    let sql = sql.clone();
                    self.write(move |db| run(db, &sql, (ws, TURN))).await? > 0
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

/// How many changes of a workspace are remembered at least. A search that has not seen more than these reads them;
/// one that has not looked for longer reads the whole list anew.
const CHANGES_KEPT: i64 = 10_000;

/// Takes a few files out of the trash for good: their versions with them, and the contents that nothing else needs.
fn purge_trash(db: &Connection, before: i64) -> Result<(u64, u64)> {
    let sql = "SELECT ws, id FROM files WHERE deleted_at IS NOT NULL AND deleted_at < ?1 LIMIT ?2";
    let files: Vec<(Uuid, Uuid)> = collect(db, sql, (before, TURN), |row| Ok((row.get(0)?, row.get(1)?)))?;
    for (ws, file) in &files {
        run(db, "DELETE FROM versions WHERE ws = ?1 AND file_id = ?2", (ws, file))?;
        let messages = "DELETE FROM chat_messages WHERE ws = ?1 AND chat_id = ?2 RETURNING octet_length(content)";
        let sizes: Vec<i64> = collect(db, messages, (ws, file), |row| row.get(0))?;
        storage::add(db, *ws, -sizes.iter().sum::<i64>())?;
        run(db, "DELETE FROM files WHERE ws = ?1 AND id = ?2", (ws, file))?;
    }
    let mut blobs = 0;
    for ws in files.iter().map(|(ws, _)| ws).collect::<BTreeSet<_>>() {
        // One pass over the workspace's versions; an index for this alone would make every write dearer.
        let sql = "DELETE FROM blobs WHERE ws = ?1 AND key NOT IN (SELECT blob FROM versions WHERE ws = ?1)
                   AND key NOT IN (SELECT key FROM staged_blobs WHERE ws = ?1) RETURNING size";
        let sizes: Vec<i64> = collect(db, sql, [ws], |row| row.get(0))?;
        storage::add(db, *ws, -sizes.iter().sum::<i64>())?;
        blobs += sizes.len();
    }
    Ok((files.len() as u64, blobs as u64))
}

//! Contents staged before their commit, and the removal of contents without a commit.
//!
//! A row of `staged_blobs` marks a content that no version refers to. A commit that needs the content removes the mark.
//! Marked contents that no pending commit needs are removed: those of commits that were refused or abandoned, and those
//! that a purge has left without a version. Each transaction removes a limited number of bytes, because all workspaces
//! share one writer.
//!
//! A process does not know which contents the pending commits of another process need, so contents that it did not stage
//! itself are removed some time after they were staged. If a commit takes longer, it stores the missing contents again.
//!
//! A purge does not know whether other versions refer to a content. It marks the content as possibly unused; later a
//! reader, which blocks nobody, compares the marks with all versions.

use super::row::{collect, find, micros, run};
use super::slices::{SLICE_BYTES, number};
use super::{Sqlite, slices, storage};
use crate::blob::Prepared;
use crate::error::{Result, StoreError};
use crate::quota::Reserved;
use rusqlite::Connection;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use toolrest_core::{ContentHash, WorkspaceId, now};
use uuid::Uuid;

/// Approximately the maximum number of bytes that one transaction removes.
pub(super) const BATCH_BYTES: i64 = 8 << 20;
/// Maximum number of contents that one transaction removes.
const BATCH_ROWS: usize = 500;

/// Minimum time between two warnings about removals that failed. Each refused commit tries one, also on a full disk.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// Age at which staged contents are removed whatever process has staged them.
const MAX_STAGED: Duration = Duration::from_secs(10 * 60);

/// Replaces the time in the mark of a content that other versions may refer to.
const POSSIBLY_UNUSED: i64 = -1;

/// A content of a workspace.
type Key = (Uuid, ContentHash);

/// The contents that pending commits have staged.
#[derive(Default)]
pub(super) struct Staging(Mutex<State>);

#[derive(Default)]
struct State {
    /// The number of pending commits that need a content.
    in_use: HashMap<Key, usize>,
    abandoned: Vec<AbandonedContents>,
    /// When a failed removal was last logged.
    warned_at: Option<Instant>,
}

/// Contents of a commit that was refused or abandoned.
struct AbandonedContents {
    ws: Uuid,
    keys: Arc<[ContentHash]>,
    /// The reservation that counts the contents until they are removed.
    room: Option<Reserved>,
}

/// The contents of a pending commit. If it is dropped before the commit is made, they are abandoned.
pub(super) struct Staged {
    staging: Arc<Staging>,
    contents: Option<AbandonedContents>,
}

impl Staged {
    /// Marks the commit as made, with the bytes that it stored.
    pub(super) fn committed(mut self, stored: i64) {
        if let Some(AbandonedContents { ws, keys, room }) = self.contents.take() {
            self.staging.lock().release(ws, &keys);
            if let Some(room) = room {
                room.count_written(stored);
            }
        }
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some(contents) = self.contents.take() {
            let mut state = self.staging.lock();
            state.release(contents.ws, &contents.keys);
            if !contents.keys.is_empty() {
                state.abandoned.push(contents);
            }
        }
    }
}

impl Staging {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Protects the contents of a commit from removal, and keeps their reservation.
    pub(super) fn begin(self: &Arc<Self>, ws: WorkspaceId, contents: &[&Prepared], room: Option<Reserved>) -> Staged {
        let keys: Arc<[ContentHash]> = if slices::are_staged(contents) {
            contents.iter().map(|content| content.key).collect()
        } else {
            Arc::default()
        };
        let mut state = self.lock();
        for key in &*keys {
            *state.in_use.entry((ws.0, *key)).or_default() += 1;
        }
        Staged { staging: Arc::clone(self), contents: Some(AbandonedContents { ws: ws.0, keys, room }) }
    }

    fn is_in_use(&self, key: Key) -> bool {
        self.lock().in_use.contains_key(&key)
    }

    /// Whether a failed removal is to be logged: the first, and then at most one in each interval.
    fn warns_now(&self) -> bool {
        let mut state = self.lock();
        let is_due = state.warned_at.is_none_or(|at| at.elapsed() >= WARNING_INTERVAL);
        if is_due {
            state.warned_at = Some(Instant::now());
        }
        is_due
    }

    fn take_abandoned(&self, ws: Option<Uuid>) -> Vec<AbandonedContents> {
        let mut state = self.lock();
        let (taken, left) = std::mem::take(&mut state.abandoned)
            .into_iter()
            .partition(|contents| ws.is_none_or(|ws| ws == contents.ws));
        state.abandoned = left;
        taken
    }
}

impl State {
    fn release(&mut self, ws: Uuid, keys: &[ContentHash]) {
        for key in keys {
            if let Some(count) = self.in_use.get_mut(&(ws, *key)) {
                *count -= 1;
                if *count == 0 {
                    self.in_use.remove(&(ws, *key));
                }
            }
        }
    }
}

impl Sqlite {
    /// Removes the abandoned contents of a workspace. Failures are retried later.
    pub(super) async fn remove_abandoned(&self, ws: WorkspaceId) {
        if let Err(error) = self.remove_abandoned_of(Some(ws.0)).await
            && self.staging.warns_now()
        {
            tracing::warn!(%error, "could not remove contents of refused commits; will try again");
        }
    }

    /// Removes the contents that commits of this process have abandoned.
    pub(super) async fn remove_all_abandoned(&self) -> Result<()> {
        self.remove_abandoned_of(None).await
    }

    /// Removes all marked contents that no pending commit needs.
    pub(super) async fn remove_unused_contents(&self) -> Result<()> {
        self.remove_all_abandoned().await?;
        let staged_before = micros(now().checked_sub(MAX_STAGED).map_err(StoreError::internal)?);
        let mut last = (Uuid::nil(), [0; 32]);
        loop {
            let sql = "SELECT ws, key FROM staged_blobs WHERE (ws, key) > (?1, ?2) AND staged_at BETWEEN 0 AND ?3
                       ORDER BY ws, key LIMIT ?4";
            let marked: Vec<(Uuid, [u8; 32])> = self
                .read(move |db| {
                    let params = (last.0, last.1, staged_before, number(BATCH_ROWS)?);
                    collect(db, sql, params, |row| Ok((row.get(0)?, row.get(1)?)))
                })
                .await?;
            let Some(end) = marked.last() else { return Ok(()) };
            last = *end;
            self.remove_contents(marked.into_iter().map(|(ws, key)| (ws, ContentHash(key))).collect()).await?;
        }
    }

    /// Checks which possibly unused contents no version refers to; returns how many. They no longer count as usage.
    pub(super) async fn check_possibly_unused(&self) -> Result<u64> {
        let possibly_unused = "SELECT DISTINCT ws FROM staged_blobs WHERE staged_at = ?1";
        let mut unused = 0;
        for ws in
            self.read(move |db| collect(db, possibly_unused, [POSSIBLY_UNUSED], |row| row.get::<_, Uuid>(0))).await?
        {
            let sql = "SELECT key, key IN (SELECT blob FROM versions WHERE ws = ?1) FROM staged_blobs
                       WHERE ws = ?1 AND staged_at = ?2";
            let checked: Vec<([u8; 32], bool)> = self
                .read(move |db| collect(db, sql, (ws, POSSIBLY_UNUSED), |row| Ok((row.get(0)?, row.get(1)?))))
                .await?;
            for some in checked.chunks(BATCH_ROWS) {
                let some = some.to_vec();
                unused += self.write(move |db| resolve_possibly_unused(db, ws, &some)).await?;
            }
        }
        Ok(unused)
    }

    async fn remove_abandoned_of(&self, ws: Option<Uuid>) -> Result<()> {
        let abandoned = self.staging.take_abandoned(ws);
        let keys = abandoned.iter().flat_map(|contents| contents.keys.iter().map(|key| (contents.ws, *key))).collect();
        let removed = self.remove_contents(keys).await;
        if removed.is_err() {
            self.staging.lock().abandoned.extend(abandoned);
        }
        removed
    }

    async fn remove_contents(&self, keys: Vec<Key>) -> Result<()> {
        let keys = Arc::new(keys);
        let mut removed = 0;
        while removed < keys.len() {
            let (keys, staging) = (Arc::clone(&keys), Arc::clone(&self.staging));
            removed += self.write(move |db| remove_some(db, &staging, &keys[removed..])).await?;
        }
        Ok(())
    }
}

/// Marks a content that was referred to by a removed version, and may be by another.
pub(super) fn mark_possibly_unused(db: &Connection, ws: Uuid, key: &[u8; 32]) -> Result<()> {
    let sql = "INSERT INTO staged_blobs (ws, key, staged_at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    run(db, sql, (ws, key, POSSIBLY_UNUSED)).map(drop)
}

/// Updates the marks of possibly unused contents, each with whether a version refers to it; returns how many are
/// unused. If a commit has come to need a content meanwhile, its mark no longer exists.
fn resolve_possibly_unused(db: &Connection, ws: Uuid, checked: &[([u8; 32], bool)]) -> Result<u64> {
    let (mut unused, mut bytes) = (0, 0);
    for (key, is_needed) in checked {
        if *is_needed {
            let sql = "DELETE FROM staged_blobs WHERE ws = ?1 AND key = ?2 AND staged_at = ?3";
            run(db, sql, (ws, key, POSSIBLY_UNUSED))?;
            continue;
        }
        let sql = "UPDATE staged_blobs SET staged_at = 0 WHERE ws = ?1 AND key = ?2 AND staged_at = ?3";
        if run(db, sql, (ws, key, POSSIBLY_UNUSED))? > 0 {
            // Rows of dropped contents are deleted too: no version refers to them.
            run(db, "DELETE FROM blobs WHERE ws = ?1 AND key = ?2 AND encoding = 2", (ws, key))?;
            let size = "SELECT size FROM blobs WHERE ws = ?1 AND key = ?2";
            bytes += find(db, size, (ws, key), |row| row.get::<_, i64>(0))?.unwrap_or(0);
            unused += 1;
        }
    }
    storage::free_contents(db, ws, bytes)?;
    Ok(unused)
}

/// Removes the first of these contents, up to the limit of one transaction; returns how many are done.
fn remove_some(db: &Connection, staging: &Staging, keys: &[Key]) -> Result<usize> {
    let mut bytes = 0;
    for (removed, key) in keys.iter().take(BATCH_ROWS).enumerate() {
        if bytes >= BATCH_BYTES {
            return Ok(removed);
        }
        match remove(db, staging, *key, BATCH_BYTES - bytes)? {
            Some(of_it) => bytes += of_it,
            None => return Ok(removed),
        }
    }
    Ok(keys.len().min(BATCH_ROWS))
}

/// Removes a marked content, unless a pending commit needs it; returns its size. Returns none if it is larger than the
/// limit and only a part was removed.
fn remove(db: &Connection, staging: &Staging, key: Key, max_bytes: i64) -> Result<Option<i64>> {
    let (ws, hash) = (key.0, key.1.0);
    let mark = "SELECT 1 FROM staged_blobs WHERE ws = ?1 AND key = ?2 AND staged_at >= 0";
    if staging.is_in_use(key) || find(db, mark, (ws, hash), |_| Ok(()))?.is_none() {
        return Ok(Some(0));
    }
    // The row of a dropped content stays: versions refer to it.
    let size = "SELECT length(data) FROM blobs WHERE ws = ?1 AND key = ?2 AND encoding <> 2";
    let bytes: Option<i64> = find(db, size, (ws, hash), |row| row.get(0))?;
    if bytes.is_some() {
        run(db, "DELETE FROM blobs WHERE ws = ?1 AND key = ?2", (ws, hash))?;
    }
    let slice_bytes = number(SLICE_BYTES)?;
    let most = (max_bytes / slice_bytes).max(1);
    let slices = "DELETE FROM blob_slices WHERE rowid IN
                      (SELECT rowid FROM blob_slices WHERE ws = ?1 AND key = ?2 LIMIT ?3)";
    let removed = number(run(db, slices, (ws, hash, most))?)?;
    if removed == most {
        return Ok(None);
    }
    run(db, "DELETE FROM staged_blobs WHERE ws = ?1 AND key = ?2", (ws, hash))?;
    Ok(Some(bytes.unwrap_or(0) + removed * slice_bytes))
}

#[cfg(test)]
#[path = "staging_tests.rs"]
mod tests;

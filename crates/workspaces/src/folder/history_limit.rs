//! Keeps the history of a folder within its limit, commit by commit.
//!
//! The size of a history is counted in memory, because the database would have to add up all contents. The count is too high
//! if contents were there before, and misses what other processes add. It is corrected whenever it exceeds the limit, and
//! an hourly purge covers all folders.

use super::commit::Job;
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};
use toolrest_core::{Result, WorkspaceId};
use toolrest_store::blob::Prepared;

/// The size of the histories of a folder's workspaces in bytes.
#[derive(Default)]
pub(super) struct HistoryUse(Mutex<HashMap<WorkspaceId, HistorySize>>);

#[derive(Clone, Copy)]
struct HistorySize {
    bytes: u64,
    /// Size from which on the oldest contents are dropped.
    max_bytes: u64,
}

/// Returns the number of bytes that contents take in a history.
pub(super) fn kept_bytes<'a>(contents: impl IntoIterator<Item = &'a Prepared>) -> u64 {
    contents.into_iter().map(|content| content.data.len() as u64).sum()
}

impl Job {
    /// Drops the oldest contents of the history if a commit has brought it over its limit. After a failure, the next commit
    /// or purge does it: the commit stands.
    pub(super) fn limit_history(&self, added_bytes: u64) {
        let Some(limit) = self.folder.disk.limits.total_bytes else { return };
        if let Err(error) = self.count_history(added_bytes, limit) {
            tracing::warn!(%error, "could not bring the history of a folder to its limit; will try again");
        }
    }

    fn count_history(&self, added_bytes: u64, limit: u64) -> Result<()> {
        let workspace = self.access.workspace;
        let known = self.folder.history.lock().get(&workspace).copied();
        let mut now = match known {
            Some(known) => HistorySize { bytes: known.bytes.saturating_add(added_bytes), ..known },
            None => {
                HistorySize { bytes: self.runtime.block_on(self.store.history_bytes(self.access))?, max_bytes: limit }
            }
        };
        if now.bytes > now.max_bytes {
            // Drop more than necessary, so that not every commit has to.
            let reserve = limit / 16;
            let left = self.runtime.block_on(self.store.limit_history(workspace, limit - reserve))?.left_bytes;
            // Current contents are not dropped, and may be more than the limit.
            now = HistorySize { bytes: left, max_bytes: limit.max(left.saturating_add(reserve)) };
        }
        self.folder.history.lock().insert(workspace, now);
        Ok(())
    }
}

impl HistoryUse {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<WorkspaceId, HistorySize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! The cache of all searched workspaces, with a common limit and eviction.

use super::index::{Cursor, Index};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};
use toolrest_core::WorkspaceId;

/// The indexes of the workspaces searched most recently, with one limit for all.
///
/// When the cache is nearly full, the texts of the least recently searched workspaces are compressed, then those
/// workspaces are evicted. A single workspace that is too large keeps what fits; the rest is read from the database in
/// each search.
#[derive(Debug)]
pub(crate) struct Cache {
    budget: Arc<MemoryBudget>,
    workspaces: Mutex<HashMap<WorkspaceId, Arc<CachedWorkspace>>>,
    searches: AtomicU64,
    is_evicting: AtomicBool,
}

/// The cached index of one workspace.
#[derive(Debug)]
pub(crate) struct CachedWorkspace {
    index: Mutex<Index>,
    /// The number of the last search that used it.
    last_search: AtomicU64,
}

/// Counts the bytes used by all workspaces.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    used: AtomicUsize,
    limit: usize,
}

impl MemoryBudget {
    /// Adds bytes to the count if they fit.
    pub(crate) fn try_charge(&self, bytes: usize) -> bool {
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.limit);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    /// Adds bytes to the count, even beyond the limit.
    pub(crate) fn charge(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn refund(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether anything more fits.
    pub(crate) fn has_room(&self) -> bool {
        self.used.load(Ordering::Relaxed) < self.limit
    }
}

impl CachedWorkspace {
    pub(crate) fn index(&self) -> Index {
        self.lock().clone()
    }

    /// Replaces the cached index by one that was derived from it, or by one with more files. Each index is valid for
    /// its own cursor, so any may be cached.
    pub(crate) fn keep(&self, made_from: Option<Cursor>, index: &Index) {
        let mut kept = self.lock();
        let worth = |index: &Index| (index.is_complete, index.files.len(), index.cursor);
        let follows = kept.cursor == made_from && index.cursor != made_from;
        if follows || worth(index) > worth(&kept) {
            *kept = index.clone();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Index> {
        // The index is replaced as a whole, so a panic cannot leave it in an invalid state.
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cache {
    pub(crate) fn new(limit_bytes: usize) -> Self {
        Self {
            budget: Arc::new(MemoryBudget { used: AtomicUsize::new(0), limit: limit_bytes }),
            workspaces: Mutex::default(),
            searches: AtomicU64::new(0),
            is_evicting: AtomicBool::new(false),
        }
    }

    pub(crate) fn budget(&self) -> &Arc<MemoryBudget> {
        &self.budget
    }

    /// The bytes in use.
    pub(crate) fn used_bytes(&self) -> usize {
        self.budget.used.load(Ordering::Relaxed)
    }

    /// Maximum number of bytes.
    pub(crate) fn limit_bytes(&self) -> usize {
        self.budget.limit
    }

    /// Returns the cached state of a workspace, or an empty one.
    pub(crate) fn memory(&self, workspace: WorkspaceId) -> Arc<CachedWorkspace> {
        let memory = self.workspaces().get(&workspace).map(Arc::clone);
        memory.unwrap_or_else(|| Arc::new(CachedWorkspace { index: Mutex::default(), last_search: AtomicU64::new(0) }))
    }

    /// Records that a member searched the workspace. Only then is it cached: strangers must not fill the cache.
    pub(crate) fn used(&self, workspace: WorkspaceId, memory: &Arc<CachedWorkspace>) -> Arc<CachedWorkspace> {
        let search = self.searches.fetch_add(1, Ordering::Relaxed);
        let memory = Arc::clone(self.workspaces().entry(workspace).or_insert_with(|| Arc::clone(memory)));
        memory.last_search.store(search, Ordering::Relaxed);
        memory
    }

    fn workspaces(&self) -> std::sync::MutexGuard<'_, HashMap<WorkspaceId, Arc<CachedWorkspace>>> {
        self.workspaces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is nearly full.
    pub(crate) fn is_nearly_full(&self) -> bool {
        self.used_bytes() > self.budget.limit / 8 * 7
    }

    /// Reduces the use to three quarters, if possible. This takes long; concurrent calls return immediately.
    pub(crate) fn evict(&self) {
        if self.is_evicting.swap(true, Ordering::Acquire) {
            return;
        }
        let _done = ResetOnDrop(&self.is_evicting);
        let enough = || self.used_bytes() <= self.budget.limit / 4 * 3;
        let mut oldest_first: Vec<(WorkspaceId, Arc<CachedWorkspace>)> =
            self.workspaces().iter().map(|(id, memory)| (*id, Arc::clone(memory))).collect();
        oldest_first.sort_by_key(|(_, memory)| memory.last_search.load(Ordering::Relaxed));
        'compress: for (_, memory) in &oldest_first {
            for file in &*memory.index().files {
                if enough() {
                    break 'compress;
                }
                file.text.compress();
            }
        }
        // The most recently searched workspace is never evicted.
        oldest_first.pop();
        for (id, memory) in oldest_first {
            if enough() {
                break;
            }
            self.workspaces().remove(&id);
            drop(memory);
        }
    }
}

/// Resets a flag when dropped.
struct ResetOnDrop<'a>(&'a AtomicBool);

impl Drop for ResetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

//! How much of all workspaces is kept in memory, and what goes when there is too much.

use super::index::{Cursor, Index};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};
use toolrest_core::WorkspaceId;

/// The indexes of the workspaces that were searched last, within a bound over all of them.
///
/// When it fills up, the texts of workspaces that were not searched for longest are compressed; then those workspaces
/// go. One workspace that is too large alone keeps what fits and reads the rest from the database each time.
#[derive(Debug)]
pub(crate) struct Cache {
    books: Arc<Books>,
    memories: Mutex<HashMap<WorkspaceId, Arc<Memory>>>,
    searches: AtomicU64,
    is_making_room: AtomicBool,
}

/// What is kept of one workspace.
#[derive(Debug)]
pub(crate) struct Memory {
    index: Mutex<Index>,
    /// The number of the last search that used it.
    last_search: AtomicU64,
}

/// Counts the bytes in use over all workspaces.
#[derive(Debug)]
pub(crate) struct Books {
    used: AtomicUsize,
    limit: usize,
}

impl Books {
    /// Counts bytes if there is room for them.
    pub(crate) fn try_charge(&self, bytes: usize) -> bool {
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.limit);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    /// Counts bytes that are needed in any case.
    pub(crate) fn charge(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn refund(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether anything more would still fit.
    pub(crate) fn has_room(&self) -> bool {
        self.used.load(Ordering::Relaxed) < self.limit
    }
}

impl Memory {
    pub(crate) fn index(&self) -> Index {
        self.lock().clone()
    }

    /// Keeps an index in the place of the one that it was made from, or of one that is worth less. Each is right for its
    /// own moment, so any may be kept.
    pub(crate) fn keep(&self, made_from: Option<Cursor>, index: &Index) {
        let mut kept = self.lock();
        let worth = |index: &Index| (index.is_complete, index.files.len(), index.cursor);
        let follows = kept.cursor == made_from && index.cursor != made_from;
        if follows || worth(index) > worth(&kept) {
            *kept = index.clone();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Index> {
        // An index is replaced as a whole, so a panic elsewhere cannot have left it half done.
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cache {
    pub(crate) fn new(limit_bytes: usize) -> Self {
        Self {
            books: Arc::new(Books { used: AtomicUsize::new(0), limit: limit_bytes }),
            memories: Mutex::default(),
            searches: AtomicU64::new(0),
            is_making_room: AtomicBool::new(false),
        }
    }

    pub(crate) fn books(&self) -> &Arc<Books> {
        &self.books
    }

    /// The bytes that are kept now.
    pub(crate) fn used_bytes(&self) -> usize {
        self.books.used.load(Ordering::Relaxed)
    }

    /// What is kept of a workspace.
    pub(crate) fn memory(&self, workspace: WorkspaceId) -> Arc<Memory> {
        let memory = self.memories().get(&workspace).map(Arc::clone);
        memory.unwrap_or_else(|| Arc::new(Memory { index: Mutex::default(), last_search: AtomicU64::new(0) }))
    }

    /// Notes that a member searched the workspace. What nobody may search is not kept.
    pub(crate) fn used(&self, workspace: WorkspaceId, memory: &Arc<Memory>) -> Arc<Memory> {
        let search = self.searches.fetch_add(1, Ordering::Relaxed);
        let memory = Arc::clone(self.memories().entry(workspace).or_insert_with(|| Arc::clone(memory)));
        memory.last_search.store(search, Ordering::Relaxed);
        memory
    }

    fn memories(&self) -> std::sync::MutexGuard<'_, HashMap<WorkspaceId, Arc<Memory>>> {
        self.memories.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is nearly full.
    pub(crate) fn is_tight(&self) -> bool {
        self.used_bytes() > self.books.limit / 8 * 7
    }

    /// Brings the use down to three quarters, where that is possible. Takes long; of several at once one works.
    pub(crate) fn make_room(&self) {
        if self.is_making_room.swap(true, Ordering::Acquire) {
            return;
        }
        let _done = Done(&self.is_making_room);
        let enough = || self.used_bytes() <= self.books.limit / 4 * 3;
        let mut oldest_first: Vec<(WorkspaceId, Arc<Memory>)> =
            self.memories().iter().map(|(id, memory)| (*id, Arc::clone(memory))).collect();
        oldest_first.sort_by_key(|(_, memory)| memory.last_search.load(Ordering::Relaxed));
        'compress: for (_, memory) in &oldest_first {
            for file in &*memory.index().files {
                if enough() {
                    break 'compress;
                }
                file.text.compress();
            }
        }
        // The last one stays: what it has is more than nothing, and it was wanted just now.
        oldest_first.pop();
        for (id, memory) in oldest_first {
            if enough() {
                break;
            }
            self.memories().remove(&id);
            drop(memory);
        }
    }
}

/// Says that something is over, however it ends.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

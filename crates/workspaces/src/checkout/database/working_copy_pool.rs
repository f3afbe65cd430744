//! The working copies of all workspaces, which are kept between programs.

use super::working_copy::WorkingCopy;
use crate::scratch::{Scratch, remove};
use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::runtime::Handle;
use toolrest_core::{FolderHandle, Result, ToolError, WorkspaceId};
use toolrest_store::disk_fault::disk_fault;
use toolrest_store::file_list::ListCursor;

/// Limits on the working copies that are kept between programs.
#[derive(Clone, Copy, Debug)]
pub struct CheckoutRetention {
    /// Working copies that were not used for so long are removed.
    pub idle: Duration,
    /// Maximum number of working copies. Those that were used longest ago are removed first.
    pub folders: usize,
}

impl Default for CheckoutRetention {
    fn default() -> Self {
        Self { idle: Duration::from_secs(60 * 60), folders: 64 }
    }
}

/// The working copies of all workspaces.
pub(crate) struct WorkingCopyPool {
    scratch: Arc<Scratch>,
    retention: CheckoutRetention,
    by_workspace: Mutex<HashMap<WorkspaceId, Vec<Slot>>>,
    is_swept: AtomicBool,
}

/// A place for a working copy of a workspace.
struct Slot {
    state: SlotState,
    used_at: Instant,
}

enum SlotState {
    Free(Box<PooledCopy>),
    Leased,
    /// The working copy was removed.
    Empty,
}

/// A working copy with its folder.
struct PooledCopy {
    folder: PathBuf,
    /// The folder in it that programs work in.
    top: FolderHandle,
    working_copy: Mutex<WorkingCopy>,
}

impl WorkingCopyPool {
    pub(crate) fn new(scratch: Arc<Scratch>, retention: CheckoutRetention) -> Self {
        Self { scratch, retention, by_workspace: Mutex::default(), is_swept: AtomicBool::new(false) }
    }

    /// Leases the first free working copy of a workspace, if there is one.
    pub(super) fn lease_free(self: &Arc<Self>, workspace: WorkspaceId) -> Option<Lease> {
        let (number, pooled) = self.take_slot(workspace, |slot| matches!(slot.state, SlotState::Free(_)))?;
        Some(Lease(Arc::new(LeasedSlot { pool: Arc::clone(self), workspace, number, pooled })))
    }

    /// Leases the first free working copy of a workspace, which is the one that was used last. Creates one if there is
    /// none: there are as many as programs run at once, which the caller limits.
    pub(super) async fn lease(self: &Arc<Self>, workspace: WorkspaceId) -> Result<Lease> {
        if let Some(lease) = self.lease_free(workspace) {
            return Ok(lease);
        }
        let (number, pooled) = match self.take_slot(workspace, |slot| matches!(slot.state, SlotState::Empty)) {
            Some(taken) => taken,
            None => (self.add_slot(workspace), None),
        };
        let mut slot = LeasedSlot { pool: Arc::clone(self), workspace, number, pooled };
        // If the caller goes away, the working copy is created all the same, for the next one.
        let create = move || {
            slot.pooled = Some(Box::new(PooledCopy::create(&slot.pool.scratch)?));
            Ok::<_, ToolError>(slot)
        };
        let slot = tokio::task::spawn_blocking(create).await.map_err(ToolError::internal)??;
        self.keep_sweeping();
        Ok(Lease(Arc::new(slot)))
    }

    /// Takes the first slot of a workspace that is wanted.
    fn take_slot(
        &self,
        workspace: WorkspaceId,
        is_wanted: impl Fn(&Slot) -> bool,
    ) -> Option<(usize, Option<Box<PooledCopy>>)> {
        let mut by_workspace = self.by_workspace();
        let slots = by_workspace.get_mut(&workspace)?;
        let number = slots.iter().position(is_wanted)?;
        let SlotState::Free(pooled) = std::mem::replace(&mut slots[number].state, SlotState::Leased) else {
            return Some((number, None));
        };
        Some((number, Some(pooled)))
    }

    fn add_slot(&self, workspace: WorkspaceId) -> usize {
        let mut by_workspace = self.by_workspace();
        let slots = by_workspace.entry(workspace).or_default();
        slots.push(Slot { state: SlotState::Leased, used_at: Instant::now() });
        slots.len() - 1
    }

    fn give_back(&self, workspace: WorkspaceId, number: usize, pooled: Option<Box<PooledCopy>>) {
        if let Some(slot) = self.by_workspace().get_mut(&workspace).and_then(|slots| slots.get_mut(number)) {
            slot.state = pooled.map_or(SlotState::Empty, SlotState::Free);
            slot.used_at = Instant::now();
        }
        self.sweep();
    }

    /// Removes the working copies that are over the limits.
    fn sweep(&self) {
        let mut by_workspace = self.by_workspace();
        let mut free: Vec<(Instant, WorkspaceId, usize)> = Vec::new();
        let mut total = 0;
        for (workspace, slots) in &*by_workspace {
            for (number, slot) in slots.iter().enumerate() {
                total += usize::from(!matches!(slot.state, SlotState::Empty));
                if matches!(slot.state, SlotState::Free(_)) {
                    free.push((slot.used_at, *workspace, number));
                }
            }
        }
        free.sort_unstable();
        let mut gone = Vec::new();
        for (used_at, workspace, number) in free {
            if total <= self.retention.folders && used_at.elapsed() < self.retention.idle {
                break;
            }
            total -= 1;
            let slot = by_workspace.get_mut(&workspace).and_then(|slots| slots.get_mut(number));
            if let Some(SlotState::Free(pooled)) = slot.map(|slot| std::mem::replace(&mut slot.state, SlotState::Empty))
            {
                gone.push(pooled);
            }
        }
        by_workspace.retain(|_, slots| slots.iter().any(|slot| !matches!(slot.state, SlotState::Empty)));
        drop(by_workspace);
        if gone.is_empty() {
            return;
        }
        let remove_all = move || gone.iter().for_each(|pooled| remove(&pooled.folder));
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(remove_all)),
            Err(_) => remove_all(),
        }
    }

    /// Sweeps at intervals for as long as there are working copies.
    fn keep_sweeping(self: &Arc<Self>) {
        if self.is_swept.swap(true, Ordering::Relaxed) {
            return;
        }
        let (pool, pause) = (Arc::downgrade(self), self.retention.idle / 4 + Duration::from_millis(10));
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(pause).await;
                let Some(pool) = pool.upgrade() else { return };
                pool.sweep();
                if pool.by_workspace().is_empty() {
                    pool.is_swept.store(false, Ordering::Relaxed);
                    return;
                }
            }
        });
    }

    fn by_workspace(&self) -> MutexGuard<'_, HashMap<WorkspaceId, Vec<Slot>>> {
        self.by_workspace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PooledCopy {
    fn create(scratch: &Scratch) -> Result<Self> {
        let folder = scratch.folder().map_err(disk_fault)?;
        let created = WorkingCopy::create(&folder).inspect_err(|_| remove(&folder))?;
        Ok(Self { folder, top: created.folder(), working_copy: Mutex::new(created) })
    }
}

/// The exclusive use of a working copy. It ends when this is dropped and all operations on it are done.
pub(super) struct Lease(Arc<LeasedSlot>);

struct LeasedSlot {
    pool: Arc<WorkingCopyPool>,
    workspace: WorkspaceId,
    number: usize,
    pooled: Option<Box<PooledCopy>>,
}

impl LeasedSlot {
    fn pooled(&self) -> Result<&PooledCopy> {
        self.pooled.as_deref().ok_or_else(|| ToolError::internal("a leased slot has no working copy"))
    }
}

impl Lease {
    /// Returns the folder that programs work in.
    pub(super) fn folder(&self) -> Result<FolderHandle> {
        self.0.pooled().map(|pooled| pooled.top.clone())
    }

    /// Returns the moment of the workspace that the working copy shows.
    pub(super) async fn synced_to(&self) -> Result<Option<ListCursor>> {
        self.with_inline(|_| true, |working_copy| Ok(working_copy.synced_to())).await
    }

    /// Runs an operation on the working copy: on the calling thread if it is short, else as [`Lease::with`] does.
    pub(super) async fn with_inline<T: Send + 'static>(
        &self,
        fits_inline: impl FnOnce(&WorkingCopy) -> bool,
        work: impl FnOnce(&mut WorkingCopy) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        if let Ok(mut working_copy) = self.0.pooled()?.working_copy.try_lock()
            && fits_inline(&working_copy)
        {
            return work(&mut working_copy);
        }
        self.with(work).await
    }

    /// Runs an operation on the working copy on a blocking thread. It runs to its end even if the caller goes away, and
    /// before the lease ends.
    pub(super) async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut WorkingCopy) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let slot = Arc::clone(&self.0);
        let work = move || work(&mut slot.pooled()?.working_copy.lock().unwrap_or_else(PoisonError::into_inner));
        tokio::task::spawn_blocking(work).await.map_err(ToolError::internal)?
    }
}

impl Drop for LeasedSlot {
    fn drop(&mut self) {
        self.pool.give_back(self.workspace, self.number, self.pooled.take());
    }
}

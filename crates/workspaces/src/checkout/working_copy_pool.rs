//! The folders in which programs work on workspaces, kept warm between them.

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
use toolrest_store::file_list::Moment;

/// How long folders are kept, and how many.
#[derive(Clone, Copy, Debug)]
pub struct CheckoutRetention {
    /// A folder that was not used for so long is removed.
    pub idle: Duration,
    /// Of more folders, those that were used longest ago are removed.
    pub folders: usize,
}

impl Default for CheckoutRetention {
    fn default() -> Self {
        Self { idle: Duration::from_secs(60 * 60), folders: 64 }
    }
}

/// All folders of all workspaces.
pub(crate) struct WorkingCopyPool {
    scratch: Arc<Scratch>,
    kept: CheckoutRetention,
    by_workspace: Mutex<HashMap<WorkspaceId, Vec<Slot>>>,
    is_swept: AtomicBool,
}

/// A place for a folder of a workspace.
struct Slot {
    state: State,
    used_at: Instant,
}

enum State {
    Free(Box<PooledCopy>),
    Taken,
    /// Nothing is there, as what was there has been removed.
    Empty,
}

/// A folder that nobody works in.
struct PooledCopy {
    folder: PathBuf,
    /// The folder in it that programs work in.
    top: FolderHandle,
    working_copy: Mutex<WorkingCopy>,
    /// Whether a program may have gone on after its last check-in.
    is_dirty: AtomicBool,
}

impl WorkingCopyPool {
    pub(crate) fn new(scratch: Arc<Scratch>, kept: CheckoutRetention) -> Self {
        Self { scratch, kept, by_workspace: Mutex::default(), is_swept: AtomicBool::new(false) }
    }

    /// Takes the first folder of a workspace that is free, if there is one.
    pub(super) fn take_free(self: &Arc<Self>, workspace: WorkspaceId) -> Option<LeasedCopy> {
        let has_free = |slots: &Vec<Slot>| slots.iter().any(|slot| matches!(slot.state, State::Free(_)));
        if !self.by_workspace().get(&workspace).is_some_and(has_free) {
            return None;
        }
        let (number, pooled) = self.take_slot(workspace);
        // Another one may have taken it in that moment; then it is given back at once.
        let lease = Lease { working_copies: Arc::clone(self), workspace, number, pooled };
        lease.pooled.is_some().then(|| LeasedCopy(Arc::new(lease)))
    }

    /// Takes the first folder of a workspace that is free, so that it stays the warmest; makes one if there is none.
    pub(super) async fn take(self: &Arc<Self>, workspace: WorkspaceId) -> Result<LeasedCopy> {
        let (number, pooled) = self.take_slot(workspace);
        let mut lease = Lease { working_copies: Arc::clone(self), workspace, number, pooled };
        if lease.pooled.is_none() {
            // It is made even if nobody waits, and is there for the next one then.
            let make = move || {
                lease.pooled = Some(Box::new(PooledCopy::make(&lease.working_copies.scratch)?));
                Ok::<_, ToolError>(lease)
            };
            lease = tokio::task::spawn_blocking(make).await.map_err(ToolError::internal)??;
        }
        self.keep_sweeping();
        Ok(LeasedCopy(Arc::new(lease)))
    }

    /// Takes a slot of a workspace: one with a free folder, if there is one. There are as many as programs run at once,
    /// which whoever runs them limits.
    fn take_slot(&self, workspace: WorkspaceId) -> (usize, Option<Box<PooledCopy>>) {
        let mut by_workspace = self.by_workspace();
        let slots = by_workspace.entry(workspace).or_default();
        let free = slots.iter().position(|slot| matches!(slot.state, State::Free(_)));
        let empty = || slots.iter().position(|slot| matches!(slot.state, State::Empty));
        let number = free.or_else(empty).unwrap_or_else(|| {
            slots.push(Slot { state: State::Empty, used_at: Instant::now() });
            slots.len() - 1
        });
        match std::mem::replace(&mut slots[number].state, State::Taken) {
            State::Free(pooled) => (number, Some(pooled)),
            State::Empty | State::Taken => (number, None),
        }
    }

    fn give_back(self: &Arc<Self>, workspace: WorkspaceId, number: usize, pooled: Option<Box<PooledCopy>>) {
        if let Some(slot) = self.by_workspace().get_mut(&workspace).and_then(|slots| slots.get_mut(number)) {
            slot.state = pooled.map_or(State::Empty, State::Free);
            slot.used_at = Instant::now();
        }
        self.sweep();
    }

    /// Removes the folders that are not to be kept any longer.
    fn sweep(&self) {
        let mut by_workspace = self.by_workspace();
        let mut free: Vec<(Instant, WorkspaceId, usize)> = Vec::new();
        let mut total = 0;
        for (workspace, slots) in &*by_workspace {
            for (number, slot) in slots.iter().enumerate() {
                total += usize::from(!matches!(slot.state, State::Empty));
                if matches!(slot.state, State::Free(_)) {
                    free.push((slot.used_at, *workspace, number));
                }
            }
        }
        free.sort_unstable();
        let mut gone = Vec::new();
        for (used_at, workspace, number) in free {
            if total <= self.kept.folders && used_at.elapsed() < self.kept.idle {
                break;
            }
            total -= 1;
            let slot = by_workspace.get_mut(&workspace).and_then(|slots| slots.get_mut(number));
            if let Some(State::Free(pooled)) = slot.map(|slot| std::mem::replace(&mut slot.state, State::Empty)) {
                gone.push(pooled);
            }
        }
        by_workspace.retain(|_, slots| slots.iter().any(|slot| !matches!(slot.state, State::Empty)));
        drop(by_workspace);
        if gone.is_empty() {
            return;
        }
        let remove_all = move || gone.iter().for_each(|pooled| pooled.remove());
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(remove_all)),
            Err(_) => remove_all(),
        }
    }

    /// Sweeps now and then for as long as there are folders.
    fn keep_sweeping(self: &Arc<Self>) {
        if self.is_swept.swap(true, Ordering::Relaxed) {
            return;
        }
        let (working_copies, pause) = (Arc::downgrade(self), self.kept.idle / 4 + Duration::from_millis(10));
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(pause).await;
                let Some(working_copies) = working_copies.upgrade() else { return };
                working_copies.sweep();
                if working_copies.by_workspace().is_empty() {
                    working_copies.is_swept.store(false, Ordering::Relaxed);
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
    fn make(scratch: &Scratch) -> Result<Self> {
        let folder = scratch.folder().map_err(disk_fault)?;
        match WorkingCopy::make(&folder) {
            Ok(working_copy) => {
                let top = working_copy.folder();
                Ok(Self { folder, top, working_copy: Mutex::new(working_copy), is_dirty: AtomicBool::new(false) })
            }
            Err(error) => {
                remove(&folder);
                Err(error)
            }
        }
    }

    fn remove(&self) {
        remove(&self.folder);
    }
}

/// A folder that one program works in, given back when this is dropped and all that was begun with it is done.
pub(super) struct LeasedCopy(Arc<Lease>);

/// A folder that is not with the others.
struct Lease {
    working_copies: Arc<WorkingCopyPool>,
    workspace: WorkspaceId,
    number: usize,
    pooled: Option<Box<PooledCopy>>,
}

impl LeasedCopy {
    /// Lets the next one look before it believes what is known of the folder.
    pub(super) fn mark_dirty(&self) {
        if let Some(pooled) = &self.0.pooled {
            pooled.is_dirty.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the last one doubted what is known of the folder.
    pub(super) fn take_dirty_flag(&self) -> bool {
        self.0.pooled.as_ref().is_some_and(|pooled| pooled.is_dirty.swap(false, Ordering::Relaxed))
    }

    /// The folder that programs work in.
    pub(super) fn folder(&self) -> Result<FolderHandle> {
        self.0.pooled.as_ref().map(|pooled| pooled.top.clone()).ok_or_else(not_there)
    }

    /// The moment that the workspace is known of.
    pub(super) async fn synced_to(&self) -> Result<Option<Moment>> {
        let known = self
            .0
            .pooled
            .as_ref()
            .and_then(|pooled| pooled.working_copy.try_lock().ok().map(|working_copy| working_copy.synced_to()));
        match known {
            Some(synced_to) => Ok(synced_to),
            // Something that was begun with it is not done yet.
            None => self.with(|working_copy| Ok(working_copy.synced_to())).await,
        }
    }

    /// Does something with the folder: at once where that takes no time worth mentioning, else as `with` does.
    pub(super) async fn with_inline<T: Send + 'static>(
        &self,
        fits_inline: impl FnOnce(&WorkingCopy) -> bool,
        work: impl FnOnce(&mut WorkingCopy) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        if let Some(pooled) = &self.0.pooled
            && let Ok(mut working_copy) = pooled.working_copy.try_lock()
            && fits_inline(&working_copy)
        {
            return work(&mut working_copy);
        }
        self.with(work).await
    }

    /// Does something with the folder, away from the threads that serve requests. It is done even if nobody waits, and
    /// before anybody else gets the folder.
    pub(super) async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut WorkingCopy) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let lease = Arc::clone(&self.0);
        let work = move || {
            let pooled = lease.pooled.as_ref().ok_or_else(not_there)?;
            work(&mut pooled.working_copy.lock().unwrap_or_else(PoisonError::into_inner))
        };
        tokio::task::spawn_blocking(work).await.map_err(ToolError::internal)?
    }
}

fn not_there() -> ToolError {
    ToolError::internal("a folder that is not there")
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.working_copies.give_back(self.workspace, self.number, self.pooled.take());
    }
}

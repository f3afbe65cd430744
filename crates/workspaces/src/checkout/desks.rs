//! The folders in which programs work on workspaces, kept warm between them.

use super::desk::Desk;
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
use toolrest_core::{HeldFolder, Result, ToolError, WorkspaceId};
use toolrest_store::disk_fault::disk_fault;
use toolrest_store::file_list::Moment;

/// How long folders are kept, and how many.
#[derive(Clone, Copy, Debug)]
pub struct CheckoutsKept {
    /// A folder that was not used for so long is removed.
    pub idle: Duration,
    /// Of more folders, those that were used longest ago are removed.
    pub folders: usize,
}

impl Default for CheckoutsKept {
    fn default() -> Self {
        Self { idle: Duration::from_secs(60 * 60), folders: 64 }
    }
}

/// All folders of all workspaces.
pub(crate) struct Desks {
    scratch: Arc<Scratch>,
    kept: CheckoutsKept,
    by_workspace: Mutex<HashMap<WorkspaceId, Vec<Slot>>>,
    is_swept: AtomicBool,
}

/// A place for a folder of a workspace.
struct Slot {
    state: State,
    used_at: Instant,
}

enum State {
    Free(Box<Place>),
    Taken,
    /// Nothing is there, as what was there has been removed.
    Empty,
}

/// A folder that nobody works in.
struct Place {
    folder: PathBuf,
    /// The folder in it that programs work in.
    top: HeldFolder,
    desk: Mutex<Desk>,
    /// Whether a program may have gone on after its last check-in.
    is_doubtful: AtomicBool,
}

impl Desks {
    pub(crate) fn new(scratch: Arc<Scratch>, kept: CheckoutsKept) -> Self {
        Self { scratch, kept, by_workspace: Mutex::default(), is_swept: AtomicBool::new(false) }
    }

    /// Takes the first folder of a workspace that is free, if there is one.
    pub(super) fn take_free(self: &Arc<Self>, workspace: WorkspaceId) -> Option<TakenDesk> {
        let has_free = |slots: &Vec<Slot>| slots.iter().any(|slot| matches!(slot.state, State::Free(_)));
        if !self.by_workspace().get(&workspace).is_some_and(has_free) {
            return None;
        }
        let (number, place) = self.take_slot(workspace);
        // Another one may have taken it in that moment; then it is given back at once.
        let loan = Loan { desks: Arc::clone(self), workspace, number, place };
        loan.place.is_some().then(|| TakenDesk(Arc::new(loan)))
    }

    /// Takes the first folder of a workspace that is free, so that it stays the warmest; makes one if there is none.
    pub(super) async fn take(self: &Arc<Self>, workspace: WorkspaceId) -> Result<TakenDesk> {
        let (number, place) = self.take_slot(workspace);
        let mut loan = Loan { desks: Arc::clone(self), workspace, number, place };
        if loan.place.is_none() {
            // It is made even if nobody waits, and is there for the next one then.
            let make = move || {
                loan.place = Some(Box::new(Place::make(&loan.desks.scratch)?));
                Ok::<_, ToolError>(loan)
            };
            loan = tokio::task::spawn_blocking(make).await.map_err(ToolError::internal)??;
        }
        self.keep_sweeping();
        Ok(TakenDesk(Arc::new(loan)))
    }

    /// Takes a slot of a workspace: one with a free folder, if there is one. There are as many as programs run at once,
    /// which whoever runs them limits.
    fn take_slot(&self, workspace: WorkspaceId) -> (usize, Option<Box<Place>>) {
        let mut by_workspace = self.by_workspace();
        let slots = by_workspace.entry(workspace).or_default();
        let free = slots.iter().position(|slot| matches!(slot.state, State::Free(_)));
        let empty = || slots.iter().position(|slot| matches!(slot.state, State::Empty));
        let number = free.or_else(empty).unwrap_or_else(|| {
            slots.push(Slot { state: State::Empty, used_at: Instant::now() });
            slots.len() - 1
        });
        match std::mem::replace(&mut slots[number].state, State::Taken) {
            State::Free(place) => (number, Some(place)),
            State::Empty | State::Taken => (number, None),
        }
    }

    fn give_back(self: &Arc<Self>, workspace: WorkspaceId, number: usize, place: Option<Box<Place>>) {
        if let Some(slot) = self.by_workspace().get_mut(&workspace).and_then(|slots| slots.get_mut(number)) {
            slot.state = place.map_or(State::Empty, State::Free);
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
            if let Some(State::Free(place)) = slot.map(|slot| std::mem::replace(&mut slot.state, State::Empty)) {
                gone.push(place);
            }
        }
        by_workspace.retain(|_, slots| slots.iter().any(|slot| !matches!(slot.state, State::Empty)));
        drop(by_workspace);
        if gone.is_empty() {
            return;
        }
        let remove_all = move || gone.iter().for_each(|place| place.remove());
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
        let (desks, pause) = (Arc::downgrade(self), self.kept.idle / 4 + Duration::from_millis(10));
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(pause).await;
                let Some(desks) = desks.upgrade() else { return };
                desks.sweep();
                if desks.by_workspace().is_empty() {
                    desks.is_swept.store(false, Ordering::Relaxed);
                    return;
                }
            }
        });
    }

    fn by_workspace(&self) -> MutexGuard<'_, HashMap<WorkspaceId, Vec<Slot>>> {
        self.by_workspace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    fn make(scratch: &Scratch) -> Result<Self> {
        let folder = scratch.folder().map_err(disk_fault)?;
        match Desk::make(&folder) {
            Ok(desk) => {
                let top = desk.folder();
                Ok(Self { folder, top, desk: Mutex::new(desk), is_doubtful: AtomicBool::new(false) })
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
pub(super) struct TakenDesk(Arc<Loan>);

/// A folder that is not with the others.
struct Loan {
    desks: Arc<Desks>,
    workspace: WorkspaceId,
    number: usize,
    place: Option<Box<Place>>,
}

impl TakenDesk {
    /// Lets the next one look before it believes what is known of the folder.
    pub(super) fn doubt(&self) {
        if let Some(place) = &self.0.place {
            place.is_doubtful.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the last one doubted what is known of the folder.
    pub(super) fn take_doubt(&self) -> bool {
        self.0.place.as_ref().is_some_and(|place| place.is_doubtful.swap(false, Ordering::Relaxed))
    }

    /// The folder that programs work in.
    pub(super) fn folder(&self) -> Result<HeldFolder> {
        self.0.place.as_ref().map(|place| place.top.clone()).ok_or_else(not_there)
    }

    /// The moment that the workspace is known of.
    pub(super) async fn moment(&self) -> Result<Option<Moment>> {
        let known = self.0.place.as_ref().and_then(|place| place.desk.try_lock().ok().map(|desk| desk.moment()));
        match known {
            Some(moment) => Ok(moment),
            // Something that was begun with it is not done yet.
            None => self.with(|desk| Ok(desk.moment())).await,
        }
    }

    /// Does something with the folder: at once where that takes no time worth mentioning, else as `with` does.
    pub(super) async fn quickly<T: Send + 'static>(
        &self,
        is_quick: impl FnOnce(&Desk) -> bool,
        work: impl FnOnce(&mut Desk) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        if let Some(place) = &self.0.place
            && let Ok(mut desk) = place.desk.try_lock()
            && is_quick(&desk)
        {
            return work(&mut desk);
        }
        self.with(work).await
    }

    /// Does something with the folder, away from the threads that serve requests. It is done even if nobody waits, and
    /// before anybody else gets the folder.
    pub(super) async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Desk) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let loan = Arc::clone(&self.0);
        let work = move || {
            let place = loan.place.as_ref().ok_or_else(not_there)?;
            work(&mut place.desk.lock().unwrap_or_else(PoisonError::into_inner))
        };
        tokio::task::spawn_blocking(work).await.map_err(ToolError::internal)?
    }
}

fn not_there() -> ToolError {
    ToolError::internal("a folder that is not there")
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.desks.give_back(self.workspace, self.number, self.place.take());
    }
}

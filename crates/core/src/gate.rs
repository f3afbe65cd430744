//! Bounds how many calls of one workspace are under way.

use crate::WorkspaceId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Lets a bounded number of calls per workspace through; more wait their turn.
///
/// A workspace takes memory here only while calls of it are under way.
pub(crate) struct Gate {
    width: usize,
    open: Mutex<HashMap<WorkspaceId, Arc<Semaphore>>>,
}

/// A call's place in the gate, given back when dropped.
pub(crate) struct Pass<'a> {
    gate: &'a Gate,
    workspace: WorkspaceId,
    permit: Option<OwnedSemaphorePermit>,
}

impl Gate {
    pub(crate) fn new(width: usize) -> Self {
        Self { width, open: Mutex::default() }
    }

    /// Waits for a place.
    pub(crate) async fn pass(&self, workspace: WorkspaceId) -> Pass<'_> {
        let places = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.entry(workspace).or_insert_with(|| Arc::new(Semaphore::new(self.width))).clone()
        };
        // Made before the wait, so that a caller who gives up waiting also tidies up.
        let mut pass = Pass { gate: self, workspace, permit: None };
        // The semaphore is never closed.
        pass.permit = places.acquire_owned().await.ok();
        pass
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.permit = None;
        let mut open = self.gate.open.lock().unwrap_or_else(PoisonError::into_inner);
        // The map's own handle is the last one: nobody holds a place or waits for one.
        if open.get(&self.workspace).is_some_and(|places| Arc::strong_count(places) == 1) {
            open.remove(&self.workspace);
        }
    }
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;

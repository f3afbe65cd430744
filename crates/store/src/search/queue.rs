//! The queue of searches, and their deadlines.

use crate::error::{Result, StoreError};
use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};
use toolrest_core::{Access, ErrorKind, FairQueue, Interrupt, QueueDepth, QueueLimits, QueueSlot};

/// Maximum number of concurrent searches per core. Each search has its own threads, so a slow one does not block the
/// others.
const SEARCHES_PER_CORE: usize = 4;

/// Limits the number of concurrent searches. One account, and one workspace, gets at most half of the slots.
pub struct SearchQueue(FairQueue);

/// A slot of the queue, released when dropped.
pub type SearchSlot = QueueSlot;

impl SearchQueue {
    pub fn new(cores: usize) -> Self {
        let queue = cores * SEARCHES_PER_CORE;
        Self(FairQueue::new(QueueLimits { in_all: queue, per_account: queue / 2, per_workspace: queue / 2 }))
    }

    /// Returns how many searches run, and how many wait.
    pub fn depth(&self) -> QueueDepth {
        self.0.depth()
    }

    /// Whether an account could search a workspace without waiting.
    #[cfg(test)]
    pub(super) fn has_free_slot(&self, access: Access) -> bool {
        self.0.try_enter(access.person, access.workspace).is_ok()
    }

    /// Waits for a slot until the deadline.
    pub async fn wait(&self, access: Access, deadline: Instant) -> Result<SearchSlot> {
        let slot = self.0.enter(access.person, access.workspace);
        tokio::time::timeout_at(deadline.into(), slot).await.map_err(|_| {
            let message = "Other searches were under way all the time; try again in a moment";
            StoreError::Timeout(message.to_owned())
        })
    }
}

/// Interrupts the work on other threads when dropped, for example because the caller disconnected.
pub struct StopOnDrop(pub Arc<Interrupt>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Waits until the deadline for work that can be interrupted.
pub async fn with_deadline<T, E: Into<StoreError>>(
    deadline: Instant,
    started: Instant,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T> {
    match tokio::time::timeout_at(deadline.into(), work).await.map(|result| result.map_err(Into::into)) {
        Ok(Err(error)) if error.kind() == ErrorKind::Cancelled => Err(search_timeout(started.elapsed())),
        Ok(result) => result,
        Err(_) => Err(search_timeout(started.elapsed())),
    }
}

fn search_timeout(after: Duration) -> StoreError {
    let message = format!(
        "The search was not finished after {} ms; narrow it with a path pattern, or use a pattern with a literal in it",
        after.as_millis()
    );
    StoreError::Timeout(message)
}

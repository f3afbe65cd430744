//! Who searches when.

use crate::error::{Result, StoreError};
use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};
use toolrest_core::{Access, ErrorKind, FairQueue, Interrupt, QueueLimits, QueueSlot};

/// How many searches run at once, for each core; more wait. Each has threads of its own, so that a slow one does not
/// hold up the others.
const SEARCHES_PER_CORE: usize = 4;

/// Lets so many searches run at once. One account, and one workspace, gets half of them at most.
pub struct Turns(FairQueue);

/// The right to search now, given back when dropped.
pub type Turn = QueueSlot;

impl Turns {
    pub fn new(cores: usize) -> Self {
        let turns = cores * SEARCHES_PER_CORE;
        Self(FairQueue::new(QueueLimits { in_all: turns, per_account: turns / 2, per_workspace: turns / 2 }))
    }

    /// Whether an account could search a workspace without waiting.
    #[cfg(test)]
    pub(super) fn is_free_for(&self, access: Access) -> bool {
        self.0.try_enter(access.user, access.workspace).is_ok()
    }

    /// Waits for a turn, until the deadline.
    pub async fn wait(&self, access: Access, deadline: Instant) -> Result<Turn> {
        let turn = self.0.enter(access.user, access.workspace);
        tokio::time::timeout_at(deadline.into(), turn).await.map_err(|_| {
            let message = "Other searches were under way all the time; try again in a moment";
            StoreError::Timeout(message.to_owned())
        })
    }
}

/// Whatever ends a future that holds this, a caller that went away included, ends the work on other threads.
pub struct StopOnDrop(pub Arc<Interrupt>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Waits for work that can be interrupted, until the deadline.
pub async fn until<T, E: Into<StoreError>>(
    deadline: Instant,
    begun: Instant,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T> {
    match tokio::time::timeout_at(deadline.into(), work).await.map(|result| result.map_err(Into::into)) {
        Ok(Err(error)) if error.kind() == ErrorKind::Cancelled => Err(out_of_time(begun.elapsed())),
        Ok(result) => result,
        Err(_) => Err(out_of_time(begun.elapsed())),
    }
}

fn out_of_time(after: Duration) -> StoreError {
    let message = format!(
        "The search was not finished after {} ms; narrow it with a path pattern, or use a pattern with a literal in it",
        after.as_millis()
    );
    StoreError::Timeout(message)
}

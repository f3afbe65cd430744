//! Who searches when.

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use toolrest_core::{ErrorKind, Gate, Interrupt, Pass, Result, ToolError, WorkspaceId};

/// How many searches run at once, for each core; more wait. Each has threads of its own, so that a slow one does not
/// hold up the others.
const SEARCHES_PER_CORE: usize = 4;

/// Lets so many searches run at once.
pub(crate) struct Turns {
    all: Arc<Semaphore>,
    /// One workspace gets fewer turns than there are, so that others have theirs.
    per_workspace: Gate<WorkspaceId>,
}

/// The right to search now, given back when dropped.
pub(crate) struct Turn {
    _among_its_own: Pass<WorkspaceId>,
    _among_all: OwnedSemaphorePermit,
}

impl Turns {
    pub(crate) fn new(cores: usize) -> Self {
        let turns = cores * SEARCHES_PER_CORE;
        Self { all: Arc::new(Semaphore::new(turns)), per_workspace: Gate::new(turns / 2) }
    }

    /// All the turns there are, for tests that take them.
    #[cfg(test)]
    pub(super) fn all(&self) -> Arc<Semaphore> {
        Arc::clone(&self.all)
    }

    /// Waits for a turn, until the deadline.
    pub(crate) async fn wait(&self, workspace: WorkspaceId, deadline: Instant) -> Result<Turn> {
        let turn = async {
            let among_its_own = self.per_workspace.pass(workspace).await;
            let among_all = Arc::clone(&self.all).acquire_owned().await.map_err(ToolError::internal)?;
            Ok(Turn { _among_its_own: among_its_own, _among_all: among_all })
        };
        tokio::time::timeout_at(deadline.into(), turn).await.unwrap_or_else(|_| {
            let message = "Other searches were under way all the time; try again in a moment";
            Err(ToolError::new(ErrorKind::Timeout, message))
        })
    }
}

/// Whatever ends a future that holds this, a caller that went away included, ends the work on other threads.
pub(crate) struct StopOnDrop(pub(crate) Arc<Interrupt>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Waits for work that can be interrupted, until the deadline.
pub(crate) async fn until<T>(deadline: Instant, begun: Instant, work: impl Future<Output = Result<T>>) -> Result<T> {
    match tokio::time::timeout_at(deadline.into(), work).await {
        Ok(Err(error)) if error.kind == ErrorKind::Cancelled => Err(out_of_time(begun.elapsed())),
        Ok(result) => result,
        Err(_) => Err(out_of_time(begun.elapsed())),
    }
}

fn out_of_time(after: Duration) -> ToolError {
    let message = format!(
        "The search was not finished after {} ms; narrow it with a path pattern, or use a pattern with a literal in it",
        after.as_millis()
    );
    ToolError::new(ErrorKind::Timeout, message)
}

//! Runs searches of folders on blocking threads, and bounds the number of searches and commits at once.

use super::{find, search};
use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use toolrest_core::{Access, Find, FindResult, Interrupt, QueueDepth, Result, Search, SearchResult, ToolError};
use toolrest_directory::Root;
use toolrest_store::search::{SearchQueue, SearchSlot, StopOnDrop, with_deadline};

/// Maximum number of folders that are changed at once. Each commit takes a blocking thread that waits for others, so the
/// runtime must have more.
const COMMITS_AT_ONCE: usize = 64;

/// Maximum duration of a call.
const LONGEST_CALL: Duration = Duration::from_secs(24 * 60 * 60);

/// The pool of all searches and commits of folders.
pub(crate) struct WalkPool {
    queue: SearchQueue,
    commits: Arc<Semaphore>,
    threads: usize,
}

impl Default for WalkPool {
    fn default() -> Self {
        let threads = thread::available_parallelism().map_or(2, usize::from);
        Self { queue: SearchQueue::new(threads), commits: Arc::new(Semaphore::new(COMMITS_AT_ONCE)), threads }
    }
}

impl WalkPool {
    /// Returns how many searches run, and how many wait.
    pub(crate) fn depth(&self) -> QueueDepth {
        self.queue.depth()
    }

    /// Finds lines until the deadline. The membership must have been checked.
    pub(crate) async fn search(&self, access: Access, root: Arc<Root>, wanted: Search) -> Result<SearchResult> {
        let deadline = wanted.deadline;
        let work = move |interrupt: &Interrupt, threads| {
            let matcher = wanted.pattern.compile()?;
            search(&root, &wanted, &*matcher, interrupt, threads)
        };
        self.run(access, deadline, work).await
    }

    /// Finds files until the deadline. The membership must have been checked.
    pub(crate) async fn find(&self, access: Access, root: Arc<Root>, wanted: Find) -> Result<FindResult> {
        let deadline = wanted.deadline;
        let work = move |interrupt: &Interrupt, threads| find(&root, &wanted, interrupt, threads);
        self.run(access, deadline, work).await
    }

    /// Waits for a slot to list a folder. The deadline of the call bounds the wait.
    pub(crate) async fn slot(&self, access: Access) -> Result<SearchSlot> {
        Ok(self.queue.wait(access, Instant::now() + LONGEST_CALL).await?)
    }

    /// Waits for a slot to change a folder.
    pub(super) async fn commit_place(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        Arc::clone(&self.commits).acquire_owned().await.ok()
    }

    async fn run<T: Send + 'static>(
        &self,
        access: Access,
        deadline: Instant,
        work: impl FnOnce(&Interrupt, usize) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let begun = Instant::now();
        let interrupt = Arc::new(Interrupt::at(deadline));
        let _stop = StopOnDrop(Arc::clone(&interrupt));
        let slot = self.queue.wait(access, deadline).await?;
        let threads = self.threads;
        let work = tokio::task::spawn_blocking(move || {
            // Held until the threads are done, also if the caller goes away.
            let _slot = slot;
            work(&interrupt, threads)
        });
        Ok(with_deadline(deadline, begun, async { work.await.map_err(ToolError::internal)? }).await?)
    }
}

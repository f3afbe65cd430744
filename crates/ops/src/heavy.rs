//! Work that would hold up requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use toolrest_core::{CallCx, QueueSlot, Result, ToolError};
use toolrest_edit::StopFlag;

/// Contents from here on are worked on away from the threads that serve requests: to compare two of this size line by
/// line takes milliseconds.
const FROM_BYTES: usize = 16 << 10;

/// Runs work over so many bytes where it holds up nobody. Once nobody waits for it any more, because the call timed out
/// or its caller went away, the work is told to stop. Only so much of it runs at once, in all and for each account.
pub async fn run<T, F>(cx: &CallCx, bytes: usize, work: F) -> Result<T>
where
    T: Send + 'static,
    F: FnOnce(StopFlag<'_>) -> Result<T> + Send + 'static,
{
    if bytes < FROM_BYTES {
        return work(StopFlag::never());
    }
    run_at(cx.heavy_place().await, work).await
}

/// Runs work on a thread of its own. It holds its place until it ends, also after its caller went away.
async fn run_at<T, F>(place: QueueSlot, work: F) -> Result<T>
where
    T: Send + 'static,
    F: FnOnce(StopFlag<'_>) -> Result<T> + Send + 'static,
{
    let guard = StopOnDrop(Arc::default());
    let flag = Arc::clone(&guard.0);
    let work = move || {
        let _place = place;
        work(StopFlag::new(&flag))
    };
    tokio::task::spawn_blocking(work).await.map_err(ToolError::internal)?
}

/// Sets its flag when it is dropped.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[path = "heavy_tests.rs"]
mod tests;

//! Computations that take long enough to delay other requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use toolrest_core::{CallCx, QueueSlot, Result, ToolError};
use toolrest_edit::StopFlag;

/// Minimum size of contents that are processed on other threads: comparing two of this size line by line takes
/// milliseconds.
const MIN_HEAVY_BYTES: usize = 16 << 10;

/// Runs a computation over `bytes` bytes. A long one runs on a blocking thread, in a slot of a limited number. If the
/// call times out or its caller disconnects, the computation is asked to stop.
pub async fn run<T, F>(cx: &CallCx, bytes: usize, work: F) -> Result<T>
where
    T: Send + 'static,
    F: FnOnce(StopFlag<'_>) -> Result<T> + Send + 'static,
{
    if bytes < MIN_HEAVY_BYTES {
        return work(StopFlag::never());
    }
    run_at(cx.heavy_work_slot().await, work).await
}

/// Runs work that reads `bytes` bytes of a file, like [`run`].
pub async fn blocking<T, F>(cx: &CallCx, bytes: usize, work: F) -> Result<T>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T> + Send + 'static,
{
    run(cx, bytes, move |_| work()).await
}

/// Runs a computation on a blocking thread. It holds its slot until it ends, also after its caller disconnected.
async fn run_at<T, F>(slot: QueueSlot, work: F) -> Result<T>
where
    T: Send + 'static,
    F: FnOnce(StopFlag<'_>) -> Result<T> + Send + 'static,
{
    let guard = StopOnDrop(Arc::default());
    let flag = Arc::clone(&guard.0);
    let work = move || {
        let _slot = slot;
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

//! Work that would hold up requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use toolrest_core::{Result, ToolError};
use toolrest_edit::StopFlag;

/// Contents from here on are worked on away from the threads that serve requests: to compare two of this size line by
/// line takes milliseconds.
const FROM_BYTES: usize = 16 << 10;

/// Runs work over so many bytes where it holds up nobody. Once nobody waits for it any more, because the call timed out
/// or its caller went away, the work is told to stop.
pub async fn run<T, F>(bytes: usize, work: F) -> Result<T>
where
    T: Send + 'static,
    F: FnOnce(StopFlag<'_>) -> Result<T> + Send + 'static,
{
    if bytes < FROM_BYTES {
        return work(StopFlag::never());
    }
    let guard = StopOnDrop(Arc::default());
    let flag = Arc::clone(&guard.0);
    tokio::task::spawn_blocking(move || work(StopFlag::new(&flag))).await.map_err(ToolError::internal)?
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

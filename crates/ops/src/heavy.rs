//! Work that would hold up requests.

use toolrest_core::{Result, ToolError};

/// Contents from here on are worked on away from the threads that serve requests: to compare two of this size line by
/// line takes milliseconds.
const FROM_BYTES: usize = 16 << 10;

/// Runs work over so many bytes where it holds up nobody.
pub(crate) async fn run<T, F>(bytes: usize, work: F) -> Result<T>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T> + Send + 'static,
{
    if bytes < FROM_BYTES {
        return work();
    }
    tokio::task::spawn_blocking(work).await.map_err(ToolError::internal)?
}

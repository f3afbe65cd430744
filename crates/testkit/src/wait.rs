//! Waiting for a condition instead of for a length of time.

use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(5);

/// Blocks until `condition` is true; panics with `what` after `limit`.
pub fn wait_until(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !condition() {
        assert!(Instant::now() < deadline, "waited {limit:?} until {what}, which did not happen");
        std::thread::sleep(POLL);
    }
}

/// Waits until `probe` returns a value; panics with `what` after `limit`.
pub async fn eventually<T>(what: &str, limit: Duration, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(value) = probe().await {
            return value;
        }
        assert!(Instant::now() < deadline, "waited {limit:?} until {what}, which did not happen");
        tokio::time::sleep(POLL).await;
    }
}

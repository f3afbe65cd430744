//! Waiting for a condition, never for a length of time.

use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(5);

/// Blocks until `condition` holds; panics with `what` when it does not within `limit`.
pub fn wait_until(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !condition() {
        assert!(Instant::now() < deadline, "waited {limit:?} in vain until {what}");
        std::thread::sleep(POLL);
    }
}

/// Waits until `probe` gives a value; panics with `what` when it does not within `limit`.
pub async fn eventually<T>(what: &str, limit: Duration, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(value) = probe().await {
            return value;
        }
        assert!(Instant::now() < deadline, "waited {limit:?} in vain until {what}");
        tokio::time::sleep(POLL).await;
    }
}

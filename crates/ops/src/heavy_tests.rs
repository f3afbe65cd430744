use super::*;
use std::time::Duration;

#[tokio::test]
async fn work_is_told_to_stop_when_nobody_waits_for_it() {
    let (ended, end) = tokio::sync::oneshot::channel();
    let work = run(FROM_BYTES, move |stop| {
        while !stop.is_set() {
            std::thread::yield_now();
        }
        _ = ended.send(());
        Ok(())
    });
    assert!(tokio::time::timeout(Duration::from_millis(20), work).await.is_err(), "it goes on until it is stopped");
    tokio::time::timeout(Duration::from_secs(10), end).await.unwrap().unwrap();
}

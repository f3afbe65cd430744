use super::*;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::{sync::mpsc, time::timeout};

#[tokio::test]
async fn slow_maintenance_and_purges_do_not_delay_revocations() {
    let started = AtomicU64::new(0);
    let (sender, mut refreshes) = mpsc::unbounded_channel();
    let endless = || {
        started.fetch_add(1, Ordering::Relaxed);
        std::future::pending()
    };
    let revocations = || async { sender.send(()).unwrap() };
    let three_times = async {
        for _ in 0..3 {
            refreshes.recv().await.unwrap();
        }
    };
    tokio::select! {
        () = run_jobs(endless, revocations, endless) => panic!("the jobs ended"),
        done = timeout(Duration::from_secs(20), three_times) => done.unwrap(),
    }
    assert_eq!(started.load(Ordering::Relaxed), 2, "maintenance and purge have started");
}

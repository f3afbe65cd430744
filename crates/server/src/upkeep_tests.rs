use super::*;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::{sync::mpsc, time::timeout};

#[tokio::test]
async fn revocations_are_learnt_however_long_a_purge_and_the_care_of_the_store_take() {
    let slow = AtomicU64::new(0);
    let (learnt, mut is_learnt) = mpsc::unbounded_channel();
    let endless = || {
        slow.fetch_add(1, Ordering::Relaxed);
        std::future::pending()
    };
    let revocations = || async { learnt.send(()).unwrap() };
    let three_times = async {
        for _ in 0..3 {
            is_learnt.recv().await.unwrap();
        }
    };
    tokio::select! {
        () = run_jobs(endless, revocations, endless) => panic!("the jobs have ended"),
        learnt = timeout(Duration::from_secs(20), three_times) => learnt.unwrap(),
    }
    assert_eq!(slow.load(Ordering::Relaxed), 2, "both had begun");
}

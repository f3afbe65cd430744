use super::*;
use std::time::Duration;
use toolrest_core::{FairQueue, QueueLimits, UserId, WorkspaceId};

#[tokio::test]
async fn abandoned_work_is_asked_to_stop_and_holds_its_slot_until_it_ends() {
    let (account, workspace) = (UserId::new(), WorkspaceId::new());
    let queue = FairQueue::new(QueueLimits { in_all: 1, per_account: 1, per_workspace: 1 });
    let (go_on, may_end) = std::sync::mpsc::channel::<()>();
    let (stopped, stop) = tokio::sync::oneshot::channel();
    let work = run_at(queue.enter(account, workspace).await, move |stop| {
        while !stop.is_set() {
            std::thread::yield_now();
        }
        _ = stopped.send(());
        _ = may_end.recv();
        Ok(())
    });
    assert!(tokio::time::timeout(Duration::from_millis(20), work).await.is_err(), "it goes on until it is stopped");
    tokio::time::timeout(Duration::from_secs(10), stop).await.unwrap().unwrap();
    assert!(queue.try_enter(account, workspace).is_err(), "its thread is still busy");
    drop(go_on);
    tokio::time::timeout(Duration::from_secs(10), queue.enter(account, workspace)).await.unwrap();
}

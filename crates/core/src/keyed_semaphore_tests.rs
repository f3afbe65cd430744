use super::*;
use crate::WorkspaceId;
use futures_util::FutureExt;

#[tokio::test]
async fn more_callers_than_permits_wait_until_one_is_returned() {
    let semaphores = KeyedSemaphore::new(2);
    let workspace = WorkspaceId::new();
    let first = semaphores.acquire(workspace).await;
    let _second = semaphores.acquire(workspace).await;
    assert!(semaphores.acquire(workspace).now_or_never().is_none());
    assert!(semaphores.acquire(WorkspaceId::new()).now_or_never().is_some(), "another key is not delayed");
    drop(first);
    assert!(semaphores.acquire(workspace).now_or_never().is_some());
}

#[tokio::test]
async fn idle_keys_take_no_memory() {
    let semaphores = KeyedSemaphore::new(1);
    let workspace = WorkspaceId::new();
    let permit = semaphores.acquire(workspace).await;
    assert!(semaphores.acquire(workspace).now_or_never().is_none(), "a waiter that gives up leaves nothing behind");
    drop(permit);
    assert!(semaphores.semaphores.lock().unwrap().is_empty());
}

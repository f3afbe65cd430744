use super::*;
use crate::WorkspaceId;
use futures_util::FutureExt;

#[tokio::test]
async fn more_calls_than_the_width_wait_until_one_ends() {
    let gate = Gate::new(2);
    let workspace = WorkspaceId::new();
    let first = gate.pass(workspace).await;
    let _second = gate.pass(workspace).await;
    assert!(gate.pass(workspace).now_or_never().is_none());
    assert!(gate.pass(WorkspaceId::new()).now_or_never().is_some(), "another workspace is not held up");
    drop(first);
    assert!(gate.pass(workspace).now_or_never().is_some());
}

#[tokio::test]
async fn idle_workspaces_take_no_memory() {
    let gate = Gate::new(1);
    let workspace = WorkspaceId::new();
    let pass = gate.pass(workspace).await;
    assert!(gate.pass(workspace).now_or_never().is_none(), "a waiter that gives up leaves nothing behind either");
    drop(pass);
    assert!(gate.open.lock().unwrap().is_empty());
}

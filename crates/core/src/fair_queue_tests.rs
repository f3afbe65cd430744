use super::*;
use futures_util::FutureExt;
use std::{future::Future, pin::Pin};

type Entering<'a> = Pin<Box<dyn Future<Output = QueueSlot> + Send + 'a>>;

fn queue(in_all: usize, per_account: usize, per_workspace: usize) -> FairQueue {
    FairQueue::new(QueueLimits { in_all, per_account, per_workspace })
}

/// Starts to wait. The order of these calls is the order of arrival.
fn arrive(queue: &FairQueue, account: UserId, workspace: WorkspaceId) -> Entering<'_> {
    let mut entering: Entering<'_> = Box::pin(queue.enter(account, workspace));
    assert!((&mut entering).now_or_never().is_none(), "it need not wait");
    entering
}

fn granted(entering: &mut Entering<'_>) -> Option<QueueSlot> {
    entering.now_or_never()
}

#[tokio::test]
async fn another_account_gets_the_next_slot_before_the_waiting_callers_of_a_busy_account() {
    let queue = queue(2, 2, 2);
    let (busy, other) = (UserId::new(), UserId::new());
    let mut held: Vec<QueueSlot> = (0..2).map(|_| queue.try_enter(busy, WorkspaceId::new()).ok().unwrap()).collect();
    let mut waiting: Vec<Entering<'_>> = (0..77).map(|_| arrive(&queue, busy, WorkspaceId::new())).collect();
    let mut other_caller = arrive(&queue, other, WorkspaceId::new());
    held.pop();
    let slot = granted(&mut other_caller).expect("it had to wait for the busy account");
    drop(slot);
    let served: Vec<QueueSlot> = waiting.iter_mut().filter_map(granted).collect();
    assert_eq!(served.len(), 1, "then the busy account continues");
}

#[tokio::test]
async fn accounts_alternate_if_there_is_one_slot() {
    let queue = queue(1, 1, 1);
    let (first, second) = (UserId::new(), UserId::new());
    let workspace = WorkspaceId::new();
    let mut held = queue.try_enter(first, workspace).ok().unwrap();
    let mut of_first: VecDeque<_> = (0..3).map(|_| arrive(&queue, first, workspace)).collect();
    let mut of_second: VecDeque<_> = (0..3).map(|_| arrive(&queue, second, workspace)).collect();
    for turn in 0..6 {
        let line = if turn % 2 == 0 { &mut of_second } else { &mut of_first };
        drop(held);
        held = granted(&mut line.pop_front().unwrap()).expect("it is the turn of the other account");
    }
}

#[tokio::test]
async fn the_workspaces_of_an_account_alternate() {
    let queue = queue(1, 1, 1);
    let (account, busy, quiet) = (UserId::new(), WorkspaceId::new(), WorkspaceId::new());
    let held = queue.try_enter(account, busy).ok().unwrap();
    let mut first = arrive(&queue, account, busy);
    let mut second = arrive(&queue, account, busy);
    let mut other = arrive(&queue, account, quiet);
    drop(held);
    let held =
        granted(&mut first).expect("neither workspace was served from the queue before: in the order of arrival");
    drop(held);
    let held = granted(&mut other).expect("the busy workspace was served last");
    drop(held);
    assert!(granted(&mut second).is_some());
}

#[tokio::test]
async fn a_full_workspace_or_account_does_not_delay_others() {
    let queue = queue(10, 2, 1);
    let (account, other) = (UserId::new(), UserId::new());
    let (one, two, three) = (WorkspaceId::new(), WorkspaceId::new(), WorkspaceId::new());
    let in_one = queue.try_enter(account, one).ok().unwrap();
    assert_eq!(queue.try_enter(other, one).err(), Some(Full { scope: LimitScope::Workspace, limit: 1 }));
    let mut waits_for_one = arrive(&queue, other, one);
    let in_two = queue.try_enter(account, two).ok().unwrap();
    assert_eq!(queue.try_enter(account, three).err(), Some(Full { scope: LimitScope::Account, limit: 2 }));
    let mut waits_for_three = arrive(&queue, account, three);
    let in_three = queue.try_enter(other, three).ok().unwrap();
    drop(in_two);
    assert!(granted(&mut waits_for_three).is_none(), "another account holds the only slot of that workspace");
    drop(in_one);
    assert!(granted(&mut waits_for_one).is_some());
    drop(in_three);
    assert!(granted(&mut waits_for_three).is_some());
}

#[tokio::test]
async fn a_caller_that_stops_waiting_leaves_nothing_behind() {
    let queue = queue(1, 1, 1);
    let (account, workspace) = (UserId::new(), WorkspaceId::new());
    let held = queue.try_enter(account, workspace).ok().unwrap();
    drop(arrive(&queue, UserId::new(), workspace));
    assert_eq!(queue.lock().accounts.len(), 1);
    // A slot that was granted and never received goes to the next one.
    let abandoned = arrive(&queue, UserId::new(), workspace);
    let mut next = arrive(&queue, UserId::new(), workspace);
    drop(held);
    drop(abandoned);
    drop(granted(&mut next).expect("the slot was returned"));
    drop(next);
    assert!(queue.is_idle());
}

#[tokio::test]
async fn a_full_queue_reports_the_limit_of_the_server() {
    let queue = queue(1, 5, 5);
    let _held = queue.try_enter(UserId::new(), WorkspaceId::new()).ok().unwrap();
    let refused = queue.try_enter(UserId::new(), WorkspaceId::new()).err();
    assert_eq!(refused, Some(Full { scope: LimitScope::Server, limit: 1 }));
}

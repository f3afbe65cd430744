use super::*;
use futures_util::FutureExt;
use std::{future::Future, pin::Pin};

type Entering<'a> = Pin<Box<dyn Future<Output = QueueSlot> + Send + 'a>>;

fn queue(in_all: usize, per_account: usize, per_workspace: usize) -> FairQueue {
    FairQueue::new(QueueLimits { in_all, per_account, per_workspace })
}

/// Begins to wait; the order of these calls is the order of arrival.
fn arrive(queue: &FairQueue, account: UserId, workspace: WorkspaceId) -> Entering<'_> {
    let mut entering: Entering<'_> = Box::pin(queue.enter(account, workspace));
    assert!((&mut entering).now_or_never().is_none(), "it need not wait");
    entering
}

fn is_in(entering: &mut Entering<'_>) -> Option<QueueSlot> {
    entering.now_or_never()
}

#[tokio::test]
async fn a_newcomer_gets_the_next_free_place_before_all_that_an_account_waits_for() {
    let queue = queue(2, 2, 2);
    let (attacker, stranger) = (UserId::new(), UserId::new());
    let mut held: Vec<QueueSlot> =
        (0..2).map(|_| queue.try_enter(attacker, WorkspaceId::new()).ok().unwrap()).collect();
    let mut crowd: Vec<Entering<'_>> = (0..77).map(|_| arrive(&queue, attacker, WorkspaceId::new())).collect();
    let mut newcomer = arrive(&queue, stranger, WorkspaceId::new());
    held.pop();
    let place = is_in(&mut newcomer).expect("it had to wait for the crowd");
    drop(place);
    let served: Vec<QueueSlot> = crowd.iter_mut().filter_map(is_in).collect();
    assert_eq!(served.len(), 1, "then the crowd goes on");
}

#[tokio::test]
async fn accounts_take_turns_where_there_is_one_place() {
    let queue = queue(1, 1, 1);
    let (first, second) = (UserId::new(), UserId::new());
    let workspace = WorkspaceId::new();
    let mut held = queue.try_enter(first, workspace).ok().unwrap();
    let mut of_first: VecDeque<_> = (0..3).map(|_| arrive(&queue, first, workspace)).collect();
    let mut of_second: VecDeque<_> = (0..3).map(|_| arrive(&queue, second, workspace)).collect();
    for turn in 0..6 {
        let line = if turn % 2 == 0 { &mut of_second } else { &mut of_first };
        drop(held);
        held = is_in(&mut line.pop_front().unwrap()).expect("it is the turn of the other account");
    }
}

#[tokio::test]
async fn the_workspaces_of_an_account_take_turns() {
    let queue = queue(1, 1, 1);
    let (account, busy, quiet) = (UserId::new(), WorkspaceId::new(), WorkspaceId::new());
    let held = queue.try_enter(account, busy).ok().unwrap();
    let mut first = arrive(&queue, account, busy);
    let mut second = arrive(&queue, account, busy);
    let mut other = arrive(&queue, account, quiet);
    drop(held);
    let held = is_in(&mut first).expect("neither workspace was served from the queue before: in the order of arrival");
    drop(held);
    let held = is_in(&mut other).expect("the busy workspace was served last");
    drop(held);
    assert!(is_in(&mut second).is_some());
}

#[tokio::test]
async fn a_full_workspace_or_account_holds_nobody_else_up() {
    let queue = queue(10, 2, 1);
    let (account, other) = (UserId::new(), UserId::new());
    let (one, two, three) = (WorkspaceId::new(), WorkspaceId::new(), WorkspaceId::new());
    let in_one = queue.try_enter(account, one).ok().unwrap();
    assert_eq!(queue.try_enter(other, one).err(), Some(Full { scope: Scope::Workspace, limit: 1 }));
    let mut waits_for_one = arrive(&queue, other, one);
    let in_two = queue.try_enter(account, two).ok().unwrap();
    assert_eq!(queue.try_enter(account, three).err(), Some(Full { scope: Scope::Account, limit: 2 }));
    let mut waits_for_three = arrive(&queue, account, three);
    let in_three = queue.try_enter(other, three).ok().unwrap();
    drop(in_two);
    assert!(is_in(&mut waits_for_three).is_none(), "another account holds the only place of that workspace");
    drop(in_one);
    assert!(is_in(&mut waits_for_one).is_some());
    drop(in_three);
    assert!(is_in(&mut waits_for_three).is_some());
}

#[tokio::test]
async fn who_gives_up_waiting_leaves_nothing_behind() {
    let queue = queue(1, 1, 1);
    let (account, workspace) = (UserId::new(), WorkspaceId::new());
    let held = queue.try_enter(account, workspace).ok().unwrap();
    drop(arrive(&queue, UserId::new(), workspace));
    assert_eq!(queue.lock().accounts.len(), 1);
    // A place that was granted and never received goes to the next one.
    let granted = arrive(&queue, UserId::new(), workspace);
    let mut next = arrive(&queue, UserId::new(), workspace);
    drop(held);
    drop(granted);
    drop(is_in(&mut next).expect("the place was returned"));
    drop(next);
    assert!(queue.is_idle());
}

#[tokio::test]
async fn a_full_server_says_so() {
    let queue = queue(1, 5, 5);
    let _held = queue.try_enter(UserId::new(), WorkspaceId::new()).ok().unwrap();
    let refused = queue.try_enter(UserId::new(), WorkspaceId::new()).err();
    assert_eq!(refused, Some(Full { scope: Scope::Server, limit: 1 }));
}

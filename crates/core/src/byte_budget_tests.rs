use super::*;
use std::time::Duration;

const MB: usize = 1 << 20;

async fn is_granted(wait: impl Future<Output = HeldBytes<&'static str>>) -> bool {
    tokio::time::timeout(Duration::from_millis(20), wait).await.is_ok()
}

#[tokio::test]
async fn a_caller_holds_no_more_than_its_share_and_others_get_theirs() {
    let budget = ByteBudget::new(40 * MB, MB);
    let first = budget.reserve("ada", 10 * MB).await;
    assert!(!is_granted(budget.reserve("ada", MB)).await);
    assert!(budget.try_reserve("ada", MB).is_none());
    let others = [budget.reserve("bob", 10 * MB).await, budget.reserve("eve", 10 * MB).await];
    drop(first);
    assert!(is_granted(budget.reserve("ada", 10 * MB)).await);
    drop(others);
    assert!(budget.is_idle(), "nothing is kept of callers that hold nothing");
}

#[tokio::test]
async fn a_request_of_the_largest_size_always_fits() {
    let budget = ByteBudget::new(MB, 32 * MB);
    let held = budget.reserve("ada", 64 * MB).await;
    assert!(!is_granted(budget.reserve("bob", 1)).await);
    drop(held);
    assert!(is_granted(budget.reserve("bob", 1)).await);
}

#[tokio::test]
async fn a_claim_that_is_not_filled_does_not_delay_others() {
    let budget = ByteBudget::new(4 * MB, 2 * MB);
    let mut slow = Vec::new();
    for caller in ["ada", "bob", "eve"] {
        let mut held = budget.nothing_for(caller);
        held.claim(2 * MB).await;
        slow.push(held);
    }
    let other = budget.reserve("dan", 2 * MB).await;
    slow[0].fill(MB).await;
    slow[0].fill(2 * MB).await;
    let full = tokio::time::timeout(Duration::from_millis(20), slow[1].fill(1)).await;
    assert!(full.is_err(), "the budget is used up");
    drop(other);
    slow[1].fill(1).await;
    // No more is taken than the share allows.
    slow[1].fill(100 * MB).await;
    drop(slow);
    assert!(budget.is_idle());
}

#[tokio::test]
async fn a_caller_that_stops_waiting_leaves_nothing_behind() {
    let budget = ByteBudget::new(4 * MB, MB);
    let held = budget.reserve("ada", MB).await;
    for caller in ["ada", "bob"] {
        drop(tokio::time::timeout(Duration::from_millis(1), budget.reserve(caller, MB)).await);
    }
    drop(held);
    assert!(budget.is_idle());
}

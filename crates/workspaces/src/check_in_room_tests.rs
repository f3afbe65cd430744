use super::*;
use std::time::Duration;
use uuid::Uuid;

const MB: u64 = 1 << 20;

fn room_of(account: u128, budget: &Arc<CheckInBudget>) -> CommitRoom {
    CommitRoom::new(Arc::clone(budget), UserId(Uuid::from_u128(account)))
}

#[tokio::test]
async fn a_commit_waits_for_bytes_once_and_is_refused_if_it_needs_more() {
    let budget = Arc::new(CheckInBudget::new(10 * MB));
    let mut first = room_of(1, &budget);
    assert!(first.try_take(8 * MB).is_ok());
    let mut second = room_of(1, &budget);
    assert!(second.try_take(8 * MB).is_err(), "the share of the account is used up");
    let waits = tokio::time::timeout(Duration::from_millis(20), second.wait_for(8 * MB)).await.is_err();
    assert!(waits, "a commit waits for its bytes");
    assert!(room_of(2, &budget).try_take(8 * MB).is_ok(), "another account has its own share");
    drop(first);
    second.wait_for(8 * MB).await.unwrap();
    assert!(second.try_take(8 * MB).is_ok() && second.try_take(10 * MB).is_ok(), "what is missing is free");
    let mut third = room_of(1, &budget);
    assert!(third.try_take(2 * MB).is_err() && second.try_take(12 * MB).is_err());
    assert_eq!(second.wait_for(12 * MB).await.unwrap_err().kind, ErrorKind::Unavailable);
    drop(second);
    assert!(third.try_take(10 * MB).is_ok());
}

#[tokio::test]
async fn a_small_commit_needs_no_room() {
    let budget = Arc::new(CheckInBudget::new(2 * MB));
    let mut large = room_of(1, &budget);
    assert!(large.try_take(2 * MB).is_ok());
    assert!(room_of(1, &budget).try_take(MB).is_ok());
}

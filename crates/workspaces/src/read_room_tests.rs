use super::*;
use std::time::Duration;
use uuid::Uuid;

const MB: u64 = 1 << 20;

fn path(name: &str) -> WsPath {
    WsPath::within(name).unwrap()
}

fn room_of(account: u128, budget: &Arc<ReadBudget>) -> Arc<ReadRoom> {
    ReadRoom::new(Arc::clone(budget), UserId(Uuid::from_u128(account)))
}

async fn has_to_wait(take: impl Future<Output = Result<()>>) -> bool {
    tokio::time::timeout(Duration::from_millis(20), take).await.is_err()
}

#[tokio::test]
async fn a_large_read_waits_until_another_call_has_ended() {
    let budget = Arc::new(ReadBudget::new(30 << 20, 8 << 20));
    let (first, second) = (room_of(1, &budget), room_of(2, &budget));
    first.take(&path("a"), 8 * MB).await.unwrap();
    assert!(has_to_wait(second.take(&path("a"), 8 * MB)).await);
    second.take(&path("small"), SMALL_BYTES).await.unwrap();
    drop(first);
    // What does not fit as a whole gets all there is.
    second.take(&path("a"), 1000 * MB).await.unwrap();
}

#[tokio::test]
async fn an_account_takes_no_more_than_its_share() {
    let budget = Arc::new(ReadBudget::new(96 << 20, 8 << 20));
    let calls = [room_of(1, &budget), room_of(1, &budget)];
    calls[0].take(&path("a"), 8 * MB).await.unwrap();
    assert!(has_to_wait(calls[1].take(&path("a"), 8 * MB)).await);
    for other in 2..5 {
        let other = room_of(other, &budget);
        assert!(!has_to_wait(other.take(&path("a"), 8 * MB)).await);
    }
}

#[tokio::test]
async fn a_call_that_holds_room_is_refused_more_instead_of_waiting_or_going_on() {
    let budget = Arc::new(ReadBudget::new(24 << 20, 8 << 20));
    let call = room_of(1, &budget);
    call.take(&path("a"), 8 * MB).await.unwrap();
    // The same file once more takes the place of what was read before.
    call.take(&path("a"), 8 * MB).await.unwrap();
    assert_eq!(call.take(&path("b"), 8 * MB).await.unwrap_err().kind, ErrorKind::Unavailable);
}

#[tokio::test]
async fn room_that_is_made_first_covers_the_files_that_are_read_then() {
    let budget = Arc::new(ReadBudget::new(24 << 20, 8 << 20));
    let (call, other) = (room_of(1, &budget), room_of(2, &budget));
    call.make_room(8 * MB).await.unwrap();
    for name in ["a", "b", "c", "d"] {
        call.take(&path(name), 2 * MB).await.unwrap();
    }
    assert!(has_to_wait(other.take(&path("a"), 2 * MB)).await);
    // More than before: what it held is returned first, so that it does not wait for itself.
    call.make_room(8 * MB).await.unwrap();
    call.make_room(0).await.unwrap();
    other.take(&path("a"), 8 * MB).await.unwrap();
}

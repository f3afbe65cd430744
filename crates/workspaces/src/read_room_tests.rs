use super::*;
use std::time::Duration;

const MB: i64 = 1 << 20;

async fn is_refused(room: &ReadRoom, bytes: i64) -> bool {
    tokio::time::timeout(Duration::from_millis(20), room.take(bytes)).await.is_err()
}

#[tokio::test]
async fn a_large_read_waits_until_another_call_has_ended() {
    let budget = Arc::new(ReadBudget::new(30 << 20));
    let (first, second) = (ReadRoom::new(Arc::clone(&budget)), ReadRoom::new(budget));
    first.take(8 * MB).await.unwrap();
    assert!(is_refused(&second, 8 * MB).await);
    second.take(MB).await.unwrap();
    // What does not fit as a whole gets all there is, and a call that holds room does not wait.
    first.take(1000 * MB).await.unwrap();
    drop(first);
    second.take(1000 * MB).await.unwrap();
}

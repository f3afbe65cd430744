use super::*;

const MB: usize = 1 << 20;

fn budget_with_short_timeout(bytes: usize, largest_bytes: usize) -> Budget {
    Budget { timeout: Duration::from_millis(20), ..Budget::new(bytes, largest_bytes) }
}

#[tokio::test]
async fn a_caller_that_used_up_its_share_gets_retry_after() {
    let budget = budget_with_short_timeout(40 * MB, MB);
    let held = budget.reserve("ada", 10 * MB).await.unwrap();
    assert_eq!(budget.reserve("ada", MB).await.err().unwrap().kind, ErrorKind::Unavailable);
    drop(budget.reserve("bob", 10 * MB).await.unwrap());
    drop(held);
    drop(budget.reserve("ada", 10 * MB).await.unwrap());
    assert!(budget.large.is_idle());
}

#[tokio::test]
async fn announced_bodies_leave_room_for_others_until_they_arrive() {
    let budget = budget_with_short_timeout(16 * MB, 4 * MB);
    let mut slow = Vec::new();
    for caller in ["ada", "bob", "eve", "dan"] {
        let mut room = budget.body_room(caller, Some(4 * MB)).await.unwrap();
        room.grow(1).await.unwrap();
        slow.push(room);
    }
    let mut body = budget.body_room("fay", Some(4 * MB)).await.unwrap();
    body.grow(4 * MB).await.unwrap();
    drop(body);
    // When all of them have arrived, small bodies still have room of their own.
    for room in &mut slow[..3] {
        room.grow(4 * MB).await.unwrap();
    }
    assert_eq!(slow[3].grow(4 * MB).await.unwrap_err().kind, ErrorKind::Unavailable);
    let mut small = budget.body_room("fay", Some(SMALL_BYTES)).await.unwrap();
    small.grow(SMALL_BYTES).await.unwrap();
}

#[tokio::test]
async fn a_body_of_unknown_length_takes_room_as_it_grows() {
    let budget = budget_with_short_timeout(16 * MB, 4 * MB);
    let mut body = budget.body_room("ada", None).await.unwrap();
    for bytes in [1, SMALL_BYTES, SMALL_BYTES + 1, MB, 3 * MB] {
        body.grow(bytes).await.unwrap();
    }
    assert!(budget.small.is_idle() && !budget.large.is_idle());
    // It has claimed as much again.
    assert_eq!(budget.reserve("ada", 2 * MB).await.err().unwrap().kind, ErrorKind::Unavailable);
    drop(body);
    assert!(budget.large.is_idle());
}

#[tokio::test]
async fn an_answer_holds_its_room_until_it_was_sent_completely() {
    use http_body_util::BodyExt;
    let budget = budget_with_short_timeout(4 * MB, MB);
    let text = vec![b'x'; MB];
    let mut body = budget.charge("ada", Body::from(text.clone())).await.unwrap();
    assert_eq!(hyper::body::Body::size_hint(&body).exact(), Some(MB as u64));
    let mut sent = Vec::new();
    while let Some(frame) = body.frame().await {
        let data = frame.unwrap().into_data().unwrap();
        assert!(data.len() <= PIECE_BYTES);
        sent.extend_from_slice(&data);
        assert!(!budget.large.is_idle());
    }
    drop(body);
    assert!(sent == text && budget.large.is_idle());
    let small = budget.charge("ada", Body::from("small")).await.unwrap();
    assert!(budget.large.is_idle());
    drop(small);
}

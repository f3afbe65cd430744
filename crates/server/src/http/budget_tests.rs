use super::*;

const MB: usize = 1 << 20;

fn impatient(bytes: usize, largest_bytes: usize) -> Budget {
    Budget { patience: Duration::from_millis(20), ..Budget::new(bytes, largest_bytes) }
}

#[tokio::test]
async fn a_caller_holds_no_more_than_its_share_and_others_get_theirs() {
    let budget = impatient(40 * MB, MB);
    let first = budget.reserve("ada", 10 * MB).await.unwrap();
    assert_eq!(budget.reserve("ada", MB).await.err().unwrap().kind, ErrorKind::Unavailable);
    let others = [budget.reserve("bob", 10 * MB).await.unwrap(), budget.reserve("eve", 10 * MB).await.unwrap()];
    drop(first);
    drop(budget.reserve("ada", 10 * MB).await.unwrap());
    drop(others);
    assert!(budget.shared.callers.lock().unwrap().is_empty(), "nothing is kept of callers that hold nothing");
}

#[tokio::test]
async fn one_request_of_the_largest_size_always_fits() {
    let budget = impatient(MB, 32 * MB);
    let held = budget.reserve("ada", 64 * MB).await.unwrap();
    assert_eq!(budget.reserve("bob", 1).await.err().unwrap().kind, ErrorKind::Unavailable);
    drop(held);
    budget.reserve("bob", 1).await.unwrap();
}

#[tokio::test]
async fn a_caller_that_gives_up_waiting_leaves_nothing() {
    let budget = impatient(4 * MB, MB);
    let held = budget.reserve("ada", MB).await.unwrap();
    for caller in ["ada", "bob"] {
        let waiting = budget.reserve(caller, MB);
        drop(tokio::time::timeout(Duration::from_millis(1), waiting).await);
    }
    drop(held);
    assert!(budget.shared.callers.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_answer_is_sent_whole_and_holds_its_room_until_then() {
    use http_body_util::BodyExt;
    let budget = impatient(4 * MB, MB);
    let text = vec![b'x'; MB];
    let mut body = budget.charge("ada", Body::from(text.clone())).await.unwrap();
    assert_eq!(hyper::body::Body::size_hint(&body).exact(), Some(MB as u64));
    let mut sent = Vec::new();
    while let Some(frame) = body.frame().await {
        let data = frame.unwrap().into_data().unwrap();
        assert!(data.len() <= PIECE_BYTES);
        sent.extend_from_slice(&data);
        assert!(budget.shared.callers.lock().unwrap().contains_key("ada"));
    }
    drop(body);
    assert!(sent == text && budget.shared.callers.lock().unwrap().is_empty());
    let small = budget.charge("ada", Body::from("small")).await.unwrap();
    assert!(budget.shared.callers.lock().unwrap().is_empty());
    drop(small);
}

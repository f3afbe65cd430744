use super::*;
use futures_util::FutureExt;

#[tokio::test]
async fn a_signal_wakes_the_subscribers_of_its_id() {
    let (wakeups, [a, b]) = (Wakeups::default(), [Uuid::from_u128(1), Uuid::from_u128(2)]);
    let mut first = wakeups.subscribe(a, || ());
    let mut second = wakeups.subscribe(a, || ());
    let mut other = wakeups.subscribe(b, || ());
    wakeups.wake(a);
    wakeups.wake(a);
    first.signalled().await;
    second.signalled().await;
    assert!(first.signalled().now_or_never().is_none(), "two signals in a row are one");
    assert!(other.signalled().now_or_never().is_none());
    wakeups.wake_all();
    first.signalled().await;
    other.signalled().await;
}

#[test]
fn a_watcher_runs_while_somebody_is_subscribed() {
    let (wakeups, id) = (Wakeups::default(), Uuid::from_u128(1));
    let mut started = 0;
    let first = wakeups.subscribe(id, || started += 1);
    let second = wakeups.subscribe(id, || started += 1);
    assert_eq!((wakeups.subscribed(), started), (vec![id], 1));
    drop(first);
    assert!(!wakeups.stop_if_unused(), "somebody still waits");
    drop(second);
    assert!(wakeups.subscribed().is_empty());
    let third = wakeups.subscribe(id, || started += 1);
    assert_eq!(started, 1, "the watcher has not ended yet");
    drop(third);
    assert!(wakeups.stop_if_unused());
    let _fourth = wakeups.subscribe(id, || started += 1);
    assert_eq!(started, 2);
}

use super::RunToCompletion;
use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::{Context, Waker},
};
use tokio::{runtime::Handle, sync::oneshot};

fn poll_once<F: Future>(work: F) -> bool {
    pin!(work).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[tokio::test]
async fn work_that_somebody_waits_for_gives_its_result_without_a_task() {
    assert_eq!(RunToCompletion::new(async { 7 }).await, 7);
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
}

#[tokio::test]
async fn work_that_is_dropped_halfway_goes_on() {
    let (go, going) = oneshot::channel::<()>();
    let (done, is_done) = oneshot::channel();
    let work = RunToCompletion::new(async move {
        going.await.unwrap();
        done.send("done").unwrap();
    });
    assert!(!poll_once(work));
    go.send(()).unwrap();
    assert_eq!(is_done.await.unwrap(), "done");
}

#[tokio::test]
async fn work_that_was_never_begun_is_done_too() {
    let (done, is_done) = oneshot::channel();
    drop(RunToCompletion::new(async move { done.send(1).unwrap() }));
    assert_eq!(is_done.await.unwrap(), 1);
}

#[tokio::test]
async fn work_that_panics_does_not_go_on() {
    let work = RunToCompletion::new(async { panic!("as it should") });
    assert!(catch_unwind(AssertUnwindSafe(|| poll_once(work))).is_err());
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
}

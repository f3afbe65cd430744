use super::RunToCompletion;
use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
    task::{Context, Waker},
};
use tokio::{runtime::Handle, sync::oneshot};

fn poll_once<F: Future>(work: F) -> bool {
    pin!(work).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[tokio::test]
async fn awaited_work_returns_its_result_without_a_task() {
    assert_eq!(RunToCompletion::new(async { 7 }, |_| panic!("nobody abandoned it")).await, 7);
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
}

#[tokio::test]
async fn work_that_is_dropped_while_pending_continues() {
    let (go, going) = oneshot::channel::<()>();
    let (done, is_done) = oneshot::channel();
    let work = async move {
        going.await.unwrap();
        done.send("done").unwrap();
    };
    assert!(!poll_once(RunToCompletion::new(work, drop)));
    go.send(()).unwrap();
    assert_eq!(is_done.await.unwrap(), "done");
}

#[tokio::test]
async fn work_that_is_dropped_before_its_first_poll_runs_too() {
    let (done, is_done) = oneshot::channel();
    drop(RunToCompletion::new(async move { done.send(1).unwrap() }, drop));
    assert_eq!(is_done.await.unwrap(), 1);
}

#[tokio::test]
async fn the_result_of_abandoned_work_is_passed_on() {
    static IS_PASSED_ON: AtomicBool = AtomicBool::new(false);
    struct OnDrop(Option<oneshot::Sender<()>>);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            let _ = self.0.take().unwrap().send(());
        }
    }
    let (ended, has_ended) = oneshot::channel();
    let work = async move { OnDrop(Some(ended)) };
    drop(RunToCompletion::new(work, |_: OnDrop| IS_PASSED_ON.store(true, Ordering::SeqCst)));
    has_ended.await.unwrap();
    assert!(IS_PASSED_ON.load(Ordering::SeqCst));
}

#[tokio::test]
async fn work_that_panics_does_not_continue() {
    let work = RunToCompletion::new(async { panic!("expected by the test") }, drop);
    assert!(catch_unwind(AssertUnwindSafe(|| poll_once(work))).is_err());
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
}

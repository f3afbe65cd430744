#![allow(clippy::unwrap_used)]

use super::*;
use std::sync::{Arc, Mutex};
use tracing::{Event, Level, Metadata, Subscriber, span};

/// Collects the levels of events.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<Level>>>);

impl Subscriber for Events {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("toolrest_store")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        self.0.lock().unwrap().push(*event.metadata().level());
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// Returns the levels that are logged when the caller of a job disconnects before the job fails.
async fn logged_after_disconnecting(error: StoreError) -> Vec<Level> {
    let events = Events::default();
    let _collected = tracing::subscriber::set_default(events.clone());
    let (go, may_fail) = oneshot::channel::<()>();
    let (end, ended) = oneshot::channel::<()>();
    let job = run_to_end(async move {
        let _end = end;
        let _ = may_fail.await;
        Err::<(), _>(error)
    });
    tokio::select! {
        biased;
        _ = job => panic!("the job waits"),
        () = tokio::task::yield_now() => {}
    }
    go.send(()).unwrap();
    // The job drops its end of the channel last but one; the log follows without another wait.
    let _ = ended.await;
    tokio::task::yield_now().await;
    let levels = events.0.lock().unwrap();
    levels.clone()
}

#[tokio::test]
async fn the_failure_of_a_job_whose_caller_has_disconnected_is_logged() {
    assert_eq!(logged_after_disconnecting(StoreError::internal("broken")).await, [Level::WARN]);
    assert_eq!(logged_after_disconnecting(StoreError::StorageFull("full")).await, [Level::WARN]);
    assert_eq!(logged_after_disconnecting(StoreError::NotAMember).await, [] as [Level; 0]);
}

#[tokio::test]
async fn a_job_answers_its_caller() {
    assert_eq!(run_to_end::<i32>(async { Ok(7) }).await.unwrap(), 7);
    let error = run_to_end(async { Err::<(), _>(StoreError::LostRace) }).await.unwrap_err();
    assert!(matches!(error, StoreError::LostRace), "{error}");
}

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use toolrest_core::{CallId, UserId, WorkspaceId, now};

fn records(count: usize) -> Vec<CallRecord> {
    let record = |number: usize| CallRecord {
        workspace: WorkspaceId::new(),
        id: CallId::new(),
        correlation_id: number.to_string(),
        user: UserId::new(),
        key: None,
        toolset: "test".into(),
        tool: "test".into(),
        path: None,
        args: None,
        outcome: Some("ok".into()),
        message: None,
        started_at: now(),
        duration_us: Some(1),
        commit_id: None,
        has_running_row: false,
    };
    (0..count).map(record).collect()
}

#[tokio::test]
async fn a_record_that_is_refused_is_dropped_alone() {
    let batch = records(1000);
    for at_fault in [0, 1, 499, 998, 999] {
        let (stored, tries) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
        let write = async |part: Vec<CallRecord>| {
            tries.fetch_add(1, Ordering::Relaxed);
            if part.iter().any(|record| record.id == batch[at_fault].id) {
                return Err(StoreError::internal("refused"));
            }
            stored.lock().unwrap().extend(part);
            Ok(())
        };
        let (done, failure) = write_batch(&batch, write).await;
        assert_eq!((done, failure.is_none()), (1000, true));
        let expected: Vec<CallRecord> =
            batch.iter().filter(|record| record.id != batch[at_fault].id).cloned().collect();
        assert_eq!(stored.into_inner().unwrap(), expected, "in order, each once");
        assert!(tries.into_inner() < 30);
    }
}

#[tokio::test]
async fn nothing_is_dropped_while_the_database_is_away() {
    let batch = records(8);
    let stored = AtomicUsize::new(0);
    let write = async |part: Vec<CallRecord>| {
        if part.len() > 2 {
            return Err(StoreError::internal("refused"));
        }
        if stored.fetch_add(part.len(), Ordering::Relaxed) >= 4 {
            return Err(StoreError::Unavailable("away".into()));
        }
        Ok(())
    };
    let (done, failure) = write_batch(&batch, write).await;
    assert_eq!(done, 4);
    assert!(matches!(failure, Some(StoreError::Unavailable(_))));
}

//! Writes the records of calls in batches, after the calls.

use crate::Store;
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{sync::Notify, task::JoinHandle};
use toolrest_core::{CallRecord, Recorder};

/// Maximum batching delay.
const MAX_BATCH_DELAY: Duration = Duration::from_millis(200);
/// Maximum number of records in one statement.
const BATCH: usize = 2_000;
/// Maximum number of records in memory while the database is unavailable. If there are more, the oldest are dropped and
/// the log says so.
const MAX_PENDING: usize = 200_000;

/// Collects records and writes them in batches, so that a read needs no extra round trip and no fsync.
pub struct WriteBehind {
    shared: Arc<Shared>,
    task: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    pending: Mutex<PendingRecords>,
    closing: Notify,
}

#[derive(Default)]
struct PendingRecords {
    records: Vec<CallRecord>,
    closed: bool,
}

impl WriteBehind {
    /// Starts the writer.
    #[must_use]
    pub fn start(store: Arc<dyn Store>) -> Self {
        let shared = Arc::new(Shared { pending: Mutex::default(), closing: Notify::new() });
        let task = tokio::spawn(write(Arc::clone(&shared), store));
        Self { shared, task: Mutex::new(Some(task)) }
    }

    /// Returns the number of records that wait to be written.
    pub fn pending(&self) -> usize {
        self.shared.lock().records.len()
    }

    /// Writes the pending records and stops.
    pub async fn close(&self) {
        self.shared.lock().closed = true;
        self.shared.closing.notify_one();
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task
            && let Err(error) = task.await
        {
            tracing::error!(%error, "the writer of call records failed");
        }
    }
}

impl Drop for WriteBehind {
    /// Has the task write the pending records and end, if [`close`](Self::close) was not called.
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.closing.notify_one();
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, PendingRecords> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recorder for WriteBehind {
    fn record(&self, record: CallRecord) {
        let mut pending = self.shared.lock();
        if pending.records.len() >= MAX_PENDING {
            let lost = pending.records.len() / 2;
            pending.records.drain(..lost);
            tracing::error!(lost, "call records were dropped: the database has been unavailable for too long");
        }
        pending.records.push(record);
    }
}

async fn write(shared: Arc<Shared>, store: Arc<dyn Store>) {
    loop {
        // The delay collects records into a batch.
        let _ = tokio::time::timeout(MAX_BATCH_DELAY, shared.closing.notified()).await;
        let (mut records, closed) = {
            let mut pending = shared.lock();
            (std::mem::take(&mut pending.records), pending.closed)
        };
        while !records.is_empty() {
            let rest = records.split_off(records.len().min(BATCH));
            if let Err(error) = store.record_calls(records.clone()).await {
                tracing::warn!(%error, pending = records.len() + rest.len(), "call records could not be written yet");
                records.extend(rest);
                let mut pending = shared.lock();
                records.append(&mut pending.records);
                pending.records = records;
                break;
            }
            records = rest;
        }
        if closed {
            return;
        }
    }
}

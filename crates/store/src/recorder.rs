//! Writes the records of calls in batches, after the calls.

use crate::Store;
use crate::error::{Result, StoreError};
use async_trait::async_trait;
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{Notify, Semaphore, watch},
    task::JoinHandle,
};
use toolrest_core::{Access, CallRecord, RecordPermit, Recorder, Redactor, ToolError};
use uuid::Uuid;

/// Maximum batching delay.
const MAX_BATCH_DELAY: Duration = Duration::from_millis(200);
/// Maximum number of records in one statement.
const BATCH: usize = 2_000;
/// Maximum number of calls that are under way or whose records are not written yet. A record has 5 KB at most. If the
/// database is unavailable for so long that there are more, further calls wait.
const MAX_RECORDS: usize = 20_000;
/// Maximum time that a call waits until its record is durable.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Collects records and writes them in batches, so that a read needs no extra round trip and no fsync.
pub struct WriteBehind {
    shared: Arc<Shared>,
    store: Arc<dyn Store>,
    instance: Uuid,
    redactor: Redactor,
    room: Arc<Semaphore>,
    task: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    pending: Mutex<PendingRecords>,
    /// Asks to write now instead of collecting more records.
    wake: Notify,
    /// How many records have been written since the start.
    written: watch::Sender<u64>,
}

#[derive(Default)]
struct PendingRecords {
    records: Vec<(CallRecord, RecordPermit)>,
    /// How many records have been queued since the start.
    queued: u64,
    closed: bool,
}

impl WriteBehind {
    /// Starts the writer of a server process.
    #[must_use]
    pub fn start(store: Arc<dyn Store>, instance: Uuid, redactor: Redactor) -> Self {
        let shared =
            Arc::new(Shared { pending: Mutex::default(), wake: Notify::new(), written: watch::Sender::new(0) });
        let task = tokio::spawn(write(Arc::clone(&shared), Arc::clone(&store)));
        let room = Arc::new(Semaphore::new(MAX_RECORDS));
        Self { shared, store, instance, redactor, room, task: Mutex::new(Some(task)) }
    }

    /// Returns the number of records that wait to be written.
    pub fn pending(&self) -> usize {
        self.shared.lock().records.len()
    }

    /// Writes the pending records and stops.
    pub async fn close(&self) {
        self.shared.lock().closed = true;
        self.shared.wake.notify_one();
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
        self.shared.wake.notify_one();
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, PendingRecords> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Recorder for WriteBehind {
    fn redact(&self, args: &str) -> String {
        self.redactor.redact(args)
    }

    async fn reserve(&self) -> RecordPermit {
        // The semaphore is never closed.
        Arc::clone(&self.room).acquire_owned().await.map_or_else(|_| RecordPermit::default(), RecordPermit::from)
    }

    async fn record_running(&self, access: Access, call: CallRecord) -> Result<(), ToolError> {
        Ok(self.store.record_running(access, call, self.instance).await?)
    }

    fn record(&self, record: CallRecord, permit: RecordPermit) {
        let mut pending = self.shared.lock();
        pending.queued += 1;
        pending.records.push((record, permit));
    }

    async fn flush(&self) {
        let queued = self.shared.lock().queued;
        let mut written = self.shared.written.subscribe();
        self.shared.wake.notify_one();
        // The records stay queued if the database is not available.
        let _ = tokio::time::timeout(FLUSH_TIMEOUT, written.wait_for(|written| *written >= queued)).await;
    }
}

async fn write(shared: Arc<Shared>, store: Arc<dyn Store>) {
    loop {
        // The delay collects records into a batch.
        let _ = tokio::time::timeout(MAX_BATCH_DELAY, shared.wake.notified()).await;
        let (mut queue, closed) = {
            let mut pending = shared.lock();
            (std::mem::take(&mut pending.records), pending.closed)
        };
        while !queue.is_empty() {
            let batch: Vec<CallRecord> = queue.iter().take(BATCH).map(|(record, _)| record.clone()).collect();
            let (written, failure) = write_batch(&batch, |records| store.record_calls(records)).await;
            queue.drain(..written);
            shared.written.send_modify(|total| *total += written as u64);
            if let Some(error) = failure {
                tracing::warn!(%error, pending = queue.len(), "call records could not be written yet");
                let mut pending = shared.lock();
                queue.append(&mut pending.records);
                pending.records = queue;
                break;
            }
        }
        if closed {
            return;
        }
    }
}

/// Writes records in order. Returns how many are done, and the reason if the database was not available for the rest.
///
/// If the database refuses a batch, its halves are written separately, until the record at fault is alone. Only that one
/// is dropped.
async fn write_batch<W, F>(records: &[CallRecord], write: W) -> (usize, Option<StoreError>)
where
    W: Fn(Vec<CallRecord>) -> F,
    F: Future<Output = Result<()>>,
{
    let mut done = 0;
    // The ends of the parts to write; the first part is the last entry.
    let mut ends = vec![records.len()];
    while let Some(end) = ends.pop() {
        let part = &records[done..end];
        match write(part.to_vec()).await {
            Ok(()) => done = end,
            Err(error) if is_temporary(&error) => return (done, Some(error)),
            Err(error) => match part {
                [] => {}
                // If the database refuses everything, the records are not at fault.
                [_] if write(Vec::new()).await.is_err() => return (done, Some(error)),
                [at_fault] => {
                    let (id, tool) = (at_fault.id, &*at_fault.tool);
                    tracing::error!(%error, call.id = %id, tool.name = tool, "the database refuses a call record; it is dropped");
                    done = end;
                }
                _ => ends.extend([end, done + part.len() / 2]),
            },
        }
    }
    (done, None)
}

/// Whether the same records may be written later.
fn is_temporary(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Unavailable(_)
            | StoreError::Timeout(_)
            | StoreError::StorageFull(_)
            | StoreError::WriteFailed(_)
            | StoreError::LostRace
    )
}

#[cfg(test)]
#[path = "recorder_tests.rs"]
mod tests;

//! Writes the records of calls behind them, in batches.

use crate::Store;
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{sync::Notify, task::JoinHandle};
use toolrest_core::{CallRecord, Recorder};

/// How long a record may wait for company.
const LINGER: Duration = Duration::from_millis(200);
/// The most records of one statement.
const BATCH: usize = 2_000;
/// How many records wait in memory while the database is away. Beyond that the oldest are given up, and the log says so.
const MOST_WAITING: usize = 200_000;

/// Collects records and hands them to the store in batches, so that a read pays no round trip and no fsync.
pub struct WriteBehind {
    shared: Arc<Shared>,
    task: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    waiting: Mutex<Waiting>,
    closing: Notify,
}

#[derive(Default)]
struct Waiting {
    records: Vec<CallRecord>,
    closed: bool,
}

impl WriteBehind {
    /// Starts the writer.
    #[must_use]
    pub fn start(store: Arc<dyn Store>) -> Self {
        let shared = Arc::new(Shared { waiting: Mutex::default(), closing: Notify::new() });
        let task = tokio::spawn(write(Arc::clone(&shared), store));
        Self { shared, task: Mutex::new(Some(task)) }
    }

    /// Writes what is left and stops.
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

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recorder for WriteBehind {
    fn record(&self, record: CallRecord) {
        let mut waiting = self.shared.lock();
        if waiting.records.len() >= MOST_WAITING {
            let lost = waiting.records.len() / 2;
            waiting.records.drain(..lost);
            tracing::error!(lost, "call records were given up: the database has been away for too long");
        }
        waiting.records.push(record);
    }
}

async fn write(shared: Arc<Shared>, store: Arc<dyn Store>) {
    loop {
        // Waiting for time to pass is the point here: it is what makes a batch.
        let _ = tokio::time::timeout(LINGER, shared.closing.notified()).await;
        let (mut records, closed) = {
            let mut waiting = shared.lock();
            (std::mem::take(&mut waiting.records), waiting.closed)
        };
        while !records.is_empty() {
            let rest = records.split_off(records.len().min(BATCH));
            if let Err(error) = store.record_calls(records.clone()).await {
                tracing::warn!(%error, waiting = records.len() + rest.len(), "call records could not be written yet");
                records.extend(rest);
                let mut waiting = shared.lock();
                records.append(&mut waiting.records);
                waiting.records = records;
                break;
            }
            records = rest;
        }
        if closed {
            return;
        }
    }
}

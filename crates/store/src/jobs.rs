//! Jobs whose callers may disconnect before the end.

use crate::error::{Result, StoreError};
use tokio::sync::oneshot;
use toolrest_core::ErrorKind;

/// Sends the result of a job to its caller. If the caller has disconnected, a failure is logged: nobody else reports it.
pub(crate) fn answer<T>(caller: oneshot::Sender<Result<T>>, result: Result<T>) {
    if let Err(Err(error)) = caller.send(result)
        && is_fault(error.kind())
    {
        tracing::warn!(%error, "a database job failed after its caller had disconnected");
    }
}

/// Whether an error is a failure of the database and not an ordinary refusal.
fn is_fault(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Internal
            | ErrorKind::Unavailable
            | ErrorKind::StorageFull
            | ErrorKind::WriteFailed
            | ErrorKind::Timeout
    )
}

/// Runs a job to its end even if the caller disconnects.
pub(crate) async fn run_to_end<T: Send + 'static>(job: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
    let (caller, answered) = oneshot::channel();
    tokio::spawn(async move { answer(caller, job.await) });
    answered.await.map_err(|_| StoreError::internal("a database job gave no answer"))?
}

#[cfg(test)]
#[path = "jobs_tests.rs"]
mod tests;

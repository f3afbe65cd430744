//! Work that runs to its end even if its caller stops waiting.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::runtime::Handle;

/// A future that continues in a task of its own if it is dropped before its end. Until then it needs no task.
pub(super) struct RunToCompletion<F: Future<Output: Send + 'static> + Send + 'static> {
    /// Empty once the work has ended or panicked.
    work: Option<Pin<Box<F>>>,
    /// Receives the result if the caller stopped waiting.
    on_abandoned: fn(F::Output),
}

impl<F: Future<Output: Send + 'static> + Send + 'static> RunToCompletion<F> {
    pub(super) fn new(work: F, on_abandoned: fn(F::Output)) -> Self {
        Self { work: Some(Box::pin(work)), on_abandoned }
    }
}

impl<F: Future<Output: Send + 'static> + Send + 'static> Future for RunToCompletion<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // The work is put back only if it is pending: work that panicked cannot continue.
        let Some(mut work) = self.work.take() else { return Poll::Pending };
        let polled = work.as_mut().poll(cx);
        if polled.is_pending() {
            self.work = Some(work);
        }
        polled
    }
}

impl<F: Future<Output: Send + 'static> + Send + 'static> Drop for RunToCompletion<F> {
    fn drop(&mut self) {
        // There is no runtime only while the server shuts down.
        if let Some(work) = self.work.take()
            && let Ok(runtime) = Handle::try_current()
        {
            let on_abandoned = self.on_abandoned;
            drop(runtime.spawn(async move { on_abandoned(work.await) }));
        }
    }
}

#[cfg(test)]
#[path = "run_to_completion_tests.rs"]
mod tests;

//! Work that is seen through, also where nobody waits for it any more.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::runtime::Handle;

/// Goes on in a task of its own when it is dropped before its end. Until then it needs none.
pub(super) struct RunToCompletion<F: Future<Output: Send + 'static> + Send + 'static>(Option<Pin<Box<F>>>);

impl<F: Future<Output: Send + 'static> + Send + 'static> RunToCompletion<F> {
    pub(super) fn new(work: F) -> Self {
        Self(Some(Box::pin(work)))
    }
}

impl<F: Future<Output: Send + 'static> + Send + 'static> Future for RunToCompletion<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // What panics is not put back: it cannot go on.
        let Some(mut work) = self.0.take() else { return Poll::Pending };
        let polled = work.as_mut().poll(cx);
        if polled.is_pending() {
            self.0 = Some(work);
        }
        polled
    }
}

impl<F: Future<Output: Send + 'static> + Send + 'static> Drop for RunToCompletion<F> {
    fn drop(&mut self) {
        // Without a runtime the server is ending.
        if let Some(work) = self.0.take()
            && let Ok(runtime) = Handle::try_current()
        {
            drop(runtime.spawn(work));
        }
    }
}

#[cfg(test)]
#[path = "run_to_completion_tests.rs"]
mod seen_through_tests;

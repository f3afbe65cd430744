//! Runs the same work for many items on several threads.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// Runs the work for each item. Returns the results in the same order.
///
/// Each thread takes the next item when it is done with one, and never waits for another thread: the kernel would wake a
/// waiting thread on the processor of the thread that woke it, even if another processor is idle.
pub(super) fn map<T: Sync, R: Send>(threads: usize, items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    if threads == 1 || items.len() == 1 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<R>>> = items.iter().map(|_| Mutex::new(None)).collect();
    let run = || {
        while let Some((item, result)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            items.get(index).zip(results.get(index))
        } {
            *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(work(item));
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.min(items.len()) {
            // Without more threads, the calling thread does all the work.
            let _ = thread::Builder::new().spawn_scoped(scope, run);
        }
        run();
    });
    // A panic in a thread ends this one too, so every item has a result.
    results.into_iter().filter_map(|result| result.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

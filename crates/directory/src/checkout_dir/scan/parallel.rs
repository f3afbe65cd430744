//! The same work for many things, on several threads.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// Does the work for each thing, and gives what came of it in the same order.
///
/// Each thread takes the next thing when it is done with one, and none ever waits for another: a thread that sleeps in
/// between is woken on the processor of who woke it, though another one is idle.
pub(super) fn map<T: Sync, R: Send>(threads: usize, things: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    if threads == 1 || things.len() == 1 {
        return things.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<R>>> = things.iter().map(|_| Mutex::new(None)).collect();
    let run = || {
        while let Some((thing, result)) = {
            let place = next.fetch_add(1, Ordering::Relaxed);
            things.get(place).zip(results.get(place))
        } {
            *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(work(thing));
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.min(things.len()) {
            // Where no thread can be had, the caller's does it all.
            let _ = thread::Builder::new().spawn_scoped(scope, run);
        }
        run();
    });
    // A panic in a thread has ended this one too, so each has a result.
    results.into_iter().filter_map(|result| result.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

//! What waits to be done, in the order of paths, for several threads.

use std::{
    collections::BTreeMap,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    news: Condvar,
}

struct State<T> {
    pending: BTreeMap<String, T>,
    /// How many threads do something of which more may come.
    at_work: usize,
    has_ended: bool,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        let state = State { pending: BTreeMap::new(), at_work: 0, has_ended: false };
        Self { state: Mutex::new(state), news: Condvar::new() }
    }
}

impl<T> Queue<T> {
    /// Whether one thread can do all that waits.
    pub(super) fn is_short(&self) -> bool {
        self.state().pending.len() < 2
    }

    /// Lets the first things wait.
    pub(super) fn add(&self, found: &mut Vec<(String, T)>) {
        self.state().pending.extend(found.drain(..));
    }

    /// Takes the first of all, once there is one; none if nothing is left and nothing can come.
    pub(super) fn take(&self) -> Option<(String, T)> {
        let mut state = self.state();
        loop {
            if state.has_ended {
                return None;
            }
            if let Some(first) = state.pending.pop_first() {
                state.at_work += 1;
                return Some(first);
            }
            if state.at_work == 0 {
                return None;
            }
            state = self.news.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ends what was taken, and lets wait what came of it. One of these the same thread takes next.
    pub(super) fn finish(&self, found: &mut Vec<(String, T)>) {
        let mut state = self.state();
        let more = found.len();
        state.pending.extend(found.drain(..));
        state.at_work -= 1;
        let is_all_done = state.at_work == 0 && state.pending.is_empty();
        drop(state);
        match more {
            _ if is_all_done => self.news.notify_all(),
            0 | 1 => {}
            2 => self.news.notify_one(),
            _ => self.news.notify_all(),
        }
    }

    /// Forgets what waits.
    pub(super) fn clear(&self) {
        self.state().pending.clear();
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the work of all threads when one of them panics.
pub(super) struct EndOnPanic<'a, T>(pub(super) &'a Queue<T>);

impl<T> Drop for EndOnPanic<'_, T> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.state().has_ended = true;
            self.0.news.notify_all();
        }
    }
}

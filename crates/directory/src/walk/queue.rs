//! A queue of tasks in path order, shared by several threads.

use std::{
    collections::BTreeMap,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    pending: BTreeMap<String, T>,
    /// Number of threads that run a task and may add others.
    active: usize,
    has_ended: bool,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        let state = State { pending: BTreeMap::new(), active: 0, has_ended: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }
}

impl<T> Queue<T> {
    /// Whether one thread is enough for all pending tasks.
    pub(super) fn is_short(&self) -> bool {
        self.state().pending.len() < 2
    }

    /// Adds tasks before any thread takes one.
    pub(super) fn add(&self, found: &mut Vec<(String, T)>) {
        self.state().pending.extend(found.drain(..));
    }

    /// Takes the first task, and waits for one if necessary. Returns `None` if there are none left and none can come.
    pub(super) fn take(&self) -> Option<(String, T)> {
        let mut state = self.state();
        loop {
            if state.has_ended {
                return None;
            }
            if let Some(first) = state.pending.pop_first() {
                state.active += 1;
                return Some(first);
            }
            if state.active == 0 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Finishes a task and adds the tasks it found. The calling thread takes one of them next, so other threads are woken
    /// only if there is more than one.
    pub(super) fn finish(&self, found: &mut Vec<(String, T)>) {
        let mut state = self.state();
        let more = found.len();
        state.pending.extend(found.drain(..));
        state.active -= 1;
        let is_all_done = state.active == 0 && state.pending.is_empty();
        drop(state);
        match more {
            _ if is_all_done => self.changed.notify_all(),
            0 | 1 => {}
            2 => self.changed.notify_one(),
            _ => self.changed.notify_all(),
        }
    }

    /// Drops all pending tasks.
    pub(super) fn clear(&self) {
        self.state().pending.clear();
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the work of all threads if one of them panics.
pub(super) struct EndOnPanic<'a, T>(pub(super) &'a Queue<T>);

impl<T> Drop for EndOnPanic<'_, T> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.state().has_ended = true;
            self.0.changed.notify_all();
        }
    }
}

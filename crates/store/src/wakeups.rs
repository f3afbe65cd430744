//! Wakes tasks that wait for a change in the database.
//!
//! A task subscribes to the id of what it waits for, such as a workspace, and then asks the database. A signal says that
//! it is worth asking again. It carries no data, so a superfluous signal is harmless, and a lost one is made good by the
//! watcher, which asks the database for all subscribed ids at once. Waiting tasks hold no connection.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::watch;
use uuid::Uuid;

/// The subscriptions of a process.
#[derive(Clone, Default)]
pub struct Wakeups {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    subscribed: HashMap<Uuid, watch::Sender<()>>,
    /// Whether a watcher runs.
    is_watched: bool,
}

impl Wakeups {
    /// Subscribes to an id. Calls `start_watcher` if no watcher runs; it must run until [`Wakeups::stop_if_unused`]
    /// returns true.
    pub fn subscribe(&self, id: Uuid, start_watcher: impl FnOnce()) -> Subscription {
        let mut state = self.lock();
        let receiver = state.subscribed.entry(id).or_default().subscribe();
        let starts = !std::mem::replace(&mut state.is_watched, true);
        drop(state);
        if starts {
            start_watcher();
        }
        Subscription { id, receiver, wakeups: self.clone() }
    }

    /// Wakes the tasks that wait for an id.
    pub fn wake(&self, id: Uuid) {
        if let Some(sender) = self.lock().subscribed.get(&id) {
            sender.send_replace(());
        }
    }

    /// Wakes all tasks.
    pub fn wake_all(&self) {
        self.lock().subscribed.values().for_each(|sender| sender.send_replace(()));
    }

    /// Returns the ids that tasks wait for.
    pub(crate) fn subscribed(&self) -> Vec<Uuid> {
        self.lock().subscribed.keys().copied().collect()
    }

    /// Whether nobody is subscribed, so that the watcher must end. The next subscription starts another.
    pub(crate) fn stop_if_unused(&self) -> bool {
        let mut state = self.lock();
        state.is_watched = !state.subscribed.is_empty();
        !state.is_watched
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A subscription to one id.
pub struct Subscription {
    id: Uuid,
    receiver: watch::Receiver<()>,
    wakeups: Wakeups,
}

impl Subscription {
    /// Waits for the next signal. Signals since the last call count, so nothing is missed by a task that subscribes, asks
    /// the database, and then waits. Cancelling the wait loses no signal.
    pub async fn signalled(&mut self) {
        if self.receiver.changed().await.is_err() {
            // The sender lives as long as the subscription.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut state = self.wakeups.lock();
        // This subscription's own receiver still counts.
        if state.subscribed.get(&self.id).is_some_and(|sender| sender.receiver_count() <= 1) {
            state.subscribed.remove(&self.id);
        }
    }
}

#[cfg(test)]
#[path = "wakeups_tests.rs"]
mod tests;

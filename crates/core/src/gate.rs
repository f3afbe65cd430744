//! Bounds how much of one kind is under way.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Lets a bounded number through per key; more wait their turn, in order.
///
/// A key takes memory here only while something of it is under way.
pub(crate) struct Gate<K> {
    width: usize,
    open: Mutex<HashMap<K, Arc<Semaphore>>>,
}

/// A place in the gate, given back when dropped.
pub(crate) struct Pass<'a, K: Eq + Hash> {
    gate: &'a Gate<K>,
    key: K,
    permit: Option<OwnedSemaphorePermit>,
}

impl<K: Clone + Eq + Hash> Gate<K> {
    pub(crate) fn new(width: usize) -> Self {
        Self { width, open: Mutex::default() }
    }

    /// Waits for a place.
    pub(crate) async fn pass(&self, key: K) -> Pass<'_, K> {
        let places = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.entry(key.clone()).or_insert_with(|| Arc::new(Semaphore::new(self.width))).clone()
        };
        // Made before the wait, so that a caller who gives up waiting also tidies up.
        let mut pass = Pass { gate: self, key, permit: None };
        // The semaphore is never closed.
        pass.permit = places.acquire_owned().await.ok();
        pass
    }
}

impl<K: Eq + Hash> Drop for Pass<'_, K> {
    fn drop(&mut self) {
        self.permit = None;
        let mut open = self.gate.open.lock().unwrap_or_else(PoisonError::into_inner);
        // The map's own handle is the last one: nobody holds a place or waits for one.
        if open.get(&self.key).is_some_and(|places| Arc::strong_count(places) == 1) {
            open.remove(&self.key);
        }
    }
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;

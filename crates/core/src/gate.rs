//! Bounds how much of one kind is under way.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Lets a bounded number through per key; more wait their turn, in order.
///
/// A key takes memory here only while something of it is under way.
pub struct Gate<K> {
    width: usize,
    open: Arc<Open<K>>,
}

type Open<K> = Mutex<HashMap<K, Arc<Semaphore>>>;

/// A place in the gate, given back when dropped.
pub struct Pass<K: Eq + Hash> {
    open: Arc<Open<K>>,
    key: K,
    permit: Option<OwnedSemaphorePermit>,
}

impl<K: Clone + Eq + Hash> Gate<K> {
    /// A gate that lets so many through per key.
    pub fn new(width: usize) -> Self {
        Self { width, open: Arc::default() }
    }

    /// Waits for a place.
    pub async fn pass(&self, key: K) -> Pass<K> {
        let places = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.entry(key.clone()).or_insert_with(|| Arc::new(Semaphore::new(self.width))).clone()
        };
        // Made before the wait, so that a caller who gives up waiting also tidies up.
        let mut pass = Pass { open: Arc::clone(&self.open), key, permit: None };
        // The semaphore is never closed.
        pass.permit = places.acquire_owned().await.ok();
        pass
    }
}

impl<K: Eq + Hash> Drop for Pass<K> {
    fn drop(&mut self) {
        self.permit = None;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // The map's own handle is the last one: nobody holds a place or waits for one.
        if open.get(&self.key).is_some_and(|places| Arc::strong_count(places) == 1) {
            open.remove(&self.key);
        }
    }
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;

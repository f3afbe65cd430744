//! A semaphore for each key.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Semaphores by key, each with the same number of permits. Waiting callers of a key get permits in order of arrival.
///
/// A key takes memory only while somebody holds or waits for one of its permits.
pub struct KeyedSemaphore<K> {
    permits: usize,
    semaphores: Arc<SemaphoreMap<K>>,
}

type SemaphoreMap<K> = Mutex<HashMap<K, Arc<Semaphore>>>;

/// A permit of one key, returned when dropped.
pub struct KeyedPermit<K: Eq + Hash> {
    semaphores: Arc<SemaphoreMap<K>>,
    key: K,
    permit: Option<OwnedSemaphorePermit>,
}

impl<K: Clone + Eq + Hash> KeyedSemaphore<K> {
    /// Creates semaphores with `permits` permits for each key.
    pub fn new(permits: usize) -> Self {
        Self { permits, semaphores: Arc::default() }
    }

    /// Waits for a permit.
    pub async fn acquire(&self, key: K) -> KeyedPermit<K> {
        let semaphore = {
            let mut semaphores = self.semaphores.lock().unwrap_or_else(PoisonError::into_inner);
            semaphores.entry(key.clone()).or_insert_with(|| Arc::new(Semaphore::new(self.permits))).clone()
        };
        // Created before the wait, so that it removes the key also if the caller stops waiting.
        let mut held = KeyedPermit { semaphores: Arc::clone(&self.semaphores), key, permit: None };
        // The semaphore is never closed.
        held.permit = semaphore.acquire_owned().await.ok();
        held
    }
}

impl<K: Eq + Hash> Drop for KeyedPermit<K> {
    fn drop(&mut self) {
        self.permit = None;
        let mut semaphores = self.semaphores.lock().unwrap_or_else(PoisonError::into_inner);
        // The only reference is the one in the map: nobody holds a permit or waits for one.
        if semaphores.get(&self.key).is_some_and(|semaphore| Arc::strong_count(semaphore) == 1) {
            semaphores.remove(&self.key);
        }
    }
}

#[cfg(test)]
#[path = "keyed_semaphore_tests.rs"]
mod tests;

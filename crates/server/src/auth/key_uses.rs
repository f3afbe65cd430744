//! When agent keys were last used, kept in memory until it is stored.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use toolrest_core::{Key, KeyId, now};
use toolrest_store::KeyUse;

/// Interval at which the use of one key is stored.
const INTERVAL: Duration = Duration::from_secs(60);

/// The uses of keys within the last [`INTERVAL`].
#[derive(Default)]
pub(crate) struct KeyUses(Mutex<HashMap<KeyId, Used>>);

struct Used {
    noted: Instant,
    /// None if it is stored.
    pending: Option<KeyUse>,
}

impl KeyUses {
    fn lock(&self) -> MutexGuard<'_, HashMap<KeyId, Used>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a key was used, unless it was noted within the last [`INTERVAL`].
    pub(crate) fn note(&self, key: Key) {
        let mut known = self.lock();
        if known.get(&key.id).is_some_and(|used| used.noted.elapsed() < INTERVAL) {
            return;
        }
        let pending = Some(KeyUse { workspace: key.workspace, key: key.id, at: now() });
        known.insert(key.id, Used { noted: Instant::now(), pending });
    }

    /// Returns the uses that are not stored yet, and forgets old ones.
    pub(crate) fn take(&self) -> Vec<KeyUse> {
        let mut known = self.lock();
        let pending = known.values_mut().filter_map(|used| used.pending.take()).collect();
        known.retain(|_, used| used.noted.elapsed() < INTERVAL);
        pending
    }
}

#[cfg(test)]
#[path = "key_uses_tests.rs"]
mod tests;

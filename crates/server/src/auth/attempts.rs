//! Counts sign-in attempts in memory, for the time that the database's disk is full.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use toolrest_store::Attempt;

/// Maximum number of keys. When it is reached, new keys are refused until a window ends.
const KEYS_LIMIT: usize = 10_000;

/// Numbers of attempts, by key.
#[derive(Default)]
pub(crate) struct AttemptCounter(Mutex<HashMap<String, Window>>);

struct Window {
    begun: Instant,
    count: u32,
}

impl AttemptCounter {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Window>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an attempt under each key. Returns the time to wait if one of them is over its limit.
    pub(crate) fn count(&self, attempts: &[Attempt], window: Duration) -> Option<Duration> {
        let mut counted = self.lock();
        let now = Instant::now();
        if counted.len() + attempts.len() > KEYS_LIMIT {
            counted.retain(|_, known| now.duration_since(known.begun) < window);
        }
        let mut wait = None;
        for attempt in attempts {
            if counted.len() >= KEYS_LIMIT && !counted.contains_key(&attempt.key) {
                return Some(window);
            }
            let known = counted.entry(attempt.key.clone()).or_insert(Window { begun: now, count: 0 });
            if now.duration_since(known.begun) >= window {
                *known = Window { begun: now, count: 0 };
            }
            known.count = known.count.saturating_add(1);
            if known.count > attempt.limit {
                wait = wait.max(Some(window.saturating_sub(now.duration_since(known.begun))));
            }
        }
        wait
    }

    /// Uncounts the attempts of a successful sign-in.
    pub(crate) fn forgive(&self, keys: &[String]) {
        let mut counted = self.lock();
        for key in keys {
            if let Some(known) = counted.get_mut(key) {
                known.count = known.count.saturating_sub(1);
            }
        }
    }
}

#[cfg(test)]
#[path = "attempts_tests.rs"]
mod tests;

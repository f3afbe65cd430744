//! Sign-in attempts, counted in memory while the database has no room for them.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use toolrest_store::Attempt;

/// How many keys are counted. When it is full, further keys are refused until a window ends.
const COUNTED: usize = 10_000;

/// Attempts by their keys.
#[derive(Default)]
pub(crate) struct AttemptsInMemory(Mutex<HashMap<String, Window>>);

struct Window {
    begun: Instant,
    count: u32,
}

impl AttemptsInMemory {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Window>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an attempt under each key; gives the time to wait if one of them is over its limit.
    pub(crate) fn count(&self, attempts: &[Attempt], window: Duration) -> Option<Duration> {
        let mut counted = self.lock();
        let now = Instant::now();
        if counted.len() + attempts.len() > COUNTED {
            counted.retain(|_, known| now.duration_since(known.begun) < window);
        }
        let mut wait = None;
        for attempt in attempts {
            if counted.len() >= COUNTED && !counted.contains_key(&attempt.key) {
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

    /// Takes attempts back after a sign-in that was good.
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

//! Addresses that are over a limit, remembered so that they are refused without work.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};
use toolrest_core::{ErrorKind, Result, ToolError};

/// How many are remembered. When it is full all are forgotten, and counted anew by the database.
const REMEMBERED: usize = 10_000;

/// Until when which address is refused.
#[derive(Default)]
pub(crate) struct Limited(Mutex<HashMap<String, Instant>>);

impl Limited {
    /// Refuses an address that is known to be over its limit.
    pub(crate) fn check(&self, address: &str) -> Result<()> {
        let until = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(address).copied();
        match until.and_then(|until| until.checked_duration_since(Instant::now())) {
            Some(wait) if !wait.is_zero() => Err(too_many(wait)),
            _ => Ok(()),
        }
    }

    /// Remembers that an address has to wait, and gives the refusal.
    pub(crate) fn refuse(&self, address: &str, wait: Duration) -> ToolError {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(address.to_owned(), Instant::now() + wait);
        too_many(wait)
    }
}

/// The refusal of one attempt too many.
pub(crate) fn too_many(wait: Duration) -> ToolError {
    let seconds = wait.as_secs() + 1;
    let message = format!("Too many attempts; try again in {seconds} seconds");
    ToolError::new(ErrorKind::RateLimited, message).detail("retry_after_seconds", seconds)
}

#[cfg(test)]
#[path = "limited_tests.rs"]
mod tests;

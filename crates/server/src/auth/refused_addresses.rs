//! Client addresses that exceeded a rate limit (sign-ins, registrations), cached in memory so that they are refused
//! without a database query.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};
use toolrest_core::{ErrorKind, Result, ToolError};

/// Maximum number of cached addresses. When it is reached, the cache is cleared; the attempt counts in the database
/// then decide again.
const ADDRESSES_LIMIT: usize = 10_000;

/// The blocked addresses, each with the time at which its block ends.
#[derive(Default)]
pub(crate) struct RefusedAddresses(Mutex<HashMap<String, Instant>>);

impl RefusedAddresses {
    /// Returns the rate-limit error if the address is currently blocked.
    pub(crate) fn check(&self, address: &str) -> Result<()> {
        let until = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(address).copied();
        match until.and_then(|until| until.checked_duration_since(Instant::now())) {
            Some(wait) if !wait.is_zero() => Err(too_many_attempts(wait)),
            _ => Ok(()),
        }
    }

    /// Blocks an address for the duration `wait`, and returns the rate-limit error for the current attempt.
    pub(crate) fn refuse(&self, address: &str, wait: Duration) -> ToolError {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= ADDRESSES_LIMIT {
            known.clear();
        }
        known.insert(address.to_owned(), Instant::now() + wait);
        too_many_attempts(wait)
    }
}

/// Returns the error for an attempt over the limit.
pub(crate) fn too_many_attempts(wait: Duration) -> ToolError {
    let seconds = wait.as_secs() + 1;
    let message = format!("Too many attempts; try again in {seconds} seconds");
    ToolError::new(ErrorKind::RateLimited, message).retry_after(seconds)
}

#[cfg(test)]
#[path = "refused_addresses_tests.rs"]
mod tests;

//! Addresses that are over a limit, kept in memory so that they are refused without a query.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};
use toolrest_core::{ErrorKind, Result, ToolError};

/// Maximum number of addresses. When it is reached, all are removed, and the database counts them again.
const ADDRESSES_LIMIT: usize = 10_000;

/// The addresses that are refused, each with the end of its refusal.
#[derive(Default)]
pub(crate) struct RefusedAddresses(Mutex<HashMap<String, Instant>>);

impl RefusedAddresses {
    /// Refuses an address that is over its limit.
    pub(crate) fn check(&self, address: &str) -> Result<()> {
        let until = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(address).copied();
        match until.and_then(|until| until.checked_duration_since(Instant::now())) {
            Some(wait) if !wait.is_zero() => Err(too_many_attempts(wait)),
            _ => Ok(()),
        }
    }

    /// Refuses an address for some time, and returns the error for its caller.
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

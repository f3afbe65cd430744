//! The policy, which decides whether a prepared call may run.

use crate::{PreparedCall, Result};
use async_trait::async_trait;

/// The decision of a policy about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Run it.
    Allow,
    /// Ask a person for approval first, for this reason.
    Ask(String),
    /// Refuse it, for this reason.
    Deny(String),
}

/// A policy decides about calls before they run.
#[async_trait]
pub trait Policy: Send + Sync {
    /// Decides about one call.
    async fn decide(&self, call: &PreparedCall<'_>) -> Result<Decision>;
}

/// A policy that lets every call run.
pub struct AllowAll;

#[async_trait]
impl Policy for AllowAll {
    async fn decide(&self, _: &PreparedCall<'_>) -> Result<Decision> {
        Ok(Decision::Allow)
    }
}

//! The policy, which decides whether a call may run without approval.

use crate::{Action, Approval, CallCx, ErrorKind, Result, ToolError};
use async_trait::async_trait;

/// The decision of a policy about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Run it.
    Auto,
    /// Ask a person for approval first.
    Ask,
    /// Refuse it, for this reason.
    Deny(String),
}

/// A policy decides about calls before they run.
#[async_trait]
pub trait Policy: Send + Sync {
    /// Decides about one call.
    async fn decide(&self, cx: &CallCx, action: Action) -> Result<Decision>;
}

/// A policy that lets every call run.
pub struct AllowAll;

#[async_trait]
impl Policy for AllowAll {
    async fn decide(&self, _: &CallCx, _: Action) -> Result<Decision> {
        Ok(Decision::Auto)
    }
}

/// Returns an error unless the policy lets the call run. There is no way to wait for an approval yet, so `Ask` is an
/// error too.
pub(crate) async fn require(policy: &dyn Policy, cx: &CallCx, action: Action, approval: Approval) -> Result<()> {
    let decision = match (policy.decide(cx, action).await?, approval) {
        (Decision::Auto, Approval::Needed(_)) => Decision::Ask,
        (decision, _) => decision,
    };
    match decision {
        Decision::Auto => Ok(()),
        Decision::Ask => {
            let message = format!("'{}' needs a person's approval before it runs", cx.tool);
            Err(ToolError::new(ErrorKind::ApprovalRequired, message))
        }
        Decision::Deny(reason) => Err(ToolError::new(ErrorKind::ApprovalDenied, reason)),
    }
}

//! Whether a call may run by itself.

use crate::{Action, Approval, CallCx, ErrorKind, Result, ToolError};
use async_trait::async_trait;

/// What a policy says about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Run it.
    Auto,
    /// A person must agree first.
    Ask,
    /// Refuse it, for this reason.
    Deny(String),
}

/// Judges calls before they run.
#[async_trait]
pub trait Policy: Send + Sync {
    /// Judges one call.
    async fn judge(&self, cx: &CallCx, action: Action) -> Result<Decision>;
}

/// Lets every call run by itself.
pub struct AllowAll;

#[async_trait]
impl Policy for AllowAll {
    async fn judge(&self, _: &CallCx, _: Action) -> Result<Decision> {
        Ok(Decision::Auto)
    }
}

/// Lets the call go on, or says why not. Waiting for a person comes with approvals; until then `Ask` is an answer.
pub(crate) async fn require(policy: &dyn Policy, cx: &CallCx, action: Action, approval: Approval) -> Result<()> {
    let decision = match (policy.judge(cx, action).await?, approval) {
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

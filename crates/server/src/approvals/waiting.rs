//! The calls that wait for a person, as tools see them.

use super::{Asked, StoredAnswer, decided};
use crate::runtime::Runtime;
use async_trait::async_trait;
use std::{
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};
use tokio::time::Instant;
use toolrest_core::{
    Access, Approval, ApprovalId, ApprovalState, ErrorKind, Page, Result, ToolError, WaitedCall, WaitingCalls,
};

/// Number of waiting calls of a workspace that are looked through.
const MAX_LISTED: u32 = 200;

/// Finds the waiting calls of a runtime, once that is open.
#[derive(Default)]
pub(crate) struct WaitingCallsOf(OnceLock<Weak<Runtime>>);

impl WaitingCallsOf {
    /// Sets the runtime.
    pub(crate) fn attach(&self, runtime: &Arc<Runtime>) {
        // It is set once, when the runtime is opened.
        let _ = self.0.set(Arc::downgrade(runtime));
    }

    fn runtime(&self) -> Result<Arc<Runtime>> {
        let runtime = self.0.get().and_then(Weak::upgrade);
        runtime.ok_or_else(|| ToolError::new(ErrorKind::Unavailable, "Waiting calls cannot be looked at here"))
    }
}

#[async_trait]
impl WaitingCalls for WaitingCallsOf {
    async fn waiting(&self, access: Access) -> Result<Vec<Approval>> {
        let Ok(runtime) = self.runtime() else { return Ok(Vec::new()) };
        let page = Page { before: None, limit: MAX_LISTED };
        let mut waiting = runtime.store.approvals(access, Some(ApprovalState::Pending), page).await?;
        waiting.retain(|approval| approval.call.caller.member() == access.user);
        Ok(waiting)
    }

    async fn answer(&self, access: Access, id: ApprovalId, wait: Duration) -> Result<WaitedCall> {
        let runtime = self.runtime()?;
        let (approval, _) = runtime.store.approval(access, id).await?;
        if approval.call.caller.member() != access.user {
            return Err(ToolError::new(ErrorKind::ItemNotFound, format!("There is no call {id} that waits")));
        }
        let asked = decided(&runtime, approval, Instant::now() + wait).await?;
        let by = async || {
            let (approval, _) = runtime.store.approval(access, id).await?;
            Ok::<_, ToolError>((approval.state, approval.decided))
        };
        match asked {
            Asked::Pending(approval) => Ok(WaitedCall::Waiting(approval)),
            Asked::Answer(StoredAnswer { status, body, .. }) => {
                let by = by().await?.1.and_then(|decided| decided.by);
                Ok(WaitedCall::Answered { status, body, by })
            }
            Asked::Failed(error) => match by().await? {
                (ApprovalState::Denied, Some(decided)) => {
                    Ok(WaitedCall::Refused { by: decided.by, reason: decided.reason })
                }
                _ => Err(error),
            },
        }
    }
}

//! The calls of a caller that wait for a person.

use crate::{Access, Approval, ApprovalId, ErrorKind, Result, ToolError, UserId};
use async_trait::async_trait;
use std::time::Duration;

/// What became of a call that waited for a person.
pub enum WaitedCall {
    /// It still waits.
    Waiting(Box<Approval>),
    /// It has run. The answer is in the format of its toolset.
    Answered {
        /// The HTTP status.
        status: u16,
        /// The answer.
        body: Vec<u8>,
        /// The person who approved it.
        by: Option<UserId>,
    },
    /// A person refused it. Nothing was done.
    Refused {
        /// The person.
        by: Option<UserId>,
        /// The reason that was given.
        reason: Option<String>,
    },
}

/// Finds the calls of a caller that wait for a person. What belongs to others is not found.
#[async_trait]
pub trait WaitingCalls: Send + Sync {
    /// Returns the caller's calls that wait, newest first, up to a limit of the server.
    async fn waiting(&self, access: Access) -> Result<Vec<Approval>>;

    /// Waits until a call has ended, for up to `wait`.
    async fn answer(&self, access: Access, id: ApprovalId, wait: Duration) -> Result<WaitedCall>;
}

/// Finds nothing: for reading the schemas of tools without calling them.
pub struct NoWaitingCalls;

#[async_trait]
impl WaitingCalls for NoWaitingCalls {
    async fn waiting(&self, _: Access) -> Result<Vec<Approval>> {
        Ok(Vec::new())
    }

    async fn answer(&self, _: Access, _: ApprovalId, _: Duration) -> Result<WaitedCall> {
        Err(ToolError::new(ErrorKind::NotConfigured, "No calls wait for a person here"))
    }
}

//! Running calls, which clients cancel with a message of their own.

use rmcp::model::RequestId;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};
use tokio_util::sync::CancellationToken;
use toolrest_core::UserId;

/// The member that calls, its session, and the id that the client gave the request.
type Call = (UserId, String, RequestId);

/// Why a client cancels a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CancelReason {
    /// It does not wait any longer.
    TimedOut,
    /// The result is not wanted.
    Other,
}

impl CancelReason {
    /// Reads the reason that a client gives. The libraries of the protocol write "Request timed out" or "timeout".
    pub(crate) fn of(given: Option<&str>) -> Self {
        let given = given.unwrap_or_default().to_lowercase();
        if given.contains("timed out") || given.contains("timeout") { Self::TimedOut } else { Self::Other }
    }
}

/// Tells a call why it is cancelled.
#[derive(Clone, Default)]
pub(super) struct Cancelled(Arc<OnceLock<CancelReason>>, CancellationToken);

impl Cancelled {
    /// Waits until the call is cancelled.
    pub(super) async fn reason(&self) -> CancelReason {
        self.1.cancelled().await;
        self.0.get().copied().unwrap_or(CancelReason::Other)
    }
}

/// The running calls. A client can cancel only its own: those of its member and its session.
#[derive(Default)]
pub(crate) struct Cancellations(Mutex<HashMap<Call, Cancelled>>);

impl Cancellations {
    /// Lists a call until the returned value is dropped. A call without a session is not listed, because its id may be that
    /// of another client's.
    pub(super) fn list(
        self: &Arc<Self>,
        member: UserId,
        session: &str,
        id: &RequestId,
        cancelled: Cancelled,
    ) -> Option<ListedCall> {
        if session.is_empty() {
            return None;
        }
        let call = (member, session.to_owned(), id.clone());
        self.calls().insert(call.clone(), cancelled);
        Some(ListedCall { calls: Arc::clone(self), call })
    }

    /// Cancels a call, if it runs.
    pub(crate) fn cancel(&self, member: UserId, session: &str, id: RequestId, reason: CancelReason) {
        if let Some(Cancelled(given, token)) = self.calls().get(&(member, session.to_owned(), id)) {
            // The first reason holds.
            let _ = given.set(reason);
            token.cancel();
        }
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<Call, Cancelled>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call in the list.
pub(super) struct ListedCall {
    calls: Arc<Cancellations>,
    call: Call,
}

impl Drop for ListedCall {
    fn drop(&mut self) {
        self.calls.calls().remove(&self.call);
    }
}

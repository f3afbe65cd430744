//! Running calls over HTTP, which clients cancel with a request of their own.

use rmcp::model::RequestId;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio_util::sync::CancellationToken;
use toolrest_core::UserId;

/// The member that calls, its session, and the id that the client gave the request.
type Call = (UserId, String, RequestId);

/// The running calls. A client can cancel only its own: those of its member and its session.
#[derive(Default)]
pub(crate) struct Cancellations(Mutex<HashMap<Call, CancellationToken>>);

impl Cancellations {
    /// Lists a call until the returned value is dropped. A call without a session is not listed, because its id may be that
    /// of another client's.
    pub(super) fn list(
        self: &Arc<Self>,
        member: UserId,
        session: &str,
        id: &RequestId,
        token: CancellationToken,
    ) -> Option<ListedCall> {
        if session.is_empty() {
            return None;
        }
        let call = (member, session.to_owned(), id.clone());
        self.calls().insert(call.clone(), token);
        Some(ListedCall { calls: Arc::clone(self), call })
    }

    /// Cancels a call, if it runs.
    pub(crate) fn cancel(&self, member: UserId, session: &str, id: RequestId) {
        if let Some(token) = self.calls().get(&(member, session.to_owned(), id)) {
            token.cancel();
        }
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<Call, CancellationToken>> {
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

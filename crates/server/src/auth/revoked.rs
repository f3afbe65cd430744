//! Access tokens that were revoked before they expire.

use std::{
    collections::HashMap,
    sync::{PoisonError, RwLock},
};
use toolrest_core::{ErrorKind, Result, ToolError, UserId};
use toolrest_store::Revocation;

/// Accounts whose access tokens were revoked recently, as of the last query.
///
/// A token is checked without a query, which saves one round trip per call. A disabled account cannot use its token in
/// the meantime, because its memberships are removed at the same time.
#[derive(Default)]
pub(crate) struct Revoked(RwLock<HashMap<UserId, Revocation>>);

impl Revoked {
    /// Replaces the list.
    pub(crate) fn set(&self, revocations: &[Revocation]) {
        let known = revocations.iter().map(|revocation| (revocation.user, *revocation)).collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = known;
    }

    /// Refuses a token of an earlier epoch. `remedy` says how to get another.
    pub(crate) fn check(&self, user: UserId, epoch: i64, remedy: &str) -> Result<()> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        match known.get(&user) {
            // A token of a later epoch passes: the account was enabled again and has signed in since.
            Some(revocation) if revocation.is_disabled && epoch <= revocation.token_epoch => Err(account_disabled()),
            Some(revocation) if epoch < revocation.token_epoch => Err(ToolError::new(
                ErrorKind::Unauthenticated,
                format!("This access token was revoked: the account's sessions were ended. {remedy}"),
            )),
            _ => Ok(()),
        }
    }
}

/// Returns the error for a disabled account.
pub(crate) fn account_disabled() -> ToolError {
    ToolError::new(ErrorKind::Unauthenticated, "This account is disabled; ask the server's operator")
}

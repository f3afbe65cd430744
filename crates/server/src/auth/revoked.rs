//! Access tokens that are refused before their end.

use std::{
    collections::HashMap,
    sync::{PoisonError, RwLock},
};
use toolrest_core::{ErrorKind, Result, ToolError, UserId};
use toolrest_store::Revocation;

/// Accounts whose access tokens were revoked lately, as the database told last.
///
/// A token is checked without asking the database, so that a call costs one round trip less. What a disabled account
/// could do with one in the meantime is nothing: its memberships are gone in the same moment.
#[derive(Default)]
pub(crate) struct Revoked(RwLock<HashMap<UserId, Revocation>>);

impl Revoked {
    /// Replaces what is known.
    pub(crate) fn set(&self, revocations: &[Revocation]) {
        let known = revocations.iter().map(|revocation| (revocation.user, *revocation)).collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = known;
    }

    /// Refuses a token that was issued in an earlier epoch, and says how to get another.
    pub(crate) fn check(&self, user: UserId, epoch: i64, remedy: &str) -> Result<()> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        match known.get(&user) {
            // A later epoch than the one that is known: the account was enabled again, and has signed in since.
            Some(revocation) if revocation.is_disabled && epoch <= revocation.token_epoch => Err(disabled()),
            Some(revocation) if epoch < revocation.token_epoch => Err(ToolError::new(
                ErrorKind::Unauthenticated,
                format!("This access token was revoked: the account's sessions were ended. {remedy}"),
            )),
            _ => Ok(()),
        }
    }
}

/// The refusal of a disabled account.
pub(crate) fn disabled() -> ToolError {
    ToolError::new(ErrorKind::Unauthenticated, "This account is disabled; ask the server's operator")
}

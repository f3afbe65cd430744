//! The sign-in link that `serve --dir` prints.

use super::token::{fresh_token, token_hash};
use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use toolrest_core::{Result, UserId, WorkspaceId};

/// Time for which a link can be used.
pub(crate) const LINK_LIFETIME: Duration = Duration::from_secs(15 * 60);

/// The link that can still be used, if there is one. It is only known to the server that printed it.
#[derive(Default)]
pub(crate) struct SignInLink(Mutex<Option<Pending>>);

struct Pending {
    token_hash: [u8; 32],
    expires: Instant,
    target: LinkTarget,
}

/// Who a link signs in, and the workspace that the page after it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkTarget {
    pub(crate) user: UserId,
    pub(crate) workspace: WorkspaceId,
}

impl SignInLink {
    fn lock(&self) -> MutexGuard<'_, Option<Pending>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the token of a new link. It replaces the one before.
    pub(crate) fn create(&self, target: LinkTarget, lifetime: Duration) -> Result<String> {
        let token = fresh_token()?;
        *self.lock() = Some(Pending { token_hash: token_hash(&token), expires: Instant::now() + lifetime, target });
        Ok(token)
    }

    /// Uses up a link. Returns none if the token is wrong, or the link was used before or has expired.
    pub(crate) fn spend(&self, token: &str) -> Option<LinkTarget> {
        let hash = token_hash(token);
        let pending = self.lock().take_if(|pending| pending.token_hash == hash)?;
        (Instant::now() < pending.expires).then_some(pending.target)
    }
}

#[cfg(test)]
#[path = "sign_in_link_tests.rs"]
mod tests;

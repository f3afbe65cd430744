//! The policy, which knows the rules that hold for a caller in a workspace.

use crate::{Caller, Result, RulesInForce, WorkspaceId};
use async_trait::async_trait;
use std::sync::{Arc, LazyLock};

/// A policy gives the rules for calls.
#[async_trait]
pub trait Policy: Send + Sync {
    /// Returns the rules that hold for a caller, as far as this process knows them. They may be out of date: the
    /// statements that do the work compare their revision, and then the call starts over with [`Policy::reload`].
    fn rules(&self, workspace: WorkspaceId, caller: Caller) -> Arc<RulesInForce>;

    /// Reads the rules again.
    async fn reload(&self, workspace: WorkspaceId, caller: Caller) -> Result<()>;
}

/// A policy without rules.
pub struct NoRules;

#[async_trait]
impl Policy for NoRules {
    fn rules(&self, _: WorkspaceId, _: Caller) -> Arc<RulesInForce> {
        static NONE: LazyLock<Arc<RulesInForce>> = LazyLock::new(|| Arc::new(RulesInForce::none()));
        Arc::clone(&NONE)
    }

    async fn reload(&self, _: WorkspaceId, _: Caller) -> Result<()> {
        Ok(())
    }
}

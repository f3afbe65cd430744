//! The rules of workspaces and the grants of their members.
//!
//! Each membership has a revision, which changes whenever the rules of the workspace or the grants of the member change. A
//! statement that works for a call compares it with the revision that the call was judged by (`Access::rules`), so that no
//! replica uses outdated rules.

use crate::error::{Result, StoreError};
use async_trait::async_trait;
use toolrest_core::{Access, ErrorKind, Grant, GrantId, MemberRules, Role, UserId};
use uuid::Uuid;

/// Stores rules and grants.
#[async_trait]
pub trait RuleStore: Send + Sync {
    /// Returns the rules of the workspace, the live grants of the caller, and the revision of both, read in one snapshot.
    async fn member_rules(&self, access: Access) -> Result<MemberRules>;

    /// Returns the rules of the workspace and their revision; 0 if there are none. Only for persons.
    async fn rules(&self, access: Access) -> Result<(i64, Option<String>)>;

    /// Replaces the rules of the workspace, if their revision is the given one. Returns the new revision. Only for persons;
    /// the access should need an owner.
    async fn set_rules(&self, access: Access, if_match: Option<i64>, body: String) -> Result<i64>;

    /// Lists live grants, oldest first: of an owner all of the workspace, of another person those of that person and that
    /// person's keys, of a key its own.
    async fn grants(&self, access: Access) -> Result<Vec<Grant>>;

    /// Ends one grant or all grants that the caller, who must be a person, can list. Returns how many. Fails if the one
    /// grant does not exist.
    async fn revoke_grants(&self, access: Access, grant: Option<GrantId>) -> Result<u64>;
}

/// Which grants a caller can list.
#[derive(Clone, Copy)]
pub(crate) enum VisibleGrants {
    All,
    /// Those of a person and the person's keys.
    OfPerson(UserId),
    /// Those of a key.
    OfKey(Uuid),
}

impl VisibleGrants {
    pub(crate) fn of(access: Access, role: Role) -> Self {
        match role {
            _ if access.is_by_key() => Self::OfKey(access.user.0),
            Role::Owner => Self::All,
            Role::Viewer | Role::Editor => Self::OfPerson(access.person),
        }
    }
}

/// Refuses an agent key.
pub(crate) fn check_person(access: Access) -> Result<()> {
    if access.is_by_key() {
        let message = "An agent key can neither see nor change rules, and decides nothing; a person must do it";
        return Err(StoreError::refused(ErrorKind::Forbidden, message));
    }
    Ok(())
}

/// Compares the revision of the rules with the expected one.
pub(crate) fn check_revision(expected: Option<i64>, current: i64) -> Result<()> {
    match expected {
        Some(expected) if expected != current => Err(StoreError::RulesRevision { expected, current }),
        _ => Ok(()),
    }
}

/// Returns a grant as it is stored.
pub(crate) fn grant_json(grant: &Grant) -> Result<String> {
    serde_json::to_string(grant).map_err(StoreError::internal)
}

/// Parses a stored grant.
pub(crate) fn grant_of(json: &str) -> Result<Grant> {
    serde_json::from_str(json).map_err(StoreError::internal)
}

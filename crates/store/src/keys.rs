//! Agent keys.
//!
//! A key is a member of its workspace, and is listed in the table `keys`. Its secret is not stored: it contains the key's
//! scope and its expiry, signed by the server. A key that is suspended or revoked has no membership, so that the next
//! statement of its caller is refused, on every replica.

use crate::error::{Result, StoreError};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;
use toolrest_core::{Access, Action, ActionSet, ErrorKind, KeyId, Role, Timestamp, ToolError, UserId, WorkspaceId};

/// Maximum number of keys of one person in one workspace that are neither revoked nor expired.
pub const MAX_LIVE_KEYS: i64 = 100;

/// Maximum number of keys in a list. Keys that are not revoked come first.
pub(crate) const MAX_LISTED_KEYS: i64 = 1_000;

/// An agent key, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KeyInfo {
    /// Its id.
    pub id: KeyId,
    /// The person who made it and for whom it acts.
    pub user_id: UserId,
    /// Its name.
    pub name: String,
    /// The toolsets that it may call.
    pub toolsets: Vec<String>,
    /// What it may do.
    #[schemars(with = "Vec<Action>")]
    pub actions: ActionSet,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it expires.
    pub expires_at: Timestamp,
    /// When it was suspended, if it is.
    pub suspended_at: Option<Timestamp>,
    /// When it was revoked, if it is.
    pub revoked_at: Option<Timestamp>,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
}

/// A key to create.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// Its name.
    pub name: String,
    /// The toolsets that it may call.
    pub toolsets: Vec<String>,
    /// What it may do.
    pub actions: ActionSet,
    /// When it expires.
    pub expires_at: Timestamp,
}

impl NewKey {
    /// Returns the highest role that the key can have. A key is never an owner.
    pub(crate) fn max_role(&self) -> Role {
        self.actions.needs().min(Role::Editor)
    }

    /// Returns the key of a person with an id and a time of creation.
    pub(crate) fn created(self, id: KeyId, user_id: UserId, created_at: Timestamp) -> KeyInfo {
        let Self { name, toolsets, actions, expires_at } = self;
        let (suspended_at, revoked_at, last_used_at) = (None, None, None);
        KeyInfo { id, user_id, name, toolsets, actions, created_at, expires_at, suspended_at, revoked_at, last_used_at }
    }
}

/// Whether a key can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// It can be used.
    Active,
    /// It cannot be used until it is made active again.
    Suspended,
}

/// A use of a key.
#[derive(Clone, Copy, Debug)]
pub struct KeyUse {
    /// The workspace of the key.
    pub workspace: WorkspaceId,
    /// The key.
    pub key: KeyId,
    /// When it was used.
    pub at: Timestamp,
}

/// Stores agent keys. Owners manage all keys of a workspace, other members their own.
#[async_trait]
pub trait KeyStore: Send + Sync {
    /// Creates a key of the caller, who must be a person.
    async fn create_key(&self, access: Access, key: NewKey) -> Result<KeyInfo>;

    /// Lists the keys that the caller manages: those that are not revoked first, and the newest first among them.
    async fn keys(&self, access: Access) -> Result<Vec<KeyInfo>>;

    /// Returns a key of a workspace, for the server itself.
    async fn key(&self, workspace: WorkspaceId, key: KeyId) -> Result<Option<KeyInfo>>;

    /// Suspends a key, or makes it active again. From then on, every statement refuses or accepts the key.
    async fn set_key_state(&self, access: Access, key: KeyId, state: KeyState) -> Result<KeyInfo>;

    /// Revokes a key for good. Revoking it again changes nothing.
    async fn revoke_key(&self, access: Access, key: KeyId) -> Result<KeyInfo>;

    /// Stores when keys were last used.
    async fn record_key_uses(&self, uses: Vec<KeyUse>) -> Result<()>;

    /// Ends the memberships of keys that expired since then, so that running programs and event streams end with their
    /// key. Requests need no such check: the secret contains the expiry.
    async fn end_expired_keys(&self, since: Timestamp) -> Result<()>;
}

/// Checks that the caller manages a key of this person.
pub(crate) fn check_manages(access: Access, role: Role, key: KeyId, of: Option<UserId>) -> Result<UserId> {
    of.filter(|of| *of == access.user || role == Role::Owner).ok_or_else(|| StoreError::not_found("Key", key))
}

/// Returns the error for a person who has too many keys.
pub(crate) fn too_many_keys(live: i64) -> StoreError {
    let message = format!(
        "You have {live} keys in this workspace that are neither revoked nor expired; the limit is {MAX_LIVE_KEYS}. \
         Revoke one first"
    );
    let error = ToolError::new(ErrorKind::QuotaExceeded, message);
    error.detail("limit", MAX_LIVE_KEYS).detail("used", live).into()
}

/// Returns the error for suspending or resuming a key that is revoked or expired.
pub(crate) fn key_has_ended(key: KeyId) -> StoreError {
    StoreError::refused(ErrorKind::Conflict, format!("The key {key} was revoked or has expired; create another"))
}

/// Returns names in the form in which they are stored.
pub(crate) fn joined<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().collect::<Vec<_>>().join(",")
}

/// Returns the stored form of actions.
pub(crate) fn joined_actions(actions: ActionSet) -> String {
    joined(actions.iter().map(Action::name))
}

/// Parses stored names.
pub(crate) fn split(names: &str) -> Vec<String> {
    names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Parses stored actions.
pub(crate) fn split_actions(names: &str) -> ActionSet {
    names.split(',').filter_map(Action::from_name).collect()
}

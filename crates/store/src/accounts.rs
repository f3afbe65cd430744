//! Accounts, sessions and sign-in attempts.

use crate::error::Result;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;
use toolrest_core::{ErrorKind, Timestamp, ToolError, UserId};

/// An account, without its secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct User {
    /// Its id.
    pub id: UserId,
    /// The address it signs in with, in lower case.
    pub email: String,
    /// The name shown to people.
    pub full_name: Option<String>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it was disabled, if it is.
    #[serde(skip)]
    pub disabled_at: Option<Timestamp>,
    /// The current epoch of access tokens. Tokens of earlier epochs are refused.
    #[serde(skip)]
    pub token_epoch: i64,
}

/// An account to create.
pub struct NewUser {
    /// The address, in lower case.
    pub email: String,
    /// The hash of the password, with its salt and parameters.
    pub password_hash: String,
    /// The name shown to people.
    pub full_name: Option<String>,
}

/// An account and the hash of its password.
pub struct Credentials {
    /// The account.
    pub user: User,
    /// The hash of its password.
    pub password_hash: String,
}

/// A refresh token to store, by its hash.
pub struct Session {
    /// The SHA-256 of the token.
    pub token_hash: [u8; 32],
    /// When it expires.
    pub expires_at: Timestamp,
}

/// The result of presenting a refresh token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// The token was valid and is now spent; its successor is stored.
    Rotated(UserId),
    /// The token had been spent before. All tokens of the same sign-in are revoked.
    Reused,
    /// The token is unknown or expired.
    Invalid,
}

/// A key whose sign-in attempts are counted.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The key: an account or an address.
    pub key: String,
    /// Maximum attempts per window.
    pub limit: u32,
}

/// Stores accounts.
#[async_trait]
pub trait AccountStore: Send + Sync {
    /// Creates an account; fails with `StoreError::EmailTaken` if the address is taken.
    async fn create_user(&self, user: NewUser) -> Result<User>;

    /// Finds an account by its address in lower case.
    async fn credentials(&self, email: &str) -> Result<Option<Credentials>>;

    /// Finds an account by its id.
    async fn user(&self, id: UserId) -> Result<Option<User>>;

    /// Creates a session: the first token of a family. Returns false if the account was disabled, or got a new token
    /// epoch, after it was read.
    async fn open_session(&self, user: UserId, token_epoch: i64, session: Session) -> Result<bool>;

    /// Spends a token and stores its successor, in one transaction.
    async fn rotate_session(&self, token_hash: [u8; 32], next: Session) -> Result<Rotation>;

    /// Returns the account and the expiry of a valid token, without spending it.
    async fn session(&self, token_hash: [u8; 32]) -> Result<Option<(UserId, Timestamp)>>;

    /// Ends the session of the token; false if there is none.
    async fn close_session(&self, token_hash: [u8; 32]) -> Result<bool>;

    /// Counts an attempt before the password is checked, so that concurrent attempts cannot exceed the limit. Returns
    /// the time to wait if a key is over its limit.
    async fn count_attempts(&self, attempts: Vec<Attempt>, window: Duration) -> Result<Option<Duration>>;

    /// Subtracts the attempts of a successful sign-in.
    async fn forgive_attempts(&self, keys: Vec<String>) -> Result<()>;

    /// Returns the secret of that name. Stores the candidate if there is none, so that all replicas share one.
    async fn secret(&self, name: &str, candidate: &str) -> Result<String>;
}

/// An account whose access tokens of earlier epochs are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revocation {
    /// The account.
    pub user: UserId,
    /// The current token epoch.
    pub token_epoch: i64,
    /// Whether the account is disabled, so that no token is valid.
    pub is_disabled: bool,
}

/// Account administration by an operator.
#[async_trait]
pub trait AccountAdmin: Send + Sync {
    /// Lists all accounts by their addresses.
    async fn users(&self) -> Result<Vec<User>>;

    /// Ends an account's sessions and suspends its memberships and those of its keys, in one transaction. From then on
    /// every statement that needs a membership refuses the account and its keys. Disabling it again changes nothing.
    async fn disable_user(&self, user: UserId) -> Result<()>;

    /// Restores the memberships of a disabled account and of its keys, except in deleted workspaces and except for keys
    /// that were suspended themselves. A new token epoch starts: old tokens stay refused, new ones are valid at once.
    async fn enable_user(&self, user: UserId) -> Result<()>;

    /// Ends an account's sessions, starts a new token epoch and suspends its keys; returns how many sessions there were.
    async fn end_sessions(&self, user: UserId) -> Result<u64>;

    /// Changes the password of an account, ends its sessions and suspends its keys.
    async fn set_password(&self, user: UserId, password_hash: String) -> Result<()>;

    /// Lists the accounts whose token epoch started since then.
    async fn revocations(&self, since: Timestamp) -> Result<Vec<Revocation>>;
}

/// Returns the error for an account that was deleted or disabled.
pub fn no_such_account() -> ToolError {
    ToolError::new(ErrorKind::Unauthenticated, "The account of this token no longer exists, or is disabled")
}

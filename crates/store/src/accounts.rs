//! Accounts, sessions and sign-in attempts.

use crate::error::Result;
use async_trait::async_trait;
use serde::Serialize;
use std::time::Duration;
use toolrest_core::{ErrorKind, Timestamp, ToolError, UserId};

/// An account, without its secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct User {
    /// Its id.
    pub id: UserId,
    /// The address it signs in with, in lower case.
    pub email: String,
    /// The name that people see.
    pub full_name: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// Since when it is disabled, if it is.
    #[serde(skip)]
    pub disabled_at: Option<Timestamp>,
    /// Epoch of the access tokens that are good; those issued in an earlier one are refused.
    #[serde(skip)]
    pub token_epoch: i64,
}

/// An account to be made.
pub struct NewUser {
    /// The address, in lower case.
    pub email: String,
    /// The hash of the password, with its salt and parameters.
    pub password_hash: String,
    /// The name that people see.
    pub full_name: Option<String>,
}

/// An account with the hash to check a password against.
pub struct Credentials {
    /// The account.
    pub user: User,
    /// The hash of its password.
    pub password_hash: String,
}

/// A refresh token to be kept. Only its hash is.
pub struct Session {
    /// The SHA-256 of the token.
    pub token_hash: [u8; 32],
    /// When it ends.
    pub expires_at: Timestamp,
}

/// What became of a refresh token that was presented.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// It was good, and is now spent; the next one is kept.
    Rotated(UserId),
    /// It was spent before: it, and every token that came of the same sign-in, is void.
    Reused,
    /// It is unknown or past its end.
    Invalid,
}

/// Something whose sign-in attempts are counted.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// What is counted: an account or an address.
    pub key: String,
    /// How many attempts a window allows.
    pub limit: u32,
}

/// Keeps accounts.
#[async_trait]
pub trait AccountStore: Send + Sync {
    /// Makes an account; `AlreadyExists` if the address is taken.
    async fn create_user(&self, user: NewUser) -> Result<User>;

    /// Finds an account by its address in lower case.
    async fn credentials(&self, email: &str) -> Result<Option<Credentials>>;

    /// Finds an account by its id.
    async fn user(&self, id: UserId) -> Result<Option<User>>;

    /// Begins a session: the first token of a family. False if the account has been disabled, or has begun another epoch
    /// of tokens, since it was looked up.
    async fn open_session(&self, user: UserId, token_epoch: i64, session: Session) -> Result<bool>;

    /// Spends a token and keeps its successor, in one step.
    async fn rotate_session(&self, token_hash: [u8; 32], next: Session) -> Result<Rotation>;

    /// Finds the account of a token that is good, and when the token ends, without spending it.
    async fn session(&self, token_hash: [u8; 32]) -> Result<Option<(UserId, Timestamp)>>;

    /// Ends the session that the token belongs to; false if there is none.
    async fn close_session(&self, token_hash: [u8; 32]) -> Result<bool>;

    /// Counts an attempt before it is judged, so that many at once cannot slip through. Gives the time to wait if one
    /// of the keys is over its limit.
    async fn count_attempts(&self, attempts: Vec<Attempt>, window: Duration) -> Result<Option<Duration>>;

    /// Takes the attempts back after a sign-in that was good.
    async fn forgive_attempts(&self, keys: Vec<String>) -> Result<()>;

    /// The secret of that name; the candidate is kept if there is none, so that all replicas share one.
    async fn secret(&self, name: &str, candidate: &str) -> Result<String>;
}

/// An account whose access tokens of earlier epochs are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revocation {
    /// The account.
    pub user: UserId,
    /// Epoch of the tokens that are good.
    pub token_epoch: i64,
    /// Whether the account is disabled, so that none is.
    pub is_disabled: bool,
}

/// Changes accounts as an operator does.
#[async_trait]
pub trait AccountAdmin: Send + Sync {
    /// Lists all accounts by their addresses.
    async fn users(&self) -> Result<Vec<User>>;

    /// Ends an account's sessions and suspends its memberships, in one step: from then on every statement that needs a
    /// membership refuses it. Disabling it again changes nothing.
    async fn disable_user(&self, user: UserId) -> Result<()>;

    /// Gives a disabled account its memberships back, except those of workspaces that are gone. A new epoch begins: its
    /// old tokens stay refused, and new ones are good at once.
    async fn enable_user(&self, user: UserId) -> Result<()>;

    /// Ends an account's sessions and begins a new epoch of access tokens; tells how many sessions there were.
    async fn end_sessions(&self, user: UserId) -> Result<u64>;

    /// Gives an account another password, and ends its sessions.
    async fn set_password(&self, user: UserId, password_hash: String) -> Result<()>;

    /// Lists the accounts that began an epoch of access tokens since then.
    async fn revocations(&self, since: Timestamp) -> Result<Vec<Revocation>>;
}

/// The refusal to act for an account that is gone or disabled.
pub fn no_such_account() -> ToolError {
    ToolError::new(ErrorKind::Unauthenticated, "The account of this token no longer exists, or is disabled")
}

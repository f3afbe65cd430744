//! Secrets of workspaces, as they are stored: encrypted. This crate does not know the key.

use crate::error::{Result, StoreError};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;
use toolrest_core::{Access, ErrorKind, Timestamp, ToolError, UserId, WorkspaceId};

/// Maximum number of secrets of a workspace.
pub const MAX_SECRETS: i64 = 100;

/// An encrypted secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedSecret {
    /// Its name.
    pub name: String,
    /// Identifies the key that it is encrypted with.
    pub sealing_key: Vec<u8>,
    /// The nonce and the ciphertext.
    pub sealed: Vec<u8>,
}

/// What is shown of a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SecretInfo {
    /// Its name.
    pub name: String,
    /// When it was first set.
    pub created_at: Timestamp,
    /// When it was last set.
    pub updated_at: Timestamp,
    /// The person who last set it.
    pub updated_by: UserId,
}

/// Stores encrypted secrets.
#[async_trait]
pub trait SecretStore: Send + Sync {
    /// Sets a secret. Only for persons.
    async fn set_secret(&self, access: Access, secret: SealedSecret) -> Result<SecretInfo>;

    /// Lists the secrets by name. Only for persons.
    async fn list_secrets(&self, access: Access) -> Result<Vec<SecretInfo>>;

    /// Deletes a secret. Only for persons.
    async fn delete_secret(&self, access: Access, name: String) -> Result<()>;

    /// Returns the secrets that have these names.
    async fn sealed_secrets(&self, access: Access, names: Vec<String>) -> Result<Vec<SealedSecret>>;

    /// Returns up to `limit` secrets of all workspaces that are encrypted with another key, for the operator.
    async fn secrets_to_reseal(&self, sealing_key: Vec<u8>, limit: u32) -> Result<Vec<(WorkspaceId, SealedSecret)>>;

    /// Replaces an encrypted secret by the same secret, encrypted with another key, for the operator. Does nothing if the
    /// secret was set or deleted since.
    async fn reseal_secret(&self, workspace: WorkspaceId, old: SealedSecret, new: SealedSecret) -> Result<()>;
}

/// Refuses an agent key.
pub(crate) fn check_person(access: Access) -> Result<()> {
    if access.is_by_key() {
        let message = "An agent key can neither see nor change the secrets of a workspace; a person must do it";
        return Err(StoreError::refused(ErrorKind::Forbidden, message));
    }
    Ok(())
}

pub(crate) fn no_secret(name: &str) -> StoreError {
    StoreError::refused(ErrorKind::NotFound, format!("The workspace has no secret {name}"))
}

pub(crate) fn too_many_secrets() -> StoreError {
    let limit = MAX_SECRETS.unsigned_abs();
    let message = format!("The workspace has {limit} secrets, which is the limit; delete one that is not needed");
    ToolError::new(ErrorKind::QuotaExceeded, message).detail("limit", limit).into()
}

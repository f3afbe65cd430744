//! The error of this crate, and its translation into the error that callers of tools receive.

use std::{error::Error, fmt::Display, sync::Arc};
use toolrest_core::{ApprovalId, ApprovalState, ContentHash, ErrorKind, Role, ToolError, WsPath};

/// The result of an operation of the store.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Why the store could not do what it was asked to.
///
/// There is a variant for each failure that the store or its callers handle. All others are [`StoreError::Refused`] or
/// [`StoreError::Internal`]. Errors are cloned, because all writes of one SQLite transaction fail together.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another transaction changed the same rows first. The change can be retried.
    #[error("Another change was made at the same time; try again")]
    LostRace,
    /// A content that was listed at the start of a search was purged before the search read it. The search can be
    /// repeated.
    #[error("The content of {0} is missing; try again")]
    ContentVanished(WsPath),
    /// No file or folder has this path.
    #[error("File not found: {0}")]
    FileNotFound(WsPath),
    /// A folder that the change needs does not exist.
    #[error("Folder not found: {0}; create it first")]
    FolderNotFound(WsPath),
    /// Nothing of this type has this id.
    #[error("{what} not found: {id}")]
    NotFound { what: &'static str, id: String },
    /// The file has another content than the change expects. `path` is the file's id if it has no path any more.
    #[error("{path} has changed since it was read")]
    Stale { path: String, current: Option<ContentHash> },
    /// A file or folder has this path already.
    #[error("A file or folder already exists at {0}")]
    AlreadyExists(WsPath),
    /// Another account has this address.
    #[error("Email '{0}' already exists")]
    EmailTaken(String),
    /// The caller is not a member of the workspace.
    #[error("Access forbidden: User is not a member of this workspace")]
    NotAMember,
    /// The caller is a member, but the operation needs a higher role.
    #[error("Access forbidden: this needs the role {needed}, yours is {actual}")]
    RoleTooLow { needed: Role, actual: Role },
    /// The rules or the grants of the caller changed after the call was judged. Nothing was done; the call must be judged
    /// again.
    #[error("The rules of this workspace have changed; try again")]
    RulesChanged,
    /// The rules have another revision than the change expects.
    #[error("The rules have revision {current}, not {expected}; read them again and repeat. Nothing was changed")]
    RulesRevision { expected: i64, current: i64 },
    /// The approval is in another state than the change needs, or shows something else than the decision saw.
    #[error("The approval {id} is {} at revision {revision}; read it again", state.name())]
    ApprovalConflict { id: ApprovalId, state: ApprovalState, revision: i64 },
    /// The approval of the call is no longer executed by this server process, so the call may not change anything.
    #[error("The approved call {0} was ended elsewhere; nothing was changed")]
    NotExecuting(ApprovalId),
    /// A limit of the account or the workspace would be exceeded.
    #[error("{message}")]
    QuotaExceeded { limit: u64, used: u64, setting: &'static str, message: String },
    /// The disk, or the server's quota on it, is full.
    #[error("{0}")]
    StorageFull(&'static str),
    /// The disk failed to write, or is read-only.
    #[error("{0}")]
    WriteFailed(&'static str),
    /// The database cannot be used at the moment.
    #[error("{0}")]
    Unavailable(String),
    /// The operation took too long, or waited too long to start.
    #[error("{0}")]
    Timeout(String),
    /// The request is not allowed in the current state, for example by the plan of a changeset. The answer for the
    /// caller is complete.
    #[error(transparent)]
    Refused(Box<ToolError>),
    /// A bug, or data that cannot be understood. The cause is for the log; callers of tools do not see it.
    #[error("internal error: {0}")]
    Internal(#[source] Arc<dyn Error + Send + Sync>),
}

impl StoreError {
    /// Wraps the cause of an internal error.
    pub fn internal(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Internal(Arc::from(cause.into()))
    }

    pub(crate) fn refused(kind: ErrorKind, message: impl Into<String>) -> Self {
        ToolError::new(kind, message).into()
    }

    pub(crate) fn not_found(what: &'static str, id: impl Display) -> Self {
        Self::NotFound { what, id: format!("{id}") }
    }

    pub(crate) fn stale(path: impl Display, current: Option<ContentHash>) -> Self {
        Self::Stale { path: format!("{path}"), current }
    }

    /// Returns the kind that callers of tools see.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::LostRace | Self::ContentVanished(_) | Self::RulesChanged | Self::RulesRevision { .. } => {
                ErrorKind::Conflict
            }
            Self::ApprovalConflict { .. } | Self::NotExecuting(_) => ErrorKind::Conflict,
            Self::FileNotFound(_) | Self::FolderNotFound(_) | Self::NotFound { .. } => ErrorKind::NotFound,
            Self::Stale { .. } => ErrorKind::Stale,
            Self::AlreadyExists(_) | Self::EmailTaken(_) => ErrorKind::AlreadyExists,
            Self::NotAMember | Self::RoleTooLow { .. } => ErrorKind::Forbidden,
            Self::QuotaExceeded { .. } => ErrorKind::QuotaExceeded,
            Self::StorageFull(_) => ErrorKind::StorageFull,
            Self::WriteFailed(_) => ErrorKind::WriteFailed,
            Self::Unavailable(_) => ErrorKind::Unavailable,
            Self::Timeout(_) => ErrorKind::Timeout,
            Self::Refused(error) => error.kind,
            Self::Internal(_) => ErrorKind::Internal,
        }
    }
}

impl From<ToolError> for StoreError {
    fn from(error: ToolError) -> Self {
        Self::Refused(Box::new(error))
    }
}

impl From<StoreError> for ToolError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Refused(error) => *error,
            StoreError::Internal(cause) => Self::internal(cause),
            StoreError::FileNotFound(path) => Self::file_not_found(&path),
            StoreError::FolderNotFound(path) => Self::folder_not_found(&path),
            StoreError::Stale { path, current } => Self::stale(path, current),
            StoreError::QuotaExceeded { limit, used, setting, message } => Self::quota(limit, used, setting, message),
            StoreError::LostRace => Self::new(error.kind(), error.to_string()).detail("lost_race", true),
            StoreError::RulesChanged => Self::new(error.kind(), error.to_string()).with_rules_changed(),
            other => Self::new(other.kind(), other.to_string()),
        }
    }
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;

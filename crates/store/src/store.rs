//! The whole store: workspaces and their members, maintenance.

use crate::error::{Result, StoreError};
use crate::{
    AccountAdmin, AccountStore, ApprovalStore, CallStore, FeedStore, FileList, FileStore, FolderHistory, InstanceStore,
    KeyStore, MetricsStore, RuleStore, SecretStore,
};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;
use toolrest_core::{
    Access, ChatId, CommitId, ErrorKind, Memories, QueueDepth, Role, Sessions, Timestamp, ToolError, UserId, VersionId,
    WorkspaceId, WorkspaceSettings, WorkspaceSettingsPatch, WsPath,
};

/// A database with everything that the server stores.
#[async_trait]
pub trait Store:
    AccountStore
    + AccountAdmin
    + WorkspaceStore
    + KeyStore
    + RuleStore
    + ApprovalStore
    + FileStore
    + FileList
    + FolderHistory
    + CallStore
    + MetricsStore
    + FeedStore
    + InstanceStore
    + Memories
    + SecretStore
    + Sessions
{
    /// Checks that the database answers.
    async fn ready(&self) -> Result<()>;

    /// Returns the load of the store in this process.
    fn load(&self) -> StoreLoad;

    /// Returns the bytes that all workspaces store in the database, as of the last update of the counters.
    async fn stored_bytes(&self) -> Result<u64>;

    /// Does the work that every process needs every few seconds and before it ends: exchanges usage counts with the
    /// database, and removes what its abandoned commits have left.
    async fn synchronise(&self) -> Result<()>;

    /// Does [`synchronise`](Self::synchronise) and the work that one of the processes with the same data folder does for
    /// all, every few seconds: statistics, unused contents, compression.
    async fn maintain(&self) -> Result<()>;

    /// Updates a batch of versions that an earlier release wrote; false if none is left.
    async fn renew_versions(&self) -> Result<bool>;

    /// Deletes expired data permanently. If several replicas run it at once, one of them works.
    async fn purge(&self, purge: Purge) -> Result<Purged>;
}

/// The load of a store in one process, for monitoring.
#[derive(Clone, Copy, Debug)]
pub struct StoreLoad {
    /// The kind of database: `sqlite` or `postgres`.
    pub database: &'static str,
    /// The connections of a pool; none on SQLite.
    pub pool: Option<PoolLoad>,
    /// Writes that wait for the writer; none on PostgreSQL.
    pub queued_writes: Option<usize>,
    /// The queue of searches in the database.
    pub searches: QueueDepth,
    /// Bytes in the search cache.
    pub search_cache_bytes: usize,
    /// Maximum size of the search cache.
    pub search_cache_limit_bytes: usize,
}

/// The connections of a pool.
#[derive(Clone, Copy, Debug)]
pub struct PoolLoad {
    /// Maximum number of connections.
    pub limit: usize,
    /// Open connections.
    pub open: usize,
    /// Open connections that nobody uses.
    pub idle: usize,
    /// Requests that wait for a connection.
    pub waiting: usize,
}

/// What a purge deletes; none means that nothing of this type expires.
#[derive(Clone, Copy, Debug, Default)]
pub struct Purge {
    /// Files deleted before this time, with their versions.
    pub trash_before: Option<Timestamp>,
    /// Records of calls that started before this time.
    pub calls_before: Option<Timestamp>,
    /// Maximum bytes of the history of a folder. The oldest contents beyond it are dropped.
    pub folder_history_bytes: Option<u64>,
}

/// What a purge removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    /// Files and folders.
    pub files: u64,
    /// Contents that no version refers to.
    pub blobs: u64,
    /// Dropped contents in the history of folders. Their hash and size stay.
    pub dropped: u64,
    /// Records of calls.
    pub calls: u64,
    /// Deleted workspaces.
    pub workspaces: u64,
}

/// A workspace as its members see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WorkspaceInfo {
    /// Its id.
    pub id: WorkspaceId,
    /// Its name.
    pub name: String,
    /// The account that created it.
    pub owner_id: UserId,
    /// The role of the member who asks.
    pub role: Role,
    /// Where its files are.
    #[serde(flatten)]
    pub location: Location,
    /// The settings by its owner; none if they cannot be read.
    pub settings: Option<WorkspaceSettings>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its name or its settings last changed.
    pub updated_at: Timestamp,
}

/// A change to a workspace. Fields that are none stay unchanged.
#[derive(Clone, Debug, Default)]
pub struct WorkspaceChange {
    /// Its new name.
    pub name: Option<String>,
    /// The changes to its settings.
    pub settings: Option<WorkspaceSettingsPatch>,
}

impl WorkspaceChange {
    /// Returns the change to the settings as JSON (a merge patch, RFC 7396).
    pub(crate) fn settings_json(&self) -> Result<Option<String>> {
        self.settings.as_ref().map(serde_json::to_string).transpose().map_err(StoreError::internal)
    }
}

/// Parses stored settings; none if they cannot be read, for example because a later version wrote them. The defaults
/// would be wrong: unreadable settings may contain limits.
pub(crate) fn settings_of(json: &str) -> Option<WorkspaceSettings> {
    let read = serde_json::from_str(json);
    read.inspect_err(|error| tracing::error!(%error, "the settings of a workspace cannot be read")).ok()
}

/// Returns the error for running programs in a workspace whose settings cannot be read.
pub fn unreadable_settings() -> ToolError {
    let message = "Programs cannot be run in this workspace: its settings cannot be read. Its owner can set them anew with \
                   PATCH /workspaces/{id}, which replaces all of them";
    ToolError::new(ErrorKind::NotConfigured, message)
}

/// Where the files of a workspace are. It never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Location {
    /// In the database.
    Database,
    /// In a real folder, with their history in the database.
    Directory {
        /// The folder's real path.
        root: String,
    },
}

impl Location {
    /// The number by which a database stores the kind.
    pub(crate) fn code(&self) -> i16 {
        match self {
            Self::Database => 0,
            Self::Directory { .. } => 1,
        }
    }

    /// The path of the folder, if it is one.
    pub fn root(&self) -> Option<&str> {
        match self {
            Self::Database => None,
            Self::Directory { root } => Some(root),
        }
    }

    /// Creates the location from the stored kind and path.
    pub(crate) fn from_row(code: i16, root: Option<String>) -> Self {
        match (code, root) {
            (1, Some(root)) => Self::Directory { root },
            _ => Self::Database,
        }
    }
}

/// A member of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Member {
    /// The account.
    pub user_id: UserId,
    /// Its address.
    pub email: String,
    /// Its name.
    pub full_name: Option<String>,
    /// Its role.
    pub role: Role,
    /// Since when it is a member.
    pub created_at: Timestamp,
}

/// Stores workspaces and their members.
#[async_trait]
pub trait WorkspaceStore: Send + Sync {
    /// Creates a workspace, owned by the user.
    async fn create_workspace(&self, owner: UserId, name: String, location: Location) -> Result<WorkspaceInfo>;

    /// Returns where the files of a workspace are and the address of the account that created it, without checking
    /// rights; none if the workspace does not exist.
    async fn location(&self, workspace: WorkspaceId) -> Result<Option<(Location, String)>>;

    /// Lists the workspaces of which the person or key is a member, oldest first.
    async fn workspaces_of(&self, member: UserId) -> Result<Vec<WorkspaceInfo>>;

    /// Returns a workspace.
    async fn workspace(&self, access: Access) -> Result<WorkspaceInfo>;

    /// Changes the name of a workspace, its settings, or both.
    async fn change_workspace(&self, access: Access, change: WorkspaceChange) -> Result<WorkspaceInfo>;

    /// Deletes a workspace. Access ends at once; the contents are deleted by the next purge.
    async fn delete_workspace(&self, access: Access) -> Result<()>;

    /// Lists the persons who are members, oldest first.
    async fn members(&self, access: Access) -> Result<Vec<Member>>;

    /// Adds the account with that address as a member.
    async fn add_member(&self, access: Access, email: String, role: Role) -> Result<Member>;

    /// Changes the role of a member, and of the member's keys. A workspace keeps at least one owner.
    async fn set_role(&self, access: Access, user: UserId, role: Role) -> Result<Member>;

    /// Removes a member, and revokes the member's keys. A workspace keeps at least one owner.
    async fn remove_member(&self, access: Access, user: UserId) -> Result<()>;
}

/// Checks that a role is sufficient; none means that the caller is not a member.
pub(crate) fn check_role(access: Access, role: Option<Role>) -> Result<Role> {
    let Some(role) = role else {
        return Err(StoreError::NotAMember);
    };
    if role < access.need {
        return Err(StoreError::RoleTooLow { needed: access.need, actual: role });
    }
    Ok(role)
}

/// Checks the column `rights` of the caller's membership, which has the role and the revision of the rules; none means that
/// the caller is not a member.
pub(crate) fn check_rights(access: Access, rights: Option<i64>) -> Result<Role> {
    let role = check_role(access, role_of(rights))?;
    if access.rules.is_some_and(|rules| rights.is_some_and(|rights| rights >> 2 != rules)) {
        return Err(StoreError::RulesChanged);
    }
    Ok(role)
}

/// Returns the role in the column `rights`.
pub(crate) fn role_of(rights: Option<i64>) -> Option<Role> {
    rights.and_then(|rights| i16::try_from(rights & 3).ok()).and_then(Role::from_code)
}

/// Returns the column `rights` for a role and a revision of the rules.
pub(crate) fn rights_of(role: i16, revision: i64) -> i64 {
    revision.saturating_mul(4) + i64::from(role)
}

/// Returns the access as one number, for statements that compare it with the column `rights` themselves: the lowest rights
/// that are sufficient, or the negative role if the revision of the rules does not matter.
pub(crate) fn required_rights(access: Access) -> i64 {
    let need = access.need.code();
    access.rules.map_or(-i64::from(need), |revision| rights_of(need, revision))
}

/// Returns the revision of the rules for a new membership. It is a time, so that a member who was removed and added again
/// never has a revision of before.
pub(crate) fn new_revision(at: Timestamp) -> i64 {
    at.as_microsecond()
}

/// Returns the error for leaving a workspace without an owner.
pub(crate) fn last_owner() -> StoreError {
    StoreError::refused(ErrorKind::Conflict, "A workspace needs at least one owner; make another member owner first")
}

/// Returns the error for an account that is not a member.
pub(crate) fn no_such_member(user: UserId) -> StoreError {
    StoreError::not_found("Member", user)
}

/// Returns the error for adding an account that does not exist.
pub(crate) fn no_such_user(email: &str) -> StoreError {
    StoreError::refused(
        ErrorKind::NotFound,
        format!("No account with the email '{email}'; it must be registered first"),
    )
}

/// Returns the error for adding a member twice.
pub(crate) fn already_member(email: &str) -> StoreError {
    StoreError::refused(ErrorKind::AlreadyExists, format!("'{email}' is already a member of this workspace"))
}

/// Returns the error for listing a file.
pub fn not_a_folder(path: &WsPath) -> ToolError {
    ToolError::new(ErrorKind::NotADirectory, format!("{path} is a file, not a folder; read it instead"))
}

pub(crate) fn no_such_version(id: VersionId) -> StoreError {
    StoreError::not_found("Version", id)
}

pub(crate) fn no_such_commit(id: CommitId) -> StoreError {
    StoreError::not_found("Commit", id)
}

/// Returns the error for a chat that gets no file: its folder is being moved, or all names are taken.
pub(crate) fn no_free_chat_name() -> StoreError {
    StoreError::refused(ErrorKind::Conflict, "The chat could not be placed below /chats; try again")
}

pub(crate) fn no_such_chat(id: ChatId) -> StoreError {
    StoreError::not_found("Chat", id)
}

/// Returns the error for a database that a later version has migrated.
pub(crate) fn newer_database(found: usize, known: usize) -> StoreError {
    let message = format!(
        "The database has schema version {found}, newer than the {known} this toolrest knows; use the newer toolrest"
    );
    StoreError::Unavailable(message)
}

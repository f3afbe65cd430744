//! The store as a whole: workspaces and their members, the records of calls, upkeep.

use crate::error::{Result, StoreError};
use crate::{AccountAdmin, AccountStore, FileList, FileStore, FolderHistory, Page};
use async_trait::async_trait;
use serde::Serialize;
use toolrest_core::{
    Access, CallId, CallRecord, ChatId, CommitId, ErrorKind, Role, Timestamp, ToolError, UserId, VersionId,
    WorkspaceId, WorkspaceSettings, WorkspaceSettingsPatch, WsPath,
};

/// Everything that is kept.
#[async_trait]
pub trait Store:
    AccountStore + AccountAdmin + WorkspaceStore + FileStore + FileList + FolderHistory + CallStore
{
    /// Whether the database answers.
    async fn ready(&self) -> Result<()>;

    /// Does what a store needs done every few seconds to stay quick.
    async fn maintain(&self) -> Result<()>;

    /// Renews some of the versions that an earlier release has written; false if none is left.
    async fn renew_versions(&self) -> Result<bool>;

    /// Removes for good what is past its time. Run by several replicas at once, only one works.
    async fn purge(&self, purge: Purge) -> Result<Purged>;
}

/// What is past its time; nothing where there is no limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Purge {
    /// Trash older than this, with its versions.
    pub trash_before: Option<Timestamp>,
    /// Records of calls older than this.
    pub calls_before: Option<Timestamp>,
    /// The oldest contents in the history of a folder, as long as it takes more bytes than this.
    pub folder_history_bytes: Option<u64>,
}

/// What a purge removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    /// Files and folders.
    pub files: u64,
    /// Contents that no version needs any more.
    pub blobs: u64,
    /// Contents in the history of folders, of which the hash and the size stay.
    pub dropped: u64,
    /// Records of calls.
    pub calls: u64,
    /// Workspaces that had been deleted.
    pub workspaces: u64,
}

/// A workspace as its members see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WorkspaceInfo {
    /// Its id.
    pub id: WorkspaceId,
    /// Its name.
    pub name: String,
    /// Who made it.
    pub owner_id: UserId,
    /// What the asking member may do.
    pub role: Role,
    /// Where its files are.
    #[serde(flatten)]
    pub place: Place,
    /// What its owner has set for it; none if that cannot be read.
    pub settings: Option<WorkspaceSettings>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its name or its settings last changed.
    pub updated_at: Timestamp,
}

/// What is to be changed about a workspace; the rest stays.
#[derive(Clone, Debug, Default)]
pub struct WorkspaceChange {
    /// Its new name.
    pub name: Option<String>,
    /// What changes about its settings.
    pub settings: Option<WorkspaceSettingsPatch>,
}

impl WorkspaceChange {
    /// The change to the settings, as JSON (a merge patch, RFC 7396).
    pub(crate) fn settings_json(&self) -> Result<Option<String>> {
        self.settings.as_ref().map(serde_json::to_string).transpose().map_err(StoreError::internal)
    }
}

/// Settings that a database kept; none if they cannot be read, as those that a later version wrote. They may hold limits
/// that must not be taken for absent.
pub(crate) fn settings_of(json: &str) -> Option<WorkspaceSettings> {
    let read = serde_json::from_str(json);
    read.inspect_err(|error| tracing::error!(%error, "the settings of a workspace cannot be read")).ok()
}

/// The refusal to run programs where it is not known what they may use.
pub fn unreadable_settings() -> ToolError {
    let message = "Programs cannot be run in this workspace: its settings cannot be read. Its owner can set them anew with \
                   PATCH /workspaces/{id}, which replaces all of them";
    ToolError::new(ErrorKind::NotConfigured, message)
}

/// Where the files of a workspace are. It never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Place {
    /// In the database.
    Database,
    /// In a real folder, with their history in the database.
    Directory {
        /// The folder's real path.
        root: String,
    },
}

impl Place {
    /// The number that stands for the kind in a database.
    pub(crate) fn code(&self) -> i16 {
        match self {
            Self::Database => 0,
            Self::Directory { .. } => 1,
        }
    }

    /// The folder, where it is one.
    pub fn root(&self) -> Option<&str> {
        match self {
            Self::Database => None,
            Self::Directory { root } => Some(root),
        }
    }

    /// The place that a database kept as a number and a path.
    pub(crate) fn from_row(code: i16, root: Option<String>) -> Self {
        match (code, root) {
            (1, Some(root)) => Self::Directory { root },
            _ => Self::Database,
        }
    }
}

/// A member of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Member {
    /// The account.
    pub user_id: UserId,
    /// Its address.
    pub email: String,
    /// Its name.
    pub full_name: Option<String>,
    /// What it may do.
    pub role: Role,
    /// Since when.
    pub created_at: Timestamp,
}

/// Keeps workspaces and who belongs to them.
#[async_trait]
pub trait WorkspaceStore: Send + Sync {
    /// Makes a workspace, owned by the user.
    async fn create_workspace(&self, owner: UserId, name: String, place: Place) -> Result<WorkspaceInfo>;

    /// Tells where the files of a workspace are, and the address of the account that made it, whoever asks; none if
    /// there is no such workspace.
    async fn place(&self, workspace: WorkspaceId) -> Result<Option<(Place, String)>>;

    /// Lists the workspaces that the user belongs to, oldest first.
    async fn workspaces_of(&self, user: UserId) -> Result<Vec<WorkspaceInfo>>;

    /// Tells about a workspace.
    async fn workspace(&self, access: Access) -> Result<WorkspaceInfo>;

    /// Gives a workspace another name, changes its settings, or both.
    async fn change_workspace(&self, access: Access, change: WorkspaceChange) -> Result<WorkspaceInfo>;

    /// Closes a workspace at once for everybody; its contents go with the next purge.
    async fn delete_workspace(&self, access: Access) -> Result<()>;

    /// Lists the members, oldest first.
    async fn members(&self, access: Access) -> Result<Vec<Member>>;

    /// Adds the account with that address.
    async fn add_member(&self, access: Access, email: String, role: Role) -> Result<Member>;

    /// Gives a member another role. A workspace keeps at least one owner.
    async fn set_role(&self, access: Access, user: UserId, role: Role) -> Result<Member>;

    /// Removes a member. A workspace keeps at least one owner.
    async fn remove_member(&self, access: Access, user: UserId) -> Result<()>;
}

/// Keeps the records of calls.
#[async_trait]
pub trait CallStore: Send + Sync {
    /// Keeps records, in one step. Those of workspaces that do not exist are dropped. A call that was recorded with its
    /// commit gets the outcome that is given here.
    async fn record_calls(&self, records: Vec<CallRecord>) -> Result<()>;

    /// Lists records, newest first.
    async fn calls(&self, access: Access, page: Page<CallId>) -> Result<Vec<CallRecord>>;
}

/// Judges a membership that was looked up.
pub(crate) fn require(access: Access, role: Option<Role>) -> Result<Role> {
    let Some(role) = role else {
        return Err(StoreError::NotAMember);
    };
    if role < access.need {
        return Err(StoreError::RoleTooLow { needed: access.need, actual: role });
    }
    Ok(role)
}

/// The refusal to leave a workspace without an owner.
pub(crate) fn last_owner() -> StoreError {
    StoreError::refused(ErrorKind::Conflict, "A workspace needs at least one owner; make another member owner first")
}

/// The refusal to look at a member that is none.
pub(crate) fn no_such_member(user: UserId) -> StoreError {
    StoreError::not_found("Member", user)
}

/// The refusal to add an account that does not exist.
pub(crate) fn no_such_user(email: &str) -> StoreError {
    StoreError::refused(
        ErrorKind::NotFound,
        format!("No account with the email '{email}'; it must be registered first"),
    )
}

/// The refusal to add a member twice.
pub(crate) fn already_member(email: &str) -> StoreError {
    StoreError::refused(ErrorKind::AlreadyExists, format!("'{email}' is already a member of this workspace"))
}

/// The refusal to list what is not a folder.
pub fn not_a_folder(path: &WsPath) -> ToolError {
    ToolError::new(ErrorKind::NotADirectory, format!("{path} is a file, not a folder; read it instead"))
}

pub(crate) fn no_such_version(id: VersionId) -> StoreError {
    StoreError::not_found("Version", id)
}

pub(crate) fn no_such_commit(id: CommitId) -> StoreError {
    StoreError::not_found("Commit", id)
}

/// The refusal to begin a chat while its folder is being moved away, or its names are taken on purpose.
pub(crate) fn no_name_left() -> StoreError {
    StoreError::refused(ErrorKind::Conflict, "The chat could not be placed below /chats; try again")
}

pub(crate) fn no_such_chat(id: ChatId) -> StoreError {
    StoreError::not_found("Chat", id)
}

/// The refusal to work on a database that a later version has changed.
pub(crate) fn newer_database(found: usize, known: usize) -> StoreError {
    let message = format!(
        "The database has schema version {found}, newer than the {known} this toolrest knows; use the newer toolrest"
    );
    StoreError::Unavailable(message)
}

//! The interface of workspaces of all kinds.

use crate::{
    Access, CallCx, CallId, Changeset, Checkout, CheckoutOptions, Commit, CommitId, Content, ContentHash, Effect,
    ErrorKind, FeedCursor, FeedPage, FeedSources, FileEvents, FileId, FileType, Find, FindResult, History, ProgramHome,
    Result, Search, SearchResult, Timestamp, ToolError, UserId, VersionId, WsPath,
};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;
use std::{
    io::{Read, Seek},
    sync::Arc,
};

/// A set of files, opened for one caller.
///
/// Every method checks the caller's rights in the same step as it does its work.
#[async_trait]
pub trait Workspace: History {
    /// Checks the caller's rights and nothing else.
    async fn authorise(&self) -> Result<()>;

    /// Whether the caller is a person who owns the workspace. Keys are never owners.
    async fn is_owner(&self) -> Result<bool>;

    /// Returns the file or folder at the path, without its content.
    async fn stat(&self, path: &WsPath) -> Result<Option<Entry>>;

    /// Reads the file at the path; a folder has no content. A content of more than `max_bytes` is left out and not
    /// read. The content counts as memory of the call.
    async fn read(&self, path: &WsPath, max_bytes: u64) -> Result<File>;

    /// Waits for memory for contents of `bytes` bytes, before the call reads them. First it returns the memory that the
    /// call held so far, so the caller must have dropped the contents that it read.
    async fn make_room(&self, _bytes: u64) -> Result<()> {
        Ok(())
    }

    /// Opens a file of more than `more_than_bytes` to read it in pieces. Returns `None` if the file is smaller or is
    /// not in a folder; then [`Workspace::read`] reads it.
    async fn open(&self, _path: &WsPath, _more_than_bytes: u64) -> Result<Option<OpenFile>> {
        Ok(None)
    }

    /// Whether its files are in a folder of the file system, and have absolute paths there.
    fn is_in_file_system(&self) -> bool {
        false
    }

    /// Returns the part of an absolute path below the workspace's root. The root is `/workspace`, as programs see it,
    /// or the path of the folder in the file system. Returns `None` for a path that begins with neither.
    fn below_mount(&self, path: &str) -> Option<String> {
        below_workspace_mount(path).map(str::to_owned)
    }

    /// Parses a path that may also begin with the root as programs or the file system see it.
    fn locate(&self, path: &str) -> Result<WsPath> {
        WsPath::within(self.below_mount(path).as_deref().unwrap_or(path))
    }

    /// Lists a folder, sorted by path in byte order, up to `limit` entries.
    async fn list(&self, folder: &WsPath, depth: Depth, limit: usize) -> Result<Listing>;

    /// Returns the paths of up to `limit` entries directly in a folder. It does not read the files.
    async fn names(&self, folder: &WsPath, limit: usize) -> Result<Vec<WsPath>> {
        let listing = self.list(folder, Depth::Children, limit).await?;
        Ok(listing.entries.into_iter().map(|entry| entry.path).collect())
    }

    /// Finds files below a folder by their paths.
    async fn find(&self, find: Find) -> Result<FindResult>;

    /// Finds lines in the text of its files, in one snapshot.
    async fn search(&self, search: Search) -> Result<SearchResult>;

    /// Returns a stream of changes made by anybody.
    async fn watch(&self) -> Result<FileEvents> {
        self.authorise().await?;
        Err(ToolError::new(ErrorKind::Unavailable, "Only workspaces in a folder report changes as they happen"))
    }

    /// Reads the next part of the feed, without waiting for new events. Without a cursor it returns the current position
    /// and no events.
    async fn feed(&self, _after: Option<&FeedCursor>, _sources: FeedSources) -> Result<FeedPage> {
        self.authorise().await?;
        Err(ToolError::new(ErrorKind::Unavailable, "This workspace has no feed"))
    }

    /// Checks the files out for a program.
    async fn check_out(&self, _options: CheckoutOptions) -> Result<Box<dyn Checkout>> {
        self.authorise().await?;
        Err(ToolError::new(ErrorKind::Unavailable, "Programs cannot run in this workspace"))
    }

    /// Returns the home directory for a program, if the workspace keeps one. Called after `check_out`, which checks the
    /// caller's rights.
    async fn program_home(&self) -> Result<Option<ProgramHome>> {
        Ok(None)
    }

    /// Applies all of the changes, or none.
    async fn commit(&self, changes: Changeset, cx: &CallCx) -> Result<Commit>;

    /// Returns what [`Workspace::commit`] would do. It changes nothing and takes no locks.
    async fn preview(&self, changes: Changeset, cx: &CallCx) -> Result<Preview>;
}

/// What a changeset would do.
#[derive(Clone, Debug, PartialEq)]
pub struct Preview {
    /// The commit as it would be. It has no id; the versions in its outcomes are those before the change.
    pub commit: Commit,
    /// Its effects, as they would be recorded.
    pub effects: Vec<Effect>,
}

/// The folder in which programs see the files of their workspace.
pub const WORKSPACE_MOUNT: &str = "/workspace";

/// Returns the part of a path below [`WORKSPACE_MOUNT`]: empty for the mount itself, `None` for other paths.
pub fn below_workspace_mount(path: &str) -> Option<&str> {
    path.strip_prefix(WORKSPACE_MOUNT).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Opens workspaces.
#[async_trait]
pub trait Workspaces: Send + Sync {
    /// Opens a workspace for a caller. The caller's rights are checked by each use, not here.
    async fn open(&self, access: Access, links: SymbolicLinks) -> Result<Arc<dyn Workspace>>;
}

/// Whether paths in a folder may lead through symbolic links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolicLinks {
    /// Links that stay inside the folder are followed.
    Follow,
    /// Every file is reached by its own path only, so that a rule about a path cannot be passed by an alias.
    Refuse,
}

/// The depth of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Only entries directly in the folder.
    Children,
    /// All entries below the folder.
    Descendants,
}

/// A file or folder without its content.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its id.
    pub id: FileId,
    /// Its path.
    pub path: WsPath,
    /// The name to show to people, if it differs from the last part of the path.
    pub display_name: Option<String>,
    /// Its type.
    pub file_type: FileType,
    /// Whether the system generates it, so that file tools cannot change it.
    pub is_virtual: bool,
    /// Whether it is a symbolic link. The other fields describe its target.
    pub is_link: bool,
    /// The size of its content in bytes.
    pub size: i64,
    /// Its current version.
    pub version: Option<VersionId>,
    /// The hash of its content.
    pub hash: Option<ContentHash>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it was moved to the trash.
    pub deleted_at: Option<Timestamp>,
}

impl Entry {
    /// Returns the name to show to people.
    pub fn display_name(&self) -> &str {
        self.display_name.as_deref().unwrap_or_else(|| self.path.name())
    }
}

/// A file with its content; a folder has none.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    /// The file or folder.
    pub entry: Entry,
    /// The content.
    pub content: Option<Content>,
}

/// An open file, to be read in pieces.
pub struct OpenFile {
    /// The file. Its hash is not known.
    pub entry: Entry,
    /// Its bytes.
    pub bytes: Box<dyn ReadSeek>,
}

/// Bytes that can be read from any position.
pub trait ReadSeek: Read + Seek + Send {}

impl<T: Read + Seek + Send> ReadSeek for T {}

/// A file or folder in a listing. It has few fields, because listings are long.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Its path.
    pub path: WsPath,
    /// The name to show to people, if it differs from the last part of the path.
    pub display_name: Option<String>,
    /// Its type.
    pub file_type: FileType,
    /// Whether the system generates it, so that file tools cannot change it.
    pub is_virtual: bool,
    /// Whether it is a symbolic link. The type is that of its target.
    pub is_link: bool,
    /// The size of its content in bytes.
    pub size: i64,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// A folder's entries.
#[derive(Clone, Debug, PartialEq)]
pub struct Listing {
    /// The entries, sorted by path.
    pub entries: Vec<Listed>,
    /// Whether there were more than the limit.
    pub truncated: bool,
    /// Folders that could not be read. They are among the entries.
    pub unreadable: Vec<WsPath>,
    /// Number of files and folders with invalid names.
    pub unnamed: u64,
}

/// One version of a file.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Version {
    /// Its id.
    pub id: VersionId,
    /// Its number, counted from 1 for each file.
    pub seq: i64,
    /// The hash of its content.
    pub hash: ContentHash,
    /// The size of its content in bytes.
    pub size: i64,
    /// The user who made it.
    pub author: UserId,
    /// The commit that made it.
    pub commit_id: CommitId,
    /// When it was created.
    #[schemars(with = "String")]
    pub created_at: Timestamp,
}

/// A recorded commit.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CommitInfo {
    /// Its id.
    pub id: CommitId,
    /// The call that made it.
    pub call_id: CallId,
    /// The toolset of that call; `api` for the REST interface; `folder` for changes to a folder while a process ran on
    /// it, made by the process or by others.
    pub toolset: String,
    /// The tool of that call. With the toolset `folder`: which process ran.
    pub tool: String,
    /// The user whose call made it. With the toolset `folder`: the user who started the process, which may not be the
    /// user who changed the files.
    pub author: UserId,
    /// When it was created.
    #[schemars(with = "String")]
    pub created_at: Timestamp,
    /// The commit that it undoes.
    pub undoes: Option<CommitId>,
    /// Its effects.
    pub changes: Vec<Effect>,
}

impl CommitInfo {
    /// The toolset of commits without a known author: changes to a folder while a process ran on it.
    pub const FOLDER: &str = "folder";

    /// Returns the tool of such a commit.
    pub fn while_process_ran(process: &str) -> String {
        format!("while process {process} ran")
    }

    /// Whether the changes were made by a process on the folder itself, or by others while it ran.
    pub fn is_of_folder(&self) -> bool {
        self.toolset == Self::FOLDER
    }
}

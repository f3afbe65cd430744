//! A workspace as operations see it, whichever kind it is.

use crate::{
    Access, CallCx, CallId, Changeset, Checkout, CheckoutOptions, Commit, CommitId, Content, ContentHash, Effect,
    ErrorKind, FileEvents, FileId, FileType, Find, FindResult, Found, Result, Search, Timestamp, ToolError, UserId,
    VersionId, WsPath,
};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;
use std::{
    io::{Read, Seek},
    sync::Arc,
};

/// A place that holds files, opened for one caller.
///
/// Every method checks the caller's rights in the same step in which it does its work.
#[async_trait]
pub trait Workspace: Send + Sync {
    /// Checks the caller's rights and nothing else.
    async fn authorise(&self) -> Result<()>;

    /// Tells what stands at the path.
    async fn stat(&self, path: &WsPath) -> Result<Option<Entry>>;

    /// Reads the file at the path; a folder has no content. The content of a file of more than so many bytes is left out,
    /// and is not read. What is read counts as memory that the call holds.
    async fn read(&self, path: &WsPath, most_bytes: u64) -> Result<File>;

    /// Waits for memory for contents of so many bytes, before the call reads them. What the call held until then is
    /// returned first, so the contents that it has read must be dropped.
    async fn make_room(&self, _bytes: u64) -> Result<()> {
        Ok(())
    }

    /// Opens a file of more than so many bytes, to be read piece by piece. None if it is smaller, or not in a folder:
    /// then it is read whole.
    async fn open(&self, _path: &WsPath, _more_than_bytes: u64) -> Result<Option<OpenFile>> {
        Ok(None)
    }

    /// Whether its files lie in a folder of the file system, and have absolute paths there.
    fn is_in_file_system(&self) -> bool {
        false
    }

    /// The part of an absolute path that lies below the workspace's root, as programs see it (`/workspace`) or, where
    /// the workspace is a folder, as the file system has it. None for a path that begins with neither.
    fn below_mount(&self, path: &str) -> Option<String> {
        below_workspace_mount(path).map(str::to_owned)
    }

    /// The path that a caller means who may also write it as programs or the file system have it.
    fn locate(&self, path: &str) -> Result<WsPath> {
        WsPath::within(self.below_mount(path).as_deref().unwrap_or(path))
    }

    /// Lists a folder, sorted by path in byte order, up to `limit` entries.
    async fn list(&self, folder: &WsPath, depth: Depth, limit: usize) -> Result<Listing>;

    /// The paths of what is directly in a folder, up to `limit`, without a look at the contents.
    async fn names(&self, folder: &WsPath, limit: usize) -> Result<Vec<WsPath>> {
        let listing = self.list(folder, Depth::Children, limit).await?;
        Ok(listing.entries.into_iter().map(|entry| entry.path).collect())
    }

    /// Finds files below a folder by their paths.
    async fn find(&self, find: Find) -> Result<FindResult>;

    /// Finds lines in the text of its files, as they are at one moment.
    async fn search(&self, search: Search) -> Result<Found>;

    /// Tells of changes as they happen, whoever makes them.
    async fn watch(&self) -> Result<FileEvents> {
        self.authorise().await?;
        Err(ToolError::new(ErrorKind::Unavailable, "Only workspaces in a folder tell of changes as they happen"))
    }

    /// Puts the files where a program can work on them.
    async fn check_out(&self, _options: CheckoutOptions) -> Result<Box<dyn Checkout>> {
        self.authorise().await?;
        Err(ToolError::new(ErrorKind::Unavailable, "Programs cannot run in this workspace"))
    }

    /// Applies all of the changes or none.
    async fn commit(&self, changes: Changeset, cx: &CallCx) -> Result<Commit>;
}

/// The folder in which programs see the files of their workspace.
pub const WORKSPACE_MOUNT: &str = "/workspace";

/// The part of a path behind [`WORKSPACE_MOUNT`]: empty for the mount itself, none for a path that lies elsewhere.
pub fn below_workspace_mount(path: &str) -> Option<&str> {
    path.strip_prefix(WORKSPACE_MOUNT).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Opens workspaces.
#[async_trait]
pub trait Workspaces: Send + Sync {
    /// Opens a workspace for a caller. The caller's rights are checked by each use, not here.
    async fn open(&self, access: Access) -> Result<Arc<dyn Workspace>>;
}

/// How far down a listing goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// What is directly in the folder.
    Children,
    /// All that is below it.
    Descendants,
}

/// A file or folder without its content.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its id.
    pub id: FileId,
    /// Where it is.
    pub path: WsPath,
    /// The name that people see, where it is not the last part of the path.
    pub display_name: Option<String>,
    /// Its type.
    pub file_type: FileType,
    /// Whether the system keeps it and the file tools cannot change it.
    pub is_virtual: bool,
    /// Whether a symbolic link stands there, and the rest tells of what it leads to.
    pub is_link: bool,
    /// The size of its content in bytes.
    pub size: i64,
    /// Its current version.
    pub version: Option<VersionId>,
    /// The hash of its content.
    pub hash: Option<ContentHash>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it went to the trash.
    pub deleted_at: Option<Timestamp>,
}

impl Entry {
    /// The name that people see.
    pub fn display_name(&self) -> &str {
        self.display_name.as_deref().unwrap_or_else(|| self.path.name())
    }
}

/// A file with its content; a folder has none.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    /// What it is.
    pub entry: Entry,
    /// What it holds.
    pub content: Option<Content>,
}

/// A file that is read piece by piece.
pub struct OpenFile {
    /// What it is. Its hash is not known.
    pub entry: Entry,
    /// Its bytes.
    pub bytes: Box<dyn ReadSeek>,
}

/// Bytes that can be read from any place on.
pub trait ReadSeek: Read + Seek + Send {}

impl<T: Read + Seek + Send> ReadSeek for T {}

/// A file or folder in a listing: what listings show, and no more, because they are long.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Where it is.
    pub path: WsPath,
    /// The name that people see, where it is not the last part of the path.
    pub display_name: Option<String>,
    /// Its type.
    pub file_type: FileType,
    /// Whether the system keeps it and the file tools cannot change it.
    pub is_virtual: bool,
    /// Whether it is a symbolic link. Its type is then that of what it leads to.
    pub is_link: bool,
    /// The size of its content in bytes.
    pub size: i64,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// A folder's entries.
#[derive(Clone, Debug, PartialEq)]
pub struct Listing {
    /// Sorted by path.
    pub entries: Vec<Listed>,
    /// Whether there were more than the limit.
    pub truncated: bool,
    /// Folders that could not be entered; they are among the entries themselves.
    pub unreadable: Vec<WsPath>,
    /// How many files and folders have a name that no path can have.
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
    /// Who made it.
    pub author: UserId,
    /// The commit that made it.
    pub commit_id: CommitId,
    /// When it was made.
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
    /// The toolset of that call; `api` for the REST interface; `folder` for what became of a folder while a process worked
    /// on it, by the process or by others.
    pub toolset: String,
    /// The tool of that call; for a folder which process ran.
    pub tool: String,
    /// Whose call made it. In the toolset `folder` this is who started the process, whoever changed the files meanwhile.
    pub author: UserId,
    /// When it was made.
    #[schemars(with = "String")]
    pub created_at: Timestamp,
    /// The commit that it takes back.
    pub undoes: Option<CommitId>,
    /// What it did.
    pub changes: Vec<Effect>,
}

impl CommitInfo {
    /// The toolset of commits that nobody can be said to have made: what changed in a folder while a process worked on it.
    pub const FOLDER: &str = "folder";

    /// The tool of such a commit.
    pub fn while_process_ran(process: &str) -> String {
        format!("while process {process} ran")
    }

    /// Whether the changes are the folder's, made by a process or by others while it ran.
    pub fn is_of_folder(&self) -> bool {
        self.toolset == Self::FOLDER
    }
}

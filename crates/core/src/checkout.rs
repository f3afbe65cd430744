//! A workspace's files as programs see them: a real folder to run in, and what becomes of what they change there.

use crate::{CallCx, CommitId, Result, WorkspaceSettings, WsPath};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;
use std::{os::fd::OwnedFd, path::PathBuf, sync::Arc};

/// How the files of a workspace are to be given to a program.
#[derive(Clone, Copy, Debug)]
pub struct CheckoutOptions {
    /// Where the program runs.
    pub mode: CheckoutMode,
    /// How much of what it changes is kept.
    pub keep: KeepLimits,
}

/// Where a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckoutMode {
    /// Aside: nobody sees what it does before it is checked in.
    Isolated,
    /// On the folder itself, if the workspace is one: others and the program see each other's changes at once. Files in
    /// a database are checked out aside all the same.
    InPlace,
}

/// How much of what a program changes becomes part of a commit. The rest is left out, and told.
#[derive(Clone, Copy, Debug)]
pub struct KeepLimits {
    /// The largest file.
    pub file_bytes: u64,
    /// All files of one commit together.
    pub commit_bytes: u64,
    /// How many files and folders one commit may change.
    pub commit_files: usize,
}

impl Default for KeepLimits {
    fn default() -> Self {
        Self { file_bytes: 64 << 20, commit_bytes: 256 << 20, commit_files: 20_000 }
    }
}

/// The files of a workspace in a real folder, for one program at a time.
///
/// Dropped without a check-in, what was changed aside is forgotten.
#[async_trait]
pub trait Checkout: Send + Sync {
    /// Where the program is to run.
    fn execution_root(&self) -> ExecutionRoot;

    /// What the owner of the workspace had set for it when it was checked out.
    fn settings(&self) -> &WorkspaceSettings;

    /// Commits what was changed since it was checked out, or since the last check-in, as one commit, while the program
    /// goes on. Brings what others changed in the workspace to where it runs.
    async fn check_in(&mut self, cx: &CallCx) -> Result<CheckedIn>;

    /// Commits what was changed last; the program has ended.
    async fn finish(self: Box<Self>, cx: &CallCx) -> Result<CheckedIn>;
}

/// A folder that is held open. It is used by its descriptor: by now its path may lead elsewhere.
#[derive(Clone, Debug)]
pub struct FolderHandle {
    /// The folder.
    pub descriptor: Arc<OwnedFd>,
    /// The path that it had when it was opened, for messages.
    pub path: PathBuf,
}

/// A real folder that a program can be run in.
#[derive(Clone, Debug)]
pub enum ExecutionRoot {
    /// This folder, writable: a copy for this program alone.
    Folder(FolderHandle),
    /// The workspace's own folder, which others use too.
    Shared {
        /// The folder.
        folder: FolderHandle,
        /// What the program may not change in it: paths below the folder. All of them exist, and none is a symbolic link
        /// or leads through one.
        read_only: Vec<PathBuf>,
    },
    /// A view of a folder that takes the program's changes aside.
    Overlay {
        /// What stays as it is.
        lower: FolderHandle,
        /// A folder with an `upper`, which takes the changes, and a `work` for the kernel.
        private: FolderHandle,
    },
}

/// What became of a program's changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CheckedIn {
    /// Who made the changes.
    pub attribution: Attribution,
    /// The commit that holds them, if there were any.
    pub commit: Option<CommitId>,
    /// What it holds, by path.
    pub changed: Vec<ProgramChange>,
    /// What somebody else had changed meanwhile.
    pub conflicts: Vec<ProgramConflict>,
    /// What is not part of the commit, by path.
    pub left_out: Vec<LeftOut>,
}

/// Who made changes that were found when a program was checked in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Attribution {
    /// The program, which worked on files of its own.
    #[default]
    Program,
    /// The program or others, who worked on the same folder at the same time.
    Folder,
}

/// Something that a program did to a file or folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProgramChange {
    /// Where it is, or was.
    pub path: WsPath,
    /// What was done.
    pub change: ProgramChangeKind,
    /// Where it was before, if it was moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<WsPath>,
}

/// What a program can do to a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProgramChangeKind {
    /// It made it.
    Created,
    /// It gave it another content, or other permissions.
    Changed,
    /// It gave it another path.
    Moved,
    /// It took it away.
    Removed,
}

/// A file that a program changed and somebody else too. What the other did stands; what the program did is beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProgramConflict {
    /// The file.
    pub path: WsPath,
    /// Where the program's version of it is, if it had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_as: Option<WsPath>,
    /// What stood in the way.
    pub reason: String,
}

/// Something that a program changed and that is not part of the commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeftOut {
    /// The file, or the folder with all that is in it. Names that are not text are made readable.
    pub path: String,
    /// Why.
    pub reason: LeftOutReason,
}

/// Why something is not part of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LeftOutReason {
    /// The rules of `.gitignore` say so, or it is git's own: it is there for the next program, without versions.
    Ignored,
    /// The file is over the limit.
    TooLarge,
    /// The commit is full.
    TooMuch,
    /// A symbolic link, which has no versions.
    Link,
    /// Part of a repository's configuration: git would run what it says. It stays as it was.
    GitConfig,
    /// A git repository that was made or replaced while the process ran on the folder itself, which could write to it.
    /// Check its hooks and its configuration before you run git there.
    NewRepository,
    /// A pipe, a socket or a device.
    Special,
    /// A name that no path can have.
    Name,
    /// It could not be read.
    Unreadable,
}

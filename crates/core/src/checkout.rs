//! Checkouts: the files of a workspace in a real folder for a program, and the commit of its changes.

use crate::{CallCx, CommitId, Result, WorkspaceSettings, WsPath};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;
use std::{os::fd::OwnedFd, path::PathBuf, sync::Arc};

/// Options of a checkout.
#[derive(Clone, Copy, Debug)]
pub struct CheckoutOptions {
    /// Where the program runs.
    pub mode: CheckoutMode,
    /// Limits of the changes that are committed.
    pub keep: KeepLimits,
}

/// Where a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckoutMode {
    /// On private files: nobody sees its changes before they are checked in.
    Isolated,
    /// On the folder itself, if the workspace is a folder: the program and others see each other's changes at once. For
    /// a workspace in a database this is the same as `Isolated`.
    InPlace,
}

/// Limits of the commit of a program's changes. Changes over the limits are left out and reported.
#[derive(Clone, Copy, Debug)]
pub struct KeepLimits {
    /// Maximum size of a file.
    pub file_bytes: u64,
    /// Maximum size of all files of a commit together.
    pub commit_bytes: u64,
    /// Maximum number of changed files and folders in a commit.
    pub commit_files: usize,
}

impl Default for KeepLimits {
    fn default() -> Self {
        Self { file_bytes: 64 << 20, commit_bytes: 256 << 20, commit_files: 20_000 }
    }
}

/// The files of a workspace in a real folder, for one program at a time.
///
/// If it is dropped without a check-in, changes to private files are discarded.
#[async_trait]
pub trait Checkout: Send + Sync {
    /// Returns the folder or overlay for the program.
    fn execution_root(&self) -> ExecutionRoot;

    /// Returns the settings of the workspace at the time of the checkout.
    fn settings(&self) -> &WorkspaceSettings;

    /// Commits the changes since the checkout, or since the last check-in, as one commit, while the program runs.
    /// Updates the checked-out files by the changes of others.
    async fn check_in(&mut self, cx: &CallCx) -> Result<CheckedIn>;

    /// Commits the remaining changes after the program has ended.
    async fn finish(self: Box<Self>, cx: &CallCx) -> Result<CheckedIn>;
}

/// An open folder. It is used by its descriptor, because its path may lead elsewhere by now.
#[derive(Clone, Debug)]
pub struct FolderHandle {
    /// The folder.
    pub descriptor: Arc<OwnedFd>,
    /// Its path when it was opened, for messages.
    pub path: PathBuf,
}

/// The home directory of the programs of a workspace, which stays between programs. It is not emptied while this exists.
pub struct ProgramHome {
    /// The folder.
    pub folder: FolderHandle,
    _in_use: Box<dyn Send + Sync>,
}

impl ProgramHome {
    /// Creates a home directory that is in use until `in_use` is dropped.
    pub fn new(folder: FolderHandle, in_use: impl Send + Sync + 'static) -> Self {
        Self { folder, _in_use: Box::new(in_use) }
    }
}

/// The folder or overlay that a program runs on.
#[derive(Clone, Debug)]
pub enum ExecutionRoot {
    /// A private copy for this program, writable.
    Folder(FolderHandle),
    /// The folder of the workspace itself, which others use too.
    Shared {
        /// The folder.
        folder: FolderHandle,
        /// Paths below the folder that are read-only for the program. All of them exist, and no part of them is a
        /// symbolic link.
        read_only: Vec<PathBuf>,
    },
    /// An overlay on a folder, which keeps the program's changes apart.
    Overlay {
        /// The folder, which is not changed.
        lower: FolderHandle,
        /// A folder with `upper`, for the changes, and `work`, for the kernel.
        private: FolderHandle,
    },
}

/// The result of a check-in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CheckedIn {
    /// Who made the changes.
    pub attribution: Attribution,
    /// The commit, if there were changes.
    pub commit: Option<CommitId>,
    /// The committed changes, sorted by path.
    pub changed: Vec<ProgramChange>,
    /// Files that somebody else changed meanwhile.
    pub conflicts: Vec<ProgramConflict>,
    /// Changes that are not part of the commit, sorted by path.
    pub left_out: Vec<LeftOut>,
}

/// Who made the changes of a check-in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Attribution {
    /// The program, which ran on private files.
    #[default]
    Program,
    /// The program or others, who used the same folder at the same time.
    Folder,
}

/// A change of a program to a file or folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProgramChange {
    /// Its path; for a removal, its old path.
    pub path: WsPath,
    /// What the program did.
    pub change: ProgramChangeKind,
    /// Its old path, if it was moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<WsPath>,
}

/// The kinds of changes of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProgramChangeKind {
    /// Created.
    Created,
    /// Content or permissions changed.
    Changed,
    /// Moved.
    Moved,
    /// Removed.
    Removed,
}

/// A file that both a program and somebody else changed. The other's version is kept at its path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProgramConflict {
    /// The file.
    pub path: WsPath,
    /// The path of the conflict copy with the program's version. `None` if the program removed the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_as: Option<WsPath>,
    /// Why this is a conflict.
    pub reason: String,
}

/// A change of a program that is not part of the commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeftOut {
    /// The path of the file or folder. Bytes of the name that are not UTF-8 are replaced.
    pub path: String,
    /// The reason.
    pub reason: LeftOutReason,
}

/// Why a change is not part of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LeftOutReason {
    /// Excluded by `.gitignore`, or inside `.git`. The next program sees it, but it has no versions.
    Ignored,
    /// The file is larger than the limit.
    TooLarge,
    /// The commit has reached its limits.
    TooMuch,
    /// A symbolic link, which has no versions.
    Link,
    /// Part of a git repository's configuration, which could make git run programs. It is not changed.
    GitConfig,
    /// A git repository that was created or replaced while the process ran on the folder itself. The process could
    /// write to it: check its hooks and its configuration before you run git there.
    NewRepository,
    /// A pipe, a socket or a device.
    Special,
    /// Its name is not valid in a workspace.
    Name,
    /// It could not be read.
    Unreadable,
}

//! The changes of a commit, and their results.

use std::path::PathBuf;

use crate::{Hash, Metadata};

/// One change of a commit. Changes are applied in their order, and become visible together.
#[derive(Debug, Clone)]
pub enum Change {
    /// Writes a whole file. If the path is a symbolic link, the file it points to is written.
    Write {
        path: PathBuf,
        bytes: Vec<u8>,
        expect: Expect,
        /// The permission bits. If not given, an existing file keeps its own, and a new one gets 0666 minus the umask.
        mode: Option<u32>,
        parents: Parents,
    },
    /// Removes a file. A symbolic link is removed itself, not its target.
    Remove { path: PathBuf, expect: Expect },
    /// Removes a folder. Files removed by earlier changes of the same commit do not count as contents.
    RemoveFolder { path: PathBuf, contents: Contents },
    /// Removes whatever is at a path with everything below it, including a whole repository. Files that cannot be
    /// deleted stay under a temporary name.
    Clear { path: PathBuf },
    /// Moves a file, link or folder to another path.
    Move { from: PathBuf, to: PathBuf, replace: Replace, parents: Parents },
    /// Creates a folder that must not exist yet.
    MakeFolder {
        path: PathBuf,
        /// The permission bits; those of the owner are always added. If not given, the folder gets 0777 minus the
        /// umask.
        mode: Option<u32>,
        parents: Parents,
    },
}

/// What must be at a path for a change to be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    Absent,
    Hash(Hash),
    Anything,
}

/// What to do if a parent folder is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parents {
    Required,
    Make,
}

/// Whether a move may replace a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    Refuse,
    File,
}

/// What a folder may contain when it is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    Nothing,
    Anything,
}

/// Options of a commit, and data that is returned if the commit is recovered after a crash.
#[derive(Debug, Clone, Default)]
pub struct CommitOptions {
    /// The caller's id of the commit.
    pub id: Vec<u8>,
    /// Data that the caller needs to record the commit elsewhere.
    pub payload: Vec<u8>,
    pub hard_links: HardLinks,
    pub symbolic_links: SymbolicLinks,
    pub repositories: Repositories,
}

/// Whether paths of a commit may lead through symbolic links.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SymbolicLinks {
    #[default]
    Follow,
    /// A path that leads through a link, or a link that is written, fails with [`ErrorKind::Changed`]. The caller saw
    /// no link there, so somebody created it since.
    ///
    /// [`ErrorKind::Changed`]: crate::ErrorKind::Changed
    Refuse,
}

/// Whether a commit may change git repositories: `.git` and everything below it. [`Change::Clear`] may remove a whole
/// repository in any case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Repositories {
    /// The default, because git on the host executes files of a repository.
    #[default]
    ReadOnly,
    Writable,
}

/// What happens to the other hard links of a written file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HardLinks {
    /// The file is rewritten in place, so that all hard links show the change. If one commit writes different contents
    /// to two links of one file, they become two files.
    #[default]
    Keep,
    /// Only this path gets the new file.
    Break,
}

/// The result of a commit. It is applied and durable.
#[derive(Debug, Clone)]
pub struct CommitResult {
    /// One result per change, in their order.
    pub changes: Vec<AppliedChange>,
}

/// The result of one change.
#[derive(Debug, Clone)]
pub struct AppliedChange {
    /// The real path beneath the root, with symbolic links resolved as far as the change follows them. For a move, the
    /// new path.
    pub path: PathBuf,
    pub effect: Effect,
    /// The metadata of a written file.
    pub metadata: Option<Metadata>,
}

/// How a change was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Created,
    Replaced,
    /// The bytes were changed in place, because the file has several hard links or may not be replaced.
    RewrittenInPlace,
    Removed,
    Moved,
}

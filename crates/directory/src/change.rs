//! What a commit can be asked to do, and what it says it did.

use std::path::PathBuf;

use crate::{Hash, Metadata};

/// One change of a commit. The changes of a commit take effect in their order, and all at once.
#[derive(Debug, Clone)]
pub enum Change {
    /// Writes a whole file. A symbolic link is written through to the file it names.
    Write {
        path: PathBuf,
        bytes: Vec<u8>,
        expect: Expect,
        /// The permission bits. Without them a file keeps its own, and a new one gets 0666 less the umask.
        mode: Option<u32>,
        parents: Parents,
    },
    /// Removes a file. A symbolic link itself is removed, not what it names.
    Remove { path: PathBuf, expect: Expect },
    /// Removes a folder. Files that earlier changes of the same commit remove do not count as its contents.
    RemoveFolder { path: PathBuf, contents: Contents },
    /// Removes whatever is at a path, with all that is below it, also a whole repository. What may not be deleted stays
    /// under a temporary name.
    Clear { path: PathBuf },
    /// Gives a file, link or folder another path.
    Move { from: PathBuf, to: PathBuf, replace: Replace, parents: Parents },
    /// Makes a folder that must not exist yet.
    MakeFolder {
        path: PathBuf,
        /// The permission bits, to which those of the owner are added. Without them it gets 0777 less the umask.
        mode: Option<u32>,
        parents: Parents,
    },
}

/// What must stand at a path for a change to take effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    Absent,
    Hash(Hash),
    Anything,
}

/// What happens where a parent folder is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parents {
    Required,
    Make,
}

/// Whether a move may take the place of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    Refuse,
    File,
}

/// What a folder that is removed may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    Nothing,
    Anything,
}

/// How a commit is made, and what the caller gets back if it is interrupted and recovered.
#[derive(Debug, Clone, Default)]
pub struct CommitOptions {
    /// The caller's name for the commit.
    pub id: Vec<u8>,
    /// Whatever the caller needs to record the commit elsewhere.
    pub payload: Vec<u8>,
    pub hard_links: HardLinks,
    pub symbolic_links: SymbolicLinks,
    pub repositories: Repositories,
}

/// Whether the paths of a commit may lead through symbolic links.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SymbolicLinks {
    #[default]
    Follow,
    /// A path that leads through a link, or that is written and is one, fails with [`ErrorKind::Changed`]: the caller has
    /// found no link there, so that somebody has made it since.
    ///
    /// [`ErrorKind::Changed`]: crate::ErrorKind::Changed
    Refuse,
}

/// Whether a commit may change git's repositories: `.git`, whatever stands there, and all that is below it. A whole
/// repository is removed by [`Change::Clear`] in any case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Repositories {
    /// Git on the host runs what stands in there.
    #[default]
    ReadOnly,
    Writable,
}

/// What becomes of the other names of a file that is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HardLinks {
    /// The file is rewritten in place, so that all its names show the change. Two names of one file that get different
    /// contents become two files.
    #[default]
    Keep,
    /// A new file takes the place of this name alone.
    Break,
}

/// A commit that took effect and is durable.
#[derive(Debug, Clone)]
pub struct Applied {
    /// One for each change, in their order.
    pub changes: Vec<AppliedChange>,
}

/// What became of one change.
#[derive(Debug, Clone)]
pub struct AppliedChange {
    /// The real path beneath the root, with symbolic links followed as far as the change does. A move gives the new one.
    pub path: PathBuf,
    pub effect: Effect,
    /// What is known of a written file afterwards.
    pub metadata: Option<Metadata>,
}

/// How a change took effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Created,
    Replaced,
    /// The bytes were changed in place: the file has several names, which all still lead to it, or it may not be replaced.
    RewrittenInPlace,
    Removed,
    Moved,
}

//! Checkouts: the files of a workspace in a real directory, for one program, and how its changes become a commit.
//!
//! Each kind of checkout detects changes in its own way: [`database`] scans a working copy, `folder::checkout::isolated`
//! compares the upper layer of an overlay with the folder, and `folder::checkout::in_place` compares the folder with a
//! snapshot. All of them yield [`diff::Diff`]s. From there on the path is the same: [`net_changes`] reads contents, finds
//! moves and applies limits; [`merge`] decides conflicts and yields a changeset, which is committed like any other and
//! retried if [`is_retryable`] says so.

pub(crate) mod conflict_paths;
mod database;
pub(crate) mod diff;
pub(crate) mod merge;
mod moves;
pub(crate) mod net_changes;
mod path_tree;

pub use database::CheckoutRetention;
pub(crate) use database::{WorkingCopyPool, check_out};
pub(crate) use moves::FolderMoves;

use toolrest_core::ErrorKind;

/// Maximum number of attempts to commit the changes of a program while others keep changing the same files.
pub(crate) const MAX_ATTEMPTS: usize = 10;

/// Whether a commit was refused because of what others changed: it may succeed after another comparison.
pub(crate) fn is_retryable(kind: ErrorKind) -> bool {
    use ErrorKind::{
        AlreadyExists, Conflict, IsDirectory, NotADirectory, NotEmpty, NotFound, Protected, Stale, ThroughFile,
        WrongType,
    };
    matches!(
        kind,
        AlreadyExists
            | Conflict
            | IsDirectory
            | NotADirectory
            | NotEmpty
            | NotFound
            | Protected
            | Stale
            | ThroughFile
            | WrongType
    )
}

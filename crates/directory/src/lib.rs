//! Files of a real folder, for workspaces that are folders.
//!
//! [`Root`] holds a folder open. Every path is relative to it and is resolved beneath it by the kernel when something
//! is opened; nothing is checked first and opened later. Reads always use the disk. Changes go through
//! [`Root::commit`], which applies all of them or none, even across a crash. [`Root::recover`] completes or rolls back
//! what a crash interrupted. Unversioned changes of a program bypass commits, but also need the [`FolderLock`].
//!
//! All calls block. Paths are bytes, so names need not be UTF-8.

mod change;
mod checkout_dir;
mod commit;
mod error;
mod git;
mod hash;
mod layer;
mod list;
mod metadata;
mod read;
mod repositories;
mod root;
mod sys;
mod temporary;
mod walk;
mod watch;

pub use change::{
    AppliedChange, Change, CommitOptions, CommitResult, Contents, Effect, Expect, HardLinks, Parents, Replace,
    Repositories, SymbolicLinks,
};
pub use checkout_dir::{CheckoutDir, IgnoreStatus, ScanVisitor, remove_tree, tree_size};
pub use commit::{FolderLock, Outcome, Record, Recovered};
pub use error::{Error, ErrorKind, Result};
pub use git::{is_git, leads_into as leads_into_repository};
pub use hash::Hash;
pub use layer::{Baseline, Difference, NotTransferred, NotTransferredReason, Owner, TransferRules};
pub use list::{Entry, ListOptions, Listing, Skipped};
pub use metadata::{Identity, Kind, Metadata};
pub use read::{Content, Reader};
pub use repositories::Repository;
pub use root::{Links, Root, TouchHandle};
pub use temporary::is_temporary;
pub use walk::{Files, IgnoreMode, IgnoreRules, MAX_RULES, Paths, SkipCounts, Verdict, Visitor, WalkOptions};
pub use watch::{Event, Watch};

//! A real folder as the place of a workspace.
//!
//! [`Root`] holds a folder open. Every path is relative to it and is resolved beneath it by the kernel at the moment
//! something is opened; nothing is checked first and opened later. Reads are always fresh. All changes go through
//! [`Root::commit`], which applies many of them or none, also across a crash, and [`Root::recover`], which settles
//! what a crash interrupted. What needs no history of all that a program has changed aside goes past commits, in their
//! [`Turn`].
//!
//! All calls block. Paths are bytes: names that are not UTF-8 survive.

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
    Applied, AppliedChange, Change, CommitOptions, Contents, Effect, Expect, HardLinks, Parents, Replace, Repositories,
    SymbolicLinks,
};
pub use checkout_dir::{CheckoutDir, IgnoreStatus, ScanVisitor, remove_tree};
pub use commit::{Outcome, Record, Recovered, Turn};
pub use error::{Error, ErrorKind, Result};
pub use git::{is_git, leads_into as leads_into_repository};
pub use hash::Hash;
pub use layer::{
    Baseline, Difference, Differences, DirIdentities, NotTransferred, NotTransferredReason, Owner, PreserveRules,
    ReplacedDirs,
};
pub use list::{Entry, ListOptions, Listing, Skipped};
pub use metadata::{Identity, Kind, Metadata};
pub use read::{Content, Reader};
pub use repositories::Repository;
pub use root::{Links, Root, ToTouch};
pub use temporary::is_temporary;
pub use walk::{Files, Heed, IgnoreRules, PassedOver, Paths, Verdict, Visitor, WalkOptions};
pub use watch::{Event, Watch};

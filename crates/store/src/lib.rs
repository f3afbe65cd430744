//! Accounts, workspaces, files, versions and records, on SQLite and on PostgreSQL.
//!
//! [`Store`] stands at the level of operations, not of rows, because the best way to write differs between the two:
//! one writer thread with group commit on SQLite, one statement per write on PostgreSQL. What a changeset means is
//! decided once, in [`plan`], for both, and for workspaces whose files lie in a real folder (the `workspaces` crate).

mod accounts;
pub mod blob;
pub mod disk_fault;
pub mod error;
pub mod file_list;
mod files;
pub mod history;
pub mod plan;
mod postgres;
mod quota;
mod recorder;
mod renewal;
pub mod search;
mod signature;
mod sqlite;
mod store;

pub use accounts::{
    AccountAdmin, AccountStore, Attempt, Credentials, NewUser, Revocation, Rotation, Session, User, no_such_account,
};
pub use error::StoreError;
pub use file_list::{FileList, FilesSince, Moment};
pub use files::{CallInfo, Chat, FileStore, Message, Page};
pub use history::{FolderCommit, FolderHistory, Limited, Recorded};
pub use postgres::{Postgres, PostgresOptions};
pub use quota::Quotas;
pub use recorder::WriteBehind;
pub use sqlite::{Sqlite, check_database, copy_database};
pub use store::{
    CallStore, Member, Place, Purge, Purged, Store, WorkspaceChange, WorkspaceInfo, WorkspaceStore, not_a_folder,
    unreadable_settings,
};

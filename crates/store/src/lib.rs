//! Accounts, workspaces, files, versions and records, on SQLite and on PostgreSQL.
//!
//! [`Store`] stands at the level of operations, not of rows, because the best way to write differs between the two:
//! one writer thread with group commit on SQLite, one statement per write on PostgreSQL. What a changeset means is
//! decided once, in `plan`, for both, and for workspaces whose files lie in a real folder.

mod accounts;
mod blob;
mod check_in_room;
mod checkout;
mod conflict_name;
mod database_workspace;
mod discovery;
mod disk_fault;
mod file_list;
mod files;
mod folder;
mod history;
mod ignored;
mod plan;
mod postgres;
mod quota;
mod read_room;
mod recorder;
mod scratch;
mod search;
mod signature;
mod sqlite;
mod store;
mod workspaces;

pub use accounts::{
    AccountAdmin, AccountStore, Attempt, Credentials, NewUser, Revocation, Rotation, Session, User, no_such_account,
};
pub use checkout::CheckoutsKept;
pub use file_list::{FileList, ListedSince, Moment};
pub use files::{CallInfo, Chat, FileStore, Message, Page};
pub use folder::{AllowedRoot, FolderOptions, HistoryLimits, find as find_in_folder, search as search_folder};
pub use history::{FolderCommit, FolderHistory, Recorded};
pub use postgres::{Postgres, PostgresOptions};
pub use quota::Quotas;
pub use recorder::WriteBehind;
pub use scratch::Scratch;
pub use sqlite::{Sqlite, check_database, copy_database};
pub use store::{CallStore, Member, Place, Purge, Purged, Store, WorkspaceChange, WorkspaceInfo, WorkspaceStore};
pub use toolrest_directory::Repositories;
pub use workspaces::StoredWorkspaces;

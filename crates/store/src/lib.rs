//! Accounts, workspaces, files, versions and records, on SQLite and on PostgreSQL.
//!
//! [`Store`] has operations, not rows, because the fastest way to write differs: one writer thread with group commit on
//! SQLite, one statement per write on PostgreSQL. [`plan`] decides what a changeset does, for both databases and for
//! workspaces whose files are in a real folder (the `workspaces` crate).

mod accounts;
mod approvals;
pub mod blob;
mod calls;
pub mod disk_fault;
pub mod error;
mod feed;
pub mod file_list;
mod files;
pub mod history;
mod jobs;
mod keys;
mod memories;
pub mod plan;
mod postgres;
mod quota;
mod recorder;
mod renewal;
mod rules;
pub mod search;
mod secrets;
mod sessions;
mod signature;
mod sqlite;
mod store;
mod wakeups;
mod workspace_metrics;

pub use accounts::{
    AccountAdmin, AccountStore, Attempt, Credentials, NewUser, Revocation, Rotation, Session, User, no_such_account,
};
pub use approvals::{ApprovalStore, MAX_OPEN_APPROVALS};
pub use calls::{CallFilter, CallState, CallStore, INSTANCE_TIMEOUT, Instance, InstanceStore};
pub use error::StoreError;
pub use feed::FeedStore;
pub use file_list::{FileList, FilesSince, ListCursor};
pub use files::{CallInfo, Chat, FileStore, Message, RecordPlace};
pub use history::{FolderCommit, FolderHistory, Recorded, TrimmedHistory};
pub use keys::{KeyInfo, KeyState, KeyStore, KeyUse, MAX_LIVE_KEYS, NewKey};
pub use memories::MAX_MEMORIES;
pub use postgres::{Postgres, PostgresOptions};
pub use quota::Quotas;
pub use recorder::WriteBehind;
pub use rules::RuleStore;
pub use secrets::{MAX_SECRETS, SealedSecret, SecretInfo, SecretStore};
pub use sqlite::{Sqlite, check_database, copy_database};
pub use store::{
    Location, Member, PoolLoad, Purge, Purged, Store, StoreLoad, WorkspaceChange, WorkspaceInfo, WorkspaceStore,
    not_a_folder, unreadable_settings,
};
pub use toolrest_core::Page;
pub use wakeups::{Subscription, Wakeups};
pub use workspace_metrics::{
    ApprovalMetrics, CallFigures, MetricsStore, PartMetrics, Period, ToolMetrics, WorkspaceMetrics,
};

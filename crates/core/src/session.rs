//! What is kept about the sessions of callers: results that were too long for an answer, and the commits of each session.

use crate::{Access, CommitId, ErrorKind, Result, Timestamp, ToolError, UserId};
use async_trait::async_trait;
use std::{collections::HashMap, time::Duration};

/// How long a result is kept.
pub const RESULT_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
/// Maximum size of a result.
pub const MAX_RESULT_BYTES: usize = 16 << 20;
/// Maximum size of all results of a workspace. The oldest are removed first.
pub const MAX_RESULTS_OF_WORKSPACE: u64 = 256 << 20;
/// Maximum size of all results of an account, over all workspaces. The oldest are removed first.
pub const MAX_RESULTS_OF_ACCOUNT: u64 = 512 << 20;

/// A commit of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionCommit {
    /// The commit.
    pub commit: CommitId,
    /// The label of the session; may be empty.
    pub session: String,
    /// What made it, in words: ``run `make test` ``.
    pub label: String,
}

/// Keeps results and the commits of sessions. Every method checks the access in the step that does the work. What is kept
/// belongs to the caller: a key or a person.
#[async_trait]
pub trait Sessions: Send + Sync {
    /// Keeps a result for the caller, in place of an earlier one with the same id.
    async fn keep_result(&self, access: Access, id: String, bytes: Vec<u8>) -> Result<()>;

    /// Returns the size of a result of the caller; none if there is none, or if it is not kept any more.
    async fn result_bytes(&self, access: Access, id: String) -> Result<Option<u64>>;

    /// Returns a result of the caller; none if there is none, or if it is not kept any more.
    async fn kept_result(&self, access: Access, id: String) -> Result<Option<Vec<u8>>>;

    /// Notes a commit of a session of the caller.
    async fn note_session_commit(&self, access: Access, commit: SessionCommit) -> Result<()>;

    /// Returns the commits of a session of the caller since a time, newest first, up to `limit`.
    async fn session_commits(
        &self,
        access: Access,
        session: String,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<CommitId>>;

    /// Returns the words for commits, as far as there are any.
    async fn commit_labels(&self, access: Access, commits: Vec<CommitId>) -> Result<HashMap<CommitId, String>>;

    /// Returns the commits whose ids end in these hexadecimal digits, at least eight. At most a few are returned.
    async fn commits_ending_in(&self, access: Access, digits: String) -> Result<Vec<CommitId>>;

    /// Returns the addresses of members and former members.
    async fn addresses(&self, users: Vec<UserId>) -> Result<HashMap<UserId, String>>;
}

/// Keeps nothing: for reading the schemas of tools without calling them.
pub struct NoSessions;

fn no_sessions() -> ToolError {
    ToolError::new(ErrorKind::NotConfigured, "This server keeps no results")
}

#[async_trait]
impl Sessions for NoSessions {
    async fn keep_result(&self, _: Access, _: String, _: Vec<u8>) -> Result<()> {
        Err(no_sessions())
    }

    async fn result_bytes(&self, _: Access, _: String) -> Result<Option<u64>> {
        Err(no_sessions())
    }

    async fn kept_result(&self, _: Access, _: String) -> Result<Option<Vec<u8>>> {
        Err(no_sessions())
    }

    async fn note_session_commit(&self, _: Access, _: SessionCommit) -> Result<()> {
        Err(no_sessions())
    }

    async fn session_commits(&self, _: Access, _: String, _: Timestamp, _: u32) -> Result<Vec<CommitId>> {
        Err(no_sessions())
    }

    async fn commit_labels(&self, _: Access, _: Vec<CommitId>) -> Result<HashMap<CommitId, String>> {
        Err(no_sessions())
    }

    async fn commits_ending_in(&self, _: Access, _: String) -> Result<Vec<CommitId>> {
        Err(no_sessions())
    }

    async fn addresses(&self, _: Vec<UserId>) -> Result<HashMap<UserId, String>> {
        Err(no_sessions())
    }
}

//! Records of calls.

use crate::{CallId, CommitId, Timestamp, UserId, WorkspaceId};
use serde::Serialize;

/// The record of one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CallRecord {
    /// The workspace.
    #[serde(skip)]
    pub workspace: WorkspaceId,
    /// Its id.
    pub id: CallId,
    /// The toolset.
    pub toolset: String,
    /// The tool.
    pub tool: String,
    /// Who called.
    pub caller: UserId,
    /// When it started.
    pub started_at: Timestamp,
    /// Its duration in microseconds.
    pub duration_us: i64,
    /// `ok`, or the name of the error kind.
    pub outcome: String,
    /// Its commit, if it changed something.
    pub commit_id: Option<CommitId>,
}

/// Stores the records of calls without a commit, and of calls that failed after their commit. It must not make the call
/// wait for a disk.
pub trait Recorder: Send + Sync {
    /// Queues a record to be written after the call. It replaces the outcome that was recorded with a commit.
    fn record(&self, record: CallRecord);
}

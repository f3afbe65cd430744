//! The record that every call leaves.

use crate::{CallId, CommitId, Timestamp, UserId, WorkspaceId};
use serde::Serialize;

/// One call, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CallRecord {
    /// The workspace it was made in.
    #[serde(skip)]
    pub workspace: WorkspaceId,
    /// Its id.
    pub id: CallId,
    /// The toolset asked for.
    pub toolset: String,
    /// The tool asked for.
    pub tool: String,
    /// Who called.
    pub caller: UserId,
    /// When it began.
    pub started_at: Timestamp,
    /// How long it took.
    pub duration_us: i64,
    /// `ok`, or the name of what went wrong.
    pub outcome: String,
    /// The commit that it made, if it changed something.
    pub commit_id: Option<CommitId>,
}

/// Keeps the records of calls that changed nothing, or that failed after they had changed something. It must not make
/// the call wait for a disk.
pub trait Recorder: Send + Sync {
    /// Takes a record; it is written soon, behind the call. It replaces the outcome that was recorded with a commit.
    fn record(&self, record: CallRecord);
}

//! Records of calls, and the server processes that run them.

use crate::Page;
use crate::error::Result;
use async_trait::async_trait;
use std::time::Duration;
use toolrest_core::{Access, CallId, CallRecord, CommitId, Timestamp, WsPath};
use uuid::Uuid;

/// Time without a heartbeat after which a server process counts as dead.
pub const INSTANCE_TIMEOUT: Duration = Duration::from_secs(30);

/// Stores the records of calls.
#[async_trait]
pub trait CallStore: Send + Sync {
    /// Stores records in one transaction, and removes the rows that say that these calls are running. Records of
    /// workspaces that do not exist are dropped. A call that was recorded before gets the outcome given here.
    async fn record_calls(&self, records: Vec<CallRecord>) -> Result<()>;

    /// Stores that a call of a server process is running, if the caller has the access.
    async fn record_running(&self, access: Access, call: CallRecord, instance: Uuid) -> Result<()>;

    /// Lists records, newest first.
    async fn calls(&self, access: Access, filter: CallFilter, page: Page<CallId>) -> Result<Vec<CallRecord>>;
}

/// Stores which server processes are alive. Times are compared by the clock of the database.
#[async_trait]
pub trait InstanceStore: Send + Sync {
    /// Stores that a server process is alive.
    async fn heartbeat(&self, instance: &Instance) -> Result<()>;

    /// Records the running calls of server processes that have been silent for [`INSTANCE_TIMEOUT`] as interrupted, each
    /// with its first commit. Returns how many there were.
    async fn interrupt_abandoned_calls(&self) -> Result<u64>;

    /// Removes a server process that ends, and records its running calls as interrupted.
    async fn end_instance(&self, instance: Uuid) -> Result<()>;
}

/// A server process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Its id, which is new at each start.
    pub id: Uuid,
    /// The name of its machine.
    pub node: String,
}

/// Whether to list ended or running calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallState {
    /// Ended calls.
    #[default]
    Ended,
    /// Running calls with effects outside of the workspace's files.
    Running,
}

/// Which calls to list; none means any.
#[derive(Clone, Debug, Default)]
pub struct CallFilter {
    /// Whether they have ended.
    pub state: CallState,
    /// Their toolset.
    pub toolset: Option<String>,
    /// Their tool.
    pub tool: Option<String>,
    /// Their outcome. Not for running calls.
    pub outcome: Option<String>,
    /// Who called: a person, or a key.
    pub principal: Option<Uuid>,
    /// Their path is this one, or below it.
    pub path: Option<WsPath>,
    /// The call that made this commit. Not for running calls.
    pub commit: Option<CommitId>,
    /// They started at this time or later.
    pub since: Option<Timestamp>,
    /// They started before this time.
    pub until: Option<Timestamp>,
}

impl CallFilter {
    /// Returns the range of ids that can match, without its end.
    ///
    /// Ids begin with the time at which they were made, shortly before the call started. So a range of ids limits what is
    /// read of a long list. It is wider than the times by a margin, for calls that waited and for clocks that were set.
    pub(crate) fn id_range(&self, before: Option<CallId>) -> (Uuid, Uuid) {
        const MARGIN_MS: i64 = 60 * 60 * 1000;
        let id_at = |ms: i64| Uuid::from_u128(u128::from(u64::try_from(ms).unwrap_or(0)) << 80);
        let low = self.since.map_or(Uuid::nil(), |since| id_at(since.as_millisecond() - MARGIN_MS));
        let high = self.until.map_or(Uuid::max(), |until| id_at(until.as_millisecond() + MARGIN_MS));
        (low, before.map_or(high, |before| before.0.min(high)))
    }

    /// Returns the path, and the range of the paths below it.
    pub(crate) fn paths(&self) -> (Option<&str>, Option<String>, Option<String>) {
        let (low, high) = self.path.as_ref().map(WsPath::below_range).unzip();
        (self.path.as_ref().map(WsPath::as_str), low, high)
    }
}

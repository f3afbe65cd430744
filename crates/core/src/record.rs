//! Records of calls.
//!
//! A call has one record, which is inserted once, at its end, with what really happened. A call that only changes files is
//! recorded in the transaction of its commit. A call with effects outside of the workspace's files, such as a program,
//! first gets a durable row that says that it is running, so that a crash leaves a trace of it. All other calls have no
//! effects; their records are written behind them, in batches.

use crate::redact::MAX_ARGS_BYTES;
use crate::{Access, CallId, Caller, CommitId, ErrorKind, Result, Timestamp, ToolError, UserId, WorkspaceId, WsPath};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use std::{
    borrow::Cow,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;

/// Maximum length of the message of an error in a record.
const MAX_MESSAGE_CHARS: usize = 500;
/// Maximum length of a correlation id in a record.
const MAX_CORRELATION_CHARS: usize = 128;
/// Maximum length of the name of a tool in a record.
const MAX_NAME_CHARS: usize = 100;

/// The toolset of changes over the REST interface.
pub const REST_TOOLSET: &str = "api";
/// The outcome of a successful call.
pub const OUTCOME_OK: &str = "ok";
/// The outcome of a call whose server ended before the call.
pub const OUTCOME_INTERRUPTED: &str = "interrupted";

/// Returns whether a call can have this outcome: `ok`, `interrupted` or the name of an error kind.
pub fn is_outcome(text: &str) -> bool {
    [OUTCOME_OK, OUTCOME_INTERRUPTED].contains(&text) || ErrorKind::ALL.iter().any(|kind| kind.name() == text)
}

/// What the record of a call says besides its result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallDetails {
    /// The caller's id for the call.
    pub correlation: String,
    /// The agent key that called; none if the person did.
    pub key: Option<Uuid>,
    /// The first path that the arguments name.
    pub path: Option<WsPath>,
    /// The arguments as redacted JSON; none if they were not kept.
    pub args: Option<String>,
}

impl CallDetails {
    /// Returns who called: the key, or else the person.
    pub fn principal(&self, user: UserId) -> Uuid {
        self.key.unwrap_or(user.0)
    }
}

/// The record of one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CallRecord {
    /// The workspace.
    #[serde(skip)]
    pub workspace: WorkspaceId,
    /// Its id.
    pub id: CallId,
    /// The caller's id for the call.
    pub correlation_id: String,
    /// The person who called, or whose key called.
    #[serde(rename = "user_id")]
    pub user: UserId,
    /// The agent key that called; none if the person did.
    #[serde(rename = "key_id")]
    pub key: Option<Uuid>,
    /// The toolset.
    pub toolset: Cow<'static, str>,
    /// The tool.
    pub tool: Cow<'static, str>,
    /// The first path that the arguments name.
    pub path: Option<WsPath>,
    /// The arguments as redacted JSON; none in records of earlier releases.
    #[serde(serialize_with = "as_json")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub args: Option<String>,
    /// `ok`, `interrupted` or the name of the error kind; none while the call is running.
    pub outcome: Option<Cow<'static, str>>,
    /// The message of the error.
    #[serde(rename = "error")]
    pub message: Option<String>,
    /// When it started.
    pub started_at: Timestamp,
    /// Its duration in microseconds; none while the call is running.
    pub duration_us: Option<i64>,
    /// Its first commit, if it changed something.
    pub commit_id: Option<CommitId>,
    /// Whether a row says that the call is running, which is to be removed.
    #[serde(skip)]
    pub has_running_row: bool,
}

/// Writes stored JSON as it is.
#[allow(clippy::ref_option, reason = "serde passes a reference to the field")]
fn as_json<S: Serializer>(json: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    // What is stored is JSON.
    let raw = json.as_deref().and_then(|json| serde_json::from_str::<&RawValue>(json).ok());
    raw.serialize(serializer)
}

/// Stores the records of calls.
#[async_trait]
pub trait Recorder: Send + Sync {
    /// Returns arguments, which are JSON, as they are recorded.
    fn redact(&self, args: &str) -> String;

    /// Waits for room for one record, so that none is ever dropped.
    async fn reserve(&self) -> RecordPermit;

    /// Stores durably that a call is running, if its caller has the access. Fails otherwise, and stores nothing.
    async fn record_running(&self, access: Access, call: CallRecord) -> Result<()>;

    /// Queues a record to be written. It replaces the outcome that was recorded with a commit. It must not make the call
    /// wait for a disk.
    fn record(&self, record: CallRecord, permit: RecordPermit);

    /// Waits until the queued records are written, for a short time at most.
    async fn flush(&self);
}

/// A recorder that stores nothing.
pub struct NoRecords;

#[async_trait]
impl Recorder for NoRecords {
    fn redact(&self, _: &str) -> String {
        "{}".to_owned()
    }

    async fn reserve(&self) -> RecordPermit {
        RecordPermit::default()
    }

    async fn record_running(&self, _: Access, _: CallRecord) -> Result<()> {
        Ok(())
    }

    fn record(&self, _: CallRecord, _: RecordPermit) {}

    async fn flush(&self) {}
}

/// Room for one record in the queue of a recorder, which is free again when the record is written.
#[derive(Debug, Default)]
pub struct RecordPermit(#[allow(dead_code, reason = "held for its drop")] Option<OwnedSemaphorePermit>);

impl From<OwnedSemaphorePermit> for RecordPermit {
    fn from(permit: OwnedSemaphorePermit) -> Self {
        Self(Some(permit))
    }
}

/// A call to record.
pub struct CallStart<'a> {
    /// Its id.
    pub id: CallId,
    /// The caller's id for the call.
    pub correlation: &'a str,
    /// The toolset.
    pub toolset: Cow<'static, str>,
    /// The tool, which may be any text of the caller.
    pub tool: &'a str,
    /// Who calls.
    pub caller: Caller,
    /// The workspace.
    pub workspace: WorkspaceId,
}

/// The record of a call under way: begun with the call, closed with its result.
///
/// The context of the call and work that outlives it share the record. It is written when the last of them is dropped. If
/// it is dropped before it is closed, it says that the call was cancelled.
pub struct OpenRecord(Arc<RecordState>);

impl OpenRecord {
    /// Begins the record of a call. Waits for room for it, for `timeout` at most.
    pub async fn begin(recorder: &Arc<dyn Recorder>, call: CallStart<'_>, timeout: Duration) -> Result<Self> {
        let permit = tokio::time::timeout(timeout, recorder.reserve()).await.map_err(|_| {
            let message = "The records of calls cannot be written at the moment, so no call is accepted; try again";
            ToolError::new(ErrorKind::Unavailable, message)
        })?;
        let destination = Some((Arc::clone(recorder), Mutex::new(permit)));
        Ok(Self(Arc::new(RecordState::new(call, destination))))
    }

    /// Returns a handle for the parts of the call.
    pub fn handle(&self) -> RecordHandle {
        RecordHandle(Arc::clone(&self.0))
    }

    /// Drops the record of a call that has not ended.
    pub fn discard(self) {
        self.0.is_discarded.store(true, Ordering::Release);
    }

    /// Closes the record with the error of the call, if it failed. If the call had outside effects and has ended, waits
    /// until the record is durable.
    pub async fn close(self, error: Option<(ErrorKind, &str)>) {
        let Self(state) = self;
        state.close(error);
        let flush = state.has_outside_effects().then(|| state.destination.as_ref().map(|(to, _)| Arc::clone(to)));
        let has_ended = Arc::into_inner(state).is_some();
        if let Some(Some(recorder)) = flush
            && has_ended
        {
            recorder.flush().await;
        }
    }
}

/// A share of the record of a call under way, for the parts of the call. The call ends when the last one is dropped.
#[derive(Clone)]
pub struct RecordHandle(Arc<RecordState>);

impl RecordHandle {
    /// Sets the arguments of the call: the members of these JSON objects together.
    pub fn set_args(&self, objects: &[&str]) {
        let Some((recorder, _)) = &self.0.destination else { return };
        let redacted: Vec<String> = objects.iter().map(|object| recorder.redact(object)).collect();
        *self.0.args() = Some(joined(redacted));
    }

    pub(crate) fn state(&self) -> Arc<RecordState> {
        Arc::clone(&self.0)
    }
}

/// What the parts of a call know about its record.
pub(crate) struct RecordState {
    /// Where the record is written; none for contexts whose work is not recorded.
    destination: Option<(Arc<dyn Recorder>, Mutex<RecordPermit>)>,
    pub(crate) id: CallId,
    correlation: String,
    toolset: Cow<'static, str>,
    tool: Cow<'static, str>,
    caller: Caller,
    workspace: WorkspaceId,
    pub(crate) started_at: Timestamp,
    started: Instant,
    args: Mutex<Option<String>>,
    path: OnceLock<WsPath>,
    commit: OnceLock<CommitId>,
    has_outside_effects: AtomicBool,
    is_discarded: AtomicBool,
    result: OnceLock<CallResult>,
}

struct CallResult {
    outcome: Cow<'static, str>,
    message: Option<String>,
    duration: Duration,
}

impl RecordState {
    fn new(call: CallStart<'_>, destination: Option<(Arc<dyn Recorder>, Mutex<RecordPermit>)>) -> Self {
        Self {
            destination,
            id: call.id,
            correlation: storable(call.correlation, MAX_CORRELATION_CHARS),
            toolset: call.toolset,
            tool: recordable_name(call.tool).into(),
            caller: call.caller,
            workspace: call.workspace,
            started_at: crate::now(),
            started: Instant::now(),
            args: Mutex::default(),
            path: OnceLock::new(),
            commit: OnceLock::new(),
            has_outside_effects: AtomicBool::new(false),
            is_discarded: AtomicBool::new(false),
            result: OnceLock::new(),
        }
    }

    /// Creates the state of work that has no record.
    pub(crate) fn unrecorded(call: CallStart<'_>) -> Self {
        Self::new(call, None)
    }

    /// Creates the state for work of the call that goes on after its end, such as a background process. Its commits name
    /// the call and do not change its record.
    pub(crate) fn background(&self) -> Self {
        let call = CallStart {
            id: self.id,
            correlation: &self.correlation,
            toolset: self.toolset.clone(),
            tool: &self.tool,
            caller: self.caller,
            workspace: self.workspace,
        };
        let mut state = Self::unrecorded(call);
        state.started_at = self.started_at;
        state.has_outside_effects = AtomicBool::new(true);
        state
    }

    fn args(&self) -> MutexGuard<'_, Option<String>> {
        self.args.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the correlation id.
    pub(crate) fn correlation(&self) -> &str {
        &self.correlation
    }

    pub(crate) fn note_path(&self, path: &WsPath) {
        if self.path.get().is_none() {
            let _ = self.path.set(path.clone());
        }
    }

    /// Notes a commit of the call. The record names the first; later commits carry the same call id.
    pub(crate) fn note_commit(&self, commit: CommitId) {
        let _ = self.commit.set(commit);
    }

    /// Returns the first commit of the call.
    pub(crate) fn commit(&self) -> Option<CommitId> {
        self.commit.get().copied()
    }

    pub(crate) fn has_outside_effects(&self) -> bool {
        self.has_outside_effects.load(Ordering::Acquire)
    }

    pub(crate) fn details(&self) -> CallDetails {
        CallDetails {
            correlation: self.correlation.clone(),
            key: self.caller.key_id().map(|key| key.0),
            path: self.path.get().cloned(),
            args: self.args().clone(),
        }
    }

    /// Stores durably that the call is running, unless that is stored already.
    pub(crate) async fn begin_outside_effects(&self, access: Access) -> Result<()> {
        let Some((recorder, _)) = &self.destination else { return Ok(()) };
        if self.has_outside_effects() {
            return Ok(());
        }
        // Set first: if this future is dropped, the row may be stored all the same, and must be removed at the end.
        self.has_outside_effects.store(true, Ordering::Release);
        let stored = recorder.record_running(access, self.record()).await;
        if stored.as_ref().is_err_and(ToolError::is_rules_changed) {
            // Nothing was stored: the call starts over under the new rules, and stores it then.
            self.has_outside_effects.store(false, Ordering::Release);
        }
        stored
    }

    fn close(&self, error: Option<(ErrorKind, &str)>) {
        let (outcome, message) = match error {
            None => (OUTCOME_OK.into(), None),
            Some((kind, message)) => (kind.name().into(), Some(storable(&without_quotes(message), MAX_MESSAGE_CHARS))),
        };
        let _ = self.result.set(CallResult { outcome, message, duration: self.started.elapsed() });
    }

    /// Returns the record as far as it is known.
    fn record(&self) -> CallRecord {
        let CallDetails { correlation, key, path, args } = self.details();
        let result = self.result.get();
        CallRecord {
            workspace: self.workspace,
            id: self.id,
            correlation_id: correlation,
            user: self.caller.user,
            key,
            toolset: self.toolset.clone(),
            tool: self.tool.clone(),
            path,
            args,
            outcome: result.map(|result| result.outcome.clone()),
            message: result.and_then(|result| result.message.clone()),
            started_at: self.started_at,
            duration_us: result.map(|result| i64::try_from(result.duration.as_micros()).unwrap_or(i64::MAX)),
            commit_id: self.commit.get().copied(),
            has_running_row: self.has_outside_effects(),
        }
    }
}

impl Drop for RecordState {
    fn drop(&mut self) {
        let Some((recorder, permit)) = self.destination.take() else { return };
        if self.is_discarded.load(Ordering::Acquire) {
            return;
        }
        if std::thread::panicking() {
            self.close(Some((ErrorKind::Internal, "The server failed")));
        } else {
            self.close(Some((ErrorKind::Cancelled, "The caller disconnected")));
        }
        let record = self.record();
        let is_ok = record.outcome.as_deref() == Some(OUTCOME_OK);
        tracing::debug!(call.id = %record.id, call.outcome = record.outcome.as_deref(), "call ended");
        // A call that only changes files was recorded as successful in the transaction of its commit. If it failed
        // afterwards, the record is corrected.
        if record.commit_id.is_none() || record.has_running_row || !is_ok {
            recorder.record(record, permit.into_inner().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// Joins redacted objects to one; returns the last alone if that is too long, or not an object.
fn joined(mut objects: Vec<String>) -> String {
    let last = objects.pop().unwrap_or_else(|| "{}".to_owned());
    let members = |object: &str| object.strip_prefix('{')?.strip_suffix('}').map(str::to_owned);
    let all: Option<Vec<String>> = objects.iter().chain([&last]).map(|object| members(object)).collect();
    let all = all.unwrap_or_default().into_iter().filter(|members| !members.is_empty()).collect::<Vec<_>>().join(",");
    if objects.is_empty() || all.is_empty() || all.len() + 2 > MAX_ARGS_BYTES { last } else { format!("{{{all}}}") }
}

/// Returns a tool's name, which may be any text of the caller, in a form that can be stored and logged.
pub(crate) fn recordable_name(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(MAX_NAME_CHARS).collect()
}

/// Removes quoted texts from a message: they are values that the caller gave, or contents of files.
fn without_quotes(message: &str) -> String {
    let parts = message.split('"').enumerate();
    let kept: Vec<&str> = parts.map(|(i, part)| if i % 2 == 0 { part } else { "…" }).collect();
    kept.join("\"")
}

/// Returns the beginning of a text without NUL, which PostgreSQL cannot store.
fn storable(text: &str, max_chars: usize) -> String {
    text.chars().filter(|c| *c != '\0').take(max_chars).collect()
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;

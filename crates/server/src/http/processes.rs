//! Background processes, for people who watch them. Looking at them is not recorded; tools start and stop them.

use super::App;
use super::reply::{Answer, Reply, ok};
use super::request::WorkspaceRequest;
use axum::extract::{Query, State};
use schemars::JsonSchema;
use serde::Serialize;
use std::{collections::HashMap, sync::Arc, time::Duration};
use toolrest_core::{CallCx, CommitId, Result, Role, Timestamp, ToolError, UserId};
use toolrest_ops::exec::{ProcessInfo, ProcessState};

/// Maximum number of bytes of output in an answer.
const OUTPUT_BYTES: usize = 256 << 10;

/// A background process.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProcessShown {
    id: String,
    command: String,
    /// Whether it runs.
    is_running: bool,
    /// The person who started it.
    user_id: UserId,
    /// The key that started it for the person.
    key_id: Option<UserId>,
    #[schemars(with = "String")]
    started_at: Timestamp,
    /// Number of bytes that it has printed.
    output_bytes: u64,
    /// The exit code; null while it runs, and if there is no report of its end.
    exit_code: Option<i32>,
    /// How long it ran; null while it runs.
    duration_ms: Option<u64>,
    /// The limit that ended it.
    limit: Option<String>,
    /// Why the server ended it, or why its last changes were not saved.
    reason: Option<String>,
    /// The last commit with its changes.
    commit_id: Option<CommitId>,
}

impl From<ProcessInfo> for ProcessShown {
    fn from(info: ProcessInfo) -> Self {
        let ended = match info.state {
            ProcessState::Running => None,
            ProcessState::Ended(ended) => Some(ended),
        };
        let is_running = ended.is_none();
        let (user_id, member) = (info.starter.user, info.starter.member());
        let mut shown = Self {
            id: info.id,
            command: info.command,
            is_running,
            user_id,
            key_id: Some(member).filter(|member| *member != user_id),
            started_at: info.started_at,
            output_bytes: info.output_bytes,
            exit_code: None,
            duration_ms: None,
            limit: None,
            reason: None,
            commit_id: None,
        };
        if let Some(ended) = ended {
            shown.exit_code = ended.exit_code;
            shown.duration_ms = u64::try_from(ended.duration.as_millis()).ok();
            shown.limit = ended.limit.map(|limit| limit.to_string());
            shown.reason = ended.reason.map(|reason| reason.text);
            shown.commit_id = ended.checked_in.commit;
        }
        shown
    }
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct ProcessList {
    count: usize,
    /// Running and recently ended processes, in the order in which they were started.
    processes: Vec<ProcessShown>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct OutputAnswer {
    /// What it printed from the offset on.
    output: String,
    /// The `offset` of the next request.
    next_offset: u64,
    /// Number of bytes before this output that were discarded, because the process printed too much.
    dropped_bytes: u64,
    process: ProcessShown,
}

pub(crate) async fn list(State(app): State<Arc<App>>, target: WorkspaceRequest) -> Answer<Reply<ProcessList>> {
    let found = app.processes.list(&context(&app, &target).await?).await?;
    let processes: Vec<ProcessShown> = found.into_iter().map(ProcessShown::from).collect();
    ok(&ProcessList { count: processes.len(), processes })
}

pub(crate) async fn output(
    State(app): State<Arc<App>>,
    target: WorkspaceRequest,
    Query(query): Query<HashMap<String, String>>,
) -> Answer<Reply<OutputAnswer>> {
    let offset = match offset(&query) {
        Ok(offset) => offset,
        Err(error) => target.refuse(&app, error).await?,
    };
    let cx = context(&app, &target).await?;
    let id = target.name("process");
    let (piece, process) = app.processes.output(&cx, id, offset, OUTPUT_BYTES, Duration::ZERO).await?;
    ok(&OutputAnswer {
        output: piece.text,
        next_offset: piece.next_offset,
        dropped_bytes: piece.dropped_bytes,
        process: process.into(),
    })
}

/// Returns where the output is read from.
fn offset(query: &HashMap<String, String>) -> Result<u64> {
    let Some(text) = query.get("offset") else { return Ok(0) };
    let message = "`offset` must be `next_offset` of the previous answer, or 0";
    text.parse().map_err(|_| ToolError::argument("offset", message))
}

async fn context(app: &App, target: &WorkspaceRequest) -> Result<CallCx> {
    app.engine.rest_context("processes", target.workspace, target.caller, Role::Editor).await
}

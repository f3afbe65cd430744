//! The one road from a call to its effect.

use crate::gate::Gate;
use crate::tool::too_long_answer;
use crate::{
    Access, CallCx, CallId, CallRecord, Caller, CommitId, Dialect, DynTool, ErrorKind, FairQueue, JsonText, Policy,
    QueueLimits, QueueSlot, Recorder, Result, Role, Timestamp, ToolError, Toolset, Toolsets, Workspace, WorkspaceId,
    Workspaces, WsPath,
};
use futures_util::FutureExt;
use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, OnceLock},
    thread,
    time::{Duration, Instant},
};
use tracing::Instrument;

/// What a call may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long a call may run, waiting included.
    pub call_timeout: Duration,
    /// How many calls of one workspace may be under way; more wait.
    pub calls_per_workspace: usize,
    /// How many calls of one account may be under way, over all workspaces; more wait.
    pub calls_per_account: usize,
    /// How large an answer may be.
    pub response_bytes: usize,
    /// How long a search may run.
    pub search_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            call_timeout: Duration::from_secs(30),
            calls_per_workspace: 256,
            calls_per_account: 512,
            response_bytes: 32 << 20,
            search_timeout: Duration::from_secs(10),
        }
    }
}

/// Who may change which file next.
///
/// Changes that depend on what was read are safe without it, by what they expect of the file; but a crowd at one file
/// would read and fail in vain most of the time. In turns each succeeds at once, unless another replica gets between.
pub(crate) struct Turns(Gate<(WorkspaceId, WsPath)>);

impl Default for Turns {
    fn default() -> Self {
        Self(Gate::new(1))
    }
}

impl Turns {
    pub(crate) async fn take(&self, workspace: WorkspaceId, path: WsPath) -> impl Drop {
        self.0.pass((workspace, path)).await
    }
}

/// A call as a surface hands it over.
pub struct Call {
    /// Its id, under which it is logged and recorded.
    pub id: CallId,
    /// The id that the caller knows it by, which is logged too.
    pub correlation: String,
    /// The name of the toolset.
    pub toolset: String,
    /// The name of the tool.
    pub tool: String,
    /// The arguments.
    pub args: JsonText,
    /// Who calls.
    pub caller: Caller,
    /// The workspace to work in.
    pub workspace: WorkspaceId,
}

/// The answer, in the toolset's own shape.
#[derive(Debug)]
pub struct Reply {
    /// The body to send.
    pub body: Vec<u8>,
    /// The HTTP status that goes with it.
    pub status: u16,
    /// What went wrong, if something did.
    pub error: Option<ErrorKind>,
}

/// Finds the tool, checks the caller's rights, binds the arguments, asks the policy, runs under a deadline, records.
pub struct Engine {
    toolsets: Toolsets,
    workspaces: Arc<dyn Workspaces>,
    policy: Arc<dyn Policy>,
    recorder: Arc<dyn Recorder>,
    limits: Limits,
    calls: FairQueue,
    heavy_work: FairQueue,
    turns: Arc<Turns>,
}

impl Engine {
    /// Puts an engine together.
    pub fn new(
        toolsets: Toolsets,
        workspaces: Arc<dyn Workspaces>,
        policy: Arc<dyn Policy>,
        recorder: Arc<dyn Recorder>,
        limits: Limits,
    ) -> Self {
        Self {
            toolsets,
            workspaces,
            policy,
            recorder,
            calls: FairQueue::new(QueueLimits {
                in_all: usize::MAX,
                per_account: limits.calls_per_account,
                per_workspace: limits.calls_per_workspace,
            }),
            heavy_work: FairQueue::new(heavy_places()),
            turns: Arc::default(),
            limits,
        }
    }

    /// The toolsets that can be called.
    pub fn toolsets(&self) -> &Toolsets {
        &self.toolsets
    }

    /// The circumstances of a call that is not one of a tool, as of the REST interface.
    pub async fn rest_context(
        &self,
        name: &'static str,
        workspace: WorkspaceId,
        caller: Caller,
        need: Role,
    ) -> Result<CallCx> {
        Ok(CallCx {
            id: CallId::new(),
            toolset: "api",
            tool: name,
            caller,
            workspace_id: workspace,
            workspace: self.open(workspace, caller, need).await?,
            started_at: crate::now(),
            limits: self.limits,
            turns: Arc::clone(&self.turns),
            heavy_work: self.heavy_work.clone(),
            committed: Arc::default(),
            warnings: Mutex::default(),
            paths: Mutex::default(),
        })
    }

    async fn open(&self, workspace: WorkspaceId, caller: Caller, need: Role) -> Result<Arc<dyn Workspace>> {
        self.workspaces.open(Access { workspace, user: caller.user, need }).await
    }

    /// Checks that the caller is a member of the workspace.
    pub async fn authorise(&self, workspace: WorkspaceId, caller: Caller) -> Result<()> {
        self.open(workspace, caller, Role::Viewer).await?.authorise().await
    }

    /// Returns the error that the caller of a failed request may see: [`error_for_members`].
    pub async fn error_for_members(&self, workspace: WorkspaceId, caller: Caller, error: ToolError) -> ToolError {
        match self.open(workspace, caller, Role::Viewer).await {
            Ok(workspace) => error_for_members(&*workspace, error).await,
            Err(refusal) => refusal,
        }
    }

    /// Runs a call and answers in the toolset's shape, whatever happens: a fault, a panic or the deadline too.
    ///
    /// Returns nothing only if there is no toolset of that name, and so no shape to answer in.
    pub async fn call(&self, mut call: Call) -> Option<Reply> {
        let toolset = self.toolsets.find(&call.toolset)?;
        if let Some(tool) = toolset.find(&call.tool) {
            // Logs and records have one name for a tool, however the caller spelled it.
            tool.name().clone_into(&mut call.tool);
        }
        let tool = fit_to_keep(&call.tool);
        let correlation = call.correlation.clone();
        let span = tracing::info_span!("call", call.id = %call.id, correlation.id = correlation, tool.set = toolset.name(), tool.name = tool);
        let result = self.recorded(toolset, call).instrument(span).await;
        Some(reply(toolset.dialect(), &result, &correlation))
    }

    async fn recorded(&self, toolset: &Toolset, call: Call) -> Result<String> {
        let mut record = OpenRecord::new(&*self.recorder, &call);
        let timeout = toolset.find(&call.tool).map_or(self.limits.call_timeout, |tool| tool.timeout(&self.limits));
        let work = AssertUnwindSafe(self.run(toolset, call, Arc::clone(&record.committed))).catch_unwind();
        let result = match tokio::time::timeout(timeout, work).await {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => Err(ToolError::internal(format!("panic: {}", panic_text(&*panic)))),
            Err(_) => {
                let message = format!("Timed out after {} ms", timeout.as_millis());
                Err(ToolError::new(ErrorKind::Timeout, message))
            }
        };
        if let Err(error) = &result {
            error.log_cause();
        }
        record.close(result.as_ref().err().map(|error| error.kind));
        result
    }

    /// Waits until a call, of a tool or of the REST interface, may begin. Only members wait: a stranger would keep them
    /// from their turn.
    pub async fn enter(&self, workspace: WorkspaceId, caller: Caller) -> Result<QueueSlot> {
        if let Ok(place) = self.calls.try_enter(caller.user, workspace) {
            return Ok(place);
        }
        self.authorise(workspace, caller).await?;
        Ok(self.calls.enter(caller.user, workspace).await)
    }

    /// The refusal of a tool that a toolset does not have, with those that it has and where the tool is instead.
    fn unknown_tool(&self, toolset: &Toolset, tool: &str) -> ToolError {
        let names: Vec<&str> = toolset.tools().map(DynTool::name).collect();
        let elsewhere: Vec<&str> =
            self.toolsets.iter().filter(|other| other.find(tool).is_some()).map(Toolset::name).collect();
        let instead = match &elsewhere[..] {
            [] => String::new(),
            [only] => format!(". `{tool}` is a tool of the toolset {only}"),
            several => format!(". `{tool}` is a tool of the toolsets {}", several.join(", ")),
        };
        let hint = format!("The toolset `{}` has {}{instead}", toolset.name(), names.join(", "));
        ToolError::new(ErrorKind::UnknownTool, format!("Tool '{tool}' not found")).about("tool").with_hint(hint)
    }

    async fn run(&self, toolset: &Toolset, call: Call, committed: Arc<OnceLock<CommitId>>) -> Result<String> {
        let _place = self.enter(call.workspace, call.caller).await?;
        let Some(tool) = toolset.find(&call.tool) else {
            let error = self.unknown_tool(toolset, &call.tool);
            return Err(self.error_for_members(call.workspace, call.caller, error).await);
        };
        let cx = CallCx {
            id: call.id,
            toolset: toolset.name(),
            tool: tool.name(),
            caller: call.caller,
            workspace_id: call.workspace,
            workspace: self.open(call.workspace, call.caller, tool.action().needs()).await?,
            started_at: crate::now(),
            limits: self.limits,
            turns: Arc::clone(&self.turns),
            heavy_work: self.heavy_work.clone(),
            committed,
            warnings: Mutex::default(),
            paths: Mutex::default(),
        };
        let answer = match tool.call(&cx, &*self.policy, &call.args).await {
            Err(error) if error.kind.precedes_membership_check() => Err(error_for_members(&*cx.workspace, error).await),
            answer => answer,
        }?;
        let answer = cx.with_warnings(answer, toolset.dialect())?;
        // The warnings count too.
        if answer.len() > self.limits.response_bytes {
            return Err(too_long_answer(self.limits.response_bytes, tool.input_schema()));
        }
        Ok(answer)
    }
}

/// Checks membership before an error is reported that was found without the workspace, such as a wrong argument, so that
/// strangers learn nothing. Returns the refusal for a stranger, and `error` for a member.
async fn error_for_members(workspace: &dyn Workspace, error: ToolError) -> ToolError {
    workspace.authorise().await.err().unwrap_or(error)
}

/// How many computations that keep a processor busy run at once: two for each processor, and half of them for one
/// account.
fn heavy_places() -> QueueLimits {
    let processors = thread::available_parallelism().map_or(2, usize::from);
    QueueLimits { in_all: 2 * processors, per_account: processors, per_workspace: processors }
}

fn reply(dialect: &dyn Dialect, result: &Result<String>, correlation: &str) -> Reply {
    match result {
        Ok(output) => Reply { body: dialect.success(output, correlation), status: 200, error: None },
        Err(error) => {
            Reply { body: dialect.failure(error, correlation), status: dialect.status(error), error: Some(error.kind) }
        }
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without words")
}

/// The record of a call under way. Dropped before it is closed, it records that the caller went away.
struct OpenRecord<'a> {
    recorder: &'a dyn Recorder,
    record: Option<CallRecord>,
    begun: Instant,
    committed: Arc<OnceLock<CommitId>>,
}

impl<'a> OpenRecord<'a> {
    fn new(recorder: &'a dyn Recorder, call: &Call) -> Self {
        let started_at: Timestamp = crate::now();
        let record = CallRecord {
            workspace: call.workspace,
            id: call.id,
            toolset: call.toolset.clone(),
            tool: fit_to_keep(&call.tool),
            caller: call.caller.user,
            started_at,
            duration_us: 0,
            outcome: String::new(),
            commit_id: None,
        };
        Self { recorder, record: Some(record), begun: Instant::now(), committed: Arc::default() }
    }

    fn close(&mut self, error: Option<ErrorKind>) {
        let Some(mut record) = self.record.take() else { return };
        let elapsed = self.begun.elapsed();
        let outcome = error.map_or("ok".to_owned(), |kind| format!("{kind:?}"));
        tracing::debug!(call.outcome = outcome, "call ended");
        record.commit_id = self.committed.get().copied();
        // A call that changed something was recorded in the same transaction, as one that succeeds. If it failed after
        // that, the record is corrected.
        if record.commit_id.is_none() || error.is_some() {
            record.duration_us = i64::try_from(elapsed.as_micros()).unwrap_or(i64::MAX);
            record.outcome = outcome;
            self.recorder.record(record);
        }
    }
}

/// The tool's name as a caller gave it may be anything; a record keeps what can be kept and read.
fn fit_to_keep(name: &str) -> String {
    const MOST_CHARS: usize = 100;
    name.chars().filter(|c| !c.is_control()).take(MOST_CHARS).collect()
}

impl Drop for OpenRecord<'_> {
    fn drop(&mut self) {
        self.close(Some(ErrorKind::Cancelled));
    }
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;

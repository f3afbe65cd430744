//! The engine, through which every tool call passes.

use crate::guarded_workspace::{Commits, GuardedWorkspace};
use crate::keyed_semaphore::KeyedSemaphore;
use crate::record::{RecordState, recordable_name};
use crate::tool::advice_for_shorter_answer;
use crate::{
    Call, CallCx, CallId, CallMetrics, CallOutcome, CallStart, Caller, Decision, DynTool, ErrorKind, FairQueue,
    OpenRecord, Policy, PreparedCall, QueueDepth, QueueLimits, QueueSlot, REST_TOOLSET, RecordHandle, Recorder, Result,
    Role, ToolError, Toolset, Toolsets, Workspace, WorkspaceId, Workspaces, WsPath,
};
use futures_util::FutureExt;
use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};
use tracing::Instrument;

/// Limits of a call.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum duration of a call, including the time in queues.
    pub call_timeout: Duration,
    /// Maximum number of concurrent calls of one workspace; more wait.
    pub calls_per_workspace: usize,
    /// Maximum number of concurrent calls of one account, over all workspaces; more wait.
    pub calls_per_account: usize,
    /// Maximum size of an answer.
    pub response_bytes: usize,
    /// Maximum duration of a search.
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

/// Locks by file, which serialise the edits of one file within this server.
///
/// Edits are correct without them, because a commit expects the file as it was read. But most of many concurrent edits
/// of one file would fail and be retried. With the lock each succeeds at once, unless another replica changes the file.
pub(crate) struct EditLocks(KeyedSemaphore<(WorkspaceId, WsPath)>);

impl Default for EditLocks {
    fn default() -> Self {
        Self(KeyedSemaphore::new(1))
    }
}

impl EditLocks {
    pub(crate) async fn lock(&self, workspace: WorkspaceId, path: WsPath) -> impl Drop {
        self.0.acquire((workspace, path)).await
    }
}

/// Runs tool calls in four steps: [`Engine::prepare`] finds the tool and binds the arguments, [`Engine::decide`] asks
/// the policy, `execute` runs the tool, and the call is recorded. [`Engine::call`] does all of them, with a deadline.
pub struct Engine {
    toolsets: Toolsets,
    workspaces: Arc<dyn Workspaces>,
    policy: Arc<dyn Policy>,
    recorder: Arc<dyn Recorder>,
    limits: Limits,
    calls: FairQueue,
    heavy_work: FairQueue,
    edit_locks: Arc<EditLocks>,
    metrics: CallMetrics,
}

impl Engine {
    /// Creates an engine.
    pub fn new(
        toolsets: Toolsets,
        workspaces: Arc<dyn Workspaces>,
        policy: Arc<dyn Policy>,
        recorder: Arc<dyn Recorder>,
        limits: Limits,
    ) -> Self {
        Self {
            metrics: CallMetrics::new(&toolsets),
            toolsets,
            workspaces,
            policy,
            recorder,
            calls: FairQueue::new(QueueLimits {
                in_all: usize::MAX,
                per_account: limits.calls_per_account,
                per_workspace: limits.calls_per_workspace,
            }),
            heavy_work: FairQueue::new(heavy_work_limits()),
            edit_locks: Arc::default(),
            limits,
        }
    }

    /// Returns the toolsets that can be called.
    pub fn toolsets(&self) -> &Toolsets {
        &self.toolsets
    }

    /// Returns the counters of calls.
    pub fn metrics(&self) -> &CallMetrics {
        &self.metrics
    }

    /// Returns the load of the queues of calls and of long computations.
    pub fn queues(&self) -> [(&'static str, QueueDepth); 2] {
        [("calls", self.calls.depth()), ("heavy_work", self.heavy_work.depth())]
    }

    /// Begins the record of a change over the REST interface.
    pub async fn begin_rest_change(
        &self,
        name: &'static str,
        correlation: Option<&str>,
        workspace: WorkspaceId,
        caller: Caller,
    ) -> Result<OpenRecord> {
        let id = CallId::new();
        let of_id = id.to_string();
        let correlation = correlation.unwrap_or(&of_id);
        let toolset = REST_TOOLSET.into();
        let call = CallStart { id, correlation, toolset, tool: name, caller, workspace };
        OpenRecord::begin(&self.recorder, call, self.limits.call_timeout).await
    }

    /// Creates the context of a REST request that changes nothing, and so has no record.
    pub async fn rest_context(
        &self,
        name: &'static str,
        workspace: WorkspaceId,
        caller: Caller,
        need: Role,
    ) -> Result<CallCx> {
        let (id, toolset) = (CallId::new(), REST_TOOLSET.into());
        let call = CallStart { id, correlation: "", toolset, tool: name, caller, workspace };
        let record = Arc::new(RecordState::unrecorded(call));
        let opened = self.open(workspace, caller, need).await?;
        Ok(self.context(record, (REST_TOOLSET, name), caller, workspace, opened, Commits::Apply))
    }

    /// Creates the context of a change over the REST interface, with the record that was begun for it.
    pub async fn rest_change_context(
        &self,
        name: &'static str,
        workspace: WorkspaceId,
        caller: Caller,
        need: Role,
        record: &RecordHandle,
    ) -> Result<CallCx> {
        let opened = self.open(workspace, caller, need).await?;
        Ok(self.context(record.state(), (REST_TOOLSET, name), caller, workspace, opened, Commits::Apply))
    }

    fn context(
        &self,
        record: Arc<RecordState>,
        (toolset, tool): (&'static str, &'static str),
        caller: Caller,
        workspace_id: WorkspaceId,
        workspace: Arc<dyn Workspace>,
        commits: Commits,
    ) -> CallCx {
        let guard = caller.guard();
        CallCx {
            id: record.id,
            toolset,
            tool,
            caller,
            workspace_id,
            workspace: GuardedWorkspace::around(workspace, &guard, commits),
            guard,
            started_at: record.started_at,
            limits: self.limits,
            edit_locks: Arc::clone(&self.edit_locks),
            heavy_work: self.heavy_work.clone(),
            record,
            warnings: Mutex::default(),
            paths: Mutex::default(),
            previewed: Mutex::default(),
        }
    }

    async fn open(&self, workspace: WorkspaceId, caller: Caller, need: Role) -> Result<Arc<dyn Workspace>> {
        self.workspaces.open(caller.access(workspace, need)).await
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

    /// Runs a call, with a deadline, and records it. `render` turns the outcome into what the surface sends; if it
    /// fails, so does the call, although a change that was made stays made.
    pub async fn call<R>(&self, mut call: Call, render: impl FnOnce(CallOutcome) -> Result<R>) -> Result<R> {
        let tool = self.toolsets.find(&call.toolset).and_then(|toolset| toolset.find(&call.tool));
        if let Some(tool) = tool {
            // A tool has two spellings of its name; logs and records use one.
            tool.name().clone_into(&mut call.tool);
        }
        let (toolset, name) = (recordable_name(&call.toolset), recordable_name(&call.tool));
        let span = tracing::info_span!("call", call.id = %call.id, correlation.id = call.correlation, tool.set = toolset, tool.name = name);
        let timeout = tool.map_or(self.limits.call_timeout, |tool| tool.timeout(&self.limits));
        self.recorded(&call, timeout, render).instrument(span).await
    }

    async fn recorded<R>(
        &self,
        call: &Call,
        timeout: Duration,
        render: impl FnOnce(CallOutcome) -> Result<R>,
    ) -> Result<R> {
        let timer = self.metrics.begin(&call.toolset, &call.tool);
        let start = CallStart {
            id: call.id,
            correlation: &call.correlation,
            toolset: recordable_name(&call.toolset).into(),
            tool: &call.tool,
            caller: call.caller,
            workspace: call.workspace,
        };
        let record = match OpenRecord::begin(&self.recorder, start, timeout).await {
            Ok(record) => record,
            Err(error) => {
                timer.end(Some(error.kind));
                return Err(error);
            }
        };
        record.handle().set_args(&[call.args.as_str()]);
        let work = async { render(self.run(call, record.handle().state()).await?) };
        let result = match tokio::time::timeout(timeout, AssertUnwindSafe(work).catch_unwind()).await {
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
        timer.end(result.as_ref().err().map(|error| error.kind));
        record.close(result.as_ref().err().map(|error| (error.kind, error.message.as_str()))).await;
        result
    }

    /// Takes a slot, then prepares, decides and executes the call. What is found before the workspace is used is
    /// reported to members only.
    async fn run(&self, call: &Call, record: Arc<RecordState>) -> Result<CallOutcome> {
        let _slot = self.enter(call.workspace, call.caller).await?;
        let decided = match self.prepare(call) {
            Ok(prepared) => self.decide(&prepared).await.map(|()| prepared),
            Err(error) => Err(error),
        };
        match decided {
            Ok(prepared) => self.execute(prepared, record).await,
            Err(error) => Err(self.error_for_members(call.workspace, call.caller, error).await),
        }
    }

    /// Finds the tool of a call, checks that it is in the scope of the caller's key, and binds the arguments. Nothing is
    /// done yet.
    pub fn prepare<'a>(&'a self, call: &'a Call) -> Result<PreparedCall<'a>> {
        let Some(toolset) = self.toolsets.find(&call.toolset) else {
            return Err(ToolError::new(ErrorKind::UnknownTool, format!("Toolset '{}' not found", call.toolset)));
        };
        let Some(tool) = toolset.find(&call.tool) else { return Err(self.unknown_tool(toolset, &call.tool)) };
        if let Some(key) = call.caller.key {
            key.check_tool(&self.toolsets, toolset.name(), tool.action())?;
        }
        let bound = tool.bind(&call.args)?;
        Ok(PreparedCall { call, toolset, tool, intents: bound.intents(), bound })
    }

    /// Asks the policy; returns an error unless the call may run now.
    pub async fn decide(&self, prepared: &PreparedCall<'_>) -> Result<()> {
        let tool = prepared.tool.name();
        match self.policy.decide(prepared).await? {
            Decision::Allow => Ok(()),
            // Calls cannot wait for a person yet.
            Decision::Ask(reason) => {
                let message = format!("'{tool}' needs a person's approval before it runs: {reason}");
                Err(ToolError::new(ErrorKind::ApprovalRequired, message))
            }
            Decision::Deny(reason) => Err(ToolError::new(ErrorKind::ApprovalDenied, reason)),
        }
    }

    async fn execute(&self, prepared: PreparedCall<'_>, record: Arc<RecordState>) -> Result<CallOutcome> {
        let PreparedCall { call, toolset, tool, bound, .. } = prepared;
        let commits = if bound.is_dry_run() { Commits::Preview } else { Commits::Apply };
        let opened = self.open(call.workspace, call.caller, tool.action().needs()).await?;
        let cx = self.context(record, (toolset.name(), tool.name()), call.caller, call.workspace, opened, commits);
        match bound.run(&cx).await {
            Ok(answer) => Ok(CallOutcome {
                answer,
                warnings: unlocked(cx.warnings),
                commit: cx.record.commit(),
                previewed: unlocked(cx.previewed),
                limit_bytes: self.limits.response_bytes,
                advice: advice_for_shorter_answer(tool.input_schema()),
            }),
            Err(error) => {
                let paths = std::mem::take(&mut *cx.paths.lock().unwrap_or_else(PoisonError::into_inner));
                let error = cx.with_similar_names(error.with_call_paths(paths)).await;
                if error.kind.precedes_membership_check() {
                    return Err(error_for_members(&*cx.workspace, error).await);
                }
                Err(error)
            }
        }
    }

    /// Waits for a slot for a tool call or a REST request. Only members wait, so that strangers cannot fill the queue.
    pub async fn enter(&self, workspace: WorkspaceId, caller: Caller) -> Result<QueueSlot> {
        if let Ok(slot) = self.calls.try_enter(caller.user, workspace) {
            return Ok(slot);
        }
        self.authorise(workspace, caller).await?;
        Ok(self.calls.enter(caller.user, workspace).await)
    }

    /// Creates the error for an unknown tool, with the tools of the toolset and the toolsets that have the tool.
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
}

/// Checks membership before an error is reported that was found without the workspace, such as a wrong argument, so
/// that strangers learn nothing. Returns the refusal for a stranger, and `error` for a member.
async fn error_for_members(workspace: &dyn Workspace, error: ToolError) -> ToolError {
    workspace.authorise().await.err().unwrap_or(error)
}

/// Returns the limits of concurrent computations that keep a processor busy: two for each processor, half of them for
/// one account.
fn heavy_work_limits() -> QueueLimits {
    let processors = thread::available_parallelism().map_or(2, usize::from);
    QueueLimits { in_all: 2 * processors, per_account: processors, per_workspace: processors }
}

fn unlocked<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;

//! The engine, through which every tool call passes.

use crate::keyed_semaphore::KeyedSemaphore;
use crate::record::{RecordState, recordable_name};
use crate::tool::too_long_answer;
use crate::{
    Access, CallCx, CallId, CallStart, Caller, Dialect, DynTool, ErrorKind, FairQueue, JsonText, OpenRecord, Policy,
    QueueLimits, QueueSlot, REST_TOOLSET, RecordHandle, Recorder, Result, Role, ToolError, Toolset, Toolsets,
    Workspace, WorkspaceId, Workspaces, WsPath,
};
use futures_util::FutureExt;
use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex},
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

/// A call of a tool, as received over HTTP or from the library.
pub struct Call {
    /// Its id, in logs and in the record.
    pub id: CallId,
    /// The caller's id for the call, which is logged too.
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

/// The answer, in the format of the toolset.
#[derive(Debug)]
pub struct Reply {
    /// The body to send.
    pub body: Vec<u8>,
    /// The HTTP status.
    pub status: u16,
    /// The kind of the error, if the call failed.
    pub error: Option<ErrorKind>,
}

/// Runs tool calls: finds the tool, binds the arguments, asks the policy, runs the tool with a deadline, and records
/// the call.
pub struct Engine {
    toolsets: Toolsets,
    workspaces: Arc<dyn Workspaces>,
    policy: Arc<dyn Policy>,
    recorder: Arc<dyn Recorder>,
    limits: Limits,
    calls: FairQueue,
    heavy_work: FairQueue,
    edit_locks: Arc<EditLocks>,
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
        Ok(self.context(record, REST_TOOLSET, name, caller, workspace, opened))
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
        Ok(self.context(record.state(), REST_TOOLSET, name, caller, workspace, opened))
    }

    fn context(
        &self,
        record: Arc<RecordState>,
        toolset: &'static str,
        tool: &'static str,
        caller: Caller,
        workspace_id: WorkspaceId,
        workspace: Arc<dyn Workspace>,
    ) -> CallCx {
        CallCx {
            id: record.id,
            toolset,
            tool,
            caller,
            workspace_id,
            workspace,
            started_at: record.started_at,
            limits: self.limits,
            edit_locks: Arc::clone(&self.edit_locks),
            heavy_work: self.heavy_work.clone(),
            record,
            warnings: Mutex::default(),
            paths: Mutex::default(),
        }
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

    /// Runs a call and answers in the format of the toolset, also after an error, a panic or the deadline.
    ///
    /// Returns `None` only if there is no toolset of that name, and so no format to answer in.
    pub async fn call(&self, mut call: Call) -> Option<Reply> {
        let toolset = self.toolsets.find(&call.toolset)?;
        if let Some(tool) = toolset.find(&call.tool) {
            // A tool has two spellings of its name; logs and records use one.
            tool.name().clone_into(&mut call.tool);
        }
        let tool = recordable_name(&call.tool);
        let correlation = call.correlation.clone();
        let span = tracing::info_span!("call", call.id = %call.id, correlation.id = correlation, tool.set = toolset.name(), tool.name = tool);
        let result = self.recorded(toolset, call).instrument(span).await;
        Some(reply(toolset.dialect(), &result, &correlation))
    }

    async fn recorded(&self, toolset: &Toolset, call: Call) -> Result<String> {
        let timeout = toolset.find(&call.tool).map_or(self.limits.call_timeout, |tool| tool.timeout(&self.limits));
        let start = CallStart {
            id: call.id,
            correlation: &call.correlation,
            toolset: toolset.name().into(),
            tool: &call.tool,
            caller: call.caller,
            workspace: call.workspace,
        };
        let record = OpenRecord::begin(&self.recorder, start, timeout).await?;
        record.handle().set_args(&[call.args.as_str()]);
        let work = AssertUnwindSafe(self.run(toolset, call, record.handle().state())).catch_unwind();
        let result = tokio::time::timeout(timeout, work).await;
        let result = match result {
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
        record.close(result.as_ref().err().map(|error| (error.kind, error.message.as_str()))).await;
        result
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

    async fn run(&self, toolset: &Toolset, call: Call, record: Arc<RecordState>) -> Result<String> {
        let _slot = self.enter(call.workspace, call.caller).await?;
        let Some(tool) = toolset.find(&call.tool) else {
            let error = self.unknown_tool(toolset, &call.tool);
            return Err(self.error_for_members(call.workspace, call.caller, error).await);
        };
        let workspace = self.open(call.workspace, call.caller, tool.action().needs()).await?;
        let cx = self.context(record, toolset.name(), tool.name(), call.caller, call.workspace, workspace);
        let answer = match tool.call(&cx, &*self.policy, &call.args).await {
            Err(error) if error.kind.precedes_membership_check() => Err(error_for_members(&*cx.workspace, error).await),
            answer => answer,
        }?;
        let answer = cx.with_warnings(answer, toolset.dialect())?;
        // The limit applies to the answer with its warnings.
        if answer.len() > self.limits.response_bytes {
            return Err(too_long_answer(self.limits.response_bytes, tool.input_schema()));
        }
        Ok(answer)
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
        .unwrap_or("no message")
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;

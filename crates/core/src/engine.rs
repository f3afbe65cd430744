//! The engine, through which every tool call passes.

use crate::call_rules::{Asking, CallRules};
use crate::guarded_workspace::{Commits, GuardedWorkspace};
use crate::keyed_semaphore::KeyedSemaphore;
use crate::record::{RecordState, recordable_name};
use crate::tool::advice_for_shorter_answer;
use crate::{
    Access, Action, ApprovedCall, Call, CallCx, CallId, CallMetrics, CallOutcome, CallPreview, CallStart, Caller,
    DynTool, Effect, ErrorKind, FairQueue, Guard, OpenRecord, Permission, Policy, PreparedCall, PreviewedChange,
    QueueDepth, QueueLimits, QueueSlot, REST_TOOLSET, RecordHandle, Recorder, Result, Role, RulesInForce,
    SymbolicLinks, ToolError, Toolset, Toolsets, Workspace, WorkspaceId, Workspaces, WsPath,
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

/// How often a call starts over because the rules changed while it ran.
const MAX_RULE_CHANGES: usize = 10;

/// Runs tool calls in four steps: [`Engine::prepare`] finds the tool and binds the arguments, the rules of the policy
/// judge what is known before the call runs, `execute` runs the tool, and the call is recorded. [`Engine::call`] does all
/// of them, with a deadline.
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

    /// Whether earlier calls of a caller wait for a person, or ended without an answer to the caller, as far as this process
    /// knows.
    pub fn has_unanswered(&self, workspace: WorkspaceId, caller: Caller) -> bool {
        self.policy.rules(workspace, caller).has_unanswered
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
        self.rest(name, workspace, caller, need, Arc::new(RecordState::unrecorded(call))).await
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
        self.rest(name, workspace, caller, need, record.state()).await
    }

    /// Creates the context of a REST request. What a person does there is the person's own doing, so nothing asks.
    async fn rest(
        &self,
        name: &'static str,
        workspace: WorkspaceId,
        caller: Caller,
        need: Role,
        record: Arc<RecordState>,
    ) -> Result<CallCx> {
        if self.policy.rules(workspace, caller).revision.is_some() {
            // Requests are not started over, so the rules are brought up to date first.
            let mut changes = 0;
            loop {
                let rules = self.policy.rules(workspace, caller);
                let result = self.open(&rules, workspace, caller, need).await?.authorise().await;
                if let Some(result) = self.unless_rules_changed(result, workspace, caller, &mut changes).await {
                    break result?;
                }
            }
        }
        let rules = self.policy.rules(workspace, caller);
        let opened = self.open(&rules, workspace, caller, need).await?;
        let asking = if caller.key.is_some() { Asking::Stop } else { Asking::OwnHand };
        let name = (REST_TOOLSET, name, Action::Read);
        let guard = guard(&rules, caller, name, "", asking);
        Ok(self.context(record, name, (caller, workspace), opened, (guard, rules.revision), Commits::Apply))
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of a context, gathered in one place")]
    fn context(
        &self,
        record: Arc<RecordState>,
        (toolset, tool, action): (&'static str, &'static str, Action),
        (caller, workspace_id): (Caller, WorkspaceId),
        workspace: Arc<dyn Workspace>,
        (guard, rules_revision): (Arc<Guard>, Option<i64>),
        commits: Commits,
    ) -> CallCx {
        CallCx {
            id: record.id,
            toolset,
            tool,
            action,
            caller,
            workspace_id,
            workspace: GuardedWorkspace::around(workspace, &guard, commits),
            guard,
            session: Arc::default(),
            started_at: record.started_at,
            limits: self.limits,
            rules_revision,
            edit_locks: Arc::clone(&self.edit_locks),
            heavy_work: self.heavy_work.clone(),
            record,
            warnings: Mutex::default(),
            paths: Mutex::default(),
            previewed: Mutex::default(),
            keeps_contents: false,
            approval: None,
        }
    }

    /// Returns the result of work under the rules that this process knows. If a statement of the work noticed that they have
    /// changed, reads them and returns none: nothing was done, and the work starts over.
    async fn unless_rules_changed<T>(
        &self,
        result: Result<T>,
        workspace: WorkspaceId,
        caller: Caller,
        changes: &mut usize,
    ) -> Option<Result<T>> {
        match result {
            Err(error) if error.is_rules_changed() && *changes < MAX_RULE_CHANGES => {
                *changes += 1;
                self.policy.reload(workspace, caller).await.err().map(Err)
            }
            result => Some(result),
        }
    }

    /// Opens a workspace under the rules that the call is judged by: its statements compare their revision.
    async fn open(
        &self,
        rules: &RulesInForce,
        workspace: WorkspaceId,
        caller: Caller,
        need: Role,
    ) -> Result<Arc<dyn Workspace>> {
        let links = if rules.lists.has_rules_about_paths() { SymbolicLinks::Refuse } else { SymbolicLinks::Follow };
        self.workspaces.open(Access { rules: rules.revision, ..caller.access(workspace, need) }, links).await
    }

    /// Checks that the caller is a member of the workspace.
    pub async fn authorise(&self, workspace: WorkspaceId, caller: Caller) -> Result<()> {
        self.workspaces.open(caller.access(workspace, Role::Viewer), SymbolicLinks::Refuse).await?.authorise().await
    }

    /// Returns the error that the caller of a failed request may see: [`error_for_members`].
    pub async fn error_for_members(&self, workspace: WorkspaceId, caller: Caller, error: ToolError) -> ToolError {
        match self.workspaces.open(caller.access(workspace, Role::Viewer), SymbolicLinks::Refuse).await {
            Ok(workspace) => error_for_members(&*workspace, error).await,
            Err(refusal) => refusal,
        }
    }

    /// Returns the error of a call that was refused before it ran. An error of rules that are out of date is replaced by
    /// the one that says so.
    async fn refusal_under_rules(&self, rules: &RulesInForce, call: &Call, error: ToolError) -> ToolError {
        match self.open(rules, call.workspace, call.caller, Role::Viewer).await {
            Ok(workspace) => error_for_members(&*workspace, error).await,
            Err(refusal) => refusal,
        }
    }

    /// Runs a call, with a deadline, and records it. `render` turns the outcome into what the surface sends; if it
    /// fails, so does the call, although a change that was made stays made.
    ///
    /// A call that must ask a person has not ended: its error has [`ToolError::asks`], and it is not recorded.
    pub async fn call<R>(
        &self,
        call: &Call,
        permission: &Permission,
        render: impl FnOnce(CallOutcome) -> Result<R>,
    ) -> Result<R> {
        let tool = self.toolsets.find(&call.toolset).and_then(|toolset| toolset.find(&call.tool));
        // A tool has two spellings of its name; logs and records use one.
        let respelled = tool
            .filter(|tool| tool.name() != call.tool)
            .map(|tool| Call { tool: tool.name().to_owned(), ..call.clone() });
        let call = respelled.as_ref().unwrap_or(call);
        let (toolset, name) = (recordable_name(&call.toolset), recordable_name(&call.tool));
        let span = tracing::info_span!("call", call.id = %call.id, correlation.id = call.correlation, tool.set = toolset, tool.name = name);
        let timeout = tool.map_or(self.limits.call_timeout, |tool| tool.timeout(&self.limits));
        self.recorded(call, permission, timeout, render).instrument(span).await
    }

    async fn recorded<R>(
        &self,
        call: &Call,
        permission: &Permission,
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
        let work = async { render(self.run(call, permission, &record).await?) };
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
        if result.as_ref().is_err_and(|error| !error.asks().is_empty() || error.is_rules_changed()) {
            record.discard();
            return result;
        }
        record.close(result.as_ref().err().map(|error| (error.kind, error.message.as_str()))).await;
        result
    }

    /// Takes a slot, then prepares, judges and executes the call. What is found before the workspace is used is reported to
    /// members only.
    async fn run(&self, call: &Call, permission: &Permission, record: &OpenRecord) -> Result<CallOutcome> {
        let _slot = self.enter(call.workspace, call.caller).await?;
        let mut changes = 0;
        loop {
            let result = self.attempt(call, permission, record).await;
            let stale = result.as_ref().err().filter(|error| error.is_rules_changed()).cloned();
            if let Some(result) = self.unless_rules_changed(result, call.workspace, call.caller, &mut changes).await {
                return result;
            }
            let may_repeat = matches!(permission, Permission::AskOrAttach) && changes == 1;
            if let Some(stale) = stale.filter(|_| may_repeat && self.has_unanswered(call.workspace, call.caller)) {
                return Err(stale);
            }
        }
    }

    async fn attempt(&self, call: &Call, permission: &Permission, record: &OpenRecord) -> Result<CallOutcome> {
        let rules = self.policy.rules(call.workspace, call.caller);
        let prepared = self.prepare(call).and_then(|prepared| {
            let guard = guard_of(&rules, &prepared, asking(permission));
            guard.judge_intents(&prepared.intents).map(|()| (prepared, guard))
        });
        match prepared {
            Ok((prepared, guard)) => self.execute(prepared, &rules, guard, permission, record.handle().state()).await,
            Err(error) => Err(self.refusal_under_rules(&rules, call, error).await),
        }
    }

    /// Finds out what a call would do, and what of it the rules ask about. Nothing is changed and nothing is recorded.
    pub async fn preview(&self, call: &Call) -> Result<CallPreview> {
        let _slot = self.enter(call.workspace, call.caller).await?;
        let work = async {
            let mut changes = 0;
            loop {
                let result = self.previewed(call).await;
                if let Some(result) = self.unless_rules_changed(result, call.workspace, call.caller, &mut changes).await
                {
                    return result;
                }
            }
        };
        let timeout = tokio::time::timeout(self.limits.call_timeout, work).await;
        timeout.unwrap_or_else(|_| Err(ToolError::new(ErrorKind::Timeout, "The preview of the call took too long")))
    }

    async fn previewed(&self, call: &Call) -> Result<CallPreview> {
        let rules = self.policy.rules(call.workspace, call.caller);
        if rules.lists.asks_reading() {
            // What must not be read without asking is not previewed either: the caller would see it in the preview or in
            // its errors.
            let stopped = self.previewed_with(&rules, call, Asking::Stop).await;
            if let Err(error) = &stopped
                && error.asks().iter().any(|ask| ask.action == Action::Read)
            {
                let asks = error.asks().to_vec();
                let prepared = self.prepare(call)?;
                let guard = guard_of(&rules, &prepared, Asking::Stop);
                let cx = self.preview_context(&rules, &prepared, guard).await?;
                return Ok(CallPreview { asks, intents: prepared.intents, changes: Vec::new(), cx });
            }
        }
        self.previewed_with(&rules, call, Asking::Collect(Mutex::default())).await
    }

    async fn preview_context(
        &self,
        rules: &RulesInForce,
        prepared: &PreparedCall<'_>,
        guard: Arc<Guard>,
    ) -> Result<CallCx> {
        let PreparedCall { call, toolset, tool, .. } = prepared;
        let start = CallStart {
            id: call.id,
            correlation: &call.correlation,
            toolset: toolset.name().into(),
            tool: tool.name(),
            caller: call.caller,
            workspace: call.workspace,
        };
        let opened = self.open(rules, call.workspace, call.caller, tool.action().needs()).await?;
        let record = Arc::new(RecordState::unrecorded(start));
        let name = (toolset.name(), tool.name(), tool.action());
        let caller = (call.caller, call.workspace);
        let mut cx = self.context(record, name, caller, opened, (guard, rules.revision), Commits::Preview);
        cx.keeps_contents = true;
        Ok(cx)
    }

    async fn previewed_with(&self, rules: &Arc<RulesInForce>, call: &Call, asking: Asking) -> Result<CallPreview> {
        let prepared = match self.prepare(call) {
            Ok(prepared) => prepared,
            Err(error) => return Err(self.refusal_under_rules(rules, call, error).await),
        };
        let guard = guard_of(rules, &prepared, asking);
        if let Err(error) = guard.judge_intents(&prepared.intents) {
            return Err(self.refusal_under_rules(rules, call, error).await);
        }
        let guard_of_call = Arc::clone(&guard);
        let cx = self.preview_context(rules, &prepared, guard).await?;
        let PreparedCall { tool, intents, bound, .. } = prepared;
        // Only changes of files can be previewed. What a program, a request or GitHub would do is not known before it is
        // done.
        if tool.action().is_about_files() {
            bound.run(&cx).await?;
        } else {
            cx.workspace.authorise().await?;
        }
        let changes = std::mem::take(&mut *cx.previewed.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(CallPreview { asks: guard_of_call.collected_asks(), intents, changes, cx })
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

    async fn execute(
        &self,
        prepared: PreparedCall<'_>,
        rules: &RulesInForce,
        guard: Arc<Guard>,
        permission: &Permission,
        record: Arc<RecordState>,
    ) -> Result<CallOutcome> {
        let PreparedCall { call, toolset, tool, bound, .. } = prepared;
        let commits = match permission {
            _ if bound.is_dry_run() => Commits::Preview,
            Permission::Approved(approved) if !approved.conditions.is_empty() => {
                Commits::ApplyIf(approved.conditions.clone())
            }
            Permission::ApprovedHere(conditions) if !conditions.is_empty() => Commits::ApplyIf(conditions.clone()),
            _ => Commits::Apply,
        };
        let opened = self.open(rules, call.workspace, call.caller, tool.action().needs()).await?;
        let name = (toolset.name(), tool.name(), tool.action());
        let caller = (call.caller, call.workspace);
        let mut cx = self.context(record, name, caller, opened, (guard, rules.revision), commits);
        cx.session = call.session.as_str().into();
        if let Permission::Approved(ApprovedCall { approval, instance, .. }) = permission {
            cx.approval = Some((*approval, *instance));
        }
        match bound.run(&cx).await {
            Ok(answer) => Ok(CallOutcome {
                answer,
                warnings: unlocked(cx.warnings),
                commit: cx.record.commit(),
                previewed: effects(unlocked(cx.previewed)),
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

/// Returns the guard of a call: the scope of its key and the rules.
fn guard(
    rules: &Arc<RulesInForce>,
    caller: Caller,
    tool: (&str, &str, Action),
    session: &str,
    asking: Asking,
) -> Arc<Guard> {
    if rules.is_empty() {
        return caller.guard();
    }
    let rules = CallRules::new(Arc::clone(rules), tool, session, asking);
    Arc::new((*caller.guard()).clone().with_rules(rules))
}

fn guard_of(rules: &Arc<RulesInForce>, prepared: &PreparedCall<'_>, asking: Asking) -> Arc<Guard> {
    let PreparedCall { call, toolset, tool, .. } = prepared;
    guard(rules, call.caller, (toolset.name(), tool.name(), tool.action()), &call.session, asking)
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

/// Returns what happens where a rule asks.
fn asking(permission: &Permission) -> Asking {
    match permission {
        Permission::Ask | Permission::AskOrAttach => Asking::Stop,
        Permission::AskIfConfigured => Asking::StopIfConfigured,
        Permission::OwnHand => Asking::OwnHand,
        Permission::Approved(_) | Permission::ApprovedHere(_) => Asking::Approved,
    }
}

fn effects(changes: Vec<PreviewedChange>) -> Vec<Effect> {
    changes.into_iter().flat_map(|change| change.effects).collect()
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;

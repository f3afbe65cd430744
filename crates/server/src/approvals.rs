//! Calls that wait for a person: asking, waiting, and running an approved call once.
//!
//! A call that must ask ends with an error of the engine that says what is asked, and holds nothing from then on. It is
//! stored as an approval, with what it would do. The caller waits for a while; the approval outlives it. When a person has
//! approved, one process claims the approval and runs the call again, bound to what was shown: if the call would now do
//! something else, the approval asks again. The commit of the call spends the approval, so nothing is done twice.

mod shown;
mod waiting;

use crate::http::Scope;
use crate::runtime::Runtime;
pub(crate) use shown::{Shown, visible};
pub(crate) use waiting::WaitingCallsOf;

use serde_json::Value;
use sha2::{Digest, Sha256};
use std::{
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};
use tokio::time::Instant;
use toolrest_core::{
    Access, Approval, ApprovalId, ApprovalState, ApprovedCall, Ask, Call, CallOutcome, Dialect, ErrorKind, Execution,
    NewApproval, OUTCOME_OK, Page, Permission, Result, Role, Timestamp, ToolError, UserId, Verdict, WorkspaceId, hex,
    now,
};
use toolrest_store::Subscription;
use uuid::Uuid;

/// Maximum time for which a caller waits.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(10 * 60);
/// Lifetime of an approval.
const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
/// Maximum size of a result that is kept for a caller that did not wait.
const MAX_RESULT_BYTES: usize = 1 << 20;
/// Time that a person who decides waits for the release of other calls.
const RELEASE_TIME: Duration = Duration::from_secs(2);
/// How many waiting calls are looked at in one step after new rules.
const RELEASE_PAGE: u32 = 100;
/// Maximum size of a text that is kept beside the result. Lists of approvals contain it.
const MAX_TEXT_BYTES: usize = 8 << 10;
/// How often an approved call is started over because a file changed between its preview and its commit.
pub(crate) const MAX_RACES: usize = 5;
/// Time after which a waiting call asks the database, if no signal came.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How a caller asks.
pub(crate) struct AskOptions {
    /// How long it waits for a decision.
    pub(crate) wait: Duration,
    /// The agent's own reason for the call.
    pub(crate) reason: Option<String>,
    /// The correlation id, if the caller gave one.
    pub(crate) correlation: Option<String>,
    /// The memory that the request holds. It is released while the call waits: its arguments are in the database then.
    pub(crate) room: Scope,
}

/// What a caller gets.
pub(crate) enum Asked {
    /// The answer in the format of the toolset.
    Answer(StoredAnswer),
    /// An error.
    Failed(ToolError),
    /// The call waits for a person.
    Pending(Box<Approval>),
}

/// The answer of a call, in the format of its toolset.
pub(crate) struct StoredAnswer {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The body.
    pub(crate) body: Vec<u8>,
    /// The answer as a text for models; none if the tool has none or it is not kept.
    pub(crate) text: Option<String>,
}

/// Calls a tool, and waits for a person if it must ask.
pub(crate) async fn call(runtime: &Arc<Runtime>, call: Call, options: AskOptions) -> Asked {
    let render = |outcome| dialect(runtime, &call.toolset).render(&outcome, &call.correlation);
    match attempt(runtime, &call, &options, Permission::Ask, render).await {
        Ok(Attempt::Answered(body)) => Asked::Answer(StoredAnswer { status: 200, body, text: None }),
        Ok(Attempt::Repeated(asked)) => asked,
        Ok(Attempt::MustAsk) => ask(runtime, call, options).await.unwrap_or_else(Asked::Failed),
        Err(error) => Asked::Failed(error),
    }
}

/// What came of a call before a person was asked.
pub(crate) enum Attempt<R> {
    /// It was answered.
    Answered(R),
    /// It repeats an earlier call, whose answer this is.
    Repeated(Asked),
    /// It must ask a person.
    MustAsk,
}

/// Calls a tool, unless the call repeats an earlier one that waits, or that has run and was not answered.
pub(crate) async fn attempt<R>(
    runtime: &Arc<Runtime>,
    call: &Call,
    options: &AskOptions,
    permission: Permission,
    render: impl Fn(CallOutcome) -> Result<R>,
) -> Result<Attempt<R>> {
    let first = matches!(permission, Permission::Ask).then_some(Permission::AskOrAttach);
    for permission in first.into_iter().chain([permission]) {
        if let Some(asked) = earlier_answer(runtime, call, options).await? {
            return Ok(Attempt::Repeated(asked));
        }
        match runtime.engine.call(call, &permission, &render).await {
            Ok(answer) => return Ok(Attempt::Answered(answer)),
            // The rules have changed: the call may repeat an earlier one, which they allow by now.
            Err(error) if error.is_rules_changed() && matches!(permission, Permission::AskOrAttach) => {}
            Err(error) if error.asks().is_empty() => return Err(error),
            Err(_) => break,
        }
    }
    Ok(Attempt::MustAsk)
}

/// Returns the answer of an earlier call that this one repeats. New rules or grants may allow the call by now, but it has run,
/// or will.
async fn earlier_answer(runtime: &Arc<Runtime>, call: &Call, options: &AskOptions) -> Result<Option<Asked>> {
    if !runtime.engine.has_unanswered(call.workspace, call.caller) {
        return Ok(None);
    }
    let access = call.caller.access(call.workspace, Role::Viewer);
    let earlier = runtime.store.earlier_call(access, &attach_key(call)?, options.correlation.as_deref()).await?;
    let Some(earlier) = earlier else { return Ok(None) };
    options.room.release();
    decided(runtime, earlier, Instant::now() + options.wait).await.map(Some)
}

async fn ask(runtime: &Arc<Runtime>, call: Call, options: AskOptions) -> Result<Asked> {
    let deadline = Instant::now() + options.wait;
    let room = options.room.clone();
    let approval = request(runtime, call, options).await?;
    room.release();
    decided(runtime, approval, deadline).await
}

/// Stores a call that must ask as an approval, or finds the approval of an earlier call that it repeats.
pub(crate) async fn request(runtime: &Arc<Runtime>, call: Call, options: AskOptions) -> Result<Approval> {
    let access = call.caller.access(call.workspace, Role::Viewer);
    let attach_key = attach_key(&call)?;
    let earlier = runtime.store.earlier_call(access, &attach_key, options.correlation.as_deref()).await?;
    if let Some(ended) = earlier.filter(|earlier| !earlier.state.is_open()) {
        return Ok(ended);
    }
    let shown = Shown::of(runtime, &call).await?;
    let new = NewApproval {
        session: call.session.clone(),
        attach_key,
        reason: options.reason,
        asks: shown.asks,
        preview: shown.preview,
        node: runtime.node_of(call.workspace).await?,
        redacted_args: runtime.redacted(call.args.as_str()),
        expires_at: later(LIFETIME)?,
        call,
    };
    let (approval, is_new) = runtime.store.ask(access, new).await?;
    if is_new {
        runtime.webhooks.approval("approval.asked", &approval);
        tracing::info!(approval.id = %approval.id, tool.set = approval.call.toolset, tool.name = approval.call.tool, "a call waits for approval");
        runtime.tell_asked(&approval);
    }
    Ok(approval)
}

/// Waits until an approval has ended, and runs its call if it is approved. At the deadline it is still pending, and at once if
/// too many calls of the account wait.
pub(crate) async fn decided(runtime: &Arc<Runtime>, mut approval: Approval, deadline: Instant) -> Result<Asked> {
    let (workspace, id) = (approval.call.workspace, approval.id);
    let access = approval.call.caller.access(workspace, Role::Viewer);
    let mut signals = runtime.store.subscribe(workspace);
    let slot = runtime.waiting_calls.try_enter(approval.call.caller.user, workspace);
    let deadline = if slot.is_ok() { deadline } else { Instant::now() };
    loop {
        if approval.has_answer() {
            return Ok(answer_of(runtime, approval).await);
        }
        if approval.state == ApprovalState::Approved && run_if_free(runtime, workspace, id).await? {
            (approval, _) = runtime.store.approval(access, id).await?;
            continue;
        }
        // The answer of a call that has ended follows soon.
        let is_over = Instant::now() >= deadline && approval.state.is_open();
        if is_over || runtime.is_stopping() {
            return Ok(Asked::Pending(Box::new(approval)));
        }
        let status = (approval.state, approval.changed_at);
        // It may be large, and nobody needs it while the call waits.
        drop(approval);
        wait_for_change(runtime, access, id, status, deadline, &mut signals).await?;
        (approval, _) = runtime.store.approval(access, id).await?;
    }
}

/// Waits until an approval that nobody has decided about changes, or until the deadline. One that was decided changes soon.
pub(crate) async fn wait_for_change(
    runtime: &Runtime,
    access: Access,
    id: ApprovalId,
    status: (ApprovalState, Timestamp),
    deadline: Instant,
    signals: &mut Subscription,
) -> Result<()> {
    let is_undecided = status.0 == ApprovalState::Pending;
    loop {
        let next = Instant::now() + POLL_INTERVAL;
        let until = if status.0.is_open() { deadline.min(next) } else { next };
        let _ = tokio::time::timeout_at(until, signals.signalled()).await;
        if !is_undecided || Instant::now() >= deadline || runtime.is_stopping() {
            return Ok(());
        }
        if runtime.store.approval_status(access, id).await? != status {
            return Ok(());
        }
    }
}

/// Returns the answer of an approval that has ended, and notes that the caller got it.
async fn answer_of(runtime: &Runtime, approval: Approval) -> Asked {
    if let Err(error) = runtime.store.delivered(approval.call.workspace, approval.id).await {
        tracing::warn!(%error, "could not store that a result was delivered");
    }
    if let Some(Execution { result: Some(result), status, text, .. }) = &approval.execution {
        let body = result.to_string().into_bytes();
        return Asked::Answer(StoredAnswer { status: *status, body, text: text.clone() });
    }
    Asked::Failed(ended_without_answer(&approval))
}

/// Returns the error for an approval that has no answer of the tool.
fn ended_without_answer(approval: &Approval) -> ToolError {
    let decided = approval.decided.as_ref();
    let reason = decided.and_then(|decided| decided.reason.as_deref()).unwrap_or_default();
    let id = approval.id;
    let (kind, message) = match approval.state {
        ApprovalState::Denied => {
            let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
            (ErrorKind::ApprovalDenied, format!("A person refused this call{why}. Nothing was done"))
        }
        ApprovalState::Done if decided.is_some_and(|decided| decided.verdict == Verdict::Respond) => {
            (ErrorKind::ApprovalDenied, format!("The call was not run. A person answered: {reason}"))
        }
        ApprovalState::Expired => {
            (ErrorKind::ApprovalDenied, "Nobody decided about this call in time. Nothing was done".to_owned())
        }
        ApprovalState::Cancelled => {
            (ErrorKind::ApprovalDenied, "The request for approval was withdrawn. Nothing was done".to_owned())
        }
        ApprovalState::Done => {
            let message = "The call was approved and has run; its answer was too long to be kept, or was lost";
            (ErrorKind::Conflict, message.to_owned())
        }
        _ => {
            let execution = approval.execution.as_ref();
            let message = execution.and_then(|execution| execution.message.clone()).unwrap_or_else(|| {
                "The server ended while it ran the approved call; look at what changed before you repeat it".to_owned()
            });
            (ErrorKind::Conflict, message)
        }
    };
    let error = ToolError::new(kind, message).detail("approvalId", id.to_string());
    match approval.execution.as_ref().and_then(|execution| execution.commit) {
        Some(commit) => error.detail("commit_id", commit.to_string()),
        None => error,
    }
}

/// Runs an approved call, unless another process does; returns whether it was run. The work goes on if the caller
/// disconnects.
pub(crate) async fn run_if_free(runtime: &Arc<Runtime>, workspace: WorkspaceId, id: ApprovalId) -> Result<bool> {
    let (instance, node) = (runtime.instance_id(), runtime.node());
    let Some(approval) = runtime.store.claim(workspace, id, instance, node).await? else { return Ok(false) };
    let runs = Arc::clone(runtime);
    let work = tokio::spawn(async move { run(&runs, approval).await });
    if let Err(error) = work.await.map_err(ToolError::internal).flatten() {
        // Otherwise the approval would be executing as long as this process lives.
        let outcome = error.kind.name();
        let execution = Execution { outcome, message: Some(error.message.clone()), ..Execution::default() };
        runtime.store.finish(workspace, id, instance, execution).await?;
        return Err(error);
    }
    Ok(true)
}

/// Has an approved call run by this process, unless a process that waits for it does.
pub(crate) fn run_soon(runtime: &Arc<Runtime>, workspace: WorkspaceId, id: ApprovalId) {
    /// Time that the process of the caller has to run the call, which spares it a look-up.
    const HEAD_START: Duration = Duration::from_millis(50);
    let runtime = Arc::clone(runtime);
    tokio::spawn(async move {
        tokio::time::sleep(HEAD_START).await;
        if let Err(error) = run_if_free(&runtime, workspace, id).await {
            tracing::warn!(%error, approval.id = %id, "could not run an approved call; will retry");
        }
    });
}

/// Approves the waiting calls about which nothing asks any more, after new rules or grants. Returns them. A call that is
/// not found here, because of an error, waits for a person as before.
///
/// Each call is previewed, which takes time. After a while the rest is done in the background, and is not returned.
pub(crate) async fn release_covered(
    runtime: &Arc<Runtime>,
    access: Access,
    of: Option<(Uuid, String)>,
) -> Vec<ApprovalId> {
    let released = Arc::new(Mutex::new(Vec::new()));
    let (runtime, found) = (Arc::clone(runtime), Arc::clone(&released));
    let work = tokio::spawn(async move { release_all(&runtime, access, of, &found).await });
    let _ = tokio::time::timeout(RELEASE_TIME, work).await;
    released.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Releases the waiting calls of a workspace, or those of one caller and session.
async fn release_all(
    runtime: &Arc<Runtime>,
    access: Access,
    of: Option<(Uuid, String)>,
    released: &Mutex<Vec<ApprovalId>>,
) {
    let mut page = Page { before: None, limit: RELEASE_PAGE };
    loop {
        let waiting = match runtime.store.approvals(access, Some(ApprovalState::Pending), page).await {
            Ok(waiting) => waiting,
            Err(error) => {
                tracing::warn!(%error, "could not look for waiting calls that new rules cover");
                return;
            }
        };
        let is_of = |approval: &&Approval| {
            let of_approval = (approval.call.caller.member().0, &approval.session);
            of.as_ref().is_none_or(|(member, session)| of_approval == (*member, session))
        };
        for approval in waiting.iter().filter(is_of) {
            match release_if_covered(runtime, access, approval.id).await {
                Ok(true) => released.lock().unwrap_or_else(PoisonError::into_inner).push(approval.id),
                Ok(false) => {}
                Err(error) => tracing::debug!(%error, approval.id = %approval.id, "a waiting call is not released"),
            }
        }
        match waiting.last() {
            Some(last) if waiting.len() == RELEASE_PAGE as usize => page.before = Some(last.id),
            _ => return,
        }
    }
}

async fn release_if_covered(runtime: &Arc<Runtime>, access: Access, id: ApprovalId) -> Result<bool> {
    // Lists shorten long arguments.
    let (approval, _) = runtime.store.approval(access, id).await?;
    let caller = runtime.stored_caller(&approval.call).await?;
    let shown = Shown::of(runtime, &Call { caller, ..approval.call }).await?;
    let is_covered = shown.asks.is_empty();
    if !is_covered || runtime.store.release(access.workspace, id, approval.revision).await?.is_none() {
        return Ok(false);
    }
    run_soon(runtime, access.workspace, id);
    Ok(true)
}

/// Periodically ends approvals whose time is over, and runs approved calls that no process has begun to run.
pub(crate) async fn sweep(runtime: std::sync::Weak<Runtime>) {
    let mut ticks = tokio::time::interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(runtime) = runtime.upgrade() else { return };
        if let Err(error) = sweep_once(&runtime).await {
            tracing::debug!(%error, "could not look for approvals; will retry");
        }
    }
}

async fn sweep_once(runtime: &Arc<Runtime>) -> Result<()> {
    runtime.store.expire_approvals(now()).await?;
    for (workspace, id) in runtime.store.unclaimed(runtime.node(), POLL_INTERVAL).await? {
        let runtime = Arc::clone(runtime);
        // A call may run for long; the others do not wait for it.
        tokio::spawn(async move {
            if let Err(error) = run_if_free(&runtime, workspace, id).await {
                tracing::warn!(%error, approval.id = %id, "could not run an approved call");
            }
        });
    }
    Ok(())
}

/// Runs a claimed call and stores how it ended.
async fn run(runtime: &Runtime, mut approval: Approval) -> Result<()> {
    let (workspace, id, instance) = (approval.call.workspace, approval.id, runtime.instance_id());
    let caller = runtime.stored_caller(&approval.call).await.map(|caller| approval.call.caller = caller);
    let ran = match caller {
        Ok(()) => run_as_shown(runtime, &approval).await,
        Err(error) => Err(error),
    };
    let execution = match ran {
        Ok(Some(execution)) => execution,
        Ok(None) => return Ok(()),
        Err(error) => {
            error.log_cause();
            failed(runtime, &approval.call, &error)
        }
    };
    runtime.store.finish(workspace, id, instance, execution).await?;
    Ok(())
}

/// Runs a call if it still does what was shown. Otherwise the approval asks again, and there is no execution.
async fn run_as_shown(runtime: &Runtime, approval: &Approval) -> Result<Option<Execution>> {
    let (call, instance) = (&approval.call, runtime.instance_id());
    for _ in 0..MAX_RACES {
        let shown = Shown::of(runtime, call).await?;
        // What nothing asks about any more needs not be shown again.
        let is_new = |ask: &Ask| !approval.asks.contains(ask);
        let is_other = shown.preview.shown != approval.preview.shown || shown.asks.iter().any(is_new);
        if is_other && !shown.asks.is_empty() {
            runtime.store.revise(call.workspace, approval.id, instance, shown.asks, shown.preview).await?;
            return Ok(None);
        }
        let has_conditions = !shown.conditions.is_empty();
        let approved = ApprovedCall { approval: approval.id, instance, conditions: shown.conditions };
        let permission = Permission::Approved(approved);
        let (commit, text) = (OnceLock::new(), OnceLock::new());
        let dialect = dialect(runtime, &call.toolset);
        let edited = approval.decided.as_ref().and_then(|decided| decided.args.as_deref());
        let rendered = runtime.engine.call(call, &permission, |mut outcome| {
            if let Some(made) = outcome.commit {
                let _ = commit.set(made);
            }
            if let Some(args) = edited {
                outcome.warnings.push(format!("A person changed the arguments before approving: {args}").into());
            }
            let answer = outcome.answer.text().filter(|text| text.len() <= MAX_TEXT_BYTES);
            let _ = text.set(answer.map(|text| with_notices(text, &outcome, dialect)));
            dialect.render(&outcome, &call.correlation)
        });
        match rendered.await {
            Ok(body) => {
                let done = execution(OUTCOME_OK.to_owned(), 200, &body, None, commit.get().copied());
                return Ok(Some(Execution { text: text.into_inner().flatten(), ..done }));
            }
            // A file changed after the preview: see whether the call still does the same.
            Err(error) if has_conditions && is_race(error.kind) && commit.get().is_none() => {}
            Err(error) => return Ok(Some(failed(runtime, call, &error))),
        }
    }
    Err(ToolError::new(ErrorKind::Conflict, "The files change all the time, so the approved call was not run"))
}

pub(crate) fn is_race(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Stale | ErrorKind::Conflict | ErrorKind::AlreadyExists | ErrorKind::NotFound)
}

fn failed(runtime: &Runtime, call: &Call, error: &ToolError) -> Execution {
    let dialect = dialect(runtime, &call.toolset);
    let body = dialect.failure(error, &call.correlation);
    execution(error.kind.name(), dialect.status(error), &body, Some(error.message.clone()), None)
}

fn execution(
    outcome: String,
    status: u16,
    body: &[u8],
    message: Option<String>,
    commit: Option<toolrest_core::CommitId>,
) -> Execution {
    let result = (body.len() <= MAX_RESULT_BYTES).then(|| serde_json::from_slice(body).unwrap_or(Value::Null));
    Execution { outcome, result, text: None, status, message, commit }
}

/// Returns the answer of a call as a text, followed by its warnings.
pub(crate) fn with_notices(mut text: String, outcome: &CallOutcome, dialect: &dyn Dialect) -> String {
    for warning in &outcome.warnings {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str("warning: ");
        text.push_str(&dialect.notice(warning));
    }
    text
}

/// Refuses a person who may not decide about an approval.
pub(crate) async fn check_decider(runtime: &Runtime, user: UserId, approval: &Approval, asks: &[Ask]) -> Result<()> {
    let caller = approval.call.caller;
    if caller.key.is_none() && caller.user == user && !runtime.settings.policy.self_approval {
        let message = "You made this call yourself, and the setting policy.self_approval forbids to approve it";
        return Err(ToolError::new(ErrorKind::Forbidden, message));
    }
    if asks.iter().all(|ask| ask.approvers.is_empty()) {
        return Ok(());
    }
    let email = runtime.store.user(user).await?.map(|user| user.email).unwrap_or_default();
    let may_decide = |ask: &Ask| {
        ask.approvers.is_empty() || ask.approvers.iter().any(|approver| approver.eq_ignore_ascii_case(&email))
    };
    match asks.iter().find(|ask| !may_decide(ask)) {
        None => Ok(()),
        Some(ask) => {
            let message = format!("Only {} can decide about this call", ask.approvers.join(", "));
            Err(ToolError::new(ErrorKind::Forbidden, message))
        }
    }
}

/// Returns a key that is the same for repetitions of a call by the same caller in the same session.
fn attach_key(call: &Call) -> Result<String> {
    let args: Value = serde_json::from_str(call.args.as_str()).map_err(ToolError::internal)?;
    let args = serde_json_canonicalizer::to_string(&args).map_err(ToolError::internal)?;
    let mut hasher = Sha256::new();
    for part in [&call.caller.member().to_string(), &call.session, &call.toolset, &call.tool, &args] {
        hasher.update(part.len().to_le_bytes());
        hasher.update(part);
    }
    Ok(hex(&hasher.finalize()))
}

fn later(lifetime: Duration) -> Result<Timestamp> {
    now().checked_add(lifetime).map_err(ToolError::internal)
}

pub(crate) fn dialect<'a>(runtime: &'a Runtime, toolset: &str) -> &'a dyn Dialect {
    let found = runtime.engine.toolsets().find(toolset);
    found.map_or(&toolrest_toolsets::workspace::WorkspaceDialect, toolrest_core::Toolset::dialect)
}

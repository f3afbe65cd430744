//! Approvals: calls that wait for the decision of a person.
//!
//! The transitions between the states are decided here, for both databases. A database locks the row of an approval, asks
//! for the transition, and stores the row with the event that describes it, in one transaction.

use crate::Page;
use crate::error::{Result, StoreError};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;
use toolrest_core::{
    Access, Action, Approval, ApprovalEvent, ApprovalId, ApprovalPreview, ApprovalState, Ask, Call, CommitId, Decided,
    ErrorKind, Execution, Grant, GrantId, JsonText, NewApproval, NewDecision, OUTCOME_INTERRUPTED, OUTCOME_OK,
    Timestamp, ToolError, UserId, Verdict, WorkspaceId, now,
};
use uuid::Uuid;

/// Maximum number of open approvals of one caller in one workspace.
pub const MAX_OPEN_APPROVALS: i64 = 100;

/// Maximum size of the open approvals of a person, with those of the person's keys, over all workspaces.
pub(crate) const MAX_OPEN_BYTES: i64 = 128 << 20;

/// Maximum size of the diff and of the command of an approval that has ended.
const MAX_ENDED_BYTES: usize = 16 << 10;

/// How long the result of an ended call is given to those who repeat it.
pub(crate) const ENDED_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// Maximum number of rows that one transaction of a sweep changes.
pub(crate) const SWEEP_ROWS: i64 = 100;

/// Maximum length of arguments, diffs and commands that lists show, in characters. Lists have one more, to mark what was cut.
pub(crate) const LISTED_CHARS: i64 = 4096;

/// After this many events, repetitions of a call are not recorded any more.
const MAX_ATTACHED_EVENTS: i64 = 100;

/// The condition of approvals that answer a repetition of their call.
pub(crate) const ANSWERS: &str = "state IN ('pending', 'approved', 'executing', 'done', 'failed', 'denied')";

/// The condition of approvals that may still run.
pub(crate) const IS_OPEN: &str = "state IN ('pending', 'approved', 'executing')";

/// Stores approvals. After each change the subscribers of the workspace are woken, on every replica.
#[async_trait]
pub trait ApprovalStore: Send + Sync {
    /// Stores an approval of the caller's call, or attaches the call to the open one with the same attach key. Returns also
    /// whether it is new.
    async fn ask(&self, access: Access, new: NewApproval) -> Result<(Approval, bool)>;

    /// Returns the newest approval of a call that the caller repeats, so that it is not run twice: an open one, or one that
    /// ended within 24 hours with the same correlation id or with a result that was never delivered.
    async fn earlier_call(
        &self,
        access: Access,
        attach_key: &str,
        correlation: Option<&str>,
    ) -> Result<Option<Approval>>;

    /// Returns an approval and what happened to it. A key sees only its own.
    async fn approval(&self, access: Access, id: ApprovalId) -> Result<(Approval, Vec<ApprovalEvent>)>;

    /// Returns the state of an approval and when it last changed. A key sees only its own.
    async fn approval_status(&self, access: Access, id: ApprovalId) -> Result<(ApprovalState, Timestamp)>;

    /// Lists approvals: pending ones oldest first, others newest first. Pages go on after the last id of the previous one
    /// (`before`). Long diffs, commands and arguments are shortened. A key sees only its own.
    async fn approvals(
        &self,
        access: Access,
        state: Option<ApprovalState>,
        page: Page<ApprovalId>,
    ) -> Result<Vec<Approval>>;

    /// Decides about an approval, and stores the grants and rules that come with the decision. The same decision again
    /// changes nothing. Only for persons.
    async fn decide(&self, access: Access, id: ApprovalId, decision: NewDecision) -> Result<Approval>;

    /// Approves a pending call of this revision, because nothing asks about it any more. Returns none if it has been
    /// decided or revised meanwhile.
    async fn release(&self, ws: WorkspaceId, id: ApprovalId, revision: i64) -> Result<Option<Approval>>;

    /// Begins to execute an approved call. Returns none if another process has it, or another node must run it.
    async fn claim(&self, ws: WorkspaceId, id: ApprovalId, instance: Uuid, node: &str) -> Result<Option<Approval>>;

    /// Asks again, because the call would do something else than was shown. Returns none if this process does not execute
    /// it any more.
    async fn revise(
        &self,
        ws: WorkspaceId,
        id: ApprovalId,
        instance: Uuid,
        asks: Vec<Ask>,
        preview: ApprovalPreview,
    ) -> Result<Option<Approval>>;

    /// Stores how the call ended. Adds to what its commit stored, if there was one. Returns none if this process does not
    /// execute it any more.
    async fn finish(
        &self,
        ws: WorkspaceId,
        id: ApprovalId,
        instance: Uuid,
        execution: Execution,
    ) -> Result<Option<Approval>>;

    /// Fails if this process does not execute the call any more. Folders check it before they change the disk.
    async fn check_executing(&self, ws: WorkspaceId, id: ApprovalId, instance: Uuid) -> Result<()>;

    /// Stores that the result was sent to the caller.
    async fn delivered(&self, ws: WorkspaceId, id: ApprovalId) -> Result<()>;

    /// Withdraws the caller's own approval, or that of one of the caller's keys. An ended one stays as it is.
    async fn withdraw(&self, access: Access, id: ApprovalId) -> Result<Approval>;

    /// Cancels the open approvals of a member. Removing the member, or ending its key, does it too.
    async fn cancel_open_of(&self, ws: WorkspaceId, principal: Uuid) -> Result<()>;

    /// Ends the approvals whose time is over and that no process executes. Returns how many.
    async fn expire_approvals(&self, now: Timestamp) -> Result<u64>;

    /// Lists approved calls that this node can run and that no process claimed within that time.
    async fn unclaimed(&self, node: &str, older_than: Duration) -> Result<Vec<(WorkspaceId, ApprovalId)>>;

    /// Ends the executions of dead server processes, except those that another node must run. They are interrupted, or done
    /// if their call has a commit. Returns how many.
    async fn fail_abandoned(&self, node: &str) -> Result<u64>;
}

/// A row of `approvals`.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) approval: Approval,
    pub(crate) attach_key: String,
    pub(crate) executor: Option<Uuid>,
    redacted_args: String,
}

/// What a transition does to a row.
#[derive(Debug)]
pub(crate) enum Step {
    /// The row changed. The event says how, unless nothing happened that concerns people.
    Change(Option<Event>),
    /// The row already is as it should be.
    Keep,
    /// The row is not in a state for this.
    Refuse,
}

/// An event to store.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) kind: &'static str,
    pub(crate) by: Option<Uuid>,
    pub(crate) via: Option<String>,
    pub(crate) address: Option<String>,
    pub(crate) detail: Value,
}

impl Event {
    fn new(kind: &'static str) -> Self {
        Self { kind, by: None, via: None, address: None, detail: json!({}) }
    }

    fn changed(self) -> Step {
        Step::Change(Some(self))
    }
}

impl Row {
    /// Creates the row of a new approval, and its first event.
    pub(crate) fn new(new: NewApproval) -> (Self, Event) {
        let at = now();
        let detail = json!({ "args": parsed(&new.redacted_args), "reason": new.reason, "asks": new.asks });
        let event = Event { by: Some(new.call.caller.member().0), detail, ..Event::new("asked") };
        let approval = Approval {
            id: ApprovalId::new(),
            call: new.call,
            session: new.session,
            reason: new.reason,
            asks: new.asks,
            revision: 1,
            preview: new.preview,
            state: ApprovalState::Pending,
            decided: None,
            node: new.node,
            execution: None,
            created_at: at,
            expires_at: new.expires_at,
            changed_at: at,
            delivered_at: None,
        };
        (Self { approval, attach_key: new.attach_key, executor: None, redacted_args: new.redacted_args }, event)
    }

    pub(crate) fn principal(&self) -> Uuid {
        self.approval.call.caller.member().0
    }

    pub(crate) fn is_visible(&self, access: Access) -> bool {
        !access.is_by_key() || self.principal() == access.user.0
    }

    fn is_executed_by(&self, instance: Uuid) -> bool {
        self.approval.state == ApprovalState::Executing && self.executor == Some(instance)
    }

    fn set_state(&mut self, state: ApprovalState) {
        self.approval.state = state;
        self.approval.changed_at = now();
        if !state.is_open() {
            self.redact();
        }
    }

    /// Replaces the arguments by their redacted form, and shortens what was shown: there can be any number of approvals that
    /// have ended.
    fn redact(&mut self) {
        let preview = &mut self.approval.preview;
        for text in preview.command.iter_mut().chain([&mut preview.diff]) {
            shorten(text);
        }
        let redacted = self.redacted_args.clone();
        self.approval.call.args = JsonText::parse(redacted).unwrap_or_else(|_| self.approval.call.args.clone());
        if let Some(decided) = &mut self.approval.decided
            && decided.args.is_some()
        {
            decided.args = decided.redacted_args.clone().or_else(|| Some("{}".to_owned()));
        }
    }

    fn conflict(&self) -> StoreError {
        let Approval { id, state, revision, .. } = self.approval;
        StoreError::ApprovalConflict { id, state, revision }
    }

    /// Returns the event of a repetition of the call. `events` is the number of events so far.
    pub(crate) fn attached(call: &Call, events: i64) -> Option<Event> {
        let detail = json!({ "call_id": call.id, "correlation": call.correlation });
        let by = Some(call.caller.member().0);
        (events < MAX_ATTACHED_EVENTS).then(|| Event { by, detail, ..Event::new("attached") })
    }

    /// Whether its time is over and no process executes it.
    pub(crate) fn is_overdue(&self, at: Timestamp) -> bool {
        let waits = matches!(self.approval.state, ApprovalState::Pending | ApprovalState::Approved);
        waits && self.approval.expires_at <= at
    }

    pub(crate) fn expire(&mut self, at: Timestamp) -> Step {
        if !self.is_overdue(at) {
            return Step::Refuse;
        }
        self.set_state(ApprovalState::Expired);
        Event::new("expired").changed()
    }

    /// Applies a decision.
    pub(crate) fn decide(&mut self, seen: Option<i64>, decided: Decided, address: Option<String>) -> Result<Step> {
        if seen.unwrap_or(1) != self.approval.revision {
            return Err(self.conflict());
        }
        if self.approval.state != ApprovalState::Pending {
            return if self.was_decided_so(&decided) { Ok(Step::Keep) } else { Err(self.conflict()) };
        }
        if self.is_overdue(now()) {
            return Err(self.conflict());
        }
        let (kind, state) = match decided.verdict {
            Verdict::Approve => ("approved", ApprovalState::Approved),
            Verdict::Deny => ("denied", ApprovalState::Denied),
            Verdict::Respond => ("responded", ApprovalState::Done),
        };
        let mut detail = json!({ "reason": decided.reason, "grants": decided.grants });
        if let Some(args) = &decided.args {
            self.approval.call.args = JsonText::parse(args.clone())?;
            let redacted = decided.redacted_args.clone().unwrap_or_else(|| "{}".to_owned());
            detail["original_args"] = parsed(&self.redacted_args);
            detail["args"] = parsed(&redacted);
            self.redacted_args = redacted;
        }
        if let Some(preview) = &decided.preview {
            self.approval.preview = preview.clone();
        }
        let (by, via) = (decided.by.map(|by| by.0), Some(decided.via.clone()));
        if decided.verdict == Verdict::Respond {
            let message = decided.reason.clone();
            self.approval.execution =
                Some(Execution { outcome: "responded".to_owned(), message, ..Execution::default() });
        }
        self.approval.decided = Some(decided);
        self.set_state(state);
        Ok(Event { kind, by, via, address, detail }.changed())
    }

    /// Whether the same was decided before.
    fn was_decided_so(&self, decided: &Decided) -> bool {
        let Some(earlier) = &self.approval.decided else { return false };
        let has_same_args = match (&earlier.args, &decided.args) {
            (None, None) => true,
            (Some(earlier), Some(args)) => earlier == args || decided.redacted_args.as_ref() == Some(earlier),
            _ => false,
        };
        let given = |decided: &Decided| -> Vec<(Action, String, bool)> {
            decided.grants.iter().map(|grant| (grant.action, grant.pattern.clone(), grant.is_denial)).collect()
        };
        earlier.verdict == decided.verdict && has_same_args && given(earlier) == given(decided)
    }

    /// Returns the grants that were given with the decision.
    pub(crate) fn grants(&self, granted_by: UserId) -> Vec<Grant> {
        let given = self.approval.decided.iter().flat_map(|decided| &decided.grants);
        let stored = given.map(|grant| Grant {
            id: GrantId::new(),
            principal: self.principal(),
            session: self.approval.session.clone(),
            grant: grant.clone(),
            approval: Some(self.approval.id),
            granted_by,
            created_at: now(),
        });
        stored.collect()
    }

    /// Approves a waiting call, because nothing asks about it any more.
    pub(crate) fn release(&mut self, revision: i64) -> Step {
        let is_as_seen = self.approval.state == ApprovalState::Pending && self.approval.revision == revision;
        if !is_as_seen || self.is_overdue(now()) {
            return Step::Refuse;
        }
        let via = "rule".to_owned();
        self.approval.decided = Some(Decided::by_rule(via.clone()));
        self.set_state(ApprovalState::Approved);
        Event { via: Some(via), ..Event::new("approved") }.changed()
    }

    pub(crate) fn claim(&mut self, instance: Uuid, node: &str) -> Step {
        let may_run = self.approval.node.as_deref().is_none_or(|of| of == node);
        if self.approval.state != ApprovalState::Approved || !may_run || self.is_overdue(now()) {
            return Step::Refuse;
        }
        self.executor = Some(instance);
        self.set_state(ApprovalState::Executing);
        Event { detail: json!({ "instance": instance, "node": node }), ..Event::new("executing") }.changed()
    }

    pub(crate) fn revise(&mut self, instance: Uuid, asks: Vec<Ask>, preview: ApprovalPreview) -> Step {
        if !self.is_executed_by(instance) {
            return Step::Refuse;
        }
        self.executor = None;
        let approval = &mut self.approval;
        (approval.asks, approval.preview, approval.decided) = (asks, preview, None);
        approval.revision += 1;
        self.set_state(ApprovalState::Pending);
        Event { detail: json!({ "asks": self.approval.asks }), ..Event::new("revised") }.changed()
    }

    pub(crate) fn finish(&mut self, instance: Uuid, mut execution: Execution) -> Step {
        // A commit ends the execution first. Of a cancelled one it is told what ran.
        let is_ended = matches!(self.approval.state, ApprovalState::Done | ApprovalState::Cancelled);
        if is_ended && self.executor == Some(instance) {
            let commit = self.approval.execution.as_ref().and_then(|earlier| earlier.commit);
            execution.commit = commit.or(execution.commit);
            let detail = json!({ "outcome": execution.outcome, "message": execution.message });
            self.approval.execution = Some(execution);
            self.approval.changed_at = now();
            return Event { detail, ..Event::new("finished") }.changed();
        }
        if !self.is_executed_by(instance) {
            return Step::Refuse;
        }
        self.end(execution).changed()
    }

    /// Ends the execution.
    fn end(&mut self, execution: Execution) -> Event {
        let is_done = execution.outcome == OUTCOME_OK || execution.commit.is_some();
        let detail = json!({ "outcome": execution.outcome, "message": execution.message, "commit": execution.commit });
        self.approval.execution = Some(execution);
        let (kind, state) = if is_done { ("done", ApprovalState::Done) } else { ("failed", ApprovalState::Failed) };
        self.set_state(state);
        Event { detail, ..Event::new(kind) }
    }

    /// Spends the approval in the transaction of a commit of its call. Later commits of the same execution follow it.
    pub(crate) fn spend(&mut self, instance: Uuid, commit: CommitId) -> Result<Step> {
        if self.approval.state == ApprovalState::Done && self.executor == Some(instance) {
            let execution = self.approval.execution.get_or_insert_default();
            if execution.commit.is_some() {
                return Ok(Step::Keep);
            }
            execution.commit = Some(commit);
            return Ok(Step::Change(None));
        }
        if !self.is_executed_by(instance) {
            return Err(StoreError::NotExecuting(self.approval.id));
        }
        Ok(self.end(committed(commit)).changed())
    }

    /// Stores the commit of a folder, which was made before. Whether it might be made was checked before the disk changed.
    pub(crate) fn note_folder_commit(&mut self, instance: Uuid, commit: CommitId) -> Step {
        if let Ok(step) = self.spend(instance, commit) {
            return step;
        }
        let outcome = self.approval.execution.as_ref().map(|execution| execution.outcome.as_str());
        match self.approval.state {
            // It counted as interrupted before its journal was read.
            ApprovalState::Failed if outcome == Some(OUTCOME_INTERRUPTED) => self.end(committed(commit)).changed(),
            ApprovalState::Cancelled => {
                self.approval.execution.get_or_insert_default().commit = Some(commit);
                Step::Change(None)
            }
            _ => Step::Keep,
        }
    }

    /// Fails if this process does not execute the call.
    pub(crate) fn check_executing(&self, instance: Uuid) -> Result<()> {
        let is_spent = self.approval.state == ApprovalState::Done && self.executor == Some(instance);
        if is_spent || self.is_executed_by(instance) {
            return Ok(());
        }
        Err(StoreError::NotExecuting(self.approval.id))
    }

    /// Ends the execution of a dead process. A process that was only paused finds that it lost the approval.
    pub(crate) fn abandon(&mut self, commit: Option<CommitId>) -> Step {
        if self.approval.state != ApprovalState::Executing {
            return Step::Refuse;
        }
        let message = "The server that ran the call ended before it did".to_owned();
        let outcome = OUTCOME_INTERRUPTED.to_owned();
        let event = self.end(Execution { outcome, message: Some(message), commit, ..Execution::default() });
        self.executor = None;
        event.changed()
    }

    pub(crate) fn deliver(&mut self) -> Step {
        if self.approval.delivered_at.is_some() || self.approval.state.is_open() {
            return Step::Keep;
        }
        self.approval.delivered_at = Some(now());
        Step::Change(None)
    }

    /// Withdraws an approval for its caller.
    pub(crate) fn withdraw(&mut self, access: Access) -> Result<Step> {
        let is_own = self.principal() == access.user.0
            || (!access.is_by_key() && self.approval.call.caller.user == access.person);
        if !is_own {
            let message =
                "Only the caller who asked can withdraw this call; a member with the right to approve can deny it";
            return Err(StoreError::refused(ErrorKind::Forbidden, message));
        }
        Ok(self.cancel(Some(access.user.0), "withdrawn"))
    }

    pub(crate) fn cancel(&mut self, by: Option<Uuid>, reason: &str) -> Step {
        if !self.approval.state.is_open() {
            return Step::Keep;
        }
        self.set_state(ApprovalState::Cancelled);
        Event { by, detail: json!({ "reason": reason }), ..Event::new("cancelled") }.changed()
    }
}

fn committed(commit: CommitId) -> Execution {
    Execution { outcome: OUTCOME_OK.to_owned(), commit: Some(commit), ..Execution::default() }
}

/// Returns stored JSON as a value for an event.
fn parsed(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or(Value::Null)
}

/// The part of a row that is stored as JSON.
#[derive(Serialize, Deserialize)]
struct Body {
    call: Call,
    session: String,
    reason: Option<String>,
    asks: Vec<Ask>,
    shown: String,
    decided: Option<Decided>,
    execution: Option<Execution>,
    redacted_args: String,
}

/// The columns of a row that only the store interprets.
pub(crate) struct Texts {
    pub(crate) body: String,
    /// None in a list if they are long.
    pub(crate) args: Option<String>,
    pub(crate) diff: String,
    pub(crate) command: Option<String>,
    pub(crate) result: Option<String>,
}

/// The columns of a row that are looked up.
pub(crate) struct Columns {
    pub(crate) id: ApprovalId,
    pub(crate) attach_key: String,
    pub(crate) state: String,
    pub(crate) revision: i64,
    pub(crate) node: Option<String>,
    pub(crate) executor: Option<Uuid>,
    pub(crate) created_at: Timestamp,
    pub(crate) expires_at: Timestamp,
    pub(crate) changed_at: Timestamp,
    pub(crate) delivered_at: Option<Timestamp>,
}

impl Row {
    pub(crate) fn texts(&self) -> Result<Texts> {
        let approval = &self.approval;
        let mut execution = approval.execution.clone();
        let result = execution.as_mut().and_then(|execution| execution.result.take());
        let call = Call { args: JsonText::parse("{}".to_owned())?, ..approval.call.clone() };
        let body = Body {
            call,
            session: approval.session.clone(),
            reason: approval.reason.clone(),
            asks: approval.asks.clone(),
            shown: approval.preview.shown.clone(),
            decided: approval.decided.clone(),
            execution,
            redacted_args: self.redacted_args.clone(),
        };
        Ok(Texts {
            body: serde_json::to_string(&body).map_err(StoreError::internal)?,
            args: Some(approval.call.args.as_str().to_owned()),
            diff: storable(&approval.preview.diff),
            command: approval.preview.command.as_deref().map(storable),
            result: result.map(|result| result.to_string()),
        })
    }

    pub(crate) fn parse(columns: Columns, texts: Texts) -> Result<Self> {
        let Body { mut call, session, reason, asks, shown, decided, mut execution, redacted_args } =
            serde_json::from_str(&texts.body).map_err(StoreError::internal)?;
        call.args = JsonText::parse(texts.args.unwrap_or_else(|| redacted_args.clone()))?;
        if let (Some(execution), Some(result)) = (&mut execution, texts.result) {
            execution.result = Some(serde_json::from_str(&result).map_err(StoreError::internal)?);
        }
        let state = state_of(&columns.state)?;
        let approval = Approval {
            id: columns.id,
            call,
            session,
            reason,
            asks,
            revision: columns.revision,
            preview: ApprovalPreview { diff: texts.diff, command: texts.command, shown },
            state,
            decided,
            node: columns.node,
            execution,
            created_at: columns.created_at,
            expires_at: columns.expires_at,
            changed_at: columns.changed_at,
            delivered_at: columns.delivered_at,
        };
        Ok(Self { approval, attach_key: columns.attach_key, executor: columns.executor, redacted_args })
    }
}

/// Parses the name of a state in a row.
pub(crate) fn state_of(name: &str) -> Result<ApprovalState> {
    ApprovalState::from_name(name)
        .ok_or_else(|| StoreError::internal(format!("an approval in the unknown state {name}")))
}

/// Returns a text without NUL, which PostgreSQL cannot store.
pub(crate) fn storable(text: &str) -> String {
    text.replace('\0', "\u{2400}")
}

pub(crate) fn no_such_approval(id: ApprovalId) -> StoreError {
    StoreError::not_found("Approval", id)
}

/// Cuts a long text of an approval that has ended.
fn shorten(text: &mut String) {
    if text.len() > MAX_ENDED_BYTES {
        let end = (0..=MAX_ENDED_BYTES).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push_str("\n# The rest was not kept\n");
    }
}

/// Refuses another approval if the open ones of its person have too many bytes together.
pub(crate) fn check_open_bytes(open_bytes: i64, new: &Texts) -> Result<()> {
    let texts = [Some(&new.body), new.args.as_ref(), Some(&new.diff), new.command.as_ref()];
    let bytes: usize = texts.into_iter().flatten().map(String::len).sum();
    let used = open_bytes.saturating_add(i64::try_from(bytes).unwrap_or(i64::MAX));
    if used <= MAX_OPEN_BYTES {
        return Ok(());
    }
    let message = format!(
        "The calls of this account that wait for approval would have {used} bytes together; the limit is {MAX_OPEN_BYTES}. \
         Wait until they are decided, or withdraw some"
    );
    let error = ToolError::new(ErrorKind::QuotaExceeded, message);
    Err(error.detail("limit", MAX_OPEN_BYTES).detail("used", open_bytes).into())
}

/// Refuses another approval of a caller who has too many open ones.
pub(crate) fn check_open(open: i64) -> Result<()> {
    if open < MAX_OPEN_APPROVALS {
        return Ok(());
    }
    let message = format!(
        "{open} calls wait for approval already; the limit is {MAX_OPEN_APPROVALS}. Wait until they are decided, or \
         withdraw some"
    );
    let error = ToolError::new(ErrorKind::QuotaExceeded, message);
    Err(error.detail("limit", MAX_OPEN_APPROVALS).detail("used", open).into())
}

/// Checks that a call is stored for its own caller and workspace.
pub(crate) fn check_call(access: Access, call: &Call) -> Result<()> {
    if call.caller.member() != access.user || call.workspace != access.workspace {
        return Err(StoreError::internal("an approval for the call of another caller"));
    }
    Ok(())
}

//! Calls that wait for a person: the list, previews of edited arguments, and decisions.

use super::App;
use super::page::{cut, more};
use super::reply::{Answer, Reply, ok};
use super::request::{Peer, Unread, WorkspaceRequest};
use super::rules::stored_rules;
use crate::approvals::{self, Shown};
use crate::offers::Offer;
use crate::policy::WorkspaceRules;
use axum::Extension;
use axum::extract::{Query, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::time::Instant;
use toolrest_core::rules::{Rule, RuleEffect, RuleList};
use toolrest_core::{
    Access, Action, Approval, ApprovalEvent, ApprovalId, ApprovalState, Ask, Call, CallId, CommitId, Decided,
    ErrorKind, JsonText, KeyId, NewDecision, NewRules, Page, Result, Role, Timestamp, ToolError, UserId, Verdict, now,
};

/// The query parameters of the list.
pub(crate) const PARAMETERS: [&str; 3] = ["before", "limit", "state"];
/// Maximum number of things that an approval of the list shows as asked.
const LISTED_ASKS: usize = 20;
/// Maximum size of a diff in the list; the approval itself has all of it.
const LISTED_DIFF_BYTES: usize = 4 << 10;
/// Maximum time that a request waits for a decision.
const MAX_WAIT_SECONDS: u64 = 60;
/// Time for which a grant holds.
const GRANT_LIFETIME: Duration = Duration::from_secs(8 * 60 * 60);
/// Maximum number of decisions in one request.
const MAX_DECISIONS: usize = 100;
const MAX_REASON_CHARS: usize = 2_000;

/// An approval as it is shown.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Approval")]
struct Shape {
    id: ApprovalId,
    /// Counts how often something else was shown. A decision names the revision that it saw.
    revision: i64,
    state: ApprovalState,
    toolset: String,
    tool: String,
    /// The arguments.
    args: Value,
    /// The agent's own reason.
    reason: Option<String>,
    /// The caller's label for its session.
    session: String,
    /// What must be allowed; in a list the first of them.
    asks: Vec<Ask>,
    asks_count: usize,
    /// A unified diff of what the call would change; in a list its beginning. Empty for keys.
    diff: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    diff_truncated: bool,
    /// The command or code that it would run.
    command: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    command_truncated: bool,
    /// What a decision for the session can grant, the narrowest first.
    grants_offered: Vec<String>,
    /// What a decision for the workspace can add to its rules, the narrowest first. None where no rule of it counts.
    rules_offered: Vec<String>,
    requested_by: Requester,
    /// The id of the call.
    step_id: CallId,
    correlation_id: String,
    /// The decision; none while it waits.
    decided: Option<Decided>,
    /// The answer of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    /// Why the call failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// `ok`, `responded`, `interrupted` or the name of an error kind; none before the end.
    outcome: Option<String>,
    commit_id: Option<CommitId>,
    created_at: Timestamp,
    expires_at: Timestamp,
    changed_at: Timestamp,
}

/// Who made a call that waits.
#[derive(Serialize, JsonSchema)]
struct Requester {
    user_id: UserId,
    key_id: Option<KeyId>,
}

/// Returns an approval as the caller may see it. Keys do not see diffs: a blind overwrite would show what it replaces.
fn shape(app: &App, approval: Approval, for_key: bool, max_diff: usize) -> Shape {
    let Approval { call, preview, execution, .. } = approval;
    let diff = if for_key { "" } else { preview.diff.as_str() };
    let end = cut_text(diff, max_diff).len();
    let max_asks = if max_diff == usize::MAX { usize::MAX } else { LISTED_ASKS };
    let execution = execution.unwrap_or_default();
    let is_ok = execution.status < 300;
    Shape {
        id: approval.id,
        revision: approval.revision,
        state: approval.state,
        toolset: call.toolset,
        tool: call.tool,
        args: serde_json::from_str(call.args.as_str()).unwrap_or(Value::Null),
        reason: approval.reason.as_deref().map(approvals::visible),
        session: approval.session,
        asks: shown_asks(&approval.asks, max_asks),
        asks_count: approval.asks.len(),
        diff: diff[..end].to_owned(),
        diff_truncated: end < diff.len(),
        command: preview.command.as_deref().map(|command| cut_text(command, max_diff).to_owned()),
        command_truncated: preview.command.as_ref().is_some_and(|command| command.len() > max_diff),
        grants_offered: texts(&Offer::all(&approval.asks)),
        rules_offered: texts(&rule_offers(app, &approval.asks)),
        requested_by: Requester { user_id: call.caller.user, key_id: call.caller.key_id() },
        step_id: call.id,
        correlation_id: call.correlation,
        decided: approval.decided,
        result: execution.result.filter(|_| is_ok),
        error: execution.message,
        outcome: Some(execution.outcome).filter(|outcome| !outcome.is_empty()),
        commit_id: execution.commit,
        created_at: approval.created_at,
        expires_at: approval.expires_at,
        changed_at: approval.changed_at,
    }
}

fn texts(offers: &[Offer]) -> Vec<String> {
    offers.iter().map(ToString::to_string).collect()
}

/// Returns what can be added to the rules of the workspace so that a call asks no more.
fn rule_offers(app: &App, asks: &[Ask]) -> Vec<Offer> {
    if operators_rule(app, asks).is_some() { Vec::new() } else { Offer::all(&Offer::asks_for_rules(asks)) }
}

/// Returns the operator's rule that asks, which no rule of a workspace can lift.
fn operators_rule<'a>(app: &App, asks: &'a [Ask]) -> Option<&'a String> {
    let is_operators = |text: &&String| app.settings.policy.rules.iter().any(|rule| rule.to_string() == **text);
    asks.iter().filter_map(|ask| ask.rule.as_ref()).find(is_operators)
}

/// Returns the beginning of a text, of a number of bytes at most.
fn cut_text(text: &str, max_bytes: usize) -> &str {
    let end = (0..=max_bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

/// Returns what a call asks, with hidden characters made visible.
fn shown_asks(asks: &[Ask], max: usize) -> Vec<Ask> {
    let shown = |ask: &Ask| Ask { subject: approvals::visible(&ask.subject), ..ask.clone() };
    asks.iter().take(max).map(shown).collect()
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct ApprovalList {
    count: usize,
    approvals: Vec<Shape>,
    /// Whether there are more.
    truncated: bool,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct ApprovalAnswer {
    approval: Shape,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct ApprovalWithEvents {
    approval: Shape,
    /// What happened to it. Empty for keys.
    events: Vec<ApprovalEvent>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct DecisionAnswer {
    approval: Shape,
    /// The calls that waited for the same and go on now.
    released: Vec<ApprovalId>,
}

/// What a call would do.
#[derive(Serialize, JsonSchema)]
pub(crate) struct PreviewAnswer {
    diff: String,
    command: Option<String>,
    asks: Vec<Ask>,
    /// What a decision for the session can grant, the narrowest first.
    grants_offered: Vec<String>,
    /// What a decision for the workspace can add to its rules, the narrowest first.
    rules_offered: Vec<String>,
    /// What a decision with these arguments must name.
    preview: String,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct DecisionsAnswer {
    results: Vec<OneResult>,
}

/// The result of one of several decisions.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum OneResult {
    Decided { id: ApprovalId, state: ApprovalState, released: Vec<ApprovalId> },
    Refused { id: ApprovalId, error: String },
}

pub(crate) async fn list(
    State(app): State<Arc<App>>,
    target: WorkspaceRequest,
    Query(query): Query<HashMap<String, String>>,
) -> Answer<Reply<ApprovalList>> {
    let page: Page<ApprovalId> = target.page(&app, &query).await?;
    let state = match query.get("state").map(|name| ApprovalState::from_name(name).ok_or(name)) {
        None => None,
        Some(Ok(state)) => Some(state),
        Some(Err(name)) => {
            let names: Vec<&str> = ApprovalState::ALL.iter().map(|state| state.name()).collect();
            let message = format!("'{name}' is not a state; use one of {}", names.join(", "));
            target.refuse(&app, ToolError::argument("state", message)).await?
        }
    };
    let found = app.store.approvals(target.access(Role::Viewer), state, more(page)).await?;
    let (approvals, truncated) = cut(page.limit, found);
    let for_key = target.caller.key.is_some();
    let approvals: Vec<_> = approvals.into_iter().map(|one| shape(&app, one, for_key, LISTED_DIFF_BYTES)).collect();
    ok(&ApprovalList { count: approvals.len(), approvals, truncated })
}

pub(crate) async fn show(
    State(app): State<Arc<App>>,
    target: WorkspaceRequest,
    Query(query): Query<HashMap<String, String>>,
) -> Answer<Reply<ApprovalWithEvents>> {
    let id: ApprovalId = target.id(&app, "approval").await?;
    let wait = query.get("wait").map_or(Ok(0), |text| text.parse::<u64>());
    let Ok(wait) = wait else {
        let message = "`wait` must be a number of seconds";
        return Ok(target.refuse(&app, ToolError::argument("wait", message)).await?);
    };
    let slot = app.waiting_calls.try_enter(target.caller.user, target.workspace);
    let wait = if slot.is_ok() { wait.min(MAX_WAIT_SECONDS) } else { 0 };
    let deadline = Instant::now() + Duration::from_secs(wait);
    let mut signals = app.store.subscribe(target.workspace);
    loop {
        let (approval, events) = app.store.approval(target.access(Role::Viewer), id).await?;
        if approval.has_answer() || Instant::now() >= deadline || app.is_stopping() {
            let for_key = target.caller.key.is_some();
            let approval = shape(&app, approval, for_key, usize::MAX);
            return ok(&ApprovalWithEvents { approval, events: if for_key { Vec::new() } else { events } });
        }
        let status = (approval.state, approval.changed_at);
        drop((approval, events));
        approvals::wait_for_change(&app, target.access(Role::Viewer), id, status, deadline, &mut signals).await?;
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PreviewBody {
    /// The arguments, an object.
    args: JsonText,
}

/// Shows what the call would do with other arguments.
pub(crate) async fn preview(
    State(app): State<Arc<App>>,
    target: WorkspaceRequest,
    body: Unread<PreviewBody>,
) -> Answer<Reply<PreviewAnswer>> {
    let id: ApprovalId = target.id(&app, "approval").await?;
    let PreviewBody { args } = target.json(&app, body).await?;
    let (approval, _) = app.store.approval(target.access(Role::Editor), id).await?;
    let Shown { asks, preview, .. } = Shown::of(&app, &edited(&app, &approval, args).await?).await?;
    ok(&PreviewAnswer {
        diff: preview.diff,
        command: preview.command,
        grants_offered: texts(&Offer::all(&asks)),
        rules_offered: texts(&rule_offers(&app, &asks)),
        asks,
        preview: preview.shown,
    })
}

/// Returns the call of an approval with other arguments.
async fn edited(app: &App, approval: &Approval, args: JsonText) -> Result<Call> {
    if !args.is_object() {
        return Err(ToolError::argument("args", "`args` must be an object with the tool's arguments"));
    }
    let caller = app.stored_caller(&approval.call).await?;
    Ok(Call { args, caller, ..approval.call.clone() })
}

/// A decision, in the form of this server or in the form of specification 002.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DecisionBody {
    decision: Option<Verdict>,
    scope: Option<Scope>,
    revision: Option<i64>,
    args: Option<JsonText>,
    preview: Option<String>,
    reason: Option<String>,
    /// What the scope covers: one of `grants_offered`, for the workspace of `rules_offered`; without it the first of them.
    grant: Option<String>,
    /// With a denial: refuse the same for the rest of the session without asking.
    #[serde(default)]
    remember: bool,
    approved: Option<bool>,
    #[serde(rename = "modifiedArgs")]
    modified_args: Option<JsonText>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Scope {
    Once,
    Session,
    Workspace,
}

pub(crate) async fn decide(
    State(app): State<Arc<App>>,
    target: WorkspaceRequest,
    Extension(peer): Extension<Peer>,
    body: Unread<DecisionBody>,
) -> Answer<Reply<DecisionAnswer>> {
    let id: ApprovalId = target.id(&app, "approval").await?;
    let body = target.json(&app, body).await?;
    let Decision { approval, released } = decide_one(&app, &target, id, body, &peer).await?;
    ok(&DecisionAnswer { approval: shape(&app, approval, false, usize::MAX), released })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DecisionsBody {
    /// At most 100.
    decisions: Vec<OneDecision>,
}

#[derive(Deserialize, JsonSchema)]
struct OneDecision {
    id: ApprovalId,
    // Read one by one, so that each has its own error.
    #[serde(flatten)]
    #[schemars(with = "DecisionBody")]
    decision: Value,
}

/// Decides about several approvals, each by itself.
pub(crate) async fn decide_many(
    State(app): State<Arc<App>>,
    target: WorkspaceRequest,
    Extension(peer): Extension<Peer>,
    body: Unread<DecisionsBody>,
) -> Answer<Reply<DecisionsAnswer>> {
    let DecisionsBody { decisions } = target.json(&app, body).await?;
    if decisions.len() > MAX_DECISIONS {
        let message = format!("At most {MAX_DECISIONS} decisions can be sent at once, not {}", decisions.len());
        return Ok(target.refuse(&app, ToolError::argument("decisions", message)).await?);
    }
    let mut results = Vec::new();
    for OneDecision { id, decision } in decisions {
        let body =
            serde_json::from_value(decision).map_err(|error| ToolError::argument("decisions", error.to_string()));
        let result = match body {
            Ok(body) => decide_one(&app, &target, id, body, &peer).await,
            Err(error) => Err(error),
        };
        results.push(match result {
            Ok(Decision { approval, released }) => OneResult::Decided { id, state: approval.state, released },
            Err(error) => OneResult::Refused { id, error: error.message },
        });
    }
    ok(&DecisionsAnswer { results })
}

/// A decision that was stored.
struct Decision {
    approval: Approval,
    /// The calls that waited for the same and go on now.
    released: Vec<ApprovalId>,
}

async fn decide_one(
    app: &Arc<App>,
    target: &WorkspaceRequest,
    id: ApprovalId,
    body: DecisionBody,
    peer: &Peer,
) -> Result<Decision> {
    let scope = body.scope.unwrap_or(Scope::Once);
    let access = target.access(if scope == Scope::Workspace { Role::Owner } else { Role::Editor });
    let (approval, _) = app.store.approval(access, id).await?;
    approvals::check_decider(app, target.caller.user, &approval, &approval.asks).await?;
    let (verdict, args) = verdict(&body)?;
    if verdict == Verdict::Respond && (scope != Scope::Once || body.remember) {
        return Err(ToolError::argument("scope", "An answer without running the call holds for this call alone"));
    }
    let reason = body.reason.map(|reason| reason.chars().take(MAX_REASON_CHARS).collect());
    let mut decided = Decided {
        verdict,
        by: Some(target.caller.user),
        via: "api".to_owned(),
        reason,
        args: None,
        redacted_args: None,
        grants: Vec::new(),
        preview: None,
    };
    let mut asks = approval.asks.clone();
    if let Some(args) = args {
        if body.args.is_some() && body.preview.is_none() {
            let message = "A decision with `args` needs the token `preview` of POST …/preview for these arguments";
            return Err(ToolError::argument("preview", message));
        }
        let call = edited(app, &approval, args).await?;
        let shown = Shown::of(app, &call).await?;
        if body.preview.as_ref().is_some_and(|preview| *preview != shown.preview.shown) {
            let message = "The files have changed since the preview of these arguments; look at the new preview first";
            return Err(ToolError::new(ErrorKind::Conflict, message));
        }
        approvals::check_decider(app, target.caller.user, &approval, &shown.asks).await?;
        let args = call.args.as_str();
        decided.redacted_args = Some(app.redacted(args));
        (decided.args, decided.preview) = (Some(args.to_owned()), Some(shown.preview));
        asks = shown.asks;
    }
    let mut new_rules = None;
    if scope != Scope::Once || body.remember {
        let offer = match scope {
            Scope::Workspace => Offer::choose(&Offer::asks_for_rules(&asks), body.grant.as_deref())?,
            Scope::Once | Scope::Session => Offer::choose(&asks, body.grant.as_deref())?,
        };
        if scope == Scope::Workspace {
            new_rules = Some(rules_with(app, access, &asks, &offer, verdict).await?);
        } else {
            let expires_at = now().checked_add(GRANT_LIFETIME).map_err(ToolError::internal)?;
            decided.grants = offer.grants(verdict == Verdict::Deny, expires_at);
        }
    } else if body.grant.is_some() {
        return Err(ToolError::argument("grant", "A `grant` needs the scope `session` or `workspace`"));
    }
    let widens = verdict == Verdict::Approve && scope != Scope::Once;
    let (revision, address) = (body.revision, Some(peer.0.clone()));
    let decision = NewDecision { revision, decided, address, rules: new_rules };
    let approval = app.store.decide(access, id, decision).await?;
    app.webhooks.approval("approval.decided", &approval);
    if approval.state == ApprovalState::Approved {
        approvals::run_soon(&app.runtime, target.workspace, id);
    }
    let of_session = (approval.call.caller.member().0, approval.session.clone());
    let of = (scope == Scope::Session).then_some(of_session);
    let released = if widens { approvals::release_covered(&app.runtime, access, of).await } else { Vec::new() };
    Ok(Decision { approval, released })
}

/// Returns the rules of the workspace with those that a decision adds.
async fn rules_with(app: &App, access: Access, asks: &[Ask], offer: &Offer, verdict: Verdict) -> Result<NewRules> {
    if let Some(rule) = operators_rule(app, asks) {
        let message = format!(
            "The operator's rule `{rule}` asks, which no rule of a workspace can lift; decide with another scope"
        );
        return Err(ToolError::argument("scope", message));
    }
    let (if_match, mut rules) = stored_rules(app, access).await?;
    let denies = |action: Action| {
        rules.rules.iter().any(|rule| rule.effect == RuleEffect::Deny && rule.action.is_none_or(|own| own == action))
    };
    let is_exact = Offer::all(&Offer::asks_for_rules(asks)).first() == Some(offer);
    // The last rule that matches counts, so a wider one would lift what is denied.
    if verdict == Verdict::Approve && !is_exact && offer.parts().iter().any(|(action, _)| denies(*action)) {
        let message = "The workspace has rules that deny this action at some paths, which a wider permission would lift; \
                       choose the first of `rules_offered`, or change the rules with PUT /rules";
        return Err(ToolError::argument("grant", message));
    }
    let effect = if verdict == Verdict::Deny { RuleEffect::Deny } else { RuleEffect::Allow };
    rules.rules.extend(offer.parts().iter().map(|(action, pattern)| Rule::about(effect, *action, pattern.clone())));
    RuleList::compile(rules.rules.clone())?;
    Ok(NewRules { if_match, body: serde_json::to_string::<WorkspaceRules>(&rules).map_err(ToolError::internal)? })
}

fn verdict(body: &DecisionBody) -> Result<(Verdict, Option<JsonText>)> {
    match (body.decision, body.approved) {
        (Some(verdict), None) if body.modified_args.is_none() => Ok((verdict, body.args.clone())),
        (None, Some(true)) => Ok((Verdict::Approve, body.modified_args.clone())),
        (None, Some(false)) => Ok((Verdict::Deny, None)),
        _ => {
            let message = "Give either `decision` (approve, deny or respond) or `approved` (true or false)";
            Err(ToolError::argument("decision", message))
        }
    }
}

/// Withdraws an approval: by the caller that asked, or by an owner.
pub(crate) async fn withdraw(State(app): State<Arc<App>>, target: WorkspaceRequest) -> Answer<Reply<ApprovalAnswer>> {
    let id: ApprovalId = target.id(&app, "approval").await?;
    let approval = app.store.withdraw(target.access(Role::Viewer), id).await?;
    ok(&ApprovalAnswer { approval: shape(&app, approval, target.caller.key.is_some(), usize::MAX) })
}

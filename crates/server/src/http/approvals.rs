//! Calls that wait for a person: the list, previews of edited arguments, and decisions.

use super::App;
use super::page::{cut, more};
use super::reply::{Answer, ok};
use super::request::{Peer, WorkspaceRequest};
use super::rules::stored_rules;
use crate::approvals::{self, Shown};
use crate::offers::Offer;
use crate::policy::WorkspaceRules;
use axum::Extension;
use axum::extract::{Query, Request, State};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::time::Instant;
use toolrest_core::rules::{Rule, RuleEffect, RuleList};
use toolrest_core::{
    Access, Action, Approval, ApprovalId, ApprovalState, Ask, Call, Decided, ErrorKind, JsonText, NewDecision,
    NewRules, Page, Result, Role, ToolError, Verdict, now,
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
#[derive(Serialize)]
struct Shape<'a> {
    id: ApprovalId,
    revision: i64,
    state: ApprovalState,
    toolset: &'a str,
    tool: &'a str,
    args: Value,
    reason: Option<String>,
    session: &'a str,
    asks: Vec<Ask>,
    asks_count: usize,
    diff: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    diff_truncated: bool,
    command: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    command_truncated: bool,
    /// What a decision for the session or the workspace can grant, the narrowest first.
    grants_offered: Vec<String>,
    requested_by: Value,
    step_id: String,
    correlation_id: &'a str,
    decided: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    outcome: Option<&'a str>,
    commit_id: Option<String>,
    created_at: String,
    expires_at: String,
    changed_at: String,
}

/// Returns an approval as the caller may see it. Keys do not see diffs: a blind overwrite would show what it replaces.
fn shape(approval: &Approval, for_key: bool, max_diff: usize) -> Shape<'_> {
    let Approval { call, preview, execution, .. } = approval;
    let diff = if for_key { "" } else { preview.diff.as_str() };
    let end = cut_text(diff, max_diff).len();
    let max_asks = if max_diff == usize::MAX { usize::MAX } else { LISTED_ASKS };
    let is_ok = execution.as_ref().is_some_and(|execution| execution.status < 300);
    Shape {
        id: approval.id,
        revision: approval.revision,
        state: approval.state,
        toolset: &call.toolset,
        tool: &call.tool,
        args: serde_json::from_str(call.args.as_str()).unwrap_or(Value::Null),
        reason: approval.reason.as_deref().map(approvals::visible),
        session: &approval.session,
        asks: shown_asks(&approval.asks, max_asks),
        asks_count: approval.asks.len(),
        diff: diff[..end].to_owned(),
        diff_truncated: end < diff.len(),
        command: preview.command.as_deref().map(|command| cut_text(command, max_diff)),
        command_truncated: preview.command.as_ref().is_some_and(|command| command.len() > max_diff),
        grants_offered: Offer::all(&approval.asks).iter().map(ToString::to_string).collect(),
        requested_by: json!({ "user_id": call.caller.user, "key_id": call.caller.key_id() }),
        step_id: call.id.to_string(),
        correlation_id: &call.correlation,
        decided: approval.decided.as_ref().map(|decided| json!(decided)),
        result: execution.as_ref().filter(|_| is_ok).and_then(|execution| execution.result.as_ref()),
        error: execution.as_ref().and_then(|execution| execution.message.as_deref()),
        outcome: execution.as_ref().map(|execution| execution.outcome.as_str()),
        commit_id: execution.as_ref().and_then(|execution| execution.commit).map(|commit| commit.to_string()),
        created_at: approval.created_at.to_string(),
        expires_at: approval.expires_at.to_string(),
        changed_at: approval.changed_at.to_string(),
    }
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

pub(crate) async fn list(
    State(app): State<Arc<App>>,
    target: WorkspaceRequest,
    Query(query): Query<HashMap<String, String>>,
) -> Answer {
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
    let shapes: Vec<Shape<'_>> = approvals.iter().map(|one| shape(one, for_key, LISTED_DIFF_BYTES)).collect();
    ok(&json!({ "count": shapes.len(), "approvals": shapes, "truncated": truncated }))
}

pub(crate) async fn show(
    State(app): State<Arc<App>>,
    target: WorkspaceRequest,
    Query(query): Query<HashMap<String, String>>,
) -> Answer {
    let id: ApprovalId = target.id(&app, "approval").await?;
    let wait = query.get("wait").map_or(Ok(0), |text| text.parse::<u64>());
    let Ok(wait) = wait else {
        let message = "`wait` must be a number of seconds";
        return Ok(target.refuse(&app, ToolError::argument("wait", message)).await?);
    };
    let deadline = Instant::now() + Duration::from_secs(wait.min(MAX_WAIT_SECONDS));
    let mut signals = app.store.subscribe(target.workspace);
    loop {
        let (approval, events) = app.store.approval(target.access(Role::Viewer), id).await?;
        if approval.has_answer() || Instant::now() >= deadline || app.is_stopping() {
            let for_key = target.caller.key.is_some();
            let approval = shape(&approval, for_key, usize::MAX);
            return ok(&json!({ "approval": approval, "events": if for_key { Vec::new() } else { events } }));
        }
        let next = deadline.min(Instant::now() + Duration::from_secs(1));
        let _ = tokio::time::timeout_at(next, signals.signalled()).await;
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PreviewBody {
    args: JsonText,
}

/// Shows what the call would do with other arguments.
pub(crate) async fn preview(State(app): State<Arc<App>>, target: WorkspaceRequest, request: Request) -> Answer {
    let id: ApprovalId = target.id(&app, "approval").await?;
    let PreviewBody { args } = target.json(&app, request).await?;
    let (approval, _) = app.store.approval(target.access(Role::Editor), id).await?;
    let shown = Shown::of(&app, &edited(&app, &approval, args).await?).await?;
    let preview = &shown.preview;
    ok(&json!({ "diff": preview.diff, "command": preview.command, "asks": shown.asks, "preview": preview.shown }))
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
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct DecisionBody {
    decision: Option<Verdict>,
    scope: Option<Scope>,
    revision: Option<i64>,
    args: Option<JsonText>,
    preview: Option<String>,
    reason: Option<String>,
    /// What the scope covers: one of `grants_offered`; the first of them if there is none.
    grant: Option<String>,
    /// With a denial: refuse the same for the rest of the session without asking.
    #[serde(default)]
    remember: bool,
    approved: Option<bool>,
    #[serde(rename = "modifiedArgs")]
    modified_args: Option<JsonText>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
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
    request: Request,
) -> Answer {
    let id: ApprovalId = target.id(&app, "approval").await?;
    let body: DecisionBody = target.json(&app, request).await?;
    let Decision { approval, released } = decide_one(&app, &target, id, body, &peer).await?;
    ok(&json!({ "approval": shape(&approval, false, usize::MAX), "released": released }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DecisionsBody {
    decisions: Vec<OneDecision>,
}

#[derive(Deserialize)]
struct OneDecision {
    id: ApprovalId,
    #[serde(flatten)]
    decision: Value,
}

/// Decides about several approvals, each by itself.
pub(crate) async fn decide_many(
    State(app): State<Arc<App>>,
    target: WorkspaceRequest,
    Extension(peer): Extension<Peer>,
    request: Request,
) -> Answer {
    let DecisionsBody { decisions } = target.json(&app, request).await?;
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
            Ok(Decision { approval, released }) => json!({ "id": id, "state": approval.state, "released": released }),
            Err(error) => json!({ "id": id, "error": error.message }),
        });
    }
    ok(&json!({ "results": results }))
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
    let is_operators = |text: &String| app.settings.policy.rules.iter().any(|rule| rule.to_string() == *text);
    if let Some(rule) = asks.iter().filter_map(|ask| ask.rule.as_ref()).find(|rule| is_operators(rule)) {
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
                       choose the first of `grants_offered`, or change the rules with PUT /rules";
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
pub(crate) async fn withdraw(State(app): State<Arc<App>>, target: WorkspaceRequest) -> Answer {
    let id: ApprovalId = target.id(&app, "approval").await?;
    let approval = app.store.withdraw(target.access(Role::Viewer), id).await?;
    ok(&json!({ "approval": shape(&approval, target.caller.key.is_some(), usize::MAX) }))
}

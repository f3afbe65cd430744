//! The rules and grants of a workspace, and what they would say about a call.

use super::App;
use super::reply::{Answer, Reply, ok};
use super::request::{Unread, WorkspaceRequest};
use crate::approvals::{self, Shown};
use crate::policy::WorkspaceRules;
use axum::extract::State;
use http::{HeaderMap, HeaderValue, header};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use toolrest_core::rules::{ApprovalMode, Rule, RuleList};
use toolrest_core::{
    Access, ApprovalId, Ask, Call, CallId, ErrorKind, Grant, GrantId, JsonText, Result, Role, ToolError,
};

#[derive(Serialize, JsonSchema)]
pub(crate) struct RulesAnswer {
    /// Counts the changes of the rules; the header `If-Match` takes it.
    revision: i64,
    rules: Vec<Rule>,
    /// The rules in their short form.
    short: Vec<String>,
    /// When calls ask; none if the server's setting counts.
    approvals: Option<ApprovalMode>,
    /// The waiting calls that the rules now allow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    released: Vec<ApprovalId>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct GrantList {
    count: usize,
    grants: Vec<Grant>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Revoked {
    /// How many grants were ended.
    revoked: u64,
}

/// What would happen to a call.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "decision", rename_all = "lowercase")]
pub(crate) enum Judgement {
    /// It would run.
    Allow(Judged),
    /// It would wait for a person.
    Ask(Judged),
    /// It would be refused.
    Deny {
        reason: String,
        /// The rule that refuses it.
        rule: Option<Value>,
    },
}

/// What a call would do.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Judged {
    asks: Vec<Ask>,
    /// A unified diff of what it would change.
    diff: String,
    /// The command or code that it would run.
    command: Option<String>,
}

pub(crate) async fn list(State(app): State<Arc<App>>, target: WorkspaceRequest) -> Answer<Reply<RulesAnswer>> {
    let (revision, rules) = stored_rules(&app, target.access(Role::Viewer)).await?;
    answer(revision, rules, Vec::new())
}

/// Returns the rules of a workspace and their revision.
pub(super) async fn stored_rules(app: &App, access: Access) -> Result<(i64, WorkspaceRules)> {
    let (revision, body) = app.store.rules(access).await?;
    let rules = match body {
        Some(text) => serde_json::from_str(&text).map_err(ToolError::internal)?,
        None => WorkspaceRules::default(),
    };
    Ok((revision, rules))
}

pub(crate) async fn replace(
    State(app): State<Arc<App>>,
    target: WorkspaceRequest,
    body: Unread<RulesBody>,
) -> Answer<Reply<RulesAnswer>> {
    let expected = match if_match(body.request.headers()) {
        Ok(expected) => expected,
        Err(error) => target.refuse(&app, error).await?,
    };
    let rules = match target.json(&app, body).await?.into_rules() {
        Ok(rules) => rules,
        Err(error) => target.refuse(&app, error).await?,
    };
    if let Err(error) = RuleList::compile_new(rules.rules.clone(), app.engine.toolsets()) {
        target.refuse::<()>(&app, error).await?;
    }
    let body = serde_json::to_string(&rules).map_err(ToolError::internal)?;
    let access = target.access(Role::Owner);
    let revision = app.store.set_rules(access, expected, body).await?;
    answer(revision, rules, approvals::release_covered(&app.runtime, access, None).await)
}

/// The body of a change of rules: rules, or a preset.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RulesBody {
    rules: Option<Vec<Rule>>,
    approvals: Option<ApprovalMode>,
    preset: Option<Preset>,
}

impl RulesBody {
    fn into_rules(self) -> Result<WorkspaceRules> {
        match (self.preset, self.rules) {
            (None, Some(rules)) => Ok(WorkspaceRules { rules, approvals: self.approvals }),
            (Some(preset), None) if self.approvals.is_none() => preset.rules(),
            _ => Err(ToolError::argument("rules", "Give either `rules`, with `approvals` if you like, or a `preset`")),
        }
    }
}

/// Rules for a common wish.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Preset {
    /// Agents can read, list and search, and nothing else.
    ReadOnly,
    /// Agents edit and move files freely; deleting asks as the specifications say.
    AcceptEdits,
    /// Everything but reading asks.
    AskEverything,
    /// As the specifications say.
    Default,
}

impl Preset {
    fn rules(self) -> Result<WorkspaceRules> {
        let (rules, approvals): (&[&str], _) = match self {
            Self::ReadOnly => (&["deny *", "allow read"], ApprovalMode::Spec),
            Self::AcceptEdits => (&["allow write", "allow move"], ApprovalMode::Spec),
            Self::AskEverything => (&[], ApprovalMode::All),
            Self::Default => (&[], ApprovalMode::Spec),
        };
        let rules = rules.iter().map(|rule| rule.parse()).collect::<Result<_>>()?;
        Ok(WorkspaceRules { rules, approvals: Some(approvals) })
    }
}

/// Answers the rules, and the waiting calls that they cover.
fn answer(revision: i64, rules: WorkspaceRules, released: Vec<ApprovalId>) -> Answer<Reply<RulesAnswer>> {
    let WorkspaceRules { rules, approvals } = rules;
    let short = rules.iter().map(ToString::to_string).collect();
    let mut reply = ok(&RulesAnswer { revision, rules, short, approvals, released })?;
    if let Ok(tag) = HeaderValue::try_from(format!("\"{revision}\"")) {
        reply.response.headers_mut().insert(header::ETAG, tag);
    }
    Ok(reply)
}

/// Returns the revision that the caller expects.
fn if_match(headers: &HeaderMap) -> Result<Option<i64>> {
    let Some(value) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim_matches('"');
    let message = "The header If-Match must have the revision of the rules, as GET /rules gives it in ETag";
    text.parse().map(Some).map_err(|_| ToolError::argument("If-Match", message))
}

pub(crate) async fn grants(State(app): State<Arc<App>>, target: WorkspaceRequest) -> Answer<Reply<GrantList>> {
    let grants = app.store.grants(target.access(Role::Viewer)).await?;
    ok(&GrantList { count: grants.len(), grants })
}

pub(crate) async fn revoke_grants(State(app): State<Arc<App>>, target: WorkspaceRequest) -> Answer<Reply<Revoked>> {
    let revoked = app.store.revoke_grants(target.access(Role::Viewer), None).await?;
    ok(&Revoked { revoked })
}

pub(crate) async fn revoke_grant(State(app): State<Arc<App>>, target: WorkspaceRequest) -> Answer<Reply<Revoked>> {
    let grant: GrantId = target.id(&app, "grant").await?;
    let revoked = app.store.revoke_grants(target.access(Role::Viewer), Some(grant)).await?;
    if revoked == 0 {
        return Err(ToolError::new(ErrorKind::NotFound, format!("There is no grant '{grant}'")).into());
    }
    ok(&Revoked { revoked })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckBody {
    toolset: String,
    tool: String,
    /// The arguments, an object.
    args: JsonText,
    /// The label of the caller's session, to which grants are limited.
    #[serde(default)]
    session: String,
}

/// Says what would happen to a call of the caller: allowed, asked or denied, by which rule, and what it would change.
pub(crate) async fn check(
    State(app): State<Arc<App>>,
    target: WorkspaceRequest,
    body: Unread<CheckBody>,
) -> Answer<Reply<Judgement>> {
    let CheckBody { toolset, tool, args, session } = target.json(&app, body).await?;
    let id = CallId::new();
    let (caller, workspace) = (target.caller, target.workspace);
    let call = Call { id, correlation: id.to_string(), toolset, tool, args, caller, workspace, session };
    match Shown::of(&app, &call).await {
        Ok(shown) => {
            let Shown { asks, preview, .. } = shown;
            let judgement = if asks.is_empty() { Judgement::Allow } else { Judgement::Ask };
            ok(&judgement(Judged { asks, diff: preview.diff, command: preview.command }))
        }
        Err(error) if error.kind == ErrorKind::ApprovalDenied => {
            ok(&Judgement::Deny { rule: error.details.get("rule").cloned(), reason: error.message })
        }
        Err(error) => Err(error.into()),
    }
}

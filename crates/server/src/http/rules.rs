//! The rules and grants of a workspace, and what they would say about a call.

use super::App;
use super::reply::{Answer, ok};
use super::request::WorkspaceRequest;
use crate::approvals::{self, Shown};
use crate::policy::WorkspaceRules;
use axum::extract::{Request, State};
use axum::response::Response;
use http::{HeaderMap, HeaderValue, header};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use toolrest_core::rules::{ApprovalMode, Rule, RuleList};
use toolrest_core::{Access, ApprovalId, Call, CallId, ErrorKind, GrantId, JsonText, Result, Role, ToolError};

pub(crate) async fn list(State(app): State<Arc<App>>, target: WorkspaceRequest) -> Answer {
    let (revision, rules) = stored_rules(&app, target.access(Role::Viewer)).await?;
    answer(revision, &rules, &[])
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

pub(crate) async fn replace(State(app): State<Arc<App>>, target: WorkspaceRequest, request: Request) -> Answer {
    let expected = match if_match(request.headers()) {
        Ok(expected) => expected,
        Err(error) => target.refuse(&app, error).await?,
    };
    let body: RulesBody = target.json(&app, request).await?;
    let rules = match body.into_rules() {
        Ok(rules) => rules,
        Err(error) => target.refuse(&app, error).await?,
    };
    if let Err(error) = RuleList::compile_new(rules.rules.clone(), app.engine.toolsets()) {
        target.refuse::<()>(&app, error).await?;
    }
    let body = serde_json::to_string(&rules).map_err(ToolError::internal)?;
    let access = target.access(Role::Owner);
    let revision = app.store.set_rules(access, expected, body).await?;
    answer(revision, &rules, &approvals::release_covered(&app.runtime, access, None).await)
}

/// The body of a change of rules: rules, or a preset.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesBody {
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
#[derive(Clone, Copy, Deserialize)]
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
fn answer(revision: i64, rules: &WorkspaceRules, released: &[ApprovalId]) -> Answer<Response> {
    let short: Vec<String> = rules.rules.iter().map(ToString::to_string).collect();
    let mut body = json!({ "revision": revision, "rules": rules.rules, "short": short, "approvals": rules.approvals });
    if !released.is_empty() {
        body["released"] = json!(released);
    }
    let mut response = ok(&body)?;
    if let Ok(tag) = HeaderValue::try_from(format!("\"{revision}\"")) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    Ok(response)
}

/// Returns the revision that the caller expects.
fn if_match(headers: &HeaderMap) -> Result<Option<i64>> {
    let Some(value) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim_matches('"');
    let message = "The header If-Match must have the revision of the rules, as GET /rules gives it in ETag";
    text.parse().map(Some).map_err(|_| ToolError::argument("If-Match", message))
}

pub(crate) async fn grants(State(app): State<Arc<App>>, target: WorkspaceRequest) -> Answer {
    let grants = app.store.grants(target.access(Role::Viewer)).await?;
    ok(&json!({ "count": grants.len(), "grants": grants }))
}

pub(crate) async fn revoke_grants(State(app): State<Arc<App>>, target: WorkspaceRequest) -> Answer {
    let revoked = app.store.revoke_grants(target.access(Role::Viewer), None).await?;
    ok(&json!({ "revoked": revoked }))
}

pub(crate) async fn revoke_grant(State(app): State<Arc<App>>, target: WorkspaceRequest) -> Answer {
    let grant: GrantId = target.id(&app, "grant").await?;
    let revoked = app.store.revoke_grants(target.access(Role::Viewer), Some(grant)).await?;
    if revoked == 0 {
        return Err(ToolError::new(ErrorKind::NotFound, format!("There is no grant '{grant}'")).into());
    }
    ok(&json!({ "revoked": revoked }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckBody {
    toolset: String,
    tool: String,
    args: JsonText,
    #[serde(default)]
    session: String,
}

/// Says what would happen to a call of the caller: allowed, asked or denied, by which rule, and what it would change.
pub(crate) async fn check(State(app): State<Arc<App>>, target: WorkspaceRequest, request: Request) -> Answer {
    let CheckBody { toolset, tool, args, session } = target.json(&app, request).await?;
    let id = CallId::new();
    let (caller, workspace) = (target.caller, target.workspace);
    let call = Call { id, correlation: id.to_string(), toolset, tool, args, caller, workspace, session };
    match Shown::of(&app, &call).await {
        Ok(shown) => {
            let decision = if shown.asks.is_empty() { "allow" } else { "ask" };
            let (diff, command) = (&shown.preview.diff, &shown.preview.command);
            ok(&json!({ "decision": decision, "asks": shown.asks, "diff": diff, "command": command }))
        }
        Err(error) if error.kind == ErrorKind::ApprovalDenied => {
            ok(&json!({ "decision": "deny", "reason": error.message, "rule": error.details.get("rule") }))
        }
        Err(error) => Err(error.into()),
    }
}

//! Tool calls and the catalogue of tools.

use super::App;
use super::budget::Scope;
use super::reply::{Answer, Reply, answer_with, failure, ok};
use super::request::{caller, for_member, json, may_be_long, scope, workspace_id};
use super::tool_backend::{caller_and_workspace, without_prefix};
use crate::approvals::{self, AskOptions, Asked};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Query, Request, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};
use std::{collections::HashMap, sync::Arc, time::Duration};
use toolrest_core::{
    Approval, Call, CallId, CallOutcome, CatalogueFormat, Dialect, DynTool, ErrorKind, JsonText, Permission, Result,
    ToolError, Toolset, WaitingCall,
};
use toolrest_toolsets::workspace::WorkspaceDialect;

/// The name of the service at the listener of specification 003.
pub(super) const TOOL_BACKEND: &str = "tool-backend";

#[derive(Deserialize)]
struct ToolRequest {
    tool: JsonText,
    args: JsonText,
    #[serde(rename = "correlationId")]
    correlation_id: Option<JsonText>,
}

/// The header with the caller's id of a call.
static CORRELATION_ID: HeaderName = HeaderName::from_static("x-correlation-id");
/// The header with the caller's label for its session.
static SESSION: HeaderName = HeaderName::from_static("x-toolrest-session");
/// The header with the agent's own reason for a call.
static REASON: HeaderName = HeaderName::from_static("x-toolrest-reason");
/// The header with which a person says that the call is the person's own, so that nothing asks.
static OWN_HAND: HeaderName = HeaderName::from_static("x-toolrest-own-hand");

/// Calls a tool of the `workspace` toolset: the route of specification 000.
pub(crate) async fn call_workspace(
    State(app): State<Arc<App>>,
    workspace: Result<Path<String>, PathRejection>,
    request: Request,
) -> Response {
    let workspace = workspace.map_or_else(|_| String::new(), |Path(workspace)| workspace);
    answer(&app, Target::Workspace(&workspace), "workspace", request).await
}

/// Calls a tool of any toolset.
pub(crate) async fn call(
    State(app): State<Arc<App>>,
    names: Result<Path<(String, String)>, PathRejection>,
    request: Request,
) -> Response {
    // A name that is not UTF-8 is answered like an unknown one.
    let (workspace, toolset) = names.map_or_else(|_| Default::default(), |Path(names)| names);
    answer(&app, Target::Workspace(&workspace), &toolset, request).await
}

/// Calls a tool at the listener of specification 003.
pub(super) async fn answer_at_tool_backend(app: &App, request: Request) -> Response {
    answer(app, Target::ToolBackend, "backend", request).await
}

/// Where a call was sent.
#[derive(Clone, Copy)]
enum Target<'a> {
    /// To a workspace, whose id is in the path.
    Workspace(&'a str),
    /// To the listener of specification 003, which serves one workspace.
    ToolBackend,
}

/// The route has chosen the dialect, so everything that can go wrong from here on is answered in its shape.
async fn answer(app: &App, target: Target<'_>, toolset: &str, request: Request) -> Response {
    let id = CallId::new();
    let mut correlation = correlation_of(request.headers()).unwrap_or_else(|| id.to_string());
    let is_own_hand = request.headers().get(&OWN_HAND).is_some_and(|value| value == "true");
    let form = AnswerForm::of(request.headers());
    let bound = match bind(app, target, toolset, request, id, &mut correlation).await {
        Ok((call, _)) if is_own_hand => match call_with_own_hand(app, &call, form).await {
            Ok(response) => return with_correlation(response, correlation),
            // The engine has logged its cause.
            Err(error) => return with_correlation(refusal(app, toolset, &error, &correlation), correlation),
        },
        bound => bound,
    };
    let response = match bound {
        Ok((call, mut options)) => {
            // Only an id that the caller chose says that a call is a repetition.
            options.correlation = (correlation != id.to_string()).then(|| correlation.clone());
            match approvals::call(&app.runtime, call, options).await {
                Asked::Answer(answer) => answer_with(answer.status, answer.body),
                Asked::Failed(error) => refusal(app, toolset, &error, &correlation),
                Asked::Pending(approval) => pending(app, toolset, &approval, &correlation),
            }
        }
        Err(error) => {
            error.log_cause();
            refusal(app, toolset, &error, &correlation)
        }
    };
    with_correlation(response, correlation)
}

/// Calls a tool for a person who makes the call directly: `deny` holds, and nothing asks.
async fn call_with_own_hand(app: &App, call: &Call, form: AnswerForm) -> Result<Response> {
    let refusal = if call.caller.key.is_some() {
        Some("The header X-Toolrest-Own-Hand is for persons; the calls of an agent key are judged by the rules")
    } else if !app.settings.policy.self_approval {
        Some(
            "The setting policy.self_approval forbids persons to allow their own calls, so this call must be judged like \
             that of an agent: leave out the header X-Toolrest-Own-Hand (`toolrest call --as-agent`)",
        )
    } else {
        None
    };
    if let Some(message) = refusal {
        let error = ToolError::new(ErrorKind::Forbidden, message);
        return Err(app.engine.error_for_members(call.workspace, call.caller, error).await);
    }
    let dialect = dialect(app, &call.toolset);
    let render = |outcome: CallOutcome| {
        let text = || {
            let mut text = outcome.text()?;
            for warning in &outcome.warnings {
                text.extend(["\n# Warning: ", &dialect.notice(warning)]);
            }
            outcome.within_limit(text)
        };
        match form {
            AnswerForm::Data => Ok(answer_with(200, dialect.render(&outcome, &call.correlation)?)),
            AnswerForm::Text => {
                let media = HeaderValue::from_static("text/plain; charset=utf-8");
                Ok(([(header::CONTENT_TYPE, media)], text()?).into_response())
            }
            AnswerForm::DataAndText => {
                let data = dialect.render(&outcome, &call.correlation)?;
                let data: &RawValue = serde_json::from_slice(&data).map_err(ToolError::internal)?;
                let both = DataAndText { data, text: text()? };
                Ok(answer_with(200, serde_json::to_vec(&both).map_err(ToolError::internal)?))
            }
        }
    };
    app.engine.call(call, &Permission::OwnHand, render).await
}

/// The form of the answer that a person asks for.
#[derive(Clone, Copy)]
enum AnswerForm {
    /// JSON in the format of the toolset.
    Data,
    /// The text for people and models.
    Text,
    /// Both, as [`DataAndText`].
    DataAndText,
}

impl AnswerForm {
    fn of(headers: &HeaderMap) -> Self {
        match headers.get(header::ACCEPT).map(HeaderValue::as_bytes) {
            Some(b"application/json, text/plain") => Self::DataAndText,
            Some(accept) if accept.starts_with(b"text/plain") => Self::Text,
            _ => Self::Data,
        }
    }
}

/// An answer as data and as a text.
#[derive(Serialize)]
struct DataAndText<'a> {
    data: &'a RawValue,
    text: String,
}

fn with_correlation(mut response: Response, correlation: String) -> Response {
    // An id from the body may contain characters that headers cannot.
    if let Ok(value) = HeaderValue::try_from(correlation) {
        response.headers_mut().insert(CORRELATION_ID.clone(), value);
    }
    response
}

/// Adds the correlation id of a request to its answer, unless the answer has one.
pub(crate) fn echo_correlation(response: &mut Response, correlation: String) {
    if let Ok(value) = HeaderValue::try_from(correlation) {
        response.headers_mut().entry(CORRELATION_ID.clone()).or_insert(value);
    }
}

/// Answers an error outside of a route's handler, in the format of the toolset that the path names, if it names one.
pub(crate) fn refusal_at(app: &App, path: &str, correlation: Option<String>, error: &ToolError) -> Response {
    let Some(toolset) = toolset_at(path) else {
        return super::Failure(error.clone()).into_response();
    };
    refusal_of(app, toolset, correlation, error)
}

/// Returns the toolset that a path of the interface names, if it names one.
fn toolset_at(path: &str) -> Option<&str> {
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        ["", "api", "v1", "workspaces", _, "tools"] => Some("workspace"),
        ["", "api", "v1", "workspaces", _, "toolsets", toolset] => Some(toolset),
        _ => None,
    }
}

/// Answers an error outside of a route's handler, in the format of a toolset.
pub(super) fn refusal_of(app: &App, toolset: &str, correlation: Option<String>, error: &ToolError) -> Response {
    error.log_cause();
    let correlation = correlation.unwrap_or_else(|| CallId::new().to_string());
    with_correlation(refusal(app, toolset, error, &correlation), correlation)
}

/// Answers an error in the format of a toolset. Its cause was logged where it was found.
fn refusal(app: &App, toolset: &str, error: &ToolError, correlation: &str) -> Response {
    let dialect = dialect(app, toolset);
    failure(dialect.failure(error, correlation), dialect.status(error), error)
}

/// Returns the format of a toolset's answers. For an unknown toolset that is the format of the REST interface.
fn dialect<'a>(app: &'a App, toolset: &str) -> &'a dyn Dialect {
    app.engine.toolsets().find(toolset).map_or(&WorkspaceDialect, Toolset::dialect)
}

/// Returns the correlation id of the request's header, if it is valid.
pub(crate) fn correlation_of(headers: &HeaderMap) -> Option<String> {
    let given = headers.get(&CORRELATION_ID)?.to_str().ok()?;
    is_correlation(given).then(|| given.to_owned())
}

/// Whether a correlation id is valid: not empty, not too long, without control characters.
fn is_correlation(id: &str) -> bool {
    const MAX_BYTES: usize = 128;
    !id.is_empty() && id.len() <= MAX_BYTES && !id.chars().any(char::is_control)
}

/// Returns how a caller asks for approval, from its headers.
fn ask_options(app: &App, headers: &HeaderMap) -> AskOptions {
    let preferences = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    let mut preferences = preferences.flat_map(|value| value.split([',', ';']));
    let wait = preferences.find_map(|text| text.trim().strip_prefix("wait=")?.trim().parse().ok());
    let default = Duration::from_millis(app.settings.policy.wait_ms);
    let wait = wait.map_or(default, Duration::from_secs).min(approvals::MAX_WAIT);
    AskOptions { wait, reason: label(headers, &REASON), correlation: None, room: Scope::default() }
}

/// Returns a short text of a header, without control characters.
fn label(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    const MAX_CHARS: usize = 500;
    let text = String::from_utf8_lossy(headers.get(name)?.as_bytes()).into_owned();
    let text: String = text.chars().filter(|c| !c.is_control()).take(MAX_CHARS).collect();
    Some(text).filter(|text| !text.is_empty())
}

/// Answers a call that waits for a person: 202, in the format of the toolset.
fn pending(app: &App, toolset: &str, approval: &Approval, correlation: &str) -> Response {
    const RETRY_SECONDS: u64 = 10;
    let url = format!("/api/v1/workspaces/{}/approvals/{}", approval.call.workspace, approval.id);
    let because = approval.asks.first().map_or("", |ask| ask.because.as_str());
    let message = format!(
        "Approval required: a person must approve this call, because {because}. It waits as approval {}. Go on with other \
         work, and repeat the same call or look at {url} later: it never runs twice",
        approval.id
    );
    let error = ToolError::new(ErrorKind::ApprovalRequired, message).retry_after(RETRY_SECONDS);
    let error = error.detail("approvalId", approval.id.to_string()).detail("stepId", approval.call.id.to_string());
    let dialect = dialect(app, toolset);
    let waiting = WaitingCall { approval, url: &url };
    let mut response = failure(dialect.pending(&error, &waiting, correlation), 202, &error);
    if let Ok(location) = HeaderValue::try_from(&url) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

async fn bind(
    app: &App,
    target: Target<'_>,
    toolset: &str,
    request: Request,
    id: CallId,
    correlation: &mut String,
) -> Result<(Call, AskOptions)> {
    let room = scope(request.extensions());
    let options = AskOptions { room, ..ask_options(app, request.headers()) };
    let session = label(request.headers(), &SESSION).unwrap_or_default();
    let (caller, workspace) = match target {
        Target::Workspace(id) => (caller(app, request.headers(), request.extensions())?, workspace_id(id)?),
        Target::ToolBackend => caller_and_workspace(app, request.headers(), request.extensions()).await?,
    };
    // Reading a short body costs less than a membership check, and the call checks the membership anyway.
    let request = if may_be_long(&request) { for_member(app, workspace, caller, request).await? } else { request };
    match read(app, toolset, request, correlation).await {
        Ok((tool, args)) => {
            let tool = match target {
                Target::Workspace(_) => tool,
                Target::ToolBackend => without_prefix(&tool).to_owned(),
            };
            let correlation = correlation.clone();
            let toolset = toolset.to_owned();
            Ok((Call { id, correlation, toolset, tool, args, caller, workspace, session }, options))
        }
        Err(error) => Err(app.engine.error_for_members(workspace, caller, error).await),
    }
}

async fn read(app: &App, toolset: &str, request: Request, correlation: &mut String) -> Result<(String, JsonText)> {
    let Some(found) = app.engine.toolsets().find(toolset) else { return Err(no_toolset(toolset)) };
    let in_header = correlation_of(request.headers());
    let ToolRequest { tool, args, correlation_id } = json(request, app, app.settings.limits.body_bytes).await?;
    if let Some(given) = correlation_id {
        let given = given.as_string().filter(|id| is_correlation(id)).ok_or_else(|| {
            ToolError::argument(
                "correlationId",
                "`correlationId` must be a text of 1 to 128 bytes without control characters",
            )
        })?;
        if in_header.as_ref().is_some_and(|header| *header != given) {
            let message = "`correlationId` and the header X-Correlation-ID differ; give one of them, or the same twice";
            return Err(ToolError::argument("correlationId", message));
        }
        *correlation = given;
    } else if in_header.is_none() && found.dialect().needs_correlation() {
        let message = "Missing required field: correlationId; give it in the body, or as the header X-Correlation-ID";
        return Err(ToolError::argument("correlationId", message));
    }
    let tool = tool.as_string().ok_or_else(|| ToolError::argument("tool", "`tool` must be the name of a tool"))?;
    if !args.is_object() {
        return Err(ToolError::argument("args", "`args` must be an object with the tool's arguments"));
    }
    Ok((tool, args))
}

fn no_toolset(name: &str) -> ToolError {
    ToolError::new(ErrorKind::UnknownTool, format!("Toolset '{name}' not found"))
}

/// A toolset and the names of its tools.
#[derive(Serialize, JsonSchema)]
struct ToolsetNames {
    name: &'static str,
    tools: Vec<&'static str>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct ToolsetList {
    toolsets: Vec<ToolsetNames>,
}

/// Lists the toolsets.
pub(crate) async fn toolsets(State(app): State<Arc<App>>) -> Answer<Reply<ToolsetList>> {
    let toolsets = app.engine.toolsets().iter();
    let toolsets = toolsets
        .map(|toolset| ToolsetNames { name: toolset.name(), tools: toolset.tools().map(DynTool::name).collect() })
        .collect();
    ok(&ToolsetList { toolsets })
}

/// Shows the tools of a toolset with their schemas.
pub(crate) async fn catalogue(
    State(app): State<Arc<App>>,
    name: Result<Path<String>, PathRejection>,
    Query(query): Query<HashMap<String, String>>,
) -> Answer<Reply<Value>> {
    let format: CatalogueFormat = query.get("format").map_or(Ok(CatalogueFormat::default()), |text| text.parse())?;
    let name = name.map_or_else(|_| String::new(), |Path(name)| name);
    let toolset = app.engine.toolsets().find(&name).ok_or_else(|| no_toolset(&name))?;
    ok(&toolset.catalogue(format))
}

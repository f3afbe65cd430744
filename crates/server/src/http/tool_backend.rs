//! The routes of specification 003, which have a listener of their own.

use super::App;
use super::reply::{Answer, Reply, ok};
use super::request::{bearer, caller};
use super::tools::{self, TOOL_BACKEND};
use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::{get, post};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;
use toolrest_core::{Caller, ErrorKind, Result, ToolError, WorkspaceId, now};

/// The prefixes that the published client of specification 003 gives the names of tools.
const PREFIXES: [&str; 2] = ["daytona_", "codesandbox_"];

/// Builds the router of the listener.
pub(crate) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/health", get(health))
        .route("/tools", get(catalogue))
        .route("/execute-tool", post(execute))
        .fallback(no_route)
        .method_not_allowed_fallback(wrong_method)
        .with_state(app)
}

async fn health() -> Answer<Reply<Value>> {
    ok(&json!({ "status": "ok", "service": TOOL_BACKEND, "timestamp": now().to_string() }))
}

/// Shows the tools with the schemas of their arguments and answers.
async fn catalogue(State(app): State<Arc<App>>) -> Answer<Reply<Value>> {
    let toolset = app.engine.toolsets().find("backend").ok_or_else(|| ToolError::internal("no toolset `backend`"))?;
    let tools = toolset.tools().map(|tool| {
        json!({
            "name": tool.name(),
            "description": tool.description(),
            "requestSchema": tool.input_schema(),
            "responseSchema": tool.output_schema(),
        })
    });
    ok(&json!({ "tools": tools.collect::<Vec<Value>>() }))
}

async fn execute(State(app): State<Arc<App>>, request: Request) -> Response {
    tools::answer_at_tool_backend(&app, request).await
}

async fn no_route(State(app): State<Arc<App>>, request: Request) -> Response {
    let message = format!("Nothing is served at {}", request.uri().path());
    let hint = "This listener serves GET /health, GET /tools and POST /execute-tool";
    refused(&app, &request, &ToolError::new(ErrorKind::ItemNotFound, message).with_hint(hint))
}

async fn wrong_method(State(app): State<Arc<App>>, request: Request) -> Response {
    let message = format!("{} is not served at {}", request.method(), request.uri().path());
    let mut response = refused(&app, &request, &ToolError::new(ErrorKind::InvalidArgument, message));
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response
}

fn refused(app: &App, request: &Request, error: &ToolError) -> Response {
    tools::refusal_of(app, "backend", tools::correlation_of(request.headers()), error)
}

/// Returns the caller of a call and the workspace that the listener serves. A call without a token acts as an agent of the
/// local user, unless tokens are required. Cookies do not count: a browser sends them to every port of a host.
pub(super) async fn caller_and_workspace(
    app: &App,
    headers: &HeaderMap,
    extensions: &http::Extensions,
) -> Result<(Caller, WorkspaceId)> {
    if bearer(headers).is_some() {
        let caller = caller(app, headers, extensions)?;
        return Ok((caller, app.served_workspace.id(app).await?));
    }
    if headers.contains_key(http::header::AUTHORIZATION) {
        let message = "The header Authorization must be `Bearer` and a token; or leave it out";
        return Err(ToolError::new(ErrorKind::Unauthenticated, message));
    }
    if app.settings.tool_backend.require_token {
        let message =
            "A token is required (tool_backend.require_token); send the header Authorization: Bearer <agent key>";
        return Err(ToolError::new(ErrorKind::Unauthenticated, message));
    }
    let caller = app.served_workspace.agent(app).await?;
    super::request::scope(extensions).set_user(caller.user);
    if let Some(key) = caller.key {
        app.key_uses.note(key);
    }
    Ok((caller, app.served_workspace.id(app).await?))
}

/// Returns the name of a tool without the prefix of the published client.
pub(super) fn without_prefix(tool: &str) -> &str {
    PREFIXES.into_iter().find_map(|prefix| tool.strip_prefix(prefix)).unwrap_or(tool)
}

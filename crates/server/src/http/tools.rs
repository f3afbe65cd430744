//! Calling tools, and the catalogue of them.

use super::App;
use super::reply::{Answer, failure, ok, reply};
use super::request::{access_token, json, workspace_id};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Query, Request, State};
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use std::{collections::HashMap, sync::Arc};
use toolrest_core::{
    Call, CallId, Caller, CatalogueFormat, DynTool, ErrorKind, JsonText, Result, ToolError, Toolset, WorkspaceId,
};

#[derive(Deserialize)]
struct ToolRequest {
    tool: JsonText,
    args: JsonText,
}

/// Calls a tool of the `workspace` toolset: the route of specification 000.
pub(crate) async fn call_workspace(
    State(app): State<Arc<App>>,
    workspace: Result<Path<String>, PathRejection>,
    request: Request,
) -> Response {
    let workspace = workspace.map_or_else(|_| String::new(), |Path(workspace)| workspace);
    answer(&app, &workspace, "workspace", request).await
}

/// Calls a tool of any toolset.
pub(crate) async fn call(
    State(app): State<Arc<App>>,
    names: Result<Path<(String, String)>, PathRejection>,
    request: Request,
) -> Response {
    // Names that are not even text name nothing.
    let (workspace, toolset) = names.map_or_else(|_| Default::default(), |Path(names)| names);
    answer(&app, &workspace, &toolset, request).await
}

/// The route has chosen the dialect, so everything that can go wrong from here on is answered in its shape.
async fn answer(app: &App, workspace: &str, toolset: &str, request: Request) -> Response {
    let id = CallId::new();
    let error = match bind(app, workspace, toolset, request, id).await {
        Ok(call) => match app.engine.call(call).await {
            Some(answer) => return reply(answer),
            None => no_toolset(toolset),
        },
        Err(error) => error,
    };
    let shape = app.engine.toolsets().find(toolset).or_else(|| app.engine.toolsets().find("workspace"));
    match shape.map(Toolset::dialect) {
        Some(dialect) => failure(dialect.failure(&error, id), dialect.status(&error), &error),
        None => axum::response::IntoResponse::into_response(super::Failure(error)),
    }
}

async fn bind(app: &App, workspace: &str, toolset: &str, request: Request, id: CallId) -> Result<Call> {
    let caller = app.tokens.check(access_token(request.headers()))?;
    let workspace = workspace_id(workspace)?;
    match read(app, toolset, request).await {
        Ok((tool, args)) => Ok(Call { id, toolset: toolset.to_owned(), tool, args, caller, workspace }),
        Err(error) => Err(refuse(app, workspace, caller, error).await),
    }
}

async fn read(app: &App, toolset: &str, request: Request) -> Result<(String, JsonText)> {
    if app.engine.toolsets().find(toolset).is_none() {
        return Err(no_toolset(toolset));
    }
    let ToolRequest { tool, args } = json(request, app, app.settings.limits.body_bytes).await?;
    let tool = tool.as_string().ok_or_else(|| ToolError::argument("tool", "`tool` must be the name of a tool"))?;
    if !args.is_object() {
        return Err(ToolError::argument("args", "`args` must be an object with the tool's arguments"));
    }
    Ok((tool, args))
}

/// Tells what is wrong with a request only to those who may enter.
async fn refuse(app: &App, workspace: WorkspaceId, caller: Caller, error: ToolError) -> ToolError {
    app.engine.authorise(workspace, caller).await.err().unwrap_or(error)
}

fn no_toolset(name: &str) -> ToolError {
    ToolError::new(ErrorKind::UnknownTool, format!("Toolset '{name}' not found"))
}

/// Lists the toolsets.
pub(crate) async fn toolsets(State(app): State<Arc<App>>) -> Answer {
    let toolsets: Vec<_> = app
        .engine
        .toolsets()
        .iter()
        .map(|toolset| {
            let tools: Vec<_> = toolset.tools().map(DynTool::name).collect();
            json!({ "name": toolset.name(), "tools": tools })
        })
        .collect();
    ok(&json!({ "toolsets": toolsets }))
}

/// Shows the tools of a toolset with their schemas.
pub(crate) async fn catalogue(
    State(app): State<Arc<App>>,
    name: Result<Path<String>, PathRejection>,
    Query(query): Query<HashMap<String, String>>,
) -> Answer {
    let format: CatalogueFormat = query.get("format").map_or(Ok(CatalogueFormat::default()), |text| text.parse())?;
    let name = name.map_or_else(|_| String::new(), |Path(name)| name);
    let toolset = app.engine.toolsets().find(&name).ok_or_else(|| no_toolset(&name))?;
    ok(&toolset.catalogue(format))
}

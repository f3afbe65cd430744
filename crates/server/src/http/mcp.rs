//! The Model Context Protocol over HTTP: for agent keys at `/mcp`, for persons at the address of a workspace.
//!
//! Every request stands alone, so nothing is kept between requests and any server can answer each of them. A session is only
//! a label, which the server hands out and the client repeats.

use super::App;
use super::reply::Failure;
use super::request::{body, caller, for_member, scope, workspace_id};
use crate::mcp::{
    CancelReason, Cancellations, Connection, FolderSender, McpServer, Offer, OfferedTools, Schemas, Target,
};
use axum::body::{Body, Bytes};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Query, Request, State};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use http::{HeaderName, HeaderValue, StatusCode, header};
use http_body_util::{BodyExt, Full};
use rmcp::model::RequestId;
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::tower::StreamableHttpService;
use serde::Deserialize;
use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use toolrest_core::{Caller, ErrorKind, Result, ToolError, WorkspaceId};
use uuid::Uuid;

/// The query parameters of both routes.
pub(crate) const PARAMETERS: [&str; 3] = ["toolset", "read_only", "structured"];

/// The header with the label of a session.
static SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// Maximum length of a label.
const MAX_SESSION_BYTES: usize = 128;
/// Parts of an answer up to this size are not counted.
const SMALL_PART_BYTES: usize = 64 << 10;

/// What the routes share.
#[derive(Default)]
pub(crate) struct McpState {
    schemas: OnceLock<Schemas>,
    cancellations: Arc<Cancellations>,
}

/// Serves the workspace of an agent key.
pub(crate) async fn of_key(
    State(app): State<Arc<App>>,
    Query(query): Query<HashMap<String, String>>,
    request: Request,
) -> Response {
    let target = caller(&app, request.headers(), request.extensions()).and_then(|caller| {
        if let Some(key) = caller.key {
            Ok((caller, key.workspace))
        } else {
            let message = "/mcp is for agent keys; with an access token use /api/v1/workspaces/{id}/mcp";
            Err(ToolError::new(ErrorKind::Forbidden, message))
        }
    });
    answer(&app, target, &query, request).await
}

/// Serves a workspace for a member.
pub(crate) async fn of_workspace(
    State(app): State<Arc<App>>,
    workspace: Result<Path<String>, PathRejection>,
    Query(query): Query<HashMap<String, String>>,
    request: Request,
) -> Response {
    let workspace = workspace.map_or_else(|_| String::new(), |Path(workspace)| workspace);
    let target = caller(&app, request.headers(), request.extensions())
        .and_then(|caller| Ok((caller, workspace_id(&workspace)?)));
    answer(&app, target, &query, request).await
}

async fn answer(
    app: &Arc<App>,
    target: Result<(Caller, WorkspaceId)>,
    query: &HashMap<String, String>,
    request: Request,
) -> Response {
    let answered = match target {
        Ok((caller, workspace)) => serve(app, caller, workspace, query, request).await,
        Err(error) => Err(error),
    };
    let mut response = answered.unwrap_or_else(|error| Failure(error).into_response());
    if response.status() == StatusCode::UNAUTHORIZED {
        let challenge = HeaderValue::from_static("Bearer realm=\"toolrest\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

async fn serve(
    app: &Arc<App>,
    caller: Caller,
    workspace: WorkspaceId,
    query: &HashMap<String, String>,
    request: Request,
) -> Result<Response> {
    let request = for_member(app, workspace, caller, request).await?;
    let toolsets = app.engine.toolsets();
    let schemas = app.mcp.schemas.get_or_init(|| Schemas::new(toolsets));
    let tools = OfferedTools::new(toolsets, schemas, &offer(query)?, caller.key)
        .map_err(|error| ToolError::argument("toolset", error.to_string()))?;
    let scope = scope(request.extensions());
    let headers = request.headers().clone();
    let body = body(request, app, app.settings.limits.body_bytes).await?;
    let message = Message::read(&body);
    let session = session(&headers)?;
    if let Some((id, reason)) = message.cancelled() {
        app.mcp.cancellations.cancel(caller.member(), &session, id, reason);
    }

    let target = Target { runtime: Arc::clone(&app.runtime), workspace, caller };
    let (_, target) = watch::channel(Some(target));
    let cancellations = Arc::clone(&app.mcp.cancellations);
    let server = McpServer::new(
        tools,
        target,
        Connection::Http,
        session,
        CancellationToken::new(),
        cancellations,
        FolderSender::default(),
    );
    // `Host` and `Origin` were checked by the rules of this server, and the body was read within its limits.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .disable_allowed_hosts()
        .with_max_request_body_bytes(app.settings.limits.body_bytes);
    let service =
        StreamableHttpService::new(move || Ok(server.clone()), Arc::new(NeverSessionManager::default()), config);
    let mut request = http::Request::post("/mcp").body(Full::new(Bytes::from(body))).map_err(ToolError::internal)?;
    *request.headers_mut() = headers;
    // It contains the secret of the caller, which the library has no use for.
    request.headers_mut().remove(header::AUTHORIZATION);
    request.headers_mut().remove(header::COOKIE);
    let mut response = service.handle(request).await;
    if message.is_initialize() && response.status().is_success() {
        let label = HeaderValue::try_from(Uuid::new_v4().to_string()).map_err(ToolError::internal)?;
        response.headers_mut().insert(SESSION.clone(), label);
    }
    let is_stream = hyper::body::Body::size_hint(response.body()).exact().is_none();
    let response = response.map(Body::new);
    Ok(if is_stream { within_budget(app, scope.caller(), response) } else { response })
}

/// Counts the long parts of a stream against the caller's budget until they were sent. Other answers are counted with those
/// of all routes.
fn within_budget(app: &Arc<App>, caller: String, response: Response) -> Response {
    let app = Arc::clone(app);
    response.map(|body| {
        Body::from_stream(stream::try_unfold((body, None), move |(mut body, _sent)| {
            let (app, caller) = (Arc::clone(&app), caller.clone());
            async move {
                let Some(frame) = body.frame().await else { return Ok(None) };
                let Ok(data) = frame?.into_data() else { return Ok(None) };
                let held = match data.len() {
                    ..=SMALL_PART_BYTES => None,
                    long => Some(app.budget.reserve(&caller, long).await.map_err(axum::Error::new)?),
                };
                Ok::<_, axum::Error>(Some((data, (body, held))))
            }
        }))
    })
}

/// Returns which tools the query asks for.
fn offer(query: &HashMap<String, String>) -> Result<Offer> {
    let is_on = |name: &str| match query.get(name).map(String::as_str) {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(other) => Err(ToolError::argument(name, format!("`{name}` must be true or false, not '{other}'"))),
    };
    let toolsets = query.get("toolset").map_or("", String::as_str);
    Ok(Offer {
        toolsets: toolsets.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
        read_only: is_on("read_only")?,
        structured: is_on("structured")?,
    })
}

/// Returns the label of the session; empty if the client gave none.
fn session(headers: &http::HeaderMap) -> Result<String> {
    let Some(label) = headers.get(&SESSION) else { return Ok(String::new()) };
    let label = label.to_str().ok().filter(|label| label.len() <= MAX_SESSION_BYTES);
    label.map(str::to_owned).ok_or_else(|| {
        let message = format!("Mcp-Session-Id must have at most {MAX_SESSION_BYTES} bytes of ASCII");
        ToolError::argument("Mcp-Session-Id", message)
    })
}

/// The parts of a message that decide about its transport.
#[derive(Default, Deserialize)]
struct Message {
    #[serde(default)]
    method: String,
    #[serde(default)]
    params: Option<Params>,
}

#[derive(Deserialize)]
struct Params {
    #[serde(rename = "requestId")]
    request_id: Option<RequestId>,
    reason: Option<String>,
}

impl Message {
    /// Reads a message. One that is not valid has no parts; the library says why.
    fn read(body: &[u8]) -> Self {
        serde_json::from_slice(body).unwrap_or_default()
    }

    fn is_initialize(&self) -> bool {
        self.method == "initialize"
    }

    /// Returns the request that the message cancels, and why.
    fn cancelled(&self) -> Option<(RequestId, CancelReason)> {
        let is_cancellation = self.method == "notifications/cancelled";
        let params = self.params.as_ref().filter(|_| is_cancellation)?;
        Some((params.request_id.clone()?, CancelReason::of(params.reason.as_deref())))
    }
}

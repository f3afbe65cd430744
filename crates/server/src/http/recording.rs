//! Records changes over the REST interface, as calls of the toolset `api`.

use super::App;
use super::reply::{Failure, FailureReason};
use super::request::{caller, workspace_id};
use super::tools::correlation_of;
use axum::extract::{FromRequestParts, RawPathParams, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use std::sync::Arc;
use toolrest_core::{Caller, WorkspaceId};

/// Answers a request that changes a workspace, and records it under the name of its operation, whatever its outcome.
///
/// The handler finds the record in the extensions of the request. A request without a valid token or workspace is not
/// recorded: it is nobody's, or belongs nowhere.
pub(crate) async fn record_change(
    State((app, name)): State<(Arc<App>, &'static str)>,
    request: Request,
    next: Next,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let target = target(&app, &mut parts).await;
    let mut request = Request::from_parts(parts, body);
    let Some((workspace, caller)) = target else { return next.run(request).await };
    let correlation = correlation_of(request.headers());
    let record = match app.engine.begin_rest_change(name, correlation.as_deref(), workspace, caller).await {
        Ok(record) => record,
        Err(error) => return Failure(error).into_response(),
    };
    request.extensions_mut().insert(record.handle());
    let response = next.run(request).await;
    let failure = response.extensions().get::<FailureReason>();
    record.close(failure.map(|failure| (failure.kind, failure.message.as_str()))).await;
    response
}

/// Returns the workspace that the route names, decoded as the handler sees it, and the caller.
async fn target(app: &App, parts: &mut Parts) -> Option<(WorkspaceId, Caller)> {
    let params = RawPathParams::from_request_parts(parts, &()).await.ok()?;
    let (_, id) = params.iter().find(|(name, _)| *name == "workspace")?;
    let caller = caller(app, &parts.headers, &parts.extensions).ok()?;
    Some((workspace_id(id).ok()?, caller))
}

//! Records changes over the REST interface, as calls of the toolset `api`.

use super::App;
use super::reply::{Failure, FailureReason};
use super::request::{caller, workspace_id};
use super::tools::correlation_of;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use toolrest_core::{Caller, WorkspaceId};

/// Answers a request that changes a workspace, and records it under the name of its operation, whatever its outcome.
///
/// The handler finds the record in the extensions of the request. A request without a valid token or workspace is not
/// recorded: it is nobody's, or belongs nowhere.
pub(crate) async fn record_change(
    State((app, name)): State<(Arc<App>, &'static str)>,
    mut request: Request,
    next: Next,
) -> Response {
    let Some((workspace, caller)) = target(&app, &request) else { return next.run(request).await };
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

/// Returns the workspace that the path of the request names, and the caller.
fn target(app: &App, request: &Request) -> Option<(WorkspaceId, Caller)> {
    let id = request.uri().path().strip_prefix("/api/v1/workspaces/")?.split('/').next()?;
    let caller = caller(app, request.headers(), request.extensions()).ok()?;
    Some((workspace_id(id).ok()?, caller))
}

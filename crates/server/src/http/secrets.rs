//! The secrets of a workspace. Their values can be set, and are never shown.

use super::App;
use super::reply::{Answer, ok};
use super::request::{WorkspaceRequest, body_for_member};
use axum::extract::{Request, State};
use serde_json::json;
use std::sync::Arc;
use toolrest_core::{JsonText, Role, Secret, ToolError, check_secret_name};

pub(crate) async fn list(State(app): State<Arc<App>>, target: WorkspaceRequest) -> Answer {
    let secrets = app.store.list_secrets(target.access(Role::Editor)).await?;
    ok(&json!({ "count": secrets.len(), "secrets": secrets }))
}

pub(crate) async fn set(State(app): State<Arc<App>>, target: WorkspaceRequest, request: Request) -> Answer {
    let name = name(&app, &target).await?;
    // The body is neither recorded nor quoted in errors.
    let body: JsonText = body_for_member(&app, &target, request).await?;
    let secret = match value(&body) {
        Ok(secret) => secret,
        Err(error) => target.refuse(&app, error).await?,
    };
    let set = app.secrets.set(target.access(Role::Editor), &name, &secret).await?;
    ok(&json!({ "secret": set }))
}

pub(crate) async fn remove(State(app): State<Arc<App>>, target: WorkspaceRequest) -> Answer {
    let name = name(&app, &target).await?;
    app.store.delete_secret(target.access(Role::Editor), name).await?;
    ok(&json!({ "message": "Secret deleted" }))
}

async fn name(app: &App, target: &WorkspaceRequest) -> Result<String, ToolError> {
    let name = target.name("name");
    match check_secret_name("name", name) {
        Ok(()) => Ok(name.to_owned()),
        Err(error) => target.refuse(app, error).await,
    }
}

/// Returns the value of a body `{"value": …}`.
fn value(body: &JsonText) -> Result<Secret, ToolError> {
    let wrong =
        || ToolError::argument("value", "The body must be an object with the member `value`, a text, and no other");
    let members = body.members().ok_or_else(wrong)?;
    let [(name, value)] = &members[..] else { return Err(wrong()) };
    let value = value.as_string().filter(|_| name == "value").ok_or_else(wrong)?;
    Secret::new(value)
}

//! The secrets of a workspace. Their values can be set, and are never shown.

use super::App;
use super::reply::{Answer, Done, Reply, ok};
use super::request::{Unread, WorkspaceRequest, body_for_member};
use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;
use toolrest_core::{JsonText, Role, Secret, ToolError, check_secret_name};
use toolrest_store::SecretInfo;

#[derive(Serialize, JsonSchema)]
pub(crate) struct SecretList {
    count: usize,
    secrets: Vec<SecretInfo>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct SecretAnswer {
    secret: SecretInfo,
}

/// Describes the body of a new value. It is read by [`value`], whose errors do not quote it.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[allow(dead_code, reason = "only described")]
pub(crate) struct NewSecret {
    /// The value that programs get.
    value: String,
}

pub(crate) async fn list(State(app): State<Arc<App>>, target: WorkspaceRequest) -> Answer<Reply<SecretList>> {
    let secrets = app.store.list_secrets(target.access(Role::Editor)).await?;
    ok(&SecretList { count: secrets.len(), secrets })
}

pub(crate) async fn set(
    State(app): State<Arc<App>>,
    target: WorkspaceRequest,
    unread: Unread<NewSecret>,
) -> Answer<Reply<SecretAnswer>> {
    let name = name(&app, &target).await?;
    // The body is neither recorded nor quoted in errors.
    let body: JsonText = body_for_member(&app, &target, unread.request).await?;
    let secret = match value(&body) {
        Ok(secret) => secret,
        Err(error) => target.refuse(&app, error).await?,
    };
    ok(&SecretAnswer { secret: app.secrets.set(target.access(Role::Editor), &name, &secret).await? })
}

pub(crate) async fn remove(State(app): State<Arc<App>>, target: WorkspaceRequest) -> Answer<Reply<Done>> {
    let name = name(&app, &target).await?;
    app.store.delete_secret(target.access(Role::Editor), name).await?;
    ok(&Done { message: "Secret deleted" })
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

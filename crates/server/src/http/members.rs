//! HTTP handlers for the members of a workspace.

use super::App;
use super::reply::{Answer, ok};
use super::request::WorkspaceRequest;
use crate::accounts::check_email;
use axum::extract::{Request, State};
use serde::Deserialize;
use serde_json::json;
use std::{sync::Arc, time::Duration};
use toolrest_core::{Action, Role, UserId};

/// Maximum time that the answer waits until the background processes of a member who may no longer run programs have
/// ended.
pub(crate) const STOP_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewMember {
    email: String,
    role: Role,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewRole {
    role: Role,
}

pub(crate) async fn list(State(app): State<Arc<App>>, target: WorkspaceRequest) -> Answer {
    let members = app.store.members(target.access(Role::Viewer)).await?;
    ok(&json!({ "count": members.len(), "members": members }))
}

pub(crate) async fn add(State(app): State<Arc<App>>, target: WorkspaceRequest, request: Request) -> Answer {
    let NewMember { email, role } = target.json(&app, request).await?;
    let email = match check_email(&email) {
        Ok(email) => email,
        Err(error) => target.refuse(&app, error).await?,
    };
    let member = app.store.add_member(target.access(Role::Owner), email, role).await?;
    ok(&json!({ "member": member }))
}

pub(crate) async fn set_role(State(app): State<Arc<App>>, target: WorkspaceRequest, request: Request) -> Answer {
    let user: UserId = target.id(&app, "user").await?;
    let NewRole { role } = target.json(&app, request).await?;
    let member = app.store.set_role(target.access(Role::Owner), user, role).await?;
    if role < Action::Exec.needs() {
        app.processes.stop_processes_of(target.workspace, user, STOP_TIMEOUT).await;
    }
    ok(&json!({ "member": member }))
}

pub(crate) async fn remove(State(app): State<Arc<App>>, target: WorkspaceRequest) -> Answer {
    let user: UserId = target.id(&app, "user").await?;
    // Every member may leave; only an owner may remove others.
    let need = if user == target.caller.user { Role::Viewer } else { Role::Owner };
    app.store.remove_member(target.access(need), user).await?;
    app.processes.stop_processes_of(target.workspace, user, STOP_TIMEOUT).await;
    ok(&json!({ "message": "Member removed" }))
}

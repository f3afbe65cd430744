//! Who belongs to a workspace.

use super::App;
use super::reply::{Answer, ok};
use super::request::At;
use crate::accounts::check_email;
use axum::extract::{Request, State};
use serde::Deserialize;
use serde_json::json;
use std::{sync::Arc, time::Duration};
use toolrest_core::{Action, Role, UserId};

/// How long the answer waits for the end of the background processes of a member who may not run any more.
const STOPPING: Duration = Duration::from_secs(5);

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

pub(crate) async fn list(State(app): State<Arc<App>>, at: At) -> Answer {
    let members = app.store.members(at.access(Role::Viewer)).await?;
    ok(&json!({ "count": members.len(), "members": members }))
}

pub(crate) async fn add(State(app): State<Arc<App>>, at: At, request: Request) -> Answer {
    let NewMember { email, role } = at.json(&app, request).await?;
    let email = match check_email(&email) {
        Ok(email) => email,
        Err(error) => at.refuse(&app, error).await?,
    };
    let member = app.store.add_member(at.access(Role::Owner), email, role).await?;
    ok(&json!({ "member": member }))
}

pub(crate) async fn set_role(State(app): State<Arc<App>>, at: At, request: Request) -> Answer {
    let user: UserId = at.id(&app, "user").await?;
    let NewRole { role } = at.json(&app, request).await?;
    let member = app.store.set_role(at.access(Role::Owner), user, role).await?;
    if role < Action::Exec.needs() {
        app.processes.stop_those_of(at.workspace, user, STOPPING).await;
    }
    ok(&json!({ "member": member }))
}

pub(crate) async fn remove(State(app): State<Arc<App>>, at: At) -> Answer {
    let user: UserId = at.id(&app, "user").await?;
    // Everybody may leave; only an owner may send others away.
    let need = if user == at.caller.user { Role::Viewer } else { Role::Owner };
    app.store.remove_member(at.access(need), user).await?;
    app.processes.stop_those_of(at.workspace, user, STOPPING).await;
    ok(&json!({ "message": "Member removed" }))
}

//! Who belongs to a workspace.

use super::App;
use super::accounts::normal_email;
use super::reply::{Answer, ok};
use super::request::{At, Json};
use axum::extract::State;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use toolrest_core::{Role, UserId};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewMember {
    email: String,
    role: Role,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewRole {
    role: Role,
}

pub(crate) async fn list(State(app): State<Arc<App>>, at: At) -> Answer {
    let members = app.store.members(at.access(Role::Viewer)).await?;
    ok(&json!({ "count": members.len(), "members": members }))
}

pub(crate) async fn add(State(app): State<Arc<App>>, at: At, Json(body): Json<NewMember>) -> Answer {
    let member = app.store.add_member(at.access(Role::Owner), normal_email(&body.email), body.role).await?;
    ok(&json!({ "member": member }))
}

pub(crate) async fn set_role(State(app): State<Arc<App>>, at: At, Json(body): Json<NewRole>) -> Answer {
    let user: UserId = at.id(&app, "user").await?;
    ok(&json!({ "member": app.store.set_role(at.access(Role::Owner), user, body.role).await? }))
}

pub(crate) async fn remove(State(app): State<Arc<App>>, at: At) -> Answer {
    let user: UserId = at.id(&app, "user").await?;
    // Everybody may leave; only an owner may send others away.
    let need = if user == at.caller.user { Role::Viewer } else { Role::Owner };
    app.store.remove_member(at.access(need), user).await?;
    ok(&json!({ "message": "Member removed" }))
}

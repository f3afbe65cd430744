//! HTTP handlers for the members of a workspace.

use super::App;
use super::reply::{Answer, Done, Reply, ok};
use super::request::{Unread, WorkspaceRequest};
use crate::accounts::check_email;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use toolrest_core::{Action, Role, UserId};
use toolrest_store::Member;

/// Maximum time that the answer waits until the background processes of a member who may no longer run programs have
/// ended.
pub(crate) const STOP_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewMember {
    /// Address of an account.
    email: String,
    role: Role,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewRole {
    role: Role,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct MemberList {
    count: usize,
    members: Vec<Member>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct MemberAnswer {
    member: Member,
}

pub(crate) async fn list(State(app): State<Arc<App>>, target: WorkspaceRequest) -> Answer<Reply<MemberList>> {
    let members = app.store.members(target.access(Role::Viewer)).await?;
    ok(&MemberList { count: members.len(), members })
}

pub(crate) async fn add(
    State(app): State<Arc<App>>,
    target: WorkspaceRequest,
    body: Unread<NewMember>,
) -> Answer<Reply<MemberAnswer>> {
    let NewMember { email, role } = target.json(&app, body).await?;
    let email = match check_email(&email) {
        Ok(email) => email,
        Err(error) => target.refuse(&app, error).await?,
    };
    let member = app.store.add_member(target.access(Role::Owner), email, role).await?;
    ok(&MemberAnswer { member })
}

pub(crate) async fn set_role(
    State(app): State<Arc<App>>,
    target: WorkspaceRequest,
    body: Unread<NewRole>,
) -> Answer<Reply<MemberAnswer>> {
    let user: UserId = target.id(&app, "user").await?;
    let NewRole { role } = target.json(&app, body).await?;
    let member = app.store.set_role(target.access(Role::Owner), user, role).await?;
    if role < Action::Exec.needs() {
        app.processes.stop_processes_of(target.workspace, user, STOP_TIMEOUT).await;
    }
    ok(&MemberAnswer { member })
}

pub(crate) async fn remove(State(app): State<Arc<App>>, target: WorkspaceRequest) -> Answer<Reply<Done>> {
    let user: UserId = target.id(&app, "user").await?;
    // Every member may leave; only an owner may remove others.
    let need = if user == target.caller.user { Role::Viewer } else { Role::Owner };
    app.store.remove_member(target.access(need), user).await?;
    app.processes.stop_processes_of(target.workspace, user, STOP_TIMEOUT).await;
    ok(&Done { message: "Member removed" })
}

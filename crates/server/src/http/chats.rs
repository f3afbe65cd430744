//! Chats, which the file tools see as virtual files.

use super::App;
use super::reply::{Answer, ok};
use super::request::{WorkspaceRequest, single_line};
use axum::extract::{Request, State};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use toolrest_core::{ChatId, NetChange, NetEffect, Result, Role, ToolError, WsPath};

const TITLE_CHARS: usize = 200;
const ROLES: [&str; 4] = ["user", "assistant", "system", "tool"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewChat {
    title: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewMessage {
    role: String,
    content: String,
}

pub(crate) async fn create(State(app): State<Arc<App>>, target: WorkspaceRequest, request: Request) -> Answer {
    let NewChat { title } = target.json(&app, request).await?;
    let title = match single_line("title", &title, TITLE_CHARS) {
        Ok(title) => title,
        Err(error) => target.refuse(&app, error).await?,
    };
    check_change(&app, &target).await?;
    ok(&json!({ "chat": app.store.create_chat(target.access(Role::Editor), title).await? }))
}

pub(crate) async fn show(State(app): State<Arc<App>>, target: WorkspaceRequest) -> Answer {
    let chat: ChatId = target.id(&app, "chat").await?;
    let cx = app.engine.rest_context("chats", target.workspace, target.caller, Role::Viewer).await?;
    cx.guard.require_read(&chat_path()?)?;
    ok(&json!({ "chat": app.store.chat(target.access(Role::Viewer), chat).await? }))
}

pub(crate) async fn add_message(State(app): State<Arc<App>>, target: WorkspaceRequest, request: Request) -> Answer {
    let chat: ChatId = target.id(&app, "chat").await?;
    let message: NewMessage = target.json(&app, request).await?;
    if let Err(error) = message.check() {
        target.refuse::<()>(&app, error).await?;
    }
    check_change(&app, &target).await?;
    let access = target.access(Role::Editor);
    ok(&json!({ "message": app.store.add_message(access, chat, message.role, message.content).await? }))
}

/// Returns the path by which rules judge chats: a file below `/chats`.
fn chat_path() -> Result<WsPath> {
    WsPath::within("/chats/any.chat")
}

/// Refuses a change of chats that the rules do not allow. It cannot wait for a person.
async fn check_change(app: &App, target: &WorkspaceRequest) -> Result<()> {
    let cx = app.engine.rest_context("chats", target.workspace, target.caller, Role::Editor).await?;
    cx.guard.judge(&[NetEffect { change: NetChange::Create, path: chat_path()? }], &[])
}

impl NewMessage {
    fn check(&self) -> Result<()> {
        if !ROLES.contains(&self.role.as_str()) {
            let message = format!("Unknown role '{}'; use one of {}", self.role, ROLES.join(", "));
            return Err(ToolError::argument("role", message));
        }
        if self.content.contains('\0') {
            return Err(ToolError::argument("content", "`content` must not have NUL characters"));
        }
        Ok(())
    }
}

//! Chats, which the file tools see as virtual files.

use super::App;
use super::reply::{Answer, Reply, ok};
use super::request::{Unread, WorkspaceRequest, single_line};
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use toolrest_core::{ChatId, NetChange, NetEffect, Result, Role, ToolError, WsPath};
use toolrest_store::{Chat, Message};

const TITLE_CHARS: usize = 200;
const ROLES: [&str; 4] = ["user", "assistant", "system", "tool"];

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewChat {
    /// Its title; 1 to 200 characters.
    title: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewMessage {
    /// The author: `user`, `assistant`, `system` or `tool`.
    role: String,
    /// The text.
    content: String,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct ChatAnswer {
    chat: Chat,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct MessageAnswer {
    message: Message,
}

pub(crate) async fn create(
    State(app): State<Arc<App>>,
    target: WorkspaceRequest,
    body: Unread<NewChat>,
) -> Answer<Reply<ChatAnswer>> {
    let NewChat { title } = target.json(&app, body).await?;
    let title = match single_line("title", &title, TITLE_CHARS) {
        Ok(title) => title,
        Err(error) => target.refuse(&app, error).await?,
    };
    check_change(&app, &target).await?;
    ok(&ChatAnswer { chat: app.store.create_chat(target.access(Role::Editor), title).await? })
}

pub(crate) async fn show(State(app): State<Arc<App>>, target: WorkspaceRequest) -> Answer<Reply<ChatAnswer>> {
    let chat: ChatId = target.id(&app, "chat").await?;
    let cx = app.engine.rest_context("chats", target.workspace, target.caller, Role::Viewer).await?;
    cx.guard.require_read(&chat_path()?)?;
    ok(&ChatAnswer { chat: app.store.chat(target.access(Role::Viewer), chat).await? })
}

pub(crate) async fn add_message(
    State(app): State<Arc<App>>,
    target: WorkspaceRequest,
    body: Unread<NewMessage>,
) -> Answer<Reply<MessageAnswer>> {
    let chat: ChatId = target.id(&app, "chat").await?;
    let message = target.json(&app, body).await?;
    if let Err(error) = message.check() {
        target.refuse::<()>(&app, error).await?;
    }
    check_change(&app, &target).await?;
    let access = target.access(Role::Editor);
    ok(&MessageAnswer { message: app.store.add_message(access, chat, message.role, message.content).await? })
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

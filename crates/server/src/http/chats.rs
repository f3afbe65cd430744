//! Chats, which the file tools see as virtual files.

use super::App;
use super::reply::{Answer, ok};
use super::request::{At, Json, line};
use axum::extract::State;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use toolrest_core::{ChatId, Role, ToolError};

const TITLE_CHARS: usize = 200;
const ROLES: [&str; 4] = ["user", "assistant", "system", "tool"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewChat {
    title: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewMessage {
    role: String,
    content: String,
}

pub(crate) async fn create(State(app): State<Arc<App>>, at: At, Json(body): Json<NewChat>) -> Answer {
    let title = line("title", &body.title, TITLE_CHARS)?;
    ok(&json!({ "chat": app.store.create_chat(at.access(Role::Editor), title).await? }))
}

pub(crate) async fn show(State(app): State<Arc<App>>, at: At) -> Answer {
    let chat: ChatId = at.id(&app, "chat").await?;
    ok(&json!({ "chat": app.store.chat(at.access(Role::Viewer), chat).await? }))
}

pub(crate) async fn add_message(State(app): State<Arc<App>>, at: At, Json(body): Json<NewMessage>) -> Answer {
    let chat: ChatId = at.id(&app, "chat").await?;
    if !ROLES.contains(&body.role.as_str()) {
        let message = format!("Unknown role '{}'; use one of {}", body.role, ROLES.join(", "));
        return Err(ToolError::argument("role", message).into());
    }
    if body.content.contains('\0') {
        return Err(ToolError::argument("content", "`content` must not have NUL characters").into());
    }
    let access = at.access(Role::Editor);
    ok(&json!({ "message": app.store.add_message(access, chat, body.role, body.content).await? }))
}

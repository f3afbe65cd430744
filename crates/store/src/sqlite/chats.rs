//! Chats, which are shown as virtual files.

use super::commits;
use super::files::{by_id, live};
use super::row::{authorised, collect, find, micros, run, time};
use crate::error::Result;
use crate::files::{CallInfo, Chat, Message, chat_row};
use crate::plan::FileRow;
use crate::store::{no_free_chat_name, no_such_chat};
use rusqlite::Connection;
use toolrest_core::{Access, Change, Changeset, ChatId, FileId, WorkspaceId, WsPath, now};
use uuid::Uuid;

pub(super) fn create(db: &Connection, access: Access, title: String) -> Result<Chat> {
    let ws = access.workspace;
    let folder = WsPath::posix("/chats")?;
    let make_folder = Changeset::one(Change::MakeDir(folder.clone()));
    commits::apply(db, access, &make_folder, &[None], &CallInfo::chats(access.person))?;
    let mut row = chat_row(folder.clone(), title);
    for name in Chat::file_names(row.display_name.as_deref().unwrap_or_default(), row.id) {
        row.path = folder.join(&name)?;
        if live(db, ws, &row.path)?.is_none() {
            commits::insert_file(db, ws, &row)?;
            return Ok(Chat::of(&row, Vec::new()));
        }
    }
    Err(no_free_chat_name())
}

pub(super) fn add_message(
    db: &Connection,
    access: Access,
    chat: ChatId,
    role: String,
    content: String,
) -> Result<Message> {
    authorised(db, access)?;
    let ws = access.workspace.0;
    find_chat(db, access.workspace, chat)?;
    let message = Message { id: Uuid::now_v7(), role, content, created_at: now() };
    let at = micros(message.created_at);
    let sql = "SELECT coalesce(max(seq), 0) + 1 FROM chat_messages WHERE ws = ?1 AND chat_id = ?2";
    let seq: i64 = find(db, sql, (ws, chat.0), |row| row.get(0))?.unwrap_or(1);
    Chat::check_room(bytes(db, access.workspace, FileId(chat.0))?, &message)?;
    run(
        db,
        "INSERT INTO chat_messages (ws, chat_id, seq, id, role, content, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        (ws, chat.0, seq, message.id, &message.role, &message.content, at),
    )?;
    run(db, "UPDATE files SET updated_at = ?3 WHERE ws = ?1 AND id = ?2", (ws, chat.0, at))?;
    commits::note_change(db, access.workspace, FileId(chat.0))?;
    Ok(message)
}

pub(super) fn read(db: &Connection, access: Access, chat: ChatId) -> Result<Chat> {
    authorised(db, access)?;
    let row = find_chat(db, access.workspace, chat)?;
    let messages = messages(db, access.workspace, row.id)?;
    Ok(Chat::of(&row, messages))
}

/// Returns the size of the messages of a chat.
pub(super) fn bytes(db: &Connection, ws: WorkspaceId, chat: FileId) -> Result<i64> {
    let sql = "SELECT coalesce(sum(octet_length(content)), 0) FROM chat_messages WHERE ws = ?1 AND chat_id = ?2";
    Ok(find(db, sql, (ws.0, chat.0), |row| row.get(0))?.unwrap_or(0))
}

/// Returns the messages of a chat, in order.
pub(super) fn messages(db: &Connection, ws: WorkspaceId, chat: FileId) -> Result<Vec<Message>> {
    let sql = "SELECT id, role, content, created_at FROM chat_messages WHERE ws = ?1 AND chat_id = ?2 ORDER BY seq";
    collect(db, sql, (ws.0, chat.0), |row| {
        Ok(Message { id: row.get(0)?, role: row.get(1)?, content: row.get(2)?, created_at: time(row, 3)? })
    })
}

fn find_chat(db: &Connection, ws: WorkspaceId, chat: ChatId) -> Result<FileRow> {
    by_id(db, ws, FileId(chat.0))?.filter(|row| row.is_virtual).ok_or_else(|| no_such_chat(chat))
}

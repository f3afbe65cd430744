//! Chats, which are shown as virtual files.

use super::Postgres;
use super::files::has_id;
use super::row::{FILE_COLUMNS, FILE_WIDTH, authorised, file_if_any};
use crate::error::Result;
use crate::files::{CallInfo, Chat, FileStore, Message, chat_row};
use crate::store::{no_free_chat_name, no_such_chat, required_rights};
use std::sync::LazyLock;
use tokio_postgres::Row;
use toolrest_core::{Access, Change, Changeset, ChatId, FileId, FileType, WorkspaceId, WsPath, now};
use uuid::Uuid;

static CHAT: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT m.rights, {FILE_COLUMNS}, t.id, t.role, t.content, t.created_at FROM members m
         LEFT JOIN files f ON f.ws = m.ws AND f.id = $3 AND f.is_virtual
         LEFT JOIN chat_messages t ON t.ws = f.ws AND t.chat_id = f.id
         WHERE m.ws = $1 AND m.user_id = $2 ORDER BY t.seq"
    )
});

/// The messages of a chat, in order.
pub(super) const MESSAGES: &str =
    "SELECT id, role, content, created_at FROM chat_messages WHERE ws = $1 AND chat_id = $2 ORDER BY seq";

/// The size of the messages of a chat.
const BYTES: &str =
    "SELECT coalesce(sum(octet_length(content)), 0)::bigint FROM chat_messages WHERE ws = $1 AND chat_id = $2";

pub(super) async fn create(store: &Postgres, access: Access, title: String) -> Result<Chat> {
    let folder = WsPath::posix("/chats")?;
    make_folder(store, access, &folder).await?;
    let mut row = chat_row(folder.clone(), title.clone());
    // Sharing the lock on the folder's row keeps the folder in place. If the name is taken, no row is inserted.
    let sql = "WITH me AS (
            SELECT CASE WHEN $8::bigint < 0 THEN rights & 3 >= -$8 ELSE rights BETWEEN $8 AND $8 | 3 END AS is_allowed
            FROM members WHERE ws = $1 AND user_id = $2
        ), folder AS (
            SELECT 1 FROM files WHERE ws = $1 AND path = $5 AND deleted_at IS NULL AND (SELECT is_allowed FROM me)
            FOR KEY SHARE
        ), made AS (
            INSERT INTO files (ws, id, path, dir, name, display_name, kind, is_virtual, created_at, updated_at)
            SELECT $1, $3, $4, $5, $6, $7, $9, true, $10, $10 FROM folder ON CONFLICT DO NOTHING RETURNING id
        )
        INSERT INTO changes (ws, file_id) SELECT $1, id FROM made RETURNING file_id";
    for name in Chat::file_names(&title, row.id) {
        row.path = folder.join(&name)?;
        let made = store
            .execute(
                sql,
                &[
                    &access.workspace.0,
                    &access.user.0,
                    &row.id.0,
                    &row.path.as_str(),
                    &folder.as_str(),
                    &row.path.name(),
                    &title,
                    &required_rights(access),
                    &FileType::Chat.code(),
                    &row.created_at,
                ],
            )
            .await?;
        if !made.is_empty() {
            return Ok(Chat::of(&row, Vec::new()));
        }
    }
    store.authorise(access).await?;
    Err(no_free_chat_name())
}

/// Creates the folder of chats, in a separate commit.
async fn make_folder(store: &Postgres, access: Access, folder: &WsPath) -> Result<()> {
    if store.stat(access, folder).await?.is_some_and(|entry| entry.file_type == FileType::Folder) {
        return Ok(());
    }
    store
        .commit(access, Changeset::one(Change::MakeDir(folder.clone())), CallInfo::chats(access.person))
        .await
        .map(drop)
}

pub(super) async fn add_message(
    store: &Postgres,
    access: Access,
    chat: ChatId,
    role: String,
    content: String,
) -> Result<Message> {
    let message = Message { id: Uuid::now_v7(), role, content, created_at: now() };
    // The chat's row is locked, so that concurrent messages get consecutive numbers. The number is computed in a second
    // statement, which sees what the previous holder of the lock committed.
    let lock = "WITH me AS (
            SELECT rights, CASE WHEN $3::bigint < 0 THEN rights & 3 >= -$3 ELSE rights BETWEEN $3 AND $3 | 3 END AS is_allowed
            FROM members WHERE ws = $1 AND user_id = $2
        ), chat AS (
            UPDATE files f SET updated_at = $5
            WHERE f.ws = $1 AND f.id = $4 AND f.is_virtual AND (SELECT is_allowed FROM me) RETURNING f.id
        ), changed AS (
            INSERT INTO changes (ws, file_id) SELECT $1, id FROM chat
        )
        SELECT me.rights, chat.id FROM me LEFT JOIN chat ON true";
    let insert = "INSERT INTO chat_messages (ws, chat_id, seq, id, role, content, created_at)
        SELECT $1, $2, coalesce(max(seq), 0) + 1, $3, $4, $5, $6 FROM chat_messages WHERE ws = $1 AND chat_id = $2";
    let mut transaction = store.transaction().await?;
    transaction.begin().await?;
    let rows = transaction
        .query(lock, &[&access.workspace.0, &access.user.0, &required_rights(access), &chat.0, &message.created_at])
        .await?;
    let found = authorised(access, &rows, 0)
        .and_then(|_| rows.first().filter(|row| has_id(row, 1)).ok_or_else(|| no_such_chat(chat)).map(drop));
    if let Err(error) = found {
        transaction.rollback().await?;
        return Err(error);
    }
    let rows = transaction.query(BYTES, &[&access.workspace.0, &chat.0]).await?;
    let size: i64 = rows.first().map_or(0, |row| row.get(0));
    if let Err(error) = Chat::check_room(size, &message) {
        transaction.rollback().await?;
        return Err(error);
    }
    transaction
        .query(
            insert,
            &[&access.workspace.0, &chat.0, &message.id, &message.role, &message.content, &message.created_at],
        )
        .await?;
    transaction.commit().await?;
    transaction.finished();
    Ok(message)
}

pub(super) async fn read(store: &Postgres, access: Access, chat: ChatId) -> Result<Chat> {
    let rows = store.fetch(&CHAT, &[&access.workspace.0, &access.user.0, &chat.0]).await?;
    authorised(access, &rows, 0)?;
    let row = rows.first().map_or(Ok(None), |row| file_if_any(row, 1))?.ok_or_else(|| no_such_chat(chat))?;
    let at = 1 + FILE_WIDTH;
    let messages = rows.iter().filter(|row| has_id(row, at)).map(|row| message(row, at)).collect();
    Ok(Chat::of(&row, messages))
}

impl Postgres {
    /// Returns the size of the messages of a chat.
    pub(super) async fn chat_bytes(&self, ws: WorkspaceId, chat: FileId) -> Result<i64> {
        Ok(self.fetch(BYTES, &[&ws.0, &chat.0]).await?.first().map_or(0, |row| row.get(0)))
    }

    /// Returns the messages of a chat, in order.
    pub(super) async fn messages(&self, ws: WorkspaceId, chat: FileId) -> Result<Vec<Message>> {
        Ok(self.fetch(MESSAGES, &[&ws.0, &chat.0]).await?.iter().map(|row| message(row, 0)).collect())
    }
}

pub(super) fn message(row: &Row, at: usize) -> Message {
    Message { id: row.get(at), role: row.get(at + 1), content: row.get(at + 2), created_at: row.get(at + 3) }
}

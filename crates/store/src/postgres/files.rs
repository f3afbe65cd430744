//! Reads files and their history: one statement each, which includes the membership.

use super::commits::PendingCommit;
use super::row::{FILE_COLUMNS, FILE_WIDTH, authorised, file, file_if_any, listed, version};
use super::{Postgres, chats};
use crate::blob::{Compression, decode, prepare};
use crate::error::{Result, StoreError};
use crate::files::{CallInfo, Chat, FileStore, Message};
use crate::jobs::run_to_end;
use crate::plan::{FileRow, no_such_file, plan};
use crate::quota;
use crate::store::{no_such_commit, no_such_version, not_a_folder};
use async_trait::async_trait;
use std::sync::{Arc, LazyLock};
use tokio_postgres::{Row, types::ToSql};
use toolrest_core::{
    Access, CallId, Changeset, ChatId, Commit, CommitId, CommitInfo, Content, Depth, Entry, File, FileId, FileType,
    Listing, Page, Preview, Search, SearchResult, UserId, Version, VersionId, WsPath, now,
};

static READ: LazyLock<String> = LazyLock::new(|| read_by("f.path = $3 AND f.deleted_at IS NULL"));
static READ_BY_ID: LazyLock<String> = LazyLock::new(|| read_by("f.id = $3"));

/// Selects a file with its content. The caller's rights are selected even if there is no such file.
fn read_by(condition: &str) -> String {
    format!(
        "SELECT m.rights, {FILE_COLUMNS}, b.encoding, b.size, CASE WHEN f.size <= $4 THEN b.data END
         FROM members m
         LEFT JOIN files f ON f.ws = m.ws AND {condition}
         LEFT JOIN blobs b ON b.ws = f.ws AND b.key = f.head_blob
         WHERE m.ws = $1 AND m.user_id = $2"
    )
}

static STAT: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT m.rights, {FILE_COLUMNS} FROM members m
         LEFT JOIN files f ON f.ws = m.ws AND f.path = $3 AND f.deleted_at IS NULL
         WHERE m.ws = $1 AND m.user_id = $2"
    )
});

/// By name in one folder, by path below it: each is the key of an index, and the first column.
const LIST: &str = "SELECT name, display_name, kind, is_virtual, CASE WHEN is_virtual THEN octet_length(coalesce(display_name, name))::bigint + 1 + (
        SELECT coalesce(sum(octet_length(m.role) + octet_length(m.content) + 4), 0)::bigint FROM chat_messages m
        WHERE m.ws = files.ws AND m.chat_id = files.id) ELSE size END, updated_at FROM files
    WHERE ws = $1 AND dir = $2 AND deleted_at IS NULL ORDER BY name LIMIT $3";
const LIST_BELOW: &str = "SELECT path, display_name, kind, is_virtual, CASE WHEN is_virtual THEN octet_length(coalesce(display_name, name))::bigint + 1 + (
        SELECT coalesce(sum(octet_length(m.role) + octet_length(m.content) + 4), 0)::bigint FROM chat_messages m
        WHERE m.ws = files.ws AND m.chat_id = files.id) ELSE size END, updated_at FROM files
    WHERE ws = $1 AND path > $2 AND path < $3 AND deleted_at IS NULL ORDER BY path LIMIT $4";

/// The caller's rights and the type of what is listed.
const FOLDER: &str = "SELECT m.rights, d.kind FROM members m
    LEFT JOIN files d ON d.ws = m.ws AND d.path = $3 AND d.deleted_at IS NULL
    WHERE m.ws = $1 AND m.user_id = $2";

const COMMIT_COLUMNS: &str = "c.id, c.call_id, c.toolset, c.tool, c.author, c.created_at, c.undoes, c.changes";

fn commit_info(row: &Row, at: usize) -> Result<CommitInfo> {
    Ok(CommitInfo {
        id: CommitId(row.get(at)),
        call_id: CallId(row.get(at + 1)),
        toolset: row.get(at + 2),
        tool: row.get(at + 3),
        author: UserId(row.get(at + 4)),
        created_at: row.get(at + 5),
        undoes: row.get::<_, Option<uuid::Uuid>>(at + 6).map(CommitId),
        changes: serde_json::from_str(row.get(at + 7)).map_err(StoreError::internal)?,
    })
}

/// Whether a left join found a row, by the id in this column.
pub(super) fn has_id(row: &Row, column: usize) -> bool {
    row.get::<_, Option<uuid::Uuid>>(column).is_some()
}

impl Postgres {
    async fn read_one(
        &self,
        sql: &str,
        access: Access,
        key: &(dyn ToSql + Sync),
        max_bytes: i64,
    ) -> Result<Option<File>> {
        let rows = self.fetch(sql, &[&access.workspace.0, &access.user.0, key, &max_bytes]).await?;
        authorised(access, &rows, 0)?;
        let Some((row, found)) = rows.first().map(|row| file_if_any(row, 1).map(|found| (row, found))).transpose()?
        else {
            return Ok(None);
        };
        match found {
            None => Ok(None),
            Some(found) if found.is_virtual => {
                let size = self.chat_bytes(access.workspace, found.id).await?;
                if size > max_bytes {
                    return Ok(Some(Chat::too_large(found, size)));
                }
                let messages = self.messages(access.workspace, found.id).await?;
                Chat::of(&found, messages).into_file(found).map(Some)
            }
            Some(found) => with_content(row, found).map(Some),
        }
    }
}

fn with_content(row: &Row, found: FileRow) -> Result<File> {
    let at = 1 + FILE_WIDTH;
    let content = match found.head {
        None => None,
        Some(head) => {
            let encoding: Option<i16> = row.get(at);
            let encoding =
                encoding.ok_or_else(|| StoreError::internal(format!("the blob {} is missing", head.blob)))?;
            let data: Option<&[u8]> = row.get(at + 2);
            data.map(|data| decode(head.form.code(), encoding, row.get(at + 1), data)).transpose()?
        }
    };
    Ok(File { entry: found.into(), content })
}

#[async_trait]
impl FileStore for Postgres {
    async fn authorise(&self, access: Access) -> Result<()> {
        let sql = "SELECT rights FROM members WHERE ws = $1 AND user_id = $2";
        let rows = self.fetch(sql, &[&access.workspace.0, &access.user.0]).await?;
        authorised(access, &rows, 0).map(drop)
    }

    async fn stat(&self, access: Access, path: &WsPath) -> Result<Option<Entry>> {
        let rows = self.fetch(&STAT, &[&access.workspace.0, &access.user.0, &path.as_str()]).await?;
        authorised(access, &rows, 0)?;
        rows.first().map_or(Ok(None), |row| Ok(file_if_any(row, 1)?.map(Entry::from)))
    }

    async fn read(&self, access: Access, path: &WsPath, max_bytes: i64) -> Result<File> {
        let read = self.read_one(&READ, access, &path.as_str(), max_bytes).await?;
        read.ok_or_else(|| StoreError::FileNotFound(path.clone()))
    }

    async fn list(&self, access: Access, folder: &WsPath, depth: Depth, limit: usize) -> Result<Listing> {
        let more = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
        let (ws, path) = (access.workspace.0, folder.as_str());
        let (low, high) = folder.below_range();
        let (sql, params): (&str, Vec<&(dyn ToSql + Sync)>) = match depth {
            Depth::Children => (LIST, vec![&ws, &path, &more]),
            Depth::Descendants => (LIST_BELOW, vec![&ws, &low, &high, &more]),
        };
        // Two statements in one round trip, so that not every row repeats the rights and the folder's type.
        let (folders, rows) = self.fetch_both((FOLDER, &[&ws, &access.user.0, &path]), (sql, &params)).await?;
        authorised(access, &folders, 0)?;
        match folders.first().and_then(|row| row.get::<_, Option<i16>>(1)) {
            None => return Err(StoreError::FileNotFound(folder.clone())),
            Some(kind) if kind != FileType::Folder.code() => return Err(not_a_folder(folder).into()),
            Some(_) => {}
        }
        let path = |key: &str| match depth {
            Depth::Children => folder.join(key),
            Depth::Descendants => Ok(WsPath::from_normal(key.to_owned())),
        };
        let entries = rows.iter().take(limit).map(|row| listed(row, path(row.get(0))?)).collect::<Result<_>>()?;
        Ok(Listing { entries, truncated: rows.len() > limit, unreadable: Vec::new(), unnamed: 0 })
    }

    async fn commit(&self, access: Access, changes: Changeset, call: CallInfo) -> Result<Commit> {
        let (changes, contents) = prepare(changes, Compression::WherePays).await?;
        let reserved = quota::reserve(self, access, quota::max_cost(&changes, &contents)).await?;
        let signals = Arc::clone(&self.signals);
        let pending = Arc::new(PendingCommit { access, changes, contents, call, reserved, signals });
        let (commit, _) = match self.put_in_one_statement(&pending).await? {
            Some(done) => done,
            None => self.commit_in_transaction(&pending).await?,
        };
        Ok(commit)
    }

    async fn preview(&self, access: Access, changes: Changeset, call: CallInfo) -> Result<Preview> {
        let (changes, contents) = prepare(changes, Compression::Off).await?;
        let view = self.unlocked_view(access, &changes).await?;
        let (heads, at) = (view.heads(), now());
        Ok(plan(&changes, &contents, view, at, &call.guard)?.into_preview(at, &heads))
    }

    async fn search(&self, access: Access, search: Search) -> Result<SearchResult> {
        self.searcher.search(Arc::new(self.clone()), access, search).await
    }

    async fn file(&self, access: Access, id: FileId, max_bytes: i64) -> Result<File> {
        self.read_one(&READ_BY_ID, access, &id.0, max_bytes).await?.ok_or_else(|| no_such_file(id))
    }

    async fn versions(&self, access: Access, id: FileId, page: Page<i64>) -> Result<Vec<Version>> {
        let sql = "SELECT m.rights, f.id, v.id, v.seq, v.hash, v.size, v.author, v.commit_id, v.created_at
                   FROM members m
                   LEFT JOIN files f ON f.ws = m.ws AND f.id = $3
                   LEFT JOIN LATERAL (
                       SELECT * FROM versions v WHERE v.ws = f.ws AND v.file_id = f.id AND v.seq < $4
                       ORDER BY v.seq DESC LIMIT $5
                   ) v ON true
                   WHERE m.ws = $1 AND m.user_id = $2";
        let (before, limit) = (page.before.unwrap_or(i64::MAX), i64::from(page.limit));
        let rows = self.fetch(sql, &[&access.workspace.0, &access.user.0, &id.0, &before, &limit]).await?;
        authorised(access, &rows, 0)?;
        if !rows.first().is_some_and(|row| has_id(row, 1)) {
            return Err(no_such_file(id));
        }
        rows.iter().filter(|row| has_id(row, 2)).map(|row| version(row, 2)).collect()
    }

    async fn version(
        &self,
        access: Access,
        id: FileId,
        version_id: VersionId,
        max_bytes: i64,
    ) -> Result<(Version, Option<Content>)> {
        let sql = "SELECT m.rights, v.id, v.seq, v.hash, v.size, v.author, v.commit_id, v.created_at,
                       v.form, b.encoding, b.size, CASE WHEN v.size <= $5 THEN b.data END
                   FROM members m
                   LEFT JOIN versions v ON v.ws = m.ws AND v.file_id = $3 AND v.id = $4
                   LEFT JOIN blobs b ON b.ws = v.ws AND b.key = v.blob
                   WHERE m.ws = $1 AND m.user_id = $2";
        let rows = self.fetch(sql, &[&access.workspace.0, &access.user.0, &id.0, &version_id.0, &max_bytes]).await?;
        authorised(access, &rows, 0)?;
        let row = rows.first().filter(|row| has_id(row, 1)).ok_or_else(|| no_such_version(version_id))?;
        let data: Option<&[u8]> = row.get(11);
        let content = data.map(|data| decode(row.get(8), row.get(9), row.get(10), data)).transpose()?;
        Ok((version(row, 1)?, content))
    }

    async fn trash(&self, access: Access, page: Page<FileId>) -> Result<Vec<Entry>> {
        let sql = format!(
            "SELECT {FILE_COLUMNS}, m.rights FROM members m
             LEFT JOIN LATERAL (
                 SELECT * FROM files f
                 WHERE f.ws = $1 AND f.deleted_at IS NOT NULL AND ($3::uuid IS NULL OR (f.deleted_at, f.id) <
                     (SELECT b.deleted_at, b.id FROM files b WHERE b.ws = $1 AND b.id = $3))
                 ORDER BY f.deleted_at DESC, f.id DESC LIMIT $4
             ) f ON true
             WHERE m.ws = $1 AND m.user_id = $2"
        );
        let params: [&(dyn ToSql + Sync); 4] =
            [&access.workspace.0, &access.user.0, &page.before.map(|id| id.0), &i64::from(page.limit)];
        let rows = self.fetch(&sql, &params).await?;
        authorised(access, &rows, FILE_WIDTH)?;
        rows.iter().filter(|row| has_id(row, 0)).map(|row| file(row).map(Entry::from)).collect()
    }

    async fn commits(&self, access: Access, page: Page<CommitId>) -> Result<Vec<CommitInfo>> {
        let sql = format!(
            "SELECT m.rights, {COMMIT_COLUMNS} FROM members m
             LEFT JOIN LATERAL (
                 SELECT * FROM commits c WHERE c.ws = $1 AND ($3::uuid IS NULL OR c.id < $3)
                 ORDER BY c.id DESC LIMIT $4
             ) c ON true
             WHERE m.ws = $1 AND m.user_id = $2"
        );
        let (before, limit) = (page.before.map(|id| id.0), i64::from(page.limit));
        let rows = self.fetch(&sql, &[&access.workspace.0, &access.user.0, &before, &limit]).await?;
        authorised(access, &rows, 0)?;
        rows.iter().filter(|row| has_id(row, 1)).map(|row| commit_info(row, 1)).collect()
    }

    async fn commit_info(&self, access: Access, id: CommitId) -> Result<CommitInfo> {
        let sql = format!(
            "SELECT m.rights, {COMMIT_COLUMNS} FROM members m
             LEFT JOIN commits c ON c.ws = m.ws AND c.id = $3
             WHERE m.ws = $1 AND m.user_id = $2"
        );
        let rows = self.fetch(&sql, &[&access.workspace.0, &access.user.0, &id.0]).await?;
        authorised(access, &rows, 0)?;
        rows.first().filter(|row| has_id(row, 1)).map_or_else(|| Err(no_such_commit(id)), |row| commit_info(row, 1))
    }

    async fn undone_by(&self, access: Access, commit: CommitId) -> Result<Option<CommitId>> {
        let sql = "SELECT m.rights, c.id FROM members m
            LEFT JOIN commits c ON c.ws = m.ws AND c.undoes = $3
                AND NOT EXISTS (SELECT 1 FROM commits r WHERE r.ws = c.ws AND r.undoes = c.id)
            WHERE m.ws = $1 AND m.user_id = $2 ORDER BY c.id DESC LIMIT 1";
        let rows = self.fetch(sql, &[&access.workspace.0, &access.user.0, &commit.0]).await?;
        authorised(access, &rows, 0)?;
        Ok(rows.first().and_then(|row| row.get::<_, Option<uuid::Uuid>>(1)).map(CommitId))
    }

    async fn create_chat(&self, access: Access, title: String) -> Result<Chat> {
        let bytes = quota::cost(0, 2);
        let reserved = quota::reserve(self, access, bytes).await?;
        let store = self.clone();
        run_to_end(async move {
            let chat = chats::create(&store, access, title).await?;
            reserved.count_written(bytes);
            Ok(chat)
        })
        .await
    }

    async fn add_message(&self, access: Access, chat: ChatId, role: String, content: String) -> Result<Message> {
        let bytes = quota::cost(i64::try_from(content.len()).map_err(StoreError::internal)?, 1);
        let reserved = quota::reserve(self, access, bytes).await?;
        let store = self.clone();
        run_to_end(async move {
            let message = chats::add_message(&store, access, chat, role, content).await?;
            reserved.count_written(bytes);
            Ok(message)
        })
        .await
    }

    async fn chat(&self, access: Access, chat: ChatId) -> Result<Chat> {
        chats::read(self, access, chat).await
    }
}

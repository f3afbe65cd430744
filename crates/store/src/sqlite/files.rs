//! The SQLite implementation of [`FileStore`].

use super::row::{FILE_COLUMNS, LISTED_COLUMNS, authorised, collect, file, find, hash, listed, version};
use super::staging::Staged;
use super::{Sqlite, chats, slices};
use crate::blob::{Compression, Prepared, decode, prepare};
use crate::error::{Result, StoreError};
use crate::files::{CallInfo, Chat, FileStore, Message};
use crate::plan::{FileRow, no_such_file};
use crate::quota::{self, Reserved};
use crate::store::{no_such_commit, no_such_version, not_a_folder};
use async_trait::async_trait;
use rusqlite::{Connection, Row};
use std::sync::Arc;
use toolrest_core::{
    Access, CallId, Changeset, ChatId, Commit, CommitId, CommitInfo, Content, Depth, Entry, File, FileId, FileType,
    Listing, Page, Preview, Search, SearchResult, UserId, Version, VersionId, WorkspaceId, WsPath,
};

/// Returns the row of the file at a path, unless it is in the trash.
pub(super) fn live(db: &Connection, ws: WorkspaceId, path: &WsPath) -> Result<Option<FileRow>> {
    let sql = format!("SELECT {FILE_COLUMNS} FROM files f WHERE f.ws = ?1 AND f.path = ?2 AND f.deleted_at IS NULL");
    find(db, &sql, (ws.0, path.as_str()), file)
}

/// Returns the row of the file with an id, even if it is in the trash.
pub(super) fn by_id(db: &Connection, ws: WorkspaceId, id: FileId) -> Result<Option<FileRow>> {
    let sql = format!("SELECT {FILE_COLUMNS} FROM files f WHERE f.ws = ?1 AND f.id = ?2");
    find(db, &sql, (ws.0, id.0), file)
}

/// Reads the content of a file, unless it is larger than `max_bytes`. The content of a virtual file is its chat.
fn with_content(db: &Connection, ws: WorkspaceId, row: FileRow, max_bytes: i64) -> Result<File> {
    if row.is_virtual {
        let size = chats::bytes(db, ws, row.id)?;
        if size > max_bytes {
            return Ok(Chat::too_large(row, size));
        }
        let messages = chats::messages(db, ws, row.id)?;
        return Chat::of(&row, messages).into_file(row);
    }
    let head = row.head;
    let entry = Entry::from(row);
    let head = head.filter(|_| entry.size <= max_bytes);
    let content = head.map(|head| blob(db, ws, head.blob, head.form.code())).transpose()?;
    Ok(File { entry, content })
}

fn blob(db: &Connection, ws: WorkspaceId, key: toolrest_core::ContentHash, form: i16) -> Result<Content> {
    // Decoded in place, so that the bytes are copied once.
    let found = slices::read(db, ws.0, key, |encoding, size, data| decode(form, encoding, size, data))?;
    found.ok_or_else(|| StoreError::internal(format!("the blob {key} is missing")))?
}

fn commit_info(row: &Row<'_>) -> rusqlite::Result<(CommitInfo, String)> {
    let info = CommitInfo {
        id: CommitId(row.get(0)?),
        call_id: CallId(row.get(1)?),
        toolset: row.get(2)?,
        tool: row.get(3)?,
        author: UserId(row.get(4)?),
        created_at: super::row::time(row, 5)?,
        undoes: row.get::<_, Option<uuid::Uuid>>(6)?.map(CommitId),
        changes: Vec::new(),
    };
    Ok((info, row.get(7)?))
}

fn with_changes((mut info, changes): (CommitInfo, String)) -> Result<CommitInfo> {
    info.changes = serde_json::from_str(&changes).map_err(StoreError::internal)?;
    Ok(info)
}

/// Returns a callback that replaces a reservation by the written bytes if the write succeeded.
fn count_if_written<T>(reserved: Reserved, bytes: i64) -> impl FnOnce(&Result<T>) {
    move |written| {
        if written.is_ok() {
            reserved.count_written(bytes);
        }
    }
}

const COMMIT: &str = "SELECT id, call_id, toolset, tool, author, created_at, undoes, changes FROM commits";

impl Sqlite {
    /// Stages large contents, then commits.
    async fn commit_staged(
        &self,
        access: Access,
        changes: Changeset,
        contents: Vec<Option<Prepared>>,
        call: CallInfo,
        staged: Staged,
    ) -> Result<Commit> {
        let contents = Arc::new(contents);
        self.stage(access.workspace, Some(access), &contents, |contents| contents.iter().flatten().collect()).await?;
        let apply = move |db: &Connection| super::commits::apply(db, access, &changes, &contents, &call);
        let wakeups = self.wakeups.clone();
        let note = move |committed: &Result<(Commit, i64)>| {
            if let Ok((Commit { id: Some(_), .. }, stored)) = committed {
                staged.committed(*stored);
                wakeups.wake(access.workspace.0);
            }
        };
        Ok(self.write_then(apply, note).await?.0)
    }
}

#[async_trait]
impl FileStore for Sqlite {
    async fn authorise(&self, access: Access) -> Result<()> {
        self.read_inline(move |db| authorised(db, access).map(drop)).await
    }

    async fn stat(&self, access: Access, path: &WsPath) -> Result<Option<Entry>> {
        let path = path.clone();
        self.read(move |db| {
            authorised(db, access)?;
            Ok(live(db, access.workspace, &path)?.map(Entry::from))
        })
        .await
    }

    async fn read(&self, access: Access, path: &WsPath, max_bytes: i64) -> Result<File> {
        let path = path.clone();
        Sqlite::read(self, move |db| {
            authorised(db, access)?;
            let row = live(db, access.workspace, &path)?.ok_or_else(|| StoreError::FileNotFound(path.clone()))?;
            with_content(db, access.workspace, row, max_bytes)
        })
        .await
    }

    async fn list(&self, access: Access, folder: &WsPath, depth: Depth, limit: usize) -> Result<Listing> {
        let folder = folder.clone();
        Sqlite::read(self, move |db| {
            authorised(db, access)?;
            let row = live(db, access.workspace, &folder)?.ok_or_else(|| StoreError::FileNotFound(folder.clone()))?;
            if row.file_type != FileType::Folder {
                return Err(not_a_folder(&folder).into());
            }
            let ws = access.workspace.0;
            let more = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
            let mut entries = match depth {
                Depth::Children => {
                    let sql = format!(
                        "SELECT {LISTED_COLUMNS} FROM files f
                         WHERE f.ws = ?1 AND f.dir = ?2 AND f.deleted_at IS NULL ORDER BY f.name LIMIT ?3"
                    );
                    collect(db, &sql, (ws, folder.as_str(), more), listed)?
                }
                Depth::Descendants => {
                    let sql = format!(
                        "SELECT {LISTED_COLUMNS} FROM files f
                         WHERE f.ws = ?1 AND f.path > ?2 AND f.path < ?3 AND f.deleted_at IS NULL
                         ORDER BY f.path LIMIT ?4"
                    );
                    let (low, high) = folder.below_range();
                    collect(db, &sql, (ws, low, high, more), listed)?
                }
            };
            let truncated = entries.len() > limit;
            entries.truncate(limit);
            Ok(Listing { entries, truncated, unreadable: Vec::new(), unnamed: 0 })
        })
        .await
    }

    async fn commit(&self, access: Access, changes: Changeset, call: CallInfo) -> Result<Commit> {
        let (changes, contents) = prepare(changes, Compression::Off).await?;
        let room = quota::reserve(self, access, quota::max_cost(&changes, &contents)).await?;
        let staged = self.staging.begin(access.workspace, &contents.iter().flatten().collect::<Vec<_>>(), Some(room));
        let committed = self.commit_staged(access, changes, contents, call, staged).await;
        if committed.is_err() {
            self.remove_abandoned(access.workspace).await;
        }
        committed
    }

    async fn preview(&self, access: Access, changes: Changeset, call: CallInfo) -> Result<Preview> {
        let (changes, contents) = prepare(changes, Compression::Off).await?;
        Sqlite::read(self, move |db| super::commits::preview(db, access, &changes, &contents, &call)).await
    }

    async fn search(&self, access: Access, search: Search) -> Result<SearchResult> {
        self.searcher.search(self.searchable(), access, search).await
    }

    async fn file(&self, access: Access, id: FileId, max_bytes: i64) -> Result<File> {
        Sqlite::read(self, move |db| {
            authorised(db, access)?;
            let row = by_id(db, access.workspace, id)?.ok_or_else(|| no_such_file(id))?;
            with_content(db, access.workspace, row, max_bytes)
        })
        .await
    }

    async fn versions(&self, access: Access, id: FileId, page: Page<i64>) -> Result<Vec<Version>> {
        Sqlite::read(self, move |db| {
            authorised(db, access)?;
            by_id(db, access.workspace, id)?.ok_or_else(|| no_such_file(id))?;
            let sql = "SELECT id, seq, hash, size, author, commit_id, created_at FROM versions
                       WHERE ws = ?1 AND file_id = ?2 AND seq < ?3 ORDER BY seq DESC LIMIT ?4";
            let before = page.before.unwrap_or(i64::MAX);
            collect(db, sql, (access.workspace.0, id.0, before, page.limit), version)
        })
        .await
    }

    async fn version(
        &self,
        access: Access,
        id: FileId,
        version_id: VersionId,
        max_bytes: i64,
    ) -> Result<(Version, Option<Content>)> {
        Sqlite::read(self, move |db| {
            authorised(db, access)?;
            let sql = "SELECT id, seq, hash, size, author, commit_id, created_at, blob, form FROM versions
                       WHERE ws = ?1 AND file_id = ?2 AND id = ?3";
            let found = find(db, sql, (access.workspace.0, id.0, version_id.0), |row| {
                Ok((version(row)?, hash(row, 7)?, row.get::<_, i16>(8)?))
            })?;
            let (version, key, form) = found.ok_or_else(|| no_such_version(version_id))?;
            let is_wanted = version.size <= max_bytes;
            let content = is_wanted.then(|| blob(db, access.workspace, key, form)).transpose()?;
            Ok((version, content))
        })
        .await
    }

    async fn trash(&self, access: Access, page: Page<FileId>) -> Result<Vec<Entry>> {
        Sqlite::read(self, move |db| {
            authorised(db, access)?;
            let sql = format!(
                "SELECT {FILE_COLUMNS} FROM files f
                 WHERE f.ws = ?1 AND f.deleted_at IS NOT NULL AND (?2 IS NULL OR (f.deleted_at, f.id) <
                     (SELECT deleted_at, id FROM files WHERE ws = ?1 AND id = ?2))
                 ORDER BY f.deleted_at DESC, f.id DESC LIMIT ?3"
            );
            let before = page.before.map(|id| id.0);
            collect(db, &sql, (access.workspace.0, before, page.limit), |row| file(row).map(Entry::from))
        })
        .await
    }

    async fn commits(&self, access: Access, page: Page<CommitId>) -> Result<Vec<CommitInfo>> {
        Sqlite::read(self, move |db| {
            authorised(db, access)?;
            let sql = format!("{COMMIT} WHERE ws = ?1 AND (?2 IS NULL OR id < ?2) ORDER BY id DESC LIMIT ?3");
            let before = page.before.map(|id| id.0);
            let rows = collect(db, &sql, (access.workspace.0, before, page.limit), commit_info)?;
            rows.into_iter().map(with_changes).collect()
        })
        .await
    }

    async fn commit_info(&self, access: Access, id: CommitId) -> Result<CommitInfo> {
        Sqlite::read(self, move |db| {
            authorised(db, access)?;
            let sql = format!("{COMMIT} WHERE ws = ?1 AND id = ?2");
            find(db, &sql, (access.workspace.0, id.0), commit_info)?
                .ok_or_else(|| no_such_commit(id))
                .and_then(with_changes)
        })
        .await
    }

    async fn undone_by(&self, access: Access, commit: CommitId) -> Result<Option<CommitId>> {
        Sqlite::read(self, move |db| {
            authorised(db, access)?;
            let sql = "SELECT id FROM commits c WHERE ws = ?1 AND undoes = ?2
                           AND NOT EXISTS (SELECT 1 FROM commits r WHERE r.ws = c.ws AND r.undoes = c.id)
                       ORDER BY id DESC LIMIT 1";
            find(db, sql, (access.workspace.0, commit.0), |row| Ok(CommitId(row.get(0)?)))
        })
        .await
    }

    async fn create_chat(&self, access: Access, title: String) -> Result<Chat> {
        let bytes = quota::cost(0, 2);
        let reserved = quota::reserve(self, access, bytes).await?;
        self.write_then(move |db| chats::create(db, access, title), count_if_written(reserved, bytes)).await
    }

    async fn add_message(&self, access: Access, chat: ChatId, role: String, content: String) -> Result<Message> {
        let bytes = quota::cost(i64::try_from(content.len()).map_err(StoreError::internal)?, 1);
        let reserved = quota::reserve(self, access, bytes).await?;
        let add = move |db: &Connection| chats::add_message(db, access, chat, role, content);
        self.write_then(add, count_if_written(reserved, bytes)).await
    }

    async fn chat(&self, access: Access, chat: ChatId) -> Result<Chat> {
        Sqlite::read(self, move |db| chats::read(db, access, chat)).await
    }
}

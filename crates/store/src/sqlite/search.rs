//! What searches read: the list of files, its changes, and the texts.

use super::row::{authorised, collect, find, hash};
use super::{chats, connect, slices, to_store_error};
use crate::error::{Result, StoreError};
use crate::files::Chat;
use crate::search::{Changed, Changes, Cursor, Files, IndexedFile, KnownList, ListedFile, Searchable, Source, Stored};
use crate::search::{TextReader, TextVisitor, Texts};
use async_trait::async_trait;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, types::FromSqlError};
use std::{
    ops::Deref,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};
use toolrest_core::{Access, ChatId, FileId, FileType, Form, WorkspaceId, WsPath};

/// Connections for searches, so that long searches do not block other readers. They are opened on demand; the search
/// queue limits their number.
pub(super) struct SearchConnections {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl SearchConnections {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, idle: Mutex::default() }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn acquire(self: &Arc<Self>) -> Result<PooledConnection> {
        let idle = self.idle().pop();
        let connection = idle.map_or_else(|| self.open(), Ok)?;
        Ok(PooledConnection { connection: Some(connection), owner: Arc::clone(self) })
    }

    fn open(&self) -> Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = connect(&self.path, flags)?;
        // Contents are read once, sequentially. Mapping avoids a copy in SQLite's page cache. Mapped pages count as
        // memory of the process, so the size is limited.
        connection.execute_batch("PRAGMA mmap_size = 268435456; PRAGMA cache_size = -2048").map_err(to_store_error)?;
        Ok(connection)
    }
}

/// A connection that returns to the pool when dropped. Its transaction is ended first.
struct PooledConnection {
    connection: Option<Connection>,
    owner: Arc<SearchConnections>,
}

impl Deref for PooledConnection {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        // The connection is only taken when this is dropped.
        self.connection.as_ref().unwrap_or_else(|| unreachable!())
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        let mut idle = self.owner.idle();
        if idle.len() < MAX_IDLE && (connection.is_autocommit() || connection.execute_batch("COMMIT").is_ok()) {
            idle.push(connection);
        }
    }
}

/// Maximum number of idle connections.
const MAX_IDLE: usize = 8;

/// Maximum page size of the list. Large, because the WAL grows while the list is read, and searching a page takes much
/// longer than reading it.
const LARGEST_PAGE: usize = 100_000;

/// Maximum number of changes that are read one by one. If there are more, the whole list is read.
const MAX_CHANGES: Cursor = 5_000;

const FILE: &str = "f.id, f.path, f.kind, f.is_virtual, f.head_blob, f.head_form, f.size, CASE WHEN f.is_virtual
    THEN (SELECT coalesce(max(m.seq), 0) FROM chat_messages m WHERE m.ws = f.ws AND m.chat_id = f.id) END";

/// Selects files that have a content.
const IS_FILE: &str = "f.deleted_at IS NULL AND f.kind <> 0 AND (f.is_virtual = 1 OR f.head_blob IS NOT NULL)";

/// Reads the columns of [`FILE`]. Signatures are read later with the contents, on all threads of the search.
fn listed_file(row: &Row<'_>) -> rusqlite::Result<ListedFile> {
    let id: uuid::Uuid = row.get(0)?;
    let unknown = || FromSqlError::InvalidType;
    let source = if row.get(3)? {
        Source::Chat { id: ChatId(id), messages: row.get(7)? }
    } else {
        let file_type = FileType::from_code(row.get(2)?).ok_or_else(unknown)?;
        Source::blob(hash(row, 4)?, Form::from_code(row.get(5)?).ok_or_else(unknown)?, file_type)
    };
    Ok(ListedFile {
        id: FileId(id),
        path: WsPath::from_normal(row.get(1)?),
        source,
        size: row.get(6)?,
        signature: None,
    })
}

fn changes(db: &Connection, ws: WorkspaceId, since: Option<Cursor>) -> Result<Changes> {
    // Two subqueries, so that each reads one end of an index instead of scanning it.
    let sql = "SELECT coalesce((SELECT min(place) FROM changes WHERE ws = ?1), 1),
                      coalesce((SELECT max(place) FROM changes WHERE ws = ?1), 0)";
    let (oldest, newest): (Cursor, Cursor) =
        find(db, sql, [ws.0], |row| Ok((row.get(0)?, row.get(1)?)))?.unwrap_or((1, 0));
    let changed = match since {
        Some(since) if oldest <= since + 1 && (since..=since + MAX_CHANGES).contains(&newest) => {
            let sql = format!(
                "SELECT {FILE}, c.file_id FROM (SELECT DISTINCT file_id FROM changes WHERE ws = ?1 AND place > ?2) c
                 LEFT JOIN files f ON f.ws = ?1 AND f.id = c.file_id AND {IS_FILE}"
            );
            Changed::Files(collect(db, &sql, (ws.0, since), |row| {
                let file = row.get::<_, Option<uuid::Uuid>>(0)?.map(|_| listed_file(row)).transpose()?;
                Ok((FileId(row.get(8)?), file))
            })?)
        }
        _ => Changed::Unknown,
    };
    Ok(Changes { cursor: newest, changed })
}

#[async_trait]
impl Searchable for SqliteTexts {
    async fn snapshot(&self, access: Access, since: Option<Cursor>, _: KnownList) -> Result<(Changes, Box<dyn Files>)> {
        let connections = Arc::clone(&self.0);
        blocking(move || {
            let db = connections.acquire()?;
            db.execute_batch("BEGIN").map_err(to_store_error)?;
            authorised(&db, access)?;
            let changes = changes(&db, access.workspace, since)?;
            let files: Box<dyn Files> = Box::new(SqliteFiles { db: Some(db), ws: access.workspace });
            Ok((changes, files))
        })
        .await
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(StoreError::internal)?
}

/// The files in the snapshot of the open transaction.
struct SqliteFiles {
    db: Option<PooledConnection>,
    ws: WorkspaceId,
}

#[async_trait]
impl Files for SqliteFiles {
    async fn page(&mut self, after: Option<&WsPath>, limit: usize) -> Result<Vec<ListedFile>> {
        let after = after.map_or(String::new(), WsPath::to_string);
        let ws = self.ws.0;
        let db = self.db.take().ok_or_else(|| StoreError::internal("a page was asked for after a failed one"))?;
        let (db, page) = blocking(move || {
            let sql = format!(
                "SELECT {FILE} FROM files f WHERE f.ws = ?1 AND f.path > ?2 AND {IS_FILE} ORDER BY f.path LIMIT ?3"
            );
            let page = collect(&db, &sql, (ws, after, i64::try_from(limit).unwrap_or(i64::MAX)), listed_file)?;
            Ok((db, page))
        })
        .await?;
        self.db = Some(db);
        Ok(page)
    }

    fn largest_page(&self) -> usize {
        LARGEST_PAGE
    }

    fn texts(&self) -> Option<Arc<dyn Texts>> {
        None
    }
}

/// Reads texts from SQLite.
pub(super) struct SqliteTexts(pub Arc<SearchConnections>);

impl Texts for SqliteTexts {
    fn reader(&self, ws: WorkspaceId) -> Result<Box<dyn TextReader>> {
        Ok(Box::new(SqliteReader { db: self.0.acquire()?, ws }))
    }
}

struct SqliteReader {
    db: PooledConnection,
    ws: WorkspaceId,
}

impl TextReader for SqliteReader {
    fn visit(&mut self, files: &[&IndexedFile], visitor: &mut dyn TextVisitor) -> Result<()> {
        // One transaction for a batch of texts: one per text would take longer than reading it. Not one for all texts,
        // because the WAL grows while a transaction is open.
        self.db.execute_batch("BEGIN").map_err(to_store_error)?;
        let visited = self.visit_in_transaction(files, visitor);
        self.db.execute_batch("COMMIT").map_err(to_store_error)?;
        visited
    }
}

impl SqliteReader {
    fn visit_in_transaction(&self, files: &[&IndexedFile], visitor: &mut dyn TextVisitor) -> Result<()> {
        let (db, ws) = (&self.db, self.ws);
        // Two statements, because SQLite reads all selected columns of a row, however large they are.
        let prepare = |sql| db.prepare_cached(sql).map_err(to_store_error);
        let mut signature = prepare("SELECT rowid, signature FROM blobs WHERE ws = ?1 AND key = ?2")?;
        let mut row_of = prepare("SELECT rowid FROM blobs WHERE ws = ?1 AND key = ?2")?;
        for (place, file) in files.iter().enumerate() {
            let flow = match file.source {
                Source::Binary => continue,
                Source::Chat { id, messages } => {
                    let text = chat_text(db, ws, id, messages)?;
                    visitor.take(place, text.map(Stored::Chat))?
                }
                Source::Blob { key, .. } => {
                    let asks = visitor.asks_for_signature(place);
                    let found = if asks { &mut signature } else { &mut row_of };
                    let found = found.query_row((ws.0, key.0), |row| {
                        let wanted = !asks || visitor.wants(place, row.get_ref(1)?.as_blob_or_null()?);
                        Ok(wanted.then_some(row.get::<_, i64>(0)?))
                    });
                    let rowid = match found.optional().map_err(to_store_error)? {
                        Some(None) => continue,
                        found => found.flatten(),
                    };
                    // Read in place: only slices are copied.
                    let visited = slices::read_at(db, ws.0, key, rowid, |encoding, size, data| {
                        visitor.take(place, Some(Stored::Blob { encoding, size, data }))
                    })?;
                    match visited {
                        Some(flow) => flow?,
                        None => visitor.take(place, None)?,
                    }
                }
            };
            if flow.is_break() {
                break;
            }
        }
        Ok(())
    }
}

fn chat_text(db: &Connection, ws: WorkspaceId, chat: ChatId, messages: i64) -> Result<Option<String>> {
    let sql = "SELECT display_name FROM files WHERE ws = ?1 AND id = ?2";
    let title: Option<Option<String>> = find(db, sql, (ws.0, chat.0), |row| row.get(0))?;
    let Some(title) = title else { return Ok(None) };
    let mut said = chats::messages(db, ws, FileId(chat.0))?;
    said.truncate(usize::try_from(messages).unwrap_or(0));
    Ok(Some(Chat::readable(title.as_deref(), &said)))
}

//! What searches read: the list of files, its changes, and the texts.

use super::row::{authorised, file_type, form, hash};
use super::transaction::Transaction;
use super::{Postgres, Query, chats};
use crate::error::{Result, StoreError};
use crate::files::{Chat, Message};
use crate::search::{Changed, Changes, Cursor, Files, IndexedFile, KnownList, ListedFile, Searchable, Source, Stored};
use crate::search::{TextReader, TextVisitor, Texts};
use crate::signature::Signature;
use async_trait::async_trait;
use std::{
    collections::HashMap,
    ops::ControlFlow,
    sync::{Arc, LazyLock},
};
use tokio::runtime::Handle;
use tokio_postgres::{Row, types::ToSql};
use toolrest_core::{Access, ChatId, FileId, WorkspaceId, WsPath};
use uuid::Uuid;

/// The columns that [`listed_file`] reads. They include the signature, because reading it later takes a round trip.
const FILE: &str = "f.id, f.path, f.kind, f.is_virtual, f.head_blob, f.head_form, f.size, b.signature,
    CASE WHEN f.is_virtual
        THEN (SELECT coalesce(max(m.seq), 0) FROM chat_messages m WHERE m.ws = f.ws AND m.chat_id = f.id) END";

/// Selects files that have a content.
const IS_FILE: &str = "f.deleted_at IS NULL AND f.kind <> 0 AND (f.is_virtual OR f.head_blob IS NOT NULL)";

/// Reads the membership, the current cursor, and the current state of files that changed since an earlier cursor.
///
/// Transactions from the earlier snapshot's xmin on may or may not have been visible then; applying a change twice is
/// harmless.
static CHANGES: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {FILE}, c.file_id, m.rights, pg_snapshot_xmin(pg_current_snapshot())::text::bigint, k.kept::text::bigint
         FROM members m CROSS JOIN changes_kept k
         LEFT JOIN (
             SELECT DISTINCT file_id FROM changes WHERE ws = $1 AND xid >= $3::bigint::text::xid8 LIMIT {MAX_CHANGES} + 1
         ) c ON true
         LEFT JOIN files f ON f.ws = $1 AND f.id = c.file_id AND {IS_FILE}
         LEFT JOIN blobs b ON b.ws = f.ws AND b.key = f.head_blob
         WHERE m.ws = $1 AND m.user_id = $2"
    )
});

static PAGE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {FILE} FROM files f LEFT JOIN blobs b ON b.ws = f.ws AND b.key = f.head_blob
         WHERE f.ws = $1 AND f.path > $2 AND {IS_FILE} ORDER BY f.path LIMIT $3"
    )
});

/// Maximum number of changed files that are read one by one. If there are more, the whole list is read.
const MAX_CHANGES: usize = 5_000;

/// Maximum page size of the list.
const LARGEST_PAGE: usize = 4096;

/// Maximum bytes of contents in one query.
const BATCH_BYTES: usize = 4 << 20;

fn listed_file(row: &Row) -> Result<ListedFile> {
    let id: Uuid = row.get(0);
    let source = if row.get(3) {
        Source::Chat { id: ChatId(id), messages: row.get(8) }
    } else {
        Source::blob(hash(row, 4)?, form(row.get(5))?, file_type(row.get(2))?)
    };
    Ok(ListedFile {
        id: FileId(id),
        path: WsPath::from_normal(row.get(1)),
        source,
        size: row.get(6),
        signature: row.get::<_, Option<&[u8]>>(7).and_then(Signature::from_bytes),
    })
}

fn changes(access: Access, since: Option<Cursor>, rows: &[Row]) -> Result<Changes> {
    authorised(access, rows, 10)?;
    let Some(first) = rows.first() else { return Err(StoreError::internal("a member without a row")) };
    let (cursor, kept): (Cursor, Cursor) = (first.get(11), first.get(12));
    let changed = match since {
        // A cursor in the future belongs to another database that this one was copied from.
        Some(since) if (kept..=cursor).contains(&since) && rows.len() <= MAX_CHANGES => {
            let of = |row: &Row| -> Result<Option<(FileId, Option<ListedFile>)>> {
                let Some(id) = row.get::<_, Option<Uuid>>(9) else { return Ok(None) };
                let is_there = row.get::<_, Option<Uuid>>(0).is_some();
                Ok(Some((FileId(id), if is_there { Some(listed_file(row)?) } else { None })))
            };
            Changed::Files(rows.iter().filter_map(|row| of(row).transpose()).collect::<Result<_>>()?)
        }
        _ => Changed::Unknown,
    };
    Ok(Changes { cursor, changed })
}

#[async_trait]
impl Searchable for Postgres {
    async fn snapshot(
        &self,
        access: Access,
        since: Option<Cursor>,
        rest: KnownList,
    ) -> Result<(Changes, Box<dyn Files>)> {
        let ws = access.workspace.0;
        let query: Query<'_> = (&CHANGES, &[&ws, &access.user.0, &since]);
        let (rows, transaction) = match rest {
            KnownList::Complete => (self.fetch(query.0, query.1).await?, None),
            KnownList::Partial => {
                let transaction = self.transaction().await?;
                let rows = transaction.begin_snapshot(query).await?;
                (rows, Some(Arc::new(transaction)))
            }
        };
        let files = PostgresFiles { transaction, ws };
        Ok((changes(access, since, &rows)?, Box::new(files)))
    }
}

/// The files in the snapshot of the transaction.
struct PostgresFiles {
    transaction: Option<Arc<Transaction>>,
    ws: Uuid,
}

#[async_trait]
impl Files for PostgresFiles {
    async fn page(&mut self, after: Option<&WsPath>, limit: usize) -> Result<Vec<ListedFile>> {
        let Some(transaction) = &self.transaction else {
            return Err(StoreError::internal("the rest of the list was said to be known"));
        };
        let after = after.map_or("", WsPath::as_str);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        transaction.query(&PAGE, &[&self.ws, &after, &limit]).await?.iter().map(listed_file).collect()
    }

    fn largest_page(&self) -> usize {
        LARGEST_PAGE
    }

    /// Texts are read on the connection of the transaction: searches that hold one connection and wait for a second
    /// could deadlock.
    fn texts(&self) -> Option<Arc<dyn Texts>> {
        let transaction = Arc::clone(self.transaction.as_ref()?);
        Some(Arc::new(OnTransaction(transaction)))
    }
}

struct OnTransaction(Arc<Transaction>);

impl Texts for OnTransaction {
    fn reader(&self, ws: WorkspaceId) -> Result<Box<dyn TextReader>> {
        Ok(Box::new(PostgresReader { connection: TextConnection::Transaction(Arc::clone(&self.0)), ws }))
    }
}

impl Texts for Postgres {
    fn reader(&self, ws: WorkspaceId) -> Result<Box<dyn TextReader>> {
        Ok(Box::new(PostgresReader { connection: TextConnection::Any(self.clone()), ws }))
    }
}

/// The connection that texts are read on.
enum TextConnection {
    Any(Postgres),
    Transaction(Arc<Transaction>),
}

impl TextConnection {
    /// Runs a query and blocks until its rows arrive.
    fn fetch(&self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        Handle::current().block_on(async {
            match self {
                Self::Any(store) => store.fetch(sql, params).await,
                Self::Transaction(transaction) => transaction.query(sql, params).await,
            }
        })
    }
}

struct PostgresReader {
    connection: TextConnection,
    ws: WorkspaceId,
}

impl TextReader for PostgresReader {
    fn visit(&mut self, files: &[&IndexedFile], visitor: &mut dyn TextVisitor) -> Result<()> {
        let mut begin = 0;
        while begin < files.len() {
            let mut bytes = 0;
            let fits = |file: &&&IndexedFile| {
                bytes += file.size;
                bytes <= BATCH_BYTES
            };
            // At least one file, however large it is.
            let end = begin + files[begin..].iter().take_while(fits).count().max(1);
            if self.visit_batch(&files[begin..end], begin, visitor)?.is_break() {
                break;
            }
            begin = end;
        }
        Ok(())
    }
}

impl PostgresReader {
    fn visit_batch(
        &self,
        files: &[&IndexedFile],
        first_place: usize,
        visitor: &mut dyn TextVisitor,
    ) -> Result<ControlFlow<()>> {
        let keys: Vec<&[u8]> = files
            .iter()
            .filter_map(|file| if let Source::Blob { key, .. } = &file.source { Some(&key.0[..]) } else { None })
            .collect();
        let sql = "SELECT key, encoding, size, data FROM blobs WHERE ws = $1 AND key = ANY($2)";
        let rows = if keys.is_empty() { Vec::new() } else { self.connection.fetch(sql, &[&self.ws.0, &keys])? };
        let blobs: HashMap<&[u8], &Row> = rows.iter().map(|row| (row.get(0), row)).collect();
        for (i, file) in files.iter().enumerate() {
            let stored = match &file.source {
                Source::Binary => continue,
                Source::Chat { id, messages } => self.chat_text(*id, *messages)?.map(Stored::Chat),
                Source::Blob { key, .. } => blobs.get(&key.0[..]).map(|row| Stored::Blob {
                    encoding: row.get(1),
                    size: row.get(2),
                    data: row.get(3),
                }),
            };
            if visitor.take(first_place + i, stored)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn chat_text(&self, chat: ChatId, messages: i64) -> Result<Option<String>> {
        let title = "SELECT display_name FROM files WHERE ws = $1 AND id = $2";
        let rows = self.connection.fetch(title, &[&self.ws.0, &chat.0])?;
        let Some(row) = rows.first() else { return Ok(None) };
        let said = self.connection.fetch(chats::MESSAGES, &[&self.ws.0, &chat.0])?;
        let count = usize::try_from(messages).unwrap_or(0);
        let said: Vec<Message> = said.iter().take(count).map(|row| chats::message(row, 0)).collect();
        Ok(Some(Chat::readable(row.get(0), &said)))
    }
}

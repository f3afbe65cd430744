//! What searches read: the list of files, what changed in it, and the texts.

use super::row::{authorised, file_type, form, hash};
use super::transaction::Transaction;
use super::{Postgres, Query, chats};
use crate::error::{Result, StoreError};
use crate::files::{Chat, Message};
use crate::search::{Changed, Changes, Cursor, Files, FoundFile, IndexedFile, Rest, Searchable, Source, Stored};
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

/// The columns that [`found_file`] reads. A signature is read along, because asking for it later is a round trip.
const FILE: &str = "f.id, f.path, f.kind, f.is_virtual, f.head_blob, f.head_form, f.size, b.signature,
    CASE WHEN f.is_virtual
        THEN (SELECT coalesce(max(m.seq), 0) FROM chat_messages m WHERE m.ws = f.ws AND m.chat_id = f.id) END";

/// Which rows are files that have a text, or bytes.
const IS_FILE: &str = "f.deleted_at IS NULL AND f.kind <> 0 AND (f.is_virtual OR f.head_blob IS NOT NULL)";

/// The membership, this moment, and what changed since an earlier one, as it is now.
///
/// Transactions from the earlier moment's xmin on may or may not have been seen then; to see one twice does no harm.
static CHANGES: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {FILE}, c.file_id, m.role, pg_snapshot_xmin(pg_current_snapshot())::text::bigint, k.kept::text::bigint
         FROM members m CROSS JOIN changes_kept k
         LEFT JOIN (
             SELECT DISTINCT file_id FROM changes WHERE ws = $1 AND xid >= $3::bigint::text::xid8 LIMIT {CHANGES_MOST} + 1
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

/// Beyond so many changed files the whole list is read anew.
const CHANGES_MOST: usize = 5_000;

/// How many rows of the list, with their signatures, are asked for at once.
const LARGEST_PAGE: usize = 4096;

/// How many bytes of contents are asked for at once.
const BATCH_BYTES: usize = 4 << 20;

fn found_file(row: &Row) -> Result<FoundFile> {
    let id: Uuid = row.get(0);
    let source = if row.get(3) {
        Source::Chat { id: ChatId(id), messages: row.get(8) }
    } else {
        Source::blob(hash(row, 4)?, form(row.get(5))?, file_type(row.get(2))?)
    };
    Ok(FoundFile {
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
        // A moment in the future is one of another database that this one was copied from.
        Some(since) if (kept..=cursor).contains(&since) && rows.len() <= CHANGES_MOST => {
            let of = |row: &Row| -> Result<Option<(FileId, Option<FoundFile>)>> {
                let Some(id) = row.get::<_, Option<Uuid>>(9) else { return Ok(None) };
                let is_there = row.get::<_, Option<Uuid>>(0).is_some();
                Ok(Some((FileId(id), if is_there { Some(found_file(row)?) } else { None })))
            };
            Changed::Files(rows.iter().filter_map(|row| of(row).transpose()).collect::<Result<_>>()?)
        }
        _ => Changed::Anything,
    };
    Ok(Changes { cursor, changed })
}

#[async_trait]
impl Searchable for Postgres {
    async fn snapshot(&self, access: Access, since: Option<Cursor>, rest: Rest) -> Result<(Changes, Box<dyn Files>)> {
        let ws = access.workspace.0;
        let query: Query<'_> = (&CHANGES, &[&ws, &access.user.0, &since]);
        let (rows, transaction) = match rest {
            Rest::Known => (self.look(query.0, query.1).await?, None),
            Rest::Unknown => {
                let transaction = self.transaction().await?;
                let rows = transaction.look_first(query).await?;
                (rows, Some(Arc::new(transaction)))
            }
        };
        let files = PostgresFiles { transaction, ws };
        Ok((changes(access, since, &rows)?, Box::new(files)))
    }
}

/// The files as the transaction sees them.
struct PostgresFiles {
    transaction: Option<Arc<Transaction>>,
    ws: Uuid,
}

#[async_trait]
impl Files for PostgresFiles {
    async fn page(&mut self, after: Option<&WsPath>, limit: usize) -> Result<Vec<FoundFile>> {
        let Some(transaction) = &self.transaction else {
            return Err(StoreError::internal("the rest of the list was said to be known"));
        };
        let after = after.map_or("", WsPath::as_str);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        transaction.query(&PAGE, &[&self.ws, &after, &limit]).await?.iter().map(found_file).collect()
    }

    fn largest_page(&self) -> usize {
        LARGEST_PAGE
    }

    /// On the same connection: a search that waited for a second one while it holds the first could wait for others
    /// that do the same.
    fn texts(&self) -> Option<Arc<dyn Texts>> {
        let transaction = Arc::clone(self.transaction.as_ref()?);
        Some(Arc::new(OnTransaction(transaction)))
    }
}

struct OnTransaction(Arc<Transaction>);

impl Texts for OnTransaction {
    fn reader(&self, ws: WorkspaceId) -> Result<Box<dyn TextReader>> {
        Ok(Box::new(PostgresReader { way: Way::Transaction(Arc::clone(&self.0)), ws }))
    }
}

impl Texts for Postgres {
    fn reader(&self, ws: WorkspaceId) -> Result<Box<dyn TextReader>> {
        Ok(Box::new(PostgresReader { way: Way::Any(self.clone()), ws }))
    }
}

/// The connection that texts are read on.
enum Way {
    Any(Postgres),
    Transaction(Arc<Transaction>),
}

impl Way {
    /// Runs a query and waits for its rows, on a thread that may.
    fn look(&self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        Handle::current().block_on(async {
            match self {
                Self::Any(store) => store.look(sql, params).await,
                Self::Transaction(transaction) => transaction.query(sql, params).await,
            }
        })
    }
}

struct PostgresReader {
    way: Way,
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
            // One file at least, however large it is.
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
        let rows = if keys.is_empty() { Vec::new() } else { self.way.look(sql, &[&self.ws.0, &keys])? };
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
        let rows = self.way.look(title, &[&self.ws.0, &chat.0])?;
        let Some(row) = rows.first() else { return Ok(None) };
        let said = self.way.look(chats::MESSAGES, &[&self.ws.0, &chat.0])?;
        let count = usize::try_from(messages).unwrap_or(0);
        let said: Vec<Message> = said.iter().take(count).map(|row| chats::message(row, 0)).collect();
        Ok(Some(Chat::readable(row.get(0), &said)))
    }
}

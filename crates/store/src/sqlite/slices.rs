//! Large contents, stored in slices ahead of the commit that needs them.
//!
//! There is one writer: a commit of hundreds of megabytes in one transaction would hold up the writes of all workspaces for
//! seconds. So its contents are written before, a little in each transaction, and the commit itself only refers to them.

use super::row::{authorised, find, micros, run};
use super::{Sqlite, fault};
use crate::blob::{Prepared, stored_bytes};
use crate::error::{Result, StoreError};
use crate::signature::Signature;
use rusqlite::{Connection, OptionalExtension, Row};
use std::sync::Arc;
use toolrest_core::{Access, ContentHash, WorkspaceId, now};
use uuid::Uuid;

/// Added to the encoding of a content that lies in `blob_slices`.
const SLICED: i16 = 3;
/// Size of a slice, and the most that one transaction writes, more or less.
pub(super) const SLICE_BYTES: usize = 1 << 20;
/// Contents from here on are stored in slices.
const SLICED_FROM_BYTES: usize = 2 * SLICE_BYTES;
/// Commits from here on are stored ahead.
const STAGED_FROM_BYTES: usize = 2 * SLICE_BYTES;

/// Whether the contents of a commit are stored ahead of it.
pub(super) fn are_staged(contents: &[&Prepared]) -> bool {
    contents.iter().map(|content| content.data.len()).sum::<usize>() >= STAGED_FROM_BYTES
}

impl Sqlite {
    /// Stores the contents of a commit ahead of it, if they are large; whoever is named must be a member.
    pub(super) async fn stage<C: Send + Sync + 'static>(
        &self,
        ws: WorkspaceId,
        access: Option<Access>,
        commit: &Arc<C>,
        contents: fn(&C) -> Vec<&Prepared>,
    ) -> Result<()> {
        if !are_staged(&contents(commit)) {
            return Ok(());
        }
        for batch in batches(&contents(commit)) {
            let commit = Arc::clone(commit);
            self.write(move |db| {
                if let Some(access) = access {
                    authorised(db, access)?;
                }
                let contents = contents(&commit);
                for piece in batch {
                    piece.store(db, ws.0, contents[piece.content])?;
                }
                Ok(())
            })
            .await?;
        }
        Ok(())
    }
}

/// A part of a content that is stored in one go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    /// Which content.
    content: usize,
    /// Which slice of it; none where the content is small enough to be stored whole.
    slice: Option<usize>,
}

/// Divides contents into what each transaction stores.
fn batches(contents: &[&Prepared]) -> Vec<Vec<Piece>> {
    let mut batches = vec![Vec::new()];
    let mut bytes = 0;
    for (content, prepared) in contents.iter().enumerate() {
        let size = prepared.data.len();
        let slices =
            if size < SLICED_FROM_BYTES { vec![None] } else { (0..size.div_ceil(SLICE_BYTES)).map(Some).collect() };
        for slice in slices {
            if bytes >= SLICE_BYTES {
                batches.push(Vec::new());
                bytes = 0;
            }
            bytes += size.min(SLICE_BYTES);
            if let Some(batch) = batches.last_mut() {
                batch.push(Piece { content, slice });
            }
        }
    }
    batches
}

impl Piece {
    fn store(self, db: &Connection, ws: Uuid, content: &Prepared) -> Result<()> {
        if exists(db, ws, content.key)? {
            return Ok(());
        }
        let staged = "INSERT INTO staged_blobs (ws, key, staged_at) VALUES (?1, ?2, ?3)
                      ON CONFLICT DO UPDATE SET staged_at = excluded.staged_at";
        run(db, staged, (ws, content.key.0, micros(now())))?;
        let Some(n) = self.slice else { return insert(db, ws, content).map(drop) };
        let (from, to) = (n * SLICE_BYTES, content.data.len().min((n + 1) * SLICE_BYTES));
        let sql = "INSERT INTO blob_slices (ws, key, n, data) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
        run(db, sql, (ws, content.key.0, number(n)?, &content.data[from..to]))?;
        if to < content.data.len() {
            return Ok(());
        }
        // The last one makes it a content. If one is missing, the commit stores the content whole.
        let sql = "SELECT count(*) FROM blob_slices WHERE ws = ?1 AND key = ?2";
        let stored: Option<i64> = find(db, sql, (ws, content.key.0), |row| row.get(0))?;
        if stored != Some(number(n + 1)?) {
            return Ok(());
        }
        insert_row(db, ws, content, SLICED + content.encoding.code(), &[]).map(drop)
    }
}

/// A count as the database takes it.
pub(super) fn number(n: usize) -> Result<i64> {
    i64::try_from(n).map_err(StoreError::internal)
}

/// Stores a content whole, unless it is there; tells whether it was not.
pub(super) fn insert(db: &Connection, ws: Uuid, content: &Prepared) -> Result<bool> {
    // Even a statement that turns out to have nothing to do would copy all of the bytes.
    if content.data.len() >= SLICE_BYTES && exists(db, ws, content.key)? {
        return Ok(false);
    }
    insert_row(db, ws, content, content.encoding.code(), &content.data)
}

/// Takes away the mark of a content that has its commit now; tells whether no commit had it before.
pub(super) fn unstage(db: &Connection, ws: Uuid, content: &Prepared) -> Result<bool> {
    let mark = "DELETE FROM staged_blobs WHERE ws = ?1 AND key = ?2 RETURNING staged_at >= 0";
    let Some(is_unused) = find(db, mark, (ws, content.key.0), |row| row.get(0))? else { return Ok(false) };
    // Slices that were about to be removed, of a content that is stored whole now, have no mark any more.
    let unused = "DELETE FROM blob_slices WHERE ws = ?1 AND key = ?2
                  AND NOT EXISTS (SELECT 1 FROM blobs WHERE ws = ?1 AND key = ?2 AND encoding >= ?3)";
    if content.data.len() >= SLICED_FROM_BYTES {
        run(db, unused, (ws, content.key.0, SLICED))?;
    }
    Ok(is_unused)
}

fn exists(db: &Connection, ws: Uuid, key: ContentHash) -> Result<bool> {
    Ok(find(db, "SELECT 1 FROM blobs WHERE ws = ?1 AND key = ?2", (ws, key.0), |_| Ok(()))?.is_some())
}

fn insert_row(db: &Connection, ws: Uuid, content: &Prepared, encoding: i16, data: &[u8]) -> Result<bool> {
    let sql = "INSERT INTO blobs (ws, key, size, encoding, signature, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
               ON CONFLICT DO NOTHING";
    let signature = content.signature.as_ref().map(Signature::as_bytes);
    Ok(run(db, sql, (ws, content.key.0, content.size, encoding, signature, data))? > 0)
}

/// Reads a content as it is stored, where it lies: its encoding, its size and its bytes.
pub(super) fn read<T>(
    db: &Connection,
    ws: Uuid,
    key: ContentHash,
    take: impl FnOnce(i16, i64, &[u8]) -> T,
) -> Result<Option<T>> {
    let sql = "SELECT encoding, size, data FROM blobs WHERE ws = ?1 AND key = ?2";
    let mut query = db.prepare_cached(sql).map_err(fault)?;
    let found = query.query_row((ws, key.0), |row| taken(db, ws, key, row, take));
    found.optional().map_err(fault)?.transpose()
}

/// Reads a content whose row is known.
pub(super) fn read_at<T>(
    db: &Connection,
    ws: Uuid,
    key: ContentHash,
    rowid: Option<i64>,
    take: impl FnOnce(i16, i64, &[u8]) -> T,
) -> Result<Option<T>> {
    let mut query = db.prepare_cached("SELECT encoding, size, data FROM blobs WHERE rowid = ?1").map_err(fault)?;
    let found = query.query_row([rowid], |row| taken(db, ws, key, row, take));
    found.optional().map_err(fault)?.transpose()
}

fn taken<T>(
    db: &Connection,
    ws: Uuid,
    key: ContentHash,
    row: &Row<'_>,
    take: impl FnOnce(i16, i64, &[u8]) -> T,
) -> rusqlite::Result<Result<T>> {
    let (encoding, size): (i16, i64) = (row.get(0)?, row.get(1)?);
    if encoding < SLICED {
        return Ok(Ok(take(encoding, size, row.get_ref(2)?.as_blob()?)));
    }
    let joined = join(db, ws, key)?;
    if encoding == SLICED && i64::try_from(joined.len()).ok() != Some(size) {
        let cause = format!("slices of the blob {key} are missing: {} of {size} bytes are there", joined.len());
        return Ok(Err(StoreError::internal(cause)));
    }
    Ok(Ok(take(encoding - SLICED, size, &joined)))
}

/// Reads how a content begins, as it is stored in this way: at most so many bytes. Gives also its encoding.
pub(super) fn beginning(
    db: &Connection,
    ws: Uuid,
    key: ContentHash,
    encoding: i16,
    most_bytes: i64,
) -> Result<(i16, Vec<u8>)> {
    let (sql, encoding) = if encoding < SLICED {
        ("SELECT substr(data, 1, ?3) FROM blobs WHERE ws = ?1 AND key = ?2", encoding)
    } else {
        ("SELECT substr(data, 1, ?3) FROM blob_slices WHERE ws = ?1 AND key = ?2 AND n = 0", encoding - SLICED)
    };
    let found = find(db, sql, (ws, key.0, most_bytes), |row| row.get(0))?;
    Ok((encoding, found.unwrap_or_default()))
}

/// Reads the bytes of a content.
pub(super) fn bytes(db: &Connection, ws: Uuid, key: ContentHash) -> Result<Option<Vec<u8>>> {
    read(db, ws, key, |encoding, size, data| stored_bytes(encoding, size, data).map(Vec::from))?.transpose()
}

/// Puts slices together.
fn join(db: &Connection, ws: Uuid, key: ContentHash) -> rusqlite::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut query = db.prepare_cached("SELECT data FROM blob_slices WHERE ws = ?1 AND key = ?2 ORDER BY n")?;
    let mut rows = query.query((ws, key.0))?;
    while let Some(row) = rows.next()? {
        bytes.extend_from_slice(row.get_ref(0)?.as_blob()?);
    }
    Ok(bytes)
}

#[cfg(test)]
#[path = "slices_tests.rs"]
mod tests;

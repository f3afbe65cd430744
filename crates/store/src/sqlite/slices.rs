//! Large contents, staged in slices before the commit that needs them.
//!
//! There is one writer: a commit of hundreds of megabytes in one transaction would block the writes of all workspaces
//! for seconds. So its contents are written before it, in small transactions, and the commit only refers to them.

use super::row::{authorised, find, micros, run};
use super::{Sqlite, to_store_error};
use crate::blob::{Prepared, stored_bytes};
use crate::error::{Result, StoreError};
use crate::signature::Signature;
use rusqlite::{Connection, OptionalExtension, Row};
use std::sync::Arc;
use toolrest_core::{Access, ContentHash, WorkspaceId, now};
use uuid::Uuid;

/// Added to the encoding of a content whose bytes are in `blob_slices`.
const SLICED: i16 = 3;
/// Size of a slice, and approximately the maximum that one transaction writes.
pub(super) const SLICE_BYTES: usize = 1 << 20;
/// Contents of at least this size are stored in slices.
const SLICED_FROM_BYTES: usize = 2 * SLICE_BYTES;
/// Commits with contents of at least this size are staged.
const STAGED_FROM_BYTES: usize = 2 * SLICE_BYTES;

/// Whether the contents of a commit are staged before it.
pub(super) fn are_staged(contents: &[&Prepared]) -> bool {
    contents.iter().map(|content| content.data.len()).sum::<usize>() >= STAGED_FROM_BYTES
}

impl Sqlite {
    /// Stages the contents of a commit, if they are large. Checks the membership if `access` is given.
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
                for part in batch {
                    part.store(db, ws.0, contents[part.content])?;
                }
                Ok(())
            })
            .await?;
        }
        Ok(())
    }
}

/// A part of a content that is stored in one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StagedPart {
    /// The index of the content.
    content: usize,
    /// The index of the slice; none if the content is small enough to be stored whole.
    slice: Option<usize>,
}

/// Divides contents into the batches that transactions store.
fn batches(contents: &[&Prepared]) -> Vec<Vec<StagedPart>> {
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
                batch.push(StagedPart { content, slice });
            }
        }
    }
    batches
}

impl StagedPart {
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
        // The last slice completes the content. If a slice is missing, the commit stores the content whole.
        let sql = "SELECT count(*) FROM blob_slices WHERE ws = ?1 AND key = ?2";
        let stored: Option<i64> = find(db, sql, (ws, content.key.0), |row| row.get(0))?;
        if stored != Some(number(n + 1)?) {
            return Ok(());
        }
        insert_row(db, ws, content, SLICED + content.encoding.code(), &[]).map(drop)
    }
}

/// Converts a count for the database.
pub(super) fn number(n: usize) -> Result<i64> {
    i64::try_from(n).map_err(StoreError::internal)
}

/// Stores a content whole; returns false if it exists already.
pub(super) fn insert(db: &Connection, ws: Uuid, content: &Prepared) -> Result<bool> {
    // Checked first, because even an insert that conflicts copies all bytes.
    if content.data.len() >= SLICE_BYTES && exists(db, ws, content.key)? {
        return Ok(false);
    }
    insert_row(db, ws, content, content.encoding.code(), &content.data)
}

/// Removes the staging mark of a content that is committed now; returns whether no commit referred to it before.
pub(super) fn unstage(db: &Connection, ws: Uuid, content: &Prepared) -> Result<bool> {
    let mark = "DELETE FROM staged_blobs WHERE ws = ?1 AND key = ?2 RETURNING staged_at >= 0";
    let Some(is_unused) = find(db, mark, (ws, content.key.0), |row| row.get(0))? else { return Ok(false) };
    // Slices of a content that is stored whole now are removed here: without the mark, nothing else removes them.
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

/// Reads a stored content in place: its encoding, its size and its bytes.
pub(super) fn read<T>(
    db: &Connection,
    ws: Uuid,
    key: ContentHash,
    take: impl FnOnce(i16, i64, &[u8]) -> T,
) -> Result<Option<T>> {
    let sql = "SELECT encoding, size, data FROM blobs WHERE ws = ?1 AND key = ?2";
    let mut query = db.prepare_cached(sql).map_err(to_store_error)?;
    let found = query.query_row((ws, key.0), |row| taken(db, ws, key, row, take));
    found.optional().map_err(to_store_error)?.transpose()
}

/// Reads a content by the row id of its blob.
pub(super) fn read_at<T>(
    db: &Connection,
    ws: Uuid,
    key: ContentHash,
    rowid: Option<i64>,
    take: impl FnOnce(i16, i64, &[u8]) -> T,
) -> Result<Option<T>> {
    let mut query =
        db.prepare_cached("SELECT encoding, size, data FROM blobs WHERE rowid = ?1").map_err(to_store_error)?;
    let found = query.query_row([rowid], |row| taken(db, ws, key, row, take));
    found.optional().map_err(to_store_error)?.transpose()
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

/// Reads at most so many bytes of the beginning of a stored content, and its encoding.
pub(super) fn beginning(
    db: &Connection,
    ws: Uuid,
    key: ContentHash,
    encoding: i16,
    max_bytes: i64,
) -> Result<(i16, Vec<u8>)> {
    let (sql, encoding) = if encoding < SLICED {
        ("SELECT substr(data, 1, ?3) FROM blobs WHERE ws = ?1 AND key = ?2", encoding)
    } else {
        ("SELECT substr(data, 1, ?3) FROM blob_slices WHERE ws = ?1 AND key = ?2 AND n = 0", encoding - SLICED)
    };
    let found = find(db, sql, (ws, key.0, max_bytes), |row| row.get(0))?;
    Ok((encoding, found.unwrap_or_default()))
}

/// Reads the bytes of a content, decompressed.
pub(super) fn bytes(db: &Connection, ws: Uuid, key: ContentHash) -> Result<Option<Vec<u8>>> {
    read(db, ws, key, |encoding, size, data| stored_bytes(encoding, size, data).map(Vec::from))?.transpose()
}

/// Joins the slices of a content.
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

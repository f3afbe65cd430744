//! Updates versions of earlier releases.

use super::commits::note_change;
use super::row::{collect, find, hash, run};
use super::{Sqlite, slices};
use crate::error::Result;
use crate::renewal::{BATCH, BEGINNING_BYTES, CorrectedVersion, OldVersion, Position, batch};
use rusqlite::Connection;
use rusqlite::types::FromSqlError;
use toolrest_core::{FileId, FileType, Form, WorkspaceId};

impl Sqlite {
    /// Updates a batch of versions; false if none is left.
    pub(super) async fn renew_some(&self) -> Result<bool> {
        let Some((renewed, end)) = self.read(next_batch).await? else { return Ok(false) };
        self.write(move |db| {
            for version in &renewed {
                renew(db, version)?;
            }
            match end {
                Some(Position { ws, file, seq }) => {
                    run(db, "UPDATE renewal SET ws = ?1, file_id = ?2, seq = ?3", (ws, file, seq))?;
                }
                None => drop(run(db, "DELETE FROM renewal", [])?),
            }
            Ok(end.is_some())
        })
        .await
    }
}

/// Checks the next versions: returns the ones to update, and the position to continue from if there are more. None if
/// none is left.
fn next_batch(db: &Connection) -> Result<Option<(Vec<CorrectedVersion>, Option<Position>)>> {
    let at = |row: &rusqlite::Row<'_>| Ok(Position { ws: row.get(0)?, file: row.get(1)?, seq: row.get(2)? });
    let Some(from) = find(db, "SELECT ws, file_id, seq FROM renewal", [], at)? else { return Ok(None) };
    let sql = "SELECT v.ws, v.file_id, v.seq, v.form, v.size, v.blob, f.kind, b.encoding,
                   length(b.data) + coalesce((
                       SELECT sum(length(s.data)) FROM blob_slices s WHERE s.ws = b.ws AND s.key = b.key), 0)
               FROM versions v JOIN files f ON f.ws = v.ws AND f.id = v.file_id
                   JOIN blobs b ON b.ws = v.ws AND b.key = v.blob
               WHERE (v.ws, v.file_id, v.seq) > (?1, ?2, ?3) ORDER BY v.ws, v.file_id, v.seq LIMIT ?4";
    let versions: Vec<OldVersion> = collect(db, sql, (from.ws, from.file, from.seq, BATCH), |row| {
        Ok(OldVersion {
            at: at(row)?,
            form: Form::from_code(row.get(3)?).ok_or(FromSqlError::InvalidType)?,
            size: row.get(4)?,
            blob: hash(row, 5)?,
            file_type: FileType::from_code(row.get(6)?).ok_or(FromSqlError::InvalidType)?,
            encoding: row.get(7)?,
            stored_bytes: row.get(8)?,
        })
    })?;
    let count = batch(&versions);
    let mut renewed = Vec::new();
    for version in &versions[..count] {
        renewed.extend(check_version(db, version)?);
    }
    let is_last = count == versions.len() && i64::try_from(count).is_ok_and(|count| count < BATCH);
    let end = versions[..count].last().map(|version| version.at).filter(|_| !is_last);
    Ok(Some((renewed, end)))
}

fn check_version(db: &Connection, version: &OldVersion) -> Result<Option<CorrectedVersion>> {
    // The content was dropped from the history, so it cannot be checked.
    if version.encoding == crate::blob::Encoding::Dropped.code() || version.form == Form::Encoded {
        return Ok(None);
    }
    let ws = version.at.ws;
    if version.needs_whole() {
        let checked = |encoding, size, data: &[u8]| version.renewed(encoding, size, data);
        return Ok(slices::read(db, ws, version.blob, checked)?.flatten());
    }
    let (encoding, beginning) = slices::beginning(db, ws, version.blob, version.encoding, BEGINNING_BYTES)?;
    Ok(version.renewed(encoding, version.size, &beginning))
}

fn renew(
    db: &Connection,
    CorrectedVersion { at: Position { ws, file, seq }, form, size }: &CorrectedVersion,
) -> Result<()> {
    let sql = "UPDATE versions SET form = ?4, size = ?5 WHERE ws = ?1 AND file_id = ?2 AND seq = ?3";
    run(db, sql, (ws, file, seq, form.code(), size))?;
    let (document, bytes) = (FileType::Document.code(), FileType::File.code());
    let sql = "UPDATE files SET head_form = ?4, size = ?5, kind = CASE WHEN kind IN (?6, ?7) THEN ?8 ELSE kind END
               WHERE ws = ?1 AND id = ?2 AND head_seq = ?3";
    let params = (ws, file, seq, form.code(), size, document, bytes, form.plain_type().code());
    if run(db, sql, params)? > 0 {
        note_change(db, WorkspaceId(*ws), FileId(*file))?;
    }
    Ok(())
}

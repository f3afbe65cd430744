//! Converts rows of PostgreSQL into values.

use crate::error::{Result, StoreError};
use crate::plan::{FileRow, VersionRow};
use crate::store::check_rights;
use std::error::Error;
use tokio_postgres::{
    Row,
    types::{FromSql, Type, accepts},
};
use toolrest_core::{
    Access, CommitId, ContentHash, FileId, FileType, Form, Listed, Role, Timestamp, UserId, Version, VersionId, WsPath,
};

/// The columns that [`file`] reads.
pub(super) const FILE_COLUMNS: &str = "f.id, f.path, f.display_name, f.kind, f.is_virtual, f.head_seq, f.head_version, \
     f.head_hash, f.head_blob, f.head_form, f.size, f.created_at, f.updated_at, f.deleted_at, f.mode";

/// The number of columns in [`FILE_COLUMNS`].
pub(super) const FILE_WIDTH: usize = 15;

/// Reads a file's row from column `at` on; `None` if a left join found no row.
pub(super) fn file_if_any(row: &Row, at: usize) -> Result<Option<FileRow>> {
    let Some(id) = row.get::<_, Option<uuid::Uuid>>(at) else { return Ok(None) };
    let head = match row.get::<_, Option<i64>>(at + 5) {
        None => None,
        Some(seq) => Some(VersionRow {
            seq,
            version: VersionId(row.get(at + 6)),
            hash: hash(row, at + 7)?,
            blob: hash(row, at + 8)?,
            form: form(row.get(at + 9))?,
            size: row.get(at + 10),
        }),
    };
    Ok(Some(FileRow {
        id: FileId(id),
        path: WsPath::from_normal(row.get(at + 1)),
        display_name: row.get(at + 2),
        file_type: file_type(row.get(at + 3))?,
        is_virtual: row.get(at + 4),
        head,
        mode: row.get::<_, Option<i32>>(at + 14).map(i32::cast_unsigned),
        created_at: row.get(at + 11),
        updated_at: row.get(at + 12),
        deleted_at: row.get(at + 13),
    }))
}

/// Reads a file's row.
pub(super) fn file(row: &Row) -> Result<FileRow> {
    file_if_any(row, 0)?.ok_or_else(|| StoreError::internal("a file's row has no id"))
}

pub(super) fn file_type(code: i16) -> Result<FileType> {
    FileType::from_code(code).ok_or_else(|| StoreError::internal(format!("unknown file type {code}")))
}

pub(super) fn form(code: i16) -> Result<Form> {
    Form::from_code(code).ok_or_else(|| StoreError::internal(format!("unknown form {code}")))
}

pub(super) fn hash(row: &Row, column: usize) -> Result<ContentHash> {
    ContentHash::from_slice(row.get(column)).ok_or_else(|| StoreError::internal("a hash is not 32 bytes long"))
}

pub(super) fn role(code: Option<i16>) -> Option<Role> {
    code.and_then(Role::from_code)
}

/// Checks the rights in a column of the first row. No row means no membership.
pub(super) fn authorised(access: Access, rows: &[Row], column: usize) -> Result<Role> {
    check_rights(access, rows.first().and_then(|row| row.get(column)))
}

/// Reads a row of a listing, from the second column on: display_name, kind, is_virtual, size, updated_at.
pub(super) fn listed(row: &Row, path: WsPath) -> Result<Listed> {
    Ok(Listed {
        path,
        display_name: row.get(1),
        file_type: file_type(row.get(2))?,
        is_virtual: row.get(3),
        is_link: false,
        size: row.get(4),
        updated_at: row.get::<_, FastTimestamp>(5).0,
    })
}

/// A timestamp that is decoded faster than by the driver, for long listings.
struct FastTimestamp(Timestamp);

impl<'a> FromSql<'a> for FastTimestamp {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        /// Microseconds from 1970 to 2000, the epoch of PostgreSQL's timestamps.
        const YEAR_2000_MICROS: i64 = 946_684_800_000_000;
        let micros = i64::from_be_bytes(raw.try_into()?).saturating_add(YEAR_2000_MICROS);
        Ok(Self(Timestamp::from_microsecond(micros)?))
    }

    accepts!(TIMESTAMPTZ);
}

/// Reads a version's columns from `at` on: id, seq, hash, size, author, commit, time.
pub(super) fn version(row: &Row, at: usize) -> Result<Version> {
    Ok(Version {
        id: VersionId(row.get(at)),
        seq: row.get(at + 1),
        hash: hash(row, at + 2)?,
        size: row.get(at + 3),
        author: UserId(row.get(at + 4)),
        commit_id: CommitId(row.get(at + 5)),
        created_at: row.get(at + 6),
    })
}

//! Converts rows of SQLite into values, and runs queries.

use super::to_store_error;
use crate::error::Result;
use crate::plan::{FileRow, VersionRow};
use crate::store::{check_rights, rights_of};
use rusqlite::{Connection, OptionalExtension, Row, types::FromSqlError};
use toolrest_core::{
    Access, ContentHash, FileId, FileType, Form, Listed, Role, Timestamp, UserId, Version, VersionId, WsPath,
};
use uuid::Uuid;

/// The columns that [`file`] reads.
pub(super) const FILE_COLUMNS: &str = "f.id, f.path, f.display_name, f.kind, f.is_virtual, f.head_seq, f.head_version, \
     f.head_hash, f.head_blob, f.head_form, f.size, f.created_at, f.updated_at, f.deleted_at, f.mode";

/// Reads a file's row.
pub(super) fn file(row: &Row<'_>) -> rusqlite::Result<FileRow> {
    let head = match row.get::<_, Option<i64>>(5)? {
        None => None,
        Some(seq) => Some(VersionRow {
            seq,
            version: VersionId(row.get(6)?),
            hash: hash(row, 7)?,
            blob: hash(row, 8)?,
            form: Form::from_code(row.get(9)?).ok_or(FromSqlError::InvalidType)?,
            size: row.get(10)?,
        }),
    };
    Ok(FileRow {
        id: FileId(row.get(0)?),
        path: WsPath::from_normal(row.get(1)?),
        display_name: row.get(2)?,
        file_type: FileType::from_code(row.get(3)?).ok_or(FromSqlError::InvalidType)?,
        is_virtual: row.get(4)?,
        head,
        mode: row.get(14)?,
        created_at: time(row, 11)?,
        updated_at: time(row, 12)?,
        deleted_at: optional_time(row, 13)?,
    })
}

/// The columns that [`listed`] reads. The size of a chat is that of the text generated from its messages.
pub(super) const LISTED_COLUMNS: &str = "f.path, f.display_name, f.kind, f.is_virtual, CASE f.is_virtual WHEN 1 THEN length(CAST(coalesce(f.display_name, f.name) AS BLOB)) + 1 + \
     (SELECT coalesce(sum(length(CAST(m.role AS BLOB)) + length(CAST(m.content AS BLOB)) + 4), 0) FROM chat_messages m \
     WHERE m.ws = f.ws AND m.chat_id = f.id) ELSE f.size END, f.updated_at";

/// Reads a row of a listing.
pub(super) fn listed(row: &Row<'_>) -> rusqlite::Result<Listed> {
    Ok(Listed {
        path: WsPath::from_normal(row.get(0)?),
        display_name: row.get(1)?,
        file_type: FileType::from_code(row.get(2)?).ok_or(FromSqlError::InvalidType)?,
        is_virtual: row.get(3)?,
        is_link: false,
        size: row.get(4)?,
        updated_at: time(row, 5)?,
    })
}

/// Reads a version's row: id, seq, hash, size, author, commit, time.
pub(super) fn version(row: &Row<'_>) -> rusqlite::Result<Version> {
    Ok(Version {
        id: VersionId(row.get(0)?),
        seq: row.get(1)?,
        hash: hash(row, 2)?,
        size: row.get(3)?,
        author: UserId(row.get(4)?),
        commit_id: toolrest_core::CommitId(row.get(5)?),
        created_at: time(row, 6)?,
    })
}

pub(super) fn hash(row: &Row<'_>, column: usize) -> rusqlite::Result<ContentHash> {
    let bytes: [u8; 32] = row.get(column)?;
    Ok(ContentHash(bytes))
}

pub(super) fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Timestamp> {
    from_micros(row.get(column)?)
}

pub(super) fn optional_time(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Timestamp>> {
    row.get::<_, Option<i64>>(column)?.map(from_micros).transpose()
}

fn from_micros(micros: i64) -> rusqlite::Result<Timestamp> {
    Timestamp::from_microsecond(micros).map_err(|_| FromSqlError::OutOfRange(micros).into())
}

/// The number by which a time is stored.
pub(super) fn micros(time: Timestamp) -> i64 {
    time.as_microsecond()
}

/// Checks the caller's rights in the same snapshot as the following queries.
pub(super) fn authorised(connection: &Connection, access: Access) -> Result<Role> {
    let sql = "SELECT role, rules_rev FROM members WHERE ws = ?1 AND user_id = ?2";
    let read = |row: &Row<'_>| Ok(rights_of(row.get(0)?, row.get(1)?));
    check_rights(access, find(connection, sql, (access.workspace.0, access.user.0), read)?)
}

pub(super) fn role_of(connection: &Connection, ws: Uuid, user: Uuid) -> Result<Option<Role>> {
    let role: Option<i16> = connection
        .prepare_cached("SELECT role FROM members WHERE ws = ?1 AND user_id = ?2")
        .and_then(|mut query| query.query_row((ws, user), |row| row.get(0)).optional())
        .map_err(to_store_error)?;
    Ok(role.and_then(Role::from_code))
}

/// Returns all rows of a query.
pub(super) fn collect<T>(
    connection: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>> {
    let mut query = connection.prepare_cached(sql).map_err(to_store_error)?;
    query.query_map(params, read).and_then(Iterator::collect).map_err(to_store_error)
}

/// Returns at most one row.
pub(super) fn find<T>(
    connection: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Option<T>> {
    connection
        .prepare_cached(sql)
        .and_then(|mut query| query.query_row(params, read).optional())
        .map_err(to_store_error)
}

/// Runs a statement; returns how many rows it changed.
pub(super) fn run(connection: &Connection, sql: &str, params: impl rusqlite::Params) -> Result<usize> {
    connection.prepare_cached(sql).and_then(|mut statement| statement.execute(params)).map_err(to_store_error)
}

//! Copies and checks database files.

use super::{MIGRATIONS, cannot_open, to_store_error};
use crate::error::{Result, StoreError};
use rusqlite::{Connection, OpenFlags};
use std::{path::Path, time::Duration};
use toolrest_core::ErrorKind;

/// Maximum wait for a process that holds the file exclusively, for example to recover it after a crash.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Copies a database file in one snapshot, while servers read and write it.
///
/// `to` must be missing or empty. The copy has no free pages and no separate log; it is not synced to disk.
pub fn copy_database(from: &Path, to: &Path) -> Result<()> {
    let connection = open(from)?;
    let to = to.to_str().ok_or_else(|| StoreError::refused(ErrorKind::InvalidPath, "The path must be valid UTF-8"))?;
    connection.execute("VACUUM INTO ?1", [to]).map(drop).map_err(|error| match to_store_error(error) {
        StoreError::StorageFull(_) => StoreError::StorageFull("The disk that the backup is written to is full"),
        other => other,
    })
}

/// Checks that a file is an intact database with a known schema; returns the schema's version.
pub fn check_database(file: &Path) -> Result<usize> {
    let unusable = |why: String| {
        StoreError::refused(ErrorKind::InvalidArgument, format!("{} is not a usable database: {why}", file.display()))
    };
    let connection = open(file)?;
    let first_fault = |pragma: &str| connection.query_row(pragma, [], |row| row.get::<_, String>(0));
    let found = first_fault("PRAGMA integrity_check(1)").map_err(|error| unusable(error.to_string()))?;
    if found != "ok" {
        return Err(unusable(found));
    }
    let schema =
        connection.query_row("PRAGMA user_version", [], |row| row.get::<_, u32>(0)).map_err(to_store_error)? as usize;
    match schema {
        0 => Err(unusable("it was not made by toolrest".to_owned())),
        newer if newer > MIGRATIONS.len() => Err(crate::store::newer_database(newer, MIGRATIONS.len())),
        known => Ok(known),
    }
}

fn open(file: &Path) -> Result<Connection> {
    let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .map_err(|error| cannot_open(file, &error))?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(|error| cannot_open(file, &error))?;
    Ok(connection)
}

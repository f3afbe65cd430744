//! Copies of the database file, and whether one can be used.

use super::{MIGRATIONS, cannot_open, fault};
use crate::error::{Result, StoreError};
use rusqlite::{Connection, OpenFlags};
use std::{path::Path, time::Duration};
use toolrest_core::ErrorKind;

/// Longest wait for a process that holds the file exclusively, as one does that recovers it after a crash.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Copies a database file as of one moment, while servers go on reading and writing it.
///
/// `to` must be missing or empty. The copy holds no free pages and needs no log beside it; it is not synced to disk.
pub fn copy_database(from: &Path, to: &Path) -> Result<()> {
    let connection = open(from)?;
    let to = to.to_str().ok_or_else(|| StoreError::refused(ErrorKind::InvalidPath, "The path must be valid UTF-8"))?;
    connection.execute("VACUUM INTO ?1", [to]).map(drop).map_err(|error| match fault(error) {
        StoreError::StorageFull(_) => StoreError::StorageFull("The disk that the backup is written to is full"),
        other => other,
    })
}

/// Checks that a file is a whole database of a schema that this version knows; gives the schema's version.
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
    let schema = connection.query_row("PRAGMA user_version", [], |row| row.get::<_, u32>(0)).map_err(fault)? as usize;
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

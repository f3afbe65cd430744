//! Turns between the processes that write one database file.
//!
//! SQLite has a process that finds the file locked sleep and try again, for up to 100 ms at a time. A process with many
//! writes locks the file again some microseconds after it has released it, so the others miss most of their chances: beside
//! 16 concurrent writers of another process, the longest of 50 writes took 330 ms, and 30 ms with turns.
//! Here a waiting process reserves the next turn, and the one that writes cannot begin again before the reserved turn.
//!
//! Turns are for fairness only. What is written is protected by SQLite's own locks, so a process that waits too long, or
//! cannot open the lock files, writes without a turn.

use std::{
    ffi::OsString,
    fs::{File, OpenOptions, TryLockError},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Maximum wait for a turn. A process that was suspended while it wrote would otherwise block the others for ever.
const MAX_WAIT: Duration = Duration::from_secs(5);
const RETRY_INTERVAL: Duration = Duration::from_micros(250);

/// The locks of a database file by which processes take turns.
pub(super) struct WriteTurns {
    /// Held by the process that writes next.
    next: File,
    /// Held by the process that writes.
    writing: File,
}

/// The right to write, released when dropped.
pub(super) struct WriteTurn<'a> {
    turns: &'a WriteTurns,
}

impl WriteTurns {
    /// Opens the lock files beside the database. None on a full disk, for example.
    pub(super) fn open(database: &Path) -> Option<Self> {
        let opened = open(database, "-next").and_then(|next| Ok(Self { next, writing: open(database, "-writing")? }));
        opened.inspect_err(|error| tracing::warn!(%error, "the lock files of the database cannot be opened")).ok()
    }

    /// Waits for a turn. None if it takes too long.
    pub(super) fn wait(&self) -> Option<WriteTurn<'_>> {
        let deadline = Instant::now() + MAX_WAIT;
        if !lock(&self.next, deadline) {
            return None;
        }
        let is_locked = lock(&self.writing, deadline);
        let _ = self.next.unlock();
        is_locked.then_some(WriteTurn { turns: self })
    }
}

impl Drop for WriteTurn<'_> {
    fn drop(&mut self) {
        let _ = self.turns.writing.unlock();
    }
}

fn open(database: &Path, suffix: &str) -> io::Result<File> {
    let mut path = OsString::from(database);
    path.push(suffix);
    OpenOptions::new().create(true).append(true).mode(0o600).open(PathBuf::from(path))
}

/// Locks a file; false after the deadline.
#[allow(clippy::disallowed_methods, reason = "the kernel waits for a lock for ever, or not at all")]
fn lock(file: &File, deadline: Instant) -> bool {
    loop {
        match file.try_lock() {
            Ok(()) => return true,
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => std::thread::sleep(RETRY_INTERVAL),
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
#[path = "write_turn_tests.rs"]
mod tests;

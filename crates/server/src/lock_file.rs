//! Locks between the processes that share a data folder.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

/// A lock that at most one process holds, until it ends.
pub(crate) struct LockFile {
    file: Option<File>,
    is_held: Mutex<bool>,
}

impl LockFile {
    /// Opens the lock file, and creates it if necessary.
    pub(crate) fn open(path: &Path) -> Self {
        let file = open(path);
        if let Err(error) = &file {
            tracing::warn!(%error, path = %path.display(), "a lock file cannot be opened");
        }
        Self { file: file.ok(), is_held: Mutex::default() }
    }

    /// Takes the lock if it is free; returns whether this process holds it. If the file could not be opened, for example on
    /// a full disk, or its file system has no locks, every process holds it: use it only for work that may be done twice.
    pub(crate) fn try_hold(&self) -> bool {
        let mut is_held = self.is_held.lock().unwrap_or_else(PoisonError::into_inner);
        *is_held = *is_held
            || self.file.as_ref().is_none_or(|file| {
                // Other errors mean that the file system has no locks.
                !matches!(file.try_lock(), Err(TryLockError::WouldBlock))
            });
        *is_held
    }
}

/// Waits for the lock of a file. Dropping the file releases it.
pub(crate) async fn lock(path: PathBuf) -> io::Result<File> {
    let locked = tokio::task::spawn_blocking(move || {
        let file = open(&path)?;
        file.lock()?;
        Ok(file)
    });
    locked.await.map_err(io::Error::other)?
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

#[cfg(test)]
#[path = "lock_file_tests.rs"]
mod tests;

//! The Python environment of the data tools. `toolrest setup python` creates it, also while a server runs.

use std::{
    ffi::OsString,
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
    sync::OnceLock,
};

/// The file that marks a complete environment. It is written last, and holds what the environment was made from.
pub const STAMP: &str = "toolrest.stamp";

/// The folder of an environment, which may still have to be created.
#[derive(Clone, Debug)]
pub struct PythonEnvironment {
    folder: PathBuf,
    /// The real path of the folder, once the environment was found complete.
    complete: OnceLock<PathBuf>,
}

impl PythonEnvironment {
    /// Names the folder of an environment.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, complete: OnceLock::new() }
    }

    /// Returns the real path of the environment, if it is complete. Looks for it each time until it is.
    pub(super) fn find(&self) -> Option<&Path> {
        if let Some(folder) = self.complete.get() {
            return Some(folder);
        }
        let folder = self.folder.canonicalize().ok().filter(|folder| is_complete(folder))?;
        Some(self.complete.get_or_init(|| folder))
    }

    /// Whether `toolrest setup python` is creating the environment now: it holds the lock.
    pub(super) fn is_being_set_up(&self) -> bool {
        let lock = File::open(lock_path(&self.folder));
        lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }
}

/// Whether the folder has a complete environment for the Python version that the system has now.
pub fn is_complete(folder: &Path) -> bool {
    folder.join(STAMP).is_file() && site_packages(folder).is_some_and(|packages| packages.is_dir())
}

/// Returns the folder of packages that the environment's interpreter uses. Its name contains the Python version, so
/// another version finds no packages.
pub fn site_packages(folder: &Path) -> Option<PathBuf> {
    let interpreter = fs::canonicalize(folder.join("bin/python3")).ok()?;
    Some(folder.join("lib").join(interpreter.file_name()?).join("site-packages"))
}

/// Returns the path of the file that is locked while the environment is created. It is next to the folder, because the
/// folder is replaced.
pub fn lock_path(folder: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(folder.file_name().unwrap_or_default());
    name.push(".lock");
    folder.with_file_name(name)
}

#[cfg(test)]
#[path = "python_tests.rs"]
mod python_tests;

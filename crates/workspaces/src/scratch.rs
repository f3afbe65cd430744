//! The private folder of the server process for working copies and the upper layers of overlays. It is removed when the
//! process ends.

use std::{
    ffi::OsStr,
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};
use toolrest_core::FolderHandle;
use toolrest_directory::Root;
use toolrest_store::disk_fault::is_full;
use uuid::Uuid;

/// The folder of this process. Other processes with the same data folder have theirs below the same parent. The folders
/// of dead processes are removed.
#[derive(Debug)]
pub struct Scratch {
    parent: PathBuf,
    /// The folder of this process. `None` as long as the disk is too full to create it.
    own: Mutex<Option<ProcessFolder>>,
}

/// The folder of this process.
#[derive(Debug)]
struct ProcessFolder {
    folder: PathBuf,
    /// Locked while the process lives. If another process gets the lock, the folder is no longer used.
    _lock: File,
}

impl Scratch {
    /// Creates a folder below `parent` that only the server can read. On a full disk this is done later, because a
    /// server that cannot run programs can still serve reads.
    pub fn open(parent: &Path) -> io::Result<Self> {
        let scratch = Self { parent: std::path::absolute(parent)?, own: Mutex::default() };
        match scratch.own_folder() {
            Err(error) if is_full(&error) => {
                tracing::error!(%error, "the disk has no room for the files that programs work on");
            }
            made => drop(made?),
        }
        Ok(scratch)
    }

    /// Creates a new empty folder in the folder of this process.
    pub(crate) fn folder(&self) -> io::Result<PathBuf> {
        let folder = self.own_folder()?.join(Uuid::now_v7().to_string());
        own_folder(&folder)?;
        Ok(folder)
    }

    /// Returns the folder of this process, and creates it if necessary.
    fn own_folder(&self) -> io::Result<PathBuf> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = &*own {
            return Ok(own.folder.clone());
        }
        let made = ProcessFolder::make(&self.parent)?;
        Ok(own.insert(made).folder.clone())
    }
}

impl ProcessFolder {
    fn make(parent: &Path) -> io::Result<Self> {
        own_folder(parent)?;
        let parent = parent.canonicalize()?;
        // Locks the parent, so that no other process removes the new folder before its lock file is locked.
        let one_at_a_time = File::open(&parent)?;
        one_at_a_time.lock()?;
        sweep(&parent);
        let folder = parent.join(Uuid::now_v7().to_string());
        own_folder(&folder)?;
        let lock = File::create(folder.join("lock"))?;
        lock.try_lock()?;
        Ok(Self { folder, _lock: lock })
    }
}

impl Drop for ProcessFolder {
    fn drop(&mut self) {
        remove(&self.folder);
    }
}

/// Creates a folder that only the server's user can access, and the missing folders above it.
pub(crate) fn own_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Whether a name can be that of a folder of this or another process.
fn is_own(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| Uuid::try_parse(name).is_ok())
}

/// Removes the folders of dead processes.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_dead = match File::open(entry.path().join("lock")) {
            Ok(lock) => lock.try_lock().is_ok(),
            // Its process died while it created or removed the folder.
            Err(error) => error.kind() == io::ErrorKind::NotFound && is_own(&entry.file_name()),
        };
        if is_dead {
            remove(&entry.path());
        }
    }
}

/// Returns a handle of an open folder, in which a program can run.
pub(crate) fn held(root: &Root) -> FolderHandle {
    FolderHandle { descriptor: root.descriptor(), path: root.real_path().to_owned() }
}

/// Removes a folder and everything in it, including entries that programs or the kernel made unreadable.
pub(crate) fn remove(folder: &Path) {
    if let Err(error) = toolrest_directory::remove_tree(folder) {
        tracing::warn!(folder = %folder.display(), %error, "an unused folder could not be removed");
    }
}

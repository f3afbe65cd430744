//! The server's own folder for files that programs work on. Nothing in it outlives the server.

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

/// A folder of this process alone, among those of others that share the data folder. What processes that are gone left
/// behind is removed.
#[derive(Debug)]
pub struct Scratch {
    parent: PathBuf,
    /// None as long as the disk was too full to make it.
    own: Mutex<Option<Own>>,
}

/// The folder of this process.
#[derive(Debug)]
struct Own {
    folder: PathBuf,
    /// Held for as long as the process lives: whoever can lock it knows that nobody uses the folder any more.
    _lock: File,
}

impl Scratch {
    /// Makes a folder below `parent`, for the server's own eyes. On a full disk that is left for later: a server without
    /// room for programs can still serve reads.
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

    /// Makes an empty folder in it.
    pub(crate) fn folder(&self) -> io::Result<PathBuf> {
        let folder = self.own_folder()?.join(Uuid::now_v7().to_string());
        own_folder(&folder)?;
        Ok(folder)
    }

    /// The folder of this process, made if it is not there yet.
    fn own_folder(&self) -> io::Result<PathBuf> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = &*own {
            return Ok(own.folder.clone());
        }
        let made = Own::make(&self.parent)?;
        Ok(own.insert(made).folder.clone())
    }
}

impl Own {
    fn make(parent: &Path) -> io::Result<Self> {
        own_folder(parent)?;
        let parent = parent.canonicalize()?;
        // Nobody sweeps while a folder has no lock yet.
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

impl Drop for Own {
    fn drop(&mut self) {
        remove(&self.folder);
    }
}

fn own_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Whether a name is one that is given here.
fn is_own(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| Uuid::try_parse(name).is_ok())
}

/// Removes the folders of processes that are gone.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_dead = match File::open(entry.path().join("lock")) {
            Ok(lock) => lock.try_lock().is_ok(),
            // Its process died while it made or removed it.
            Err(error) => error.kind() == io::ErrorKind::NotFound && is_own(&entry.file_name()),
        };
        if is_dead {
            remove(&entry.path());
        }
    }
}

/// A folder as programs get it.
pub(crate) fn held(root: &Root) -> FolderHandle {
    FolderHandle { descriptor: root.descriptor(), path: root.real_path().to_owned() }
}

/// Removes a folder with all that is in it, also what programs or the kernel have made unreadable.
pub(crate) fn remove(folder: &Path) {
    if let Err(error) = toolrest_directory::remove_tree(folder) {
        tracing::warn!(folder = %folder.display(), %error, "a folder that is not needed any more could not be removed");
    }
}

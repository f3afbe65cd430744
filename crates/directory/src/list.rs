//! Lists a folder and its subfolders.

use std::{
    ffi::OsStr,
    os::{
        fd::OwnedFd,
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::{Path, PathBuf},
    time::SystemTime,
};

use rustix::{
    fs::{Dir, OFlags},
    io::Errno,
};

use crate::{Error, ErrorKind, Kind, Metadata, Result, Root, error::if_exists, is_temporary, sys};

/// Depth and size of a listing.
#[derive(Debug, Clone, Copy)]
pub struct ListOptions {
    /// 1 lists only direct entries.
    pub depth: usize,
    /// Maximum number of returned entries. All are counted.
    pub limit: usize,
}

impl Default for ListOptions {
    fn default() -> Self {
        Self { depth: 1, limit: usize::MAX }
    }
}

/// Entries of a folder, sorted by the bytes of their paths.
#[derive(Debug)]
pub struct Listing {
    pub entries: Vec<Entry>,
    /// Number of all entries, including those beyond the limit.
    pub total: usize,
    /// Folders that could not be read.
    pub skipped: Vec<Skipped>,
}

/// A file, folder or link of a listing. Links are not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The path below the listed folder.
    pub path: PathBuf,
    pub kind: Kind,
    pub size_bytes: u64,
    pub modified: SystemTime,
}

/// A folder that could not be read.
#[derive(Debug)]
pub struct Skipped {
    /// The path below the listed folder.
    pub path: PathBuf,
    pub error: Error,
}

impl Root {
    /// Lists a folder down to a depth. Symbolic links are listed but not entered, so there are no cycles.
    pub fn list(&self, folder: &Path, options: ListOptions) -> Result<Listing> {
        let top = self.open_path(folder, OFlags::PATH | OFlags::DIRECTORY)?;
        let mut listing = Listing { entries: Vec::new(), total: 0, skipped: Vec::new() };
        let mut pending = if options.depth > 0 { vec![(PathBuf::new(), 1)] } else { Vec::new() };
        while let Some((path, depth)) = pending.pop() {
            let first = listing.entries.len();
            let read = open_below(&top, &path).and_then(|opened| read_folder(opened, &path, &mut listing.entries));
            match read {
                Ok(()) => {}
                // The folder was removed after its parent was read. It stays in the listing, without entries.
                Err(Errno::NOENT) if depth > 1 => {}
                Err(errno) if depth > 1 => {
                    listing.skipped.push(Skipped { error: ErrorKind::from(errno).at(folder.join(&path)), path });
                }
                Err(errno) => return Err(ErrorKind::from(errno).at(folder)),
            }
            if depth < options.depth {
                let folders = listing.entries[first..].iter().filter(|entry| entry.kind == Kind::Folder);
                pending.extend(folders.map(|entry| (entry.path.clone(), depth + 1)));
            }
        }
        listing.total = listing.entries.len();
        if options.limit < listing.total {
            listing.entries.select_nth_unstable_by(options.limit, compare);
        }
        listing.entries.truncate(options.limit);
        listing.entries.sort_unstable_by(compare);
        Ok(listing)
    }
}

fn compare(a: &Entry, b: &Entry) -> std::cmp::Ordering {
    a.path.as_os_str().as_bytes().cmp(b.path.as_os_str().as_bytes())
}

/// Opens a folder below the listed one without following links, because it was a folder when its parent was read.
fn open_below(top: &OwnedFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    sys::open_beneath(top, path, OFlags::RDONLY | OFlags::DIRECTORY, rustix::fs::ResolveFlags::NO_SYMLINKS)
}

fn read_folder(folder: OwnedFd, path: &Path, entries: &mut Vec<Entry>) -> rustix::io::Result<()> {
    let mut folder = Dir::new(folder)?;
    while let Some(entry) = folder.read() {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." || is_temporary(name) {
            continue;
        }
        // An entry that is gone by now is left out.
        if let Some(stat) = if_exists(sys::stat_name(folder.fd()?, name))? {
            let Metadata { kind, size_bytes, modified, .. } = stat.into();
            entries.push(Entry { path: joined(path, name), kind, size_bytes, modified });
        }
    }
    Ok(())
}

/// Joins with a single allocation of the exact size, because listings contain many paths.
fn joined(folder: &Path, name: &OsStr) -> PathBuf {
    let mut path = Vec::with_capacity(folder.as_os_str().len() + 1 + name.len());
    path.extend_from_slice(folder.as_os_str().as_bytes());
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name.as_bytes());
    PathBuf::from(std::ffi::OsString::from_vec(path))
}

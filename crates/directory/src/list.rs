//! Listing a folder and what is below it.

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

use crate::{Error, ErrorKind, Kind, Metadata, Result, Root, error::found, is_temporary, sys};

/// How deep and how much to list.
#[derive(Debug, Clone, Copy)]
pub struct ListOptions {
    /// 1 lists what is directly in the folder.
    pub depth: usize,
    /// How many entries are given. All are counted.
    pub limit: usize,
}

impl Default for ListOptions {
    fn default() -> Self {
        Self { depth: 1, limit: usize::MAX }
    }
}

/// The entries of a folder, sorted by the bytes of their paths.
#[derive(Debug)]
pub struct Listing {
    pub entries: Vec<Entry>,
    /// How many entries there are, also those past the limit.
    pub total: usize,
    /// Folders that could not be looked into.
    pub skipped: Vec<Skipped>,
}

/// One file, folder or link of a listing. A link is not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The path below the listed folder.
    pub path: PathBuf,
    pub kind: Kind,
    pub size_bytes: u64,
    pub modified: SystemTime,
}

/// A folder that could not be looked into.
#[derive(Debug)]
pub struct Skipped {
    /// The path below the listed folder.
    pub path: PathBuf,
    pub error: Error,
}

impl Root {
    /// Lists a folder down to a depth. Symbolic links are listed as such and not entered, so that it always ends.
    pub fn list(&self, folder: &Path, options: ListOptions) -> Result<Listing> {
        let top = self.open_path(folder, OFlags::PATH | OFlags::DIRECTORY)?;
        let mut listing = Listing { entries: Vec::new(), total: 0, skipped: Vec::new() };
        let mut pending = if options.depth > 0 { vec![(PathBuf::new(), 1)] } else { Vec::new() };
        while let Some((path, depth)) = pending.pop() {
            let first = listing.entries.len();
            let read = open_below(&top, &path).and_then(|opened| read_folder(opened, &path, &mut listing.entries));
            match read {
                Ok(()) => {}
                // Gone since its parent was read: it is listed, as it was there then, and has nothing in it.
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

/// Opens a folder below the listed one, without following links: it was seen to be a folder a moment ago.
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
        // A name that is gone by now is left out.
        if let Some(stat) = found(sys::stat_name(folder.fd()?, name))? {
            let Metadata { kind, size_bytes, modified, .. } = stat.into();
            entries.push(Entry { path: joined(path, name), kind, size_bytes, modified });
        }
    }
    Ok(())
}

/// Joins in one allocation that fits: listings hold many paths.
fn joined(folder: &Path, name: &OsStr) -> PathBuf {
    let mut path = Vec::with_capacity(folder.as_os_str().len() + 1 + name.len());
    path.extend_from_slice(folder.as_os_str().as_bytes());
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name.as_bytes());
    PathBuf::from(std::ffi::OsString::from_vec(path))
}

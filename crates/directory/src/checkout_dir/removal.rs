//! Removes trees of any depth and with any permissions.

use std::{
    ffi::{OsStr, OsString},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
};

use rustix::{
    fs::{Dir, FileType, OFlags, ResolveFlags},
    io::Errno,
};

use super::{allow_owner, is_dots};
use crate::{ErrorKind, Kind, Metadata, Result, error::PathContext, error::if_exists, sys};

/// Maximum number of entries of a folder that are read into memory at a time.
const NAMES_AT_A_TIME: usize = 10_000;

/// Removes a folder that only this process uses, with its contents. A missing folder is not an error.
pub fn remove_tree(folder: &Path) -> Result<()> {
    let name = folder.file_name().ok_or_else(|| ErrorKind::Invalid("it has no name").at(folder))?;
    let above = folder.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match if_exists(sys::open_folder(above)).at(folder)? {
        None => Ok(()),
        Some(above) => remove_tree_at(&above, name).at(folder),
    }
}

/// Removes a folder with its contents, or an entry of another kind with the name.
///
/// Subfolders are first moved into the folder that is removed, so that no path gets too long and no recursion is
/// needed.
pub(super) fn remove_tree_at(above: &OwnedFd, name: &OsStr) -> rustix::io::Result<()> {
    let Some(top) = open_folder(above, name)? else {
        return if_exists(sys::unlink(above, name)).map(drop);
    };
    let mut moved_up = 0u64;
    loop {
        let entries = names(&top)?;
        if entries.is_empty() {
            break;
        }
        for (name, kind) in entries {
            if kind == Kind::Folder {
                flatten(&top, &name, &mut moved_up)?;
            } else {
                if_exists(sys::unlink(&top, &name))?;
            }
        }
    }
    if_exists(sys::remove_folder(above, name)).map(drop)
}

/// Moves the subfolders of the folder `name` into `top`, deletes its other entries, and removes the folder itself.
fn flatten(top: &OwnedFd, name: &OsStr, moved_up: &mut u64) -> rustix::io::Result<()> {
    let Some(folder) = open_folder(top, name)? else { return Ok(()) };
    loop {
        let entries = names(&folder)?;
        if entries.is_empty() {
            return if_exists(sys::remove_folder(top, name)).map(drop);
        }
        for (name, kind) in entries {
            if kind != Kind::Folder {
                if_exists(sys::unlink(&folder, &name))?;
                continue;
            }
            loop {
                *moved_up += 1;
                let free = OsString::from(format!(".{moved_up}"));
                match move_out((folder.as_fd(), &name), (top.as_fd(), &free)) {
                    Err(Errno::EXIST) => {}
                    moved => {
                        moved?;
                        break;
                    }
                }
            }
        }
    }
}

/// Moves a folder. If access is denied, gives its owner all permissions on it and tries again.
pub(super) fn move_out(from: (BorrowedFd<'_>, &OsStr), to: (BorrowedFd<'_>, &OsStr)) -> rustix::io::Result<()> {
    match sys::rename_to_free(from, to) {
        Err(Errno::ACCESS) => {
            allow_owner(&open_beneath(from.0, from.1, OFlags::PATH)?)?;
            sys::rename_to_free(from, to)
        }
        other => other,
    }
}

/// Gives the owner all permissions on a folder and opens it for reading; `None` if there is no folder with the name.
fn open_folder(above: &OwnedFd, name: &OsStr) -> rustix::io::Result<Option<OwnedFd>> {
    let Some(path) = if_exists(open_beneath(above, name, OFlags::PATH))? else { return Ok(None) };
    allow_owner(&path)?;
    if_exists(open_beneath(above, name, OFlags::RDONLY))
}

fn open_beneath(above: impl AsFd, name: &OsStr, access: OFlags) -> rustix::io::Result<OwnedFd> {
    sys::open_beneath(above, Path::new(name), access | OFlags::DIRECTORY, ResolveFlags::NO_SYMLINKS)
}

/// Returns up to `NAMES_AT_A_TIME` entries of a folder, with their kinds.
fn names(folder: &OwnedFd) -> rustix::io::Result<Vec<(OsString, Kind)>> {
    let mut names = Vec::new();
    let mut entries = Dir::read_from(folder)?;
    while let Some(entry) = entries.read() {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if is_dots(name) {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => if_exists(sys::stat_name(folder, name))?.map(|stat| Metadata::from(stat).kind),
            known => Some(Kind::of(known)),
        };
        names.extend(kind.map(|kind| (name.to_owned(), kind)));
        if names.len() == NAMES_AT_A_TIME {
            break;
        }
    }
    Ok(names)
}

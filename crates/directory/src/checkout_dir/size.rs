//! Measures trees that programs write to.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use rustix::fs::{Dir, FileType, OFlags, ResolveFlags};

use super::is_dots;
use crate::{Result, error::PathContext, error::if_exists, sys};

/// What a file or folder counts at least, because very many small ones take space too.
const MIN_ENTRY_BYTES: u64 = 4096;
/// The unit of `st_blocks`.
const BLOCK_BYTES: u64 = 512;

/// Returns the disk space of a tree in bytes. Stops as soon as it is more than `enough`. Programs may change the tree
/// meanwhile. No link is followed.
///
/// A tree that cannot be measured, for example because it is deeper than any path, is an error. Only if the folder itself is
/// missing, that is "not found".
pub fn tree_size(folder: &Path, enough: u64) -> Result<u64> {
    let top = sys::open_folder(folder).at(folder)?;
    let mut bytes = 0;
    let mut pending = vec![PathBuf::from(".")];
    while let Some(path) = pending.pop() {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        // A folder that is gone was moved, removed or replaced meanwhile.
        let opened = sys::open_beneath(&top, &path, flags, ResolveFlags::NO_SYMLINKS);
        let Some(opened) = if_exists(opened).at(&path)? else { continue };
        let Some(mut entries) = if_exists(Dir::read_from(&opened)).at(&path)? else { continue };
        while let Some(entry) = entries.read() {
            // A folder that is removed while it is read has no more entries.
            let Some(entry) = if_exists(entry).at(&path)? else { break };
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if is_dots(name) {
                continue;
            }
            let Some(stat) = if_exists(sys::stat_name(&opened, name)).at(&path)? else { continue };
            let blocks = u64::try_from(stat.st_blocks).unwrap_or_default();
            bytes += (blocks * BLOCK_BYTES).max(MIN_ENTRY_BYTES);
            if bytes > enough {
                return Ok(bytes);
            }
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                pending.push(path.join(name));
            }
        }
    }
    Ok(bytes)
}

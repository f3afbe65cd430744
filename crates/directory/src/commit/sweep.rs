//! Temporary files that no journal knows of, because the machine went down before it was durable.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::PathBuf};

use rustix::{
    fs::{Dir, FileType, OFlags},
    io::Errno,
};

use super::settle::discard;
use crate::{Kind, Result, Root, error::At, sys, temporary::is_temporary_of};

/// Removes all temporary files of this root. The journal is locked and settled, so that nobody needs them.
pub(super) fn sweep(root: &Root) -> Result<()> {
    let mut waiting = vec![PathBuf::new()];
    while let Some(folder) = waiting.pop() {
        let opened = match root.open_real_folder(&folder, OFlags::RDONLY) {
            // Where this process cannot look, it has not written.
            Err(Errno::ACCESS | Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG) => continue,
            opened => opened.at(&folder)?,
        };
        let mut entries = Dir::new(opened).at(&folder)?;
        while let Some(entry) = entries.read() {
            let entry = entry.at(&folder)?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            let path = folder.join(name);
            if name == "." || name == ".." {
                continue;
            }
            if is_temporary_of(root.identity(), name) {
                discard(root, &path).at(&path)?;
                continue;
            }
            let kind = match entry.file_type() {
                // Some file systems do not say.
                FileType::Unknown => root.place(&path).and_then(|place| sys::stat_name(&place.folder, name)),
                kind => {
                    if Kind::of(kind) == Kind::Folder {
                        waiting.push(path);
                    }
                    continue;
                }
            };
            if kind.is_ok_and(|stat| Kind::of(FileType::from_raw_mode(stat.st_mode)) == Kind::Folder) {
                waiting.push(path);
            }
        }
    }
    Ok(())
}

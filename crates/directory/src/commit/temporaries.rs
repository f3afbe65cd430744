//! Finds temporary files that are not where the journal says, because others moved folders, or that no journal knows
//! of, because the machine went down before it was durable.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Dir, FileType, OFlags},
    io::Errno,
};

use super::{completion::discard, step::Step};
use crate::{Kind, Result, Root, error::PathContext, sys, temporary::is_temporary_of};

/// Removes all temporary files of this root. The journal is locked and closed, so nobody needs them.
pub(super) fn remove_temporaries(root: &Root) -> Result<()> {
    temporaries(root)?.iter().try_for_each(|path| discard(root, path).at(path))
}

/// Returns the steps with updated paths, if others have moved folders with temporary files in them.
pub(super) fn follow_moved_folders(root: &Root, steps: &[Step]) -> Result<Vec<Step>> {
    let found = temporaries(root)?;
    let now: BTreeMap<&OsStr, &Path> =
        found.iter().filter_map(|path| Some((path.file_name()?, path.parent()?))).collect();
    let moved: BTreeMap<&Path, &Path> = steps
        .iter()
        .flat_map(Step::temporaries)
        .filter_map(|path| Some((path.parent()?, *now.get(path.file_name()?)?)))
        .filter(|(folder, now)| folder != now)
        .collect();
    Ok(steps.iter().map(|step| step.map_paths(|path| moved_along(path, &moved))).collect())
}

fn moved_along(path: &Path, moved: &BTreeMap<&Path, &Path>) -> PathBuf {
    let folder = path.ancestors().skip(1).find_map(|folder| Some((folder, moved.get(folder)?)));
    folder.map_or_else(|| path.to_owned(), |(folder, now)| now.join(path.strip_prefix(folder).unwrap_or(path)))
}

/// Returns all temporary files and folders of this root, without the contents of such folders.
fn temporaries(root: &Root) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut pending = vec![PathBuf::new()];
    while let Some(folder) = pending.pop() {
        let opened = match root.open_real_folder(&folder, OFlags::RDONLY) {
            // This process cannot have written to a folder that it cannot read.
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
                found.push(path);
                continue;
            }
            let kind = match entry.file_type() {
                // Some file systems do not return the type.
                FileType::Unknown => root.entry_ref(&path).and_then(|entry| sys::stat_name(&entry.folder, name)),
                kind => {
                    if Kind::of(kind) == Kind::Folder {
                        pending.push(path);
                    }
                    continue;
                }
            };
            if kind.is_ok_and(|stat| Kind::of(FileType::from_raw_mode(stat.st_mode)) == Kind::Folder) {
                pending.push(path);
            }
        }
    }
    Ok(found)
}

//! The state of a folder when a program started on a view of it, and what others changed since.
//!
//! A file was changed if its ctime is newer than the start. Replacing one name of a file with several names (hard links)
//! renews the ctime of them all, and check-ins do that; so a file that was found unchanged once counts as unchanged as
//! long as the rest of its metadata is the same.
//!
//! If others replace a whole directory, the files in it keep their old ctimes. Only the directory and the one above it are
//! newer, as they also are after any new names in both. To tell these cases apart, the identities of the top directories
//! are noted at the start; other directories of which both are newer count as replaced. This matters for files with
//! versions only: in ignored trees, replaced directories are not detected.

use std::{
    collections::{HashMap, VecDeque},
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

use rustix::{
    fs::{Dir, FileType, OFlags},
    io::Errno,
};

use super::{names, placing::stat};
use crate::{
    Identity, Kind, Metadata, Result, Root,
    error::{PathContext, if_exists},
    git, sys,
};

/// Maximum number of directories whose identities are noted.
const MAX_NOTED: usize = 1024;

/// Maximum number of them in one directory: otherwise one with many packages would leave no room for others.
const MAX_NOTED_IN_ONE: usize = 256;

/// Maximum number of names that are read in one directory.
const MAX_READ_IN_ONE: usize = 4096;

/// The state of a folder when a program started on a view of it.
#[derive(Debug)]
pub struct Baseline {
    /// What has a newer ctime was changed by others.
    time: SystemTime,
    /// The identities of directories right before that.
    dirs: HashMap<PathBuf, Identity>,
    /// Files that were found unchanged before anything of the program was brought to the folder.
    unchanged: Mutex<HashMap<Identity, Fingerprint>>,
}

/// All metadata that changes when a file is written or gets other permissions, but for its ctime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fingerprint {
    kind: Kind,
    size_bytes: u64,
    modified: SystemTime,
    mode: u32,
    owner: u32,
    group: u32,
}

impl From<&Metadata> for Fingerprint {
    fn from(file: &Metadata) -> Self {
        let Metadata { kind, size_bytes, modified, mode, owner, group, .. } = *file;
        Self { kind, size_bytes, modified, mode, owner, group }
    }
}

impl Baseline {
    /// A baseline at a time, with the identities of directories from right before.
    pub fn new(time: SystemTime, dirs: HashMap<PathBuf, Identity>) -> Self {
        Self { time, dirs, unchanged: Mutex::default() }
    }

    /// Whether others changed a file, or the names in a directory. Of unchanged files, those with several names are
    /// remembered.
    pub(super) fn is_changed(&self, now: &Metadata) -> bool {
        let is_newer = now.changed > self.time;
        if now.kind == Kind::Folder || !is_newer && now.links == 1 {
            return is_newer;
        }
        self.is_file_changed(now)
    }

    /// Whether others changed a file. An unchanged one is remembered: attempts to commit may renew its ctime.
    pub(super) fn is_file_changed(&self, now: &Metadata) -> bool {
        let mut unchanged = self.unchanged.lock().unwrap_or_else(PoisonError::into_inner);
        let fingerprint = Fingerprint::from(now);
        if now.changed > self.time {
            return unchanged.get(&now.identity) != Some(&fingerprint);
        }
        unchanged.insert(now.identity, fingerprint);
        false
    }

    /// Whether others may have replaced a directory; `above` is the ctime of the directory that it is in.
    pub(super) fn is_replaced(&self, path: &Path, now: &Metadata, above: SystemTime) -> bool {
        now.changed > self.time && above > self.time && self.dirs.get(path) != Some(&now.identity)
    }
}

impl Root {
    /// Returns the identities of directories from the top down, of as many as take no time that matters.
    pub fn dir_identities(&self) -> HashMap<PathBuf, Identity> {
        let mut noted = HashMap::new();
        let mut pending = VecDeque::from([PathBuf::new()]);
        while let Some(path) = pending.pop_front() {
            // A directory that cannot be read is not noted, and so counts as replaced if it is newer later.
            let Ok(folder) = self.open_real_folder(&path, OFlags::RDONLY) else { continue };
            let Ok(entries) = Dir::read_from(&folder) else { continue };
            let mut noted_here = 0;
            for entry in entries.take(MAX_READ_IN_ONE).map_while(rustix::io::Result::ok) {
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                let may_be_folder = matches!(entry.file_type(), FileType::Directory | FileType::Unknown);
                if name == "." || name == ".." || !may_be_folder {
                    continue;
                }
                let Ok(now) = sys::stat_name(&folder, name).map(Metadata::from) else { continue };
                if now.kind != Kind::Folder {
                    continue;
                }
                if noted.len() == MAX_NOTED || noted_here == MAX_NOTED_IN_ONE {
                    break;
                }
                let below = path.join(name);
                noted.insert(below.clone(), now.identity);
                noted_here += 1;
                // The directories of a repository have no versions.
                if !git::is_within(&below) {
                    pending.push_back(below);
                }
            }
        }
        noted
    }

    /// Whether others changed something at or below a path. Directories that cannot be read count as unchanged.
    pub fn is_changed_since(&self, path: &Path, baseline: &Baseline) -> Result<bool> {
        is_changed_since(self, path, baseline).at(path)
    }
}

pub(super) fn is_changed_since(root: &Root, path: &Path, baseline: &Baseline) -> rustix::io::Result<bool> {
    let Some(now) = stat(root, path)?.map(Metadata::from) else { return Ok(false) };
    Ok(baseline.is_changed(&now) || now.kind == Kind::Folder && is_changed_below(root, path, baseline)?)
}

/// Whether others changed something below a directory.
pub(super) fn is_changed_below(root: &Root, path: &Path, baseline: &Baseline) -> rustix::io::Result<bool> {
    let mut pending = vec![path.to_owned()];
    while let Some(path) = pending.pop() {
        let listed = root.open_real_folder(&path, OFlags::RDONLY).and_then(|folder| Ok((names(&folder)?, folder)));
        let (names, folder) = match listed {
            Ok(listed) => listed,
            Err(Errno::ACCESS | Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG) => continue,
            Err(errno) => return Err(errno),
        };
        for name in names {
            let now = match if_exists(sys::stat_name(&folder, &name)) {
                // The directory can be listed and not entered.
                Err(Errno::ACCESS) => continue,
                now => now?.map(Metadata::from),
            };
            let Some(now) = now else { continue };
            if baseline.is_changed(&now) {
                return Ok(true);
            }
            if now.kind == Kind::Folder {
                pending.push(path.join(&name));
            }
        }
    }
    Ok(false)
}

#[cfg(test)]
#[path = "baseline_tests.rs"]
mod baseline_tests;

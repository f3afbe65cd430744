//! How a folder stood when a program began to work on a view of it, and what of it others have changed since.
//!
//! Whatever others do to a file shows in its ctime, also if they put it elsewhere. What is done here shows too: to replace
//! one name of a file changes the ctime that all its names have. So a file that was seen unchanged once stays so, as long
//! as all but its ctime is the same. Where they put a whole folder
//! elsewhere, all that is in it looks as before, and only the folder itself and the one above it are newer. So they are
//! after any two new names too. To tell those apart, folders are noted at the beginning, from the top down, as many as
//! cost next to nothing; of all others the doubt is enough.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
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
    error::{At, if_exists},
    git, sys,
};

/// So many folders are noted at most.
const NOTED: usize = 1024;

/// So many of those that lie in the same one: else those of packages would leave no room for others.
const NOTED_IN_ONE: usize = 256;

/// So many names are read in one folder, whatever has them.
const READ_IN_ONE: usize = 4096;

/// The folders that stood beneath a root at some moment, as far as they were noted.
#[derive(Debug, Default)]
pub struct DirIdentities(BTreeMap<PathBuf, Identity>);

/// How a folder stood when a program began to work on a view of it.
#[derive(Debug)]
pub struct Baseline {
    /// What changed after this, others have changed.
    moment: SystemTime,
    /// From right before.
    folders: DirIdentities,
    /// The files that were seen unchanged before anything of the program's was brought to the folder.
    unchanged: Mutex<HashMap<Identity, Fingerprint>>,
}

/// All that changes of a file when somebody writes to it or changes its permissions, but for its ctime.
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

/// Folders that others have put where they are since the beginning, or may have.
#[derive(Debug, Default)]
pub struct ReplacedDirs(pub(super) BTreeSet<PathBuf>);

impl ReplacedDirs {
    /// Whether a path leads to or through such a folder.
    pub fn covers(&self, path: &Path) -> bool {
        !self.0.is_empty() && path.ancestors().any(|above| self.0.contains(above))
    }
}

impl Baseline {
    /// The beginning at a moment, with the folders as they stood right before.
    pub fn new(moment: SystemTime, folders: DirIdentities) -> Self {
        Self { moment, folders, unchanged: Mutex::default() }
    }

    /// Whether others have changed something that is there; if it is a folder, maybe only what is in it. A file that has
    /// several names and is unchanged is remembered as such.
    pub(super) fn is_after(&self, there: &Metadata) -> bool {
        let is_newer = there.changed > self.moment;
        if there.kind == Kind::Folder || !is_newer && there.links == 1 {
            return is_newer;
        }
        self.is_file_after(there)
    }

    /// Whether others have changed a file that is there. One that is unchanged is remembered as such.
    pub fn is_file_after(&self, there: &Metadata) -> bool {
        let mut unchanged = self.unchanged.lock().unwrap_or_else(PoisonError::into_inner);
        let fingerprint = Fingerprint::from(there);
        if there.changed > self.moment {
            return unchanged.get(&there.identity) != Some(&fingerprint);
        }
        unchanged.insert(there.identity, fingerprint);
        false
    }

    /// Whether others may have put a folder where it is; `above` is the ctime of the one that it lies in,
    /// where that tells anything.
    pub(super) fn is_replaced(&self, path: &Path, there: &Metadata, above: Option<SystemTime>) -> bool {
        let is_other_name = above.is_none_or(|above| above > self.moment);
        self.is_after(there) && is_other_name && self.folders.0.get(path) != Some(&there.identity)
    }
}

impl Root {
    /// Notes the folders that stand here, from the top down, as many as take no time that matters.
    pub fn dir_identities(&self) -> DirIdentities {
        let mut noted = BTreeMap::new();
        let mut pending = VecDeque::from([PathBuf::new()]);
        while let Some(path) = pending.pop_front() {
            // What goes away meanwhile, or cannot be looked into, is not noted.
            let Ok(folder) = self.open_real_folder(&path, OFlags::RDONLY) else { continue };
            let Ok(entries) = Dir::read_from(&folder) else { continue };
            let mut room_here = NOTED_IN_ONE;
            for entry in entries.take(READ_IN_ONE).map_while(rustix::io::Result::ok) {
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                let may_be_folder = matches!(entry.file_type(), FileType::Directory | FileType::Unknown);
                if name == "." || name == ".." || !may_be_folder {
                    continue;
                }
                let Ok(there) = sys::stat_name(&folder, name).map(Metadata::from) else { continue };
                if there.kind == Kind::Folder {
                    if noted.len() == NOTED {
                        return DirIdentities(noted);
                    }
                    let below = path.join(name);
                    noted.insert(below.clone(), there.identity);
                    // Those of all the objects in a repository would leave no room for others.
                    if !git::is_within(&below) {
                        pending.push_back(below);
                    }
                    room_here -= 1;
                }
                if room_here == 0 {
                    break;
                }
            }
        }
        DirIdentities(noted)
    }

    /// Whether others have changed something at or below a path since. What cannot be looked into counts as unchanged.
    pub fn is_changed_since(&self, path: &Path, baseline: &Baseline) -> Result<bool> {
        is_changed_since(self, path, baseline).at(path)
    }
}

pub(super) fn is_changed_since(root: &Root, path: &Path, baseline: &Baseline) -> rustix::io::Result<bool> {
    let Some(there) = stat(root, path)?.map(Metadata::from) else { return Ok(false) };
    if there.kind != Kind::Folder {
        return Ok(baseline.is_after(&there));
    }
    // The folder above may be newer by what is being taken over to it right now.
    Ok(baseline.is_replaced(path, &there, None) || is_changed_below(root, path, (path, there.changed), baseline)?)
}

/// Whether others have changed something below a folder since. It stands at `now`; what it was called, and its ctime
/// while it was called so, may be from before it was renamed.
pub(super) fn is_changed_below(
    root: &Root,
    now: &Path,
    (called, changed): (&Path, SystemTime),
    baseline: &Baseline,
) -> rustix::io::Result<bool> {
    let mut pending = vec![(now.to_owned(), called.to_owned(), changed)];
    while let Some((now, called, changed)) = pending.pop() {
        let listed = root.open_real_folder(&now, OFlags::RDONLY).and_then(|folder| Ok((names(&folder)?, folder)));
        let (names, folder) = match listed {
            Ok(listed) => listed,
            Err(Errno::ACCESS | Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG) => continue,
            Err(errno) => return Err(errno),
        };
        for name in names {
            let there = match if_exists(sys::stat_name(&folder, &name)) {
                // It may be listed and not entered.
                Err(Errno::ACCESS) => continue,
                there => there?.map(Metadata::from),
            };
            let Some(there) = there else { continue };
            if there.kind != Kind::Folder {
                if baseline.is_after(&there) {
                    return Ok(true);
                }
                continue;
            }
            let called = called.join(&name);
            if baseline.is_replaced(&called, &there, Some(changed)) {
                return Ok(true);
            }
            pending.push((now.join(&name), called, there.changed));
        }
    }
    Ok(false)
}

#[cfg(test)]
#[path = "baseline_tests.rs"]
mod baseline_tests;

//! Scans the files and folders of a checkout directory.

mod parallel;

use std::{
    ffi::OsStr,
    mem::MaybeUninit,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::Path,
    sync::{Arc, LazyLock},
    thread,
};

use rustix::{
    fs::{OFlags, RawDir},
    io::Errno,
};

use super::{CheckoutDir, allow_owner, is_dots};
use crate::{
    Kind, Metadata, Result,
    error::{PathContext, if_exists},
    sys,
    walk::rules::{RuleFiles, Rules},
};

/// Size of the buffer for directory entries.
const BUFFER_BYTES: usize = 32 << 10;

/// Maximum number of folders, and of names in one folder, that are in memory before they are reported.
const FOLDERS_AT_A_TIME: usize = 512;
const NAMES_AT_A_TIME: usize = 4_096;

/// Minimum number of files for a scan with several threads.
const MIN_FILES_FOR_THREADS: usize = 1_024;

/// Number of threads of a scan with several threads.
static THREADS: LazyLock<usize> = LazyLock::new(|| thread::available_parallelism().map_or(1, usize::from).min(4));

/// Receives the files and folders that a scan finds. Paths begin with a slash.
pub trait ScanVisitor: Sync {
    /// Returns an estimate of the number of files and folders.
    fn expected(&self) -> usize;

    /// Returns true for a file that is known to be unchanged, even an ignored one. Such a file is not reported. Called
    /// by several threads at once.
    fn knows(&self, file: &str, metadata: &Metadata) -> bool;

    /// Whether an ignored path is scanned as if it were not ignored. Must be true for every folder above such a path.
    fn insists_on(&self, path: &str) -> bool;

    /// Receives a file or folder. The entries of a folder follow later, unless it is ignored.
    fn found(&mut self, path: &str, metadata: &Metadata, status: IgnoreStatus);

    /// Receives a path whose last name is not UTF-8 or contains a control character, or that is too long.
    fn found_unnamed(&mut self, path: String, metadata: &Metadata);

    /// Receives a folder that cannot be read.
    fn found_unreadable(&mut self, folder: &str);
}

/// Whether a file or folder is included in the scan or ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IgnoreStatus {
    /// It is not ignored, or [`ScanVisitor::insists_on`] is true for it.
    Taken,
    /// A rule ignores it or a folder above it, or one of them is named `.git`.
    LeftOut,
}

/// A folder that is still to be read.
struct PendingDir {
    /// With a slash at the end.
    path: String,
    /// The rules of the folders above.
    rules: Option<Arc<Rules>>,
    /// Whether it is ignored. It is read only because [`ScanVisitor::insists_on`] is true for it.
    is_left_out: bool,
}

/// A folder that was read.
struct ListedFolder {
    names: Names,
    rules: Option<Arc<Rules>>,
    /// Metadata of the first [`NAMES_AT_A_TIME`] names.
    described: Described,
    /// The open folder, if there are more names.
    more: Option<OwnedFd>,
}

/// Metadata of some names, each with the index of the name. Files known to be unchanged are left out.
type Described = Vec<(usize, Metadata)>;

impl CheckoutDir {
    /// Scans all files and folders, without the content of ignored folders.
    ///
    /// System calls take nearly all of the time, so several threads make them in a large directory. The visitor is
    /// called on the calling thread.
    pub fn scan(&self, longest_path_bytes: usize, visitor: &mut impl ScanVisitor) -> Result<()> {
        let threads = if visitor.expected() < MIN_FILES_FOR_THREADS { 1 } else { *THREADS };
        let mut scan = Scan { dir: self, longest_path_bytes, threads, visitor, below: Vec::new() };
        let mut folders = vec![PendingDir { path: "/".to_owned(), rules: None, is_left_out: false }];
        while !folders.is_empty() {
            let some = folders.split_off(folders.len().saturating_sub(FOLDERS_AT_A_TIME));
            let listed = parallel::map(threads, &some, |pending| scan.list(pending));
            for (pending, listed) in some.iter().zip(listed) {
                match listed.and_then(|listed| scan.report_all(pending, &listed)) {
                    Err(errno) if pending.path == "/" => return Err(errno).at("."),
                    // The folder was removed or replaced since its parent was read.
                    Ok(()) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                    Err(_) => scan.visitor.found_unreadable(pending.path.trim_end_matches('/')),
                }
            }
            folders.append(&mut scan.below);
        }
        Ok(())
    }

    /// Opens a folder for reading, and gives its owner the permissions for that.
    fn open_folder(&self, folder: &Path) -> rustix::io::Result<OwnedFd> {
        match self.top.open_real_folder(folder, OFlags::RDONLY) {
            Err(Errno::ACCESS) => {
                self.allow_owner(folder)?;
                self.top.open_real_folder(folder, OFlags::RDONLY)
            }
            Ok(opened) => {
                // The server may run as root, which can read folders of any mode, but the next program does not. A
                // readable folder may also lack search permission.
                allow_owner(&opened)?;
                Ok(opened)
            }
            other => other,
        }
    }
}

/// A scan in progress.
struct Scan<'a, S> {
    dir: &'a CheckoutDir,
    longest_path_bytes: usize,
    threads: usize,
    visitor: &'a mut S,
    /// Folders that were found and are still to be read.
    below: Vec<PendingDir>,
}

impl<S: ScanVisitor> Scan<'_, S> {
    /// Reads the names in a folder, and the metadata of the first of them.
    fn list(&self, pending: &PendingDir) -> rustix::io::Result<ListedFolder> {
        let folder = self.dir.open_folder(Path::new(pending.path.trim_matches('/')))?;
        let names = Names::read(&folder)?;
        let rules = Rules::of_folder(&folder, names.here, pending.rules.clone(), pending.path.len()).rules;
        let described = self.describe(pending, &folder, &names, 0)?;
        let more = (names.len() > NAMES_AT_A_TIME).then_some(folder);
        Ok(ListedFolder { names, rules, described, more })
    }

    /// Reads the metadata of up to [`NAMES_AT_A_TIME`] names of a folder, from the index `first` on.
    fn describe(
        &self,
        pending: &PendingDir,
        folder: &OwnedFd,
        names: &Names,
        first: usize,
    ) -> rustix::io::Result<Described> {
        let end = names.len().min(first + NAMES_AT_A_TIME);
        let mut described = Vec::new();
        let mut path = pending.path.clone();
        for number in first..end {
            let name = names.get(number);
            // Names that no longer exist are skipped.
            let Some(stat) = if_exists(sys::stat_name(folder, name))? else { continue };
            let metadata = Metadata::from(stat);
            let is_known = metadata.kind == Kind::File
                && self.complete(&mut path, pending, name)
                && self.visitor.knows(&path, &metadata);
            if !is_known {
                described.push((number, metadata));
            }
        }
        Ok(described)
    }

    /// Replaces the last name of a path. Returns whether the result is a valid path.
    fn complete(&self, path: &mut String, pending: &PendingDir, name: &OsStr) -> bool {
        path.truncate(pending.path.len());
        let fits = |name: &&str| path.len() + name.len() <= self.longest_path_bytes;
        let Some(name) = name.to_str().filter(fits).filter(|name| !name.chars().any(char::is_control)) else {
            return false;
        };
        path.push_str(name);
        true
    }

    /// Reports the entries of a folder: those whose metadata was read already, then the others in batches.
    fn report_all(&mut self, pending: &PendingDir, listed: &ListedFolder) -> rustix::io::Result<()> {
        self.report(pending, listed, &listed.described);
        let Some(folder) = &listed.more else { return Ok(()) };
        let rest: Vec<usize> = (NAMES_AT_A_TIME..listed.names.len()).step_by(NAMES_AT_A_TIME).collect();
        for some in rest.chunks(self.threads) {
            for described in
                parallel::map(self.threads, some, |first| self.describe(pending, folder, &listed.names, *first))
            {
                self.report(pending, listed, &described?);
            }
        }
        Ok(())
    }

    fn report(&mut self, pending: &PendingDir, listed: &ListedFolder, described: &Described) {
        let rules = listed.rules.as_ref();
        let mut path = pending.path.clone();
        for (number, metadata) in described {
            let name = listed.names.get(*number);
            if !self.complete(&mut path, pending, name) {
                self.visitor.found_unnamed(path.clone() + &name.to_string_lossy(), metadata);
                continue;
            }
            let is_folder = metadata.kind == Kind::Folder;
            let is_left_out =
                pending.is_left_out || name == ".git" || rules.is_some_and(|rules| rules.ignores(&path, is_folder));
            let insists = is_left_out && self.visitor.insists_on(&path);
            let status = if is_left_out && !insists { IgnoreStatus::LeftOut } else { IgnoreStatus::Taken };
            self.visitor.found(&path, metadata, status);
            if is_folder && status == IgnoreStatus::Taken {
                self.below.push(PendingDir { path: format!("{path}/"), rules: rules.cloned(), is_left_out });
            }
        }
    }
}

/// The names in a folder.
struct Names {
    text: Vec<u8>,
    ends: Vec<usize>,
    here: RuleFiles,
}

impl Names {
    fn read(folder: &OwnedFd) -> rustix::io::Result<Self> {
        let mut buffer: Vec<u8> = Vec::with_capacity(BUFFER_BYTES);
        let mut names =
            Self { text: Vec::new(), ends: Vec::new(), here: RuleFiles { has_rules: false, has_git: false } };
        let spare: &mut [MaybeUninit<u8>] = buffer.spare_capacity_mut();
        let mut entries = RawDir::new(folder, spare);
        while let Some(entry) = entries.next() {
            let entry = match entry {
                // The folder was removed while it was read.
                Err(Errno::NOENT) => break,
                other => other?,
            };
            let name = entry.file_name().to_bytes();
            if is_dots(OsStr::from_bytes(name)) {
                continue;
            }
            names.here.has_git |= name == b".git";
            names.here.has_rules |= name == b".gitignore";
            names.text.extend_from_slice(name);
            names.ends.push(names.text.len());
        }
        Ok(names)
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn get(&self, number: usize) -> &OsStr {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        OsStr::from_bytes(&self.text[start..self.ends[number]])
    }
}

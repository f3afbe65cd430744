//! Looking over all that programs left behind.

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
    error::{At, if_exists},
    sys,
    walk::rules::{RuleFiles, Rules},
};

/// Room for the entries that the kernel gives at a time.
const BUFFER_BYTES: usize = 32 << 10;

/// How many folders are read before what they hold is told, and how many names are looked at: what is known of them is
/// held in memory meanwhile.
const FOLDERS_AT_A_TIME: usize = 512;
const NAMES_AT_A_TIME: usize = 4_096;

/// From so many files on, several threads look at them.
const WORTH_HELP: usize = 1_024;

/// How many those are.
static THREADS: LazyLock<usize> = LazyLock::new(|| thread::available_parallelism().map_or(1, usize::from).min(4));

/// Learns what a survey finds. Paths begin with a slash.
pub trait ScanVisitor: Sync {
    /// About how many files and folders there will be.
    fn expected(&self) -> usize;

    /// Whether a file stands there as it is known to, whatever the rules say, so that it need not be told of. Asked by
    /// several threads at once.
    fn knows(&self, file: &str, metadata: &Metadata) -> bool;

    /// Whether a path matters although rules leave it out. A folder matters if something below it does.
    fn insists_on(&self, path: &str) -> bool;

    /// Learns of something that stands there. What is in a folder follows later, unless rules leave it out.
    fn found(&mut self, path: &str, metadata: &Metadata, status: IgnoreStatus);

    /// Learns of a name that is no text, or has a control character or more bytes than a path may have.
    fn found_unnamed(&mut self, path: String, metadata: &Metadata);

    /// Learns of a folder that cannot be read.
    fn found_unreadable(&mut self, folder: &str);
}

/// How something stands to the rules of `.gitignore`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IgnoreStatus {
    Taken,
    /// A rule leaves it out, or it is git's own.
    LeftOut,
}

/// A folder that is still to be read.
struct PendingDir {
    /// With a slash at the end.
    path: String,
    /// The rules from above.
    rules: Option<Arc<Rules>>,
    /// Whether rules leave it out, and it is read for the sake of something in it.
    is_left_out: bool,
}

/// A folder that was read.
struct Listed {
    names: Names,
    rules: Option<Arc<Rules>>,
    /// What stands at its first names.
    described: Described,
    /// The folder itself, if there are more.
    more: Option<OwnedFd>,
}

/// What stands at some names, by their numbers, unless it is known.
type Described = Vec<(usize, Metadata)>;

impl CheckoutDir {
    /// Looks over all that is there, but not at what is in folders that rules leave out.
    ///
    /// Nearly all of the time goes into asking the kernel, so in a large folder several threads do that. The surveyor is
    /// told on the caller's.
    pub fn scan(&self, longest_path_bytes: usize, surveyor: &mut impl ScanVisitor) -> Result<()> {
        let threads = if surveyor.expected() < WORTH_HELP { 1 } else { *THREADS };
        let mut scan = Scan { bench: self, longest_path_bytes, threads, surveyor, below: Vec::new() };
        let mut folders = vec![PendingDir { path: "/".to_owned(), rules: None, is_left_out: false }];
        while !folders.is_empty() {
            let some = folders.split_off(folders.len().saturating_sub(FOLDERS_AT_A_TIME));
            let listed = parallel::map(threads, &some, |pending| scan.list(pending));
            for (pending, listed) in some.iter().zip(listed) {
                match listed.and_then(|listed| scan.report_all(pending, &listed)) {
                    Err(errno) if pending.path == "/" => return Err(errno).at("."),
                    // The others are gone since their parent was read, or no folders any more.
                    Ok(()) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                    Err(_) => scan.surveyor.found_unreadable(pending.path.trim_end_matches('/')),
                }
            }
            folders.append(&mut scan.below);
        }
        Ok(())
    }

    /// Opens a folder to read it, also one that was closed to its owner.
    fn open_folder(&self, folder: &Path) -> rustix::io::Result<OwnedFd> {
        match self.top.open_real_folder(folder, OFlags::RDONLY) {
            Err(Errno::ACCESS) => {
                self.allow_owner(folder)?;
                self.top.open_real_folder(folder, OFlags::RDONLY)
            }
            Ok(opened) => {
                // Root can read all, but the next program is not root; and what can be read may still not be entered.
                allow_owner(&opened)?;
                Ok(opened)
            }
            other => other,
        }
    }
}

/// A survey under way.
struct Scan<'a, S> {
    bench: &'a CheckoutDir,
    longest_path_bytes: usize,
    threads: usize,
    surveyor: &'a mut S,
    /// The folders that were found, and are to be read.
    below: Vec<PendingDir>,
}

impl<S: ScanVisitor> Scan<'_, S> {
    /// Reads the names in a folder, and looks at the first of them: at all, if there are not very many.
    fn list(&self, pending: &PendingDir) -> rustix::io::Result<Listed> {
        let folder = self.bench.open_folder(Path::new(pending.path.trim_matches('/')))?;
        let names = Names::read(&folder)?;
        let rules = Rules::of_folder(&folder, names.here, pending.rules.clone(), pending.path.len()).rules;
        let described = self.describe(pending, &folder, &names, 0)?;
        let more = (names.len() > NAMES_AT_A_TIME).then_some(folder);
        Ok(Listed { names, rules, described, more })
    }

    /// Looks at what stands at some names of a folder, from one of them on.
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
            // A name that is gone by now was never there.
            let Some(stat) = if_exists(sys::stat_name(folder, name))? else { continue };
            let metadata = Metadata::from(stat);
            let is_known = metadata.kind == Kind::File
                && self.complete(&mut path, pending, name)
                && self.surveyor.knows(&path, &metadata);
            if !is_known {
                described.push((number, metadata));
            }
        }
        Ok(described)
    }

    /// Makes the path of a name in a folder from one of another name; tells whether it can be one.
    fn complete(&self, path: &mut String, pending: &PendingDir, name: &OsStr) -> bool {
        path.truncate(pending.path.len());
        let fits = |name: &&str| path.len() + name.len() <= self.longest_path_bytes;
        let Some(name) = name.to_str().filter(fits).filter(|name| !name.chars().any(char::is_control)) else {
            return false;
        };
        path.push_str(name);
        true
    }

    /// Tells what stands at the names of a folder: what was looked at already, then the rest, some at a time.
    fn report_all(&mut self, pending: &PendingDir, listed: &Listed) -> rustix::io::Result<()> {
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

    fn report(&mut self, pending: &PendingDir, listed: &Listed, described: &Described) {
        let rules = listed.rules.as_ref();
        let mut path = pending.path.clone();
        for (number, metadata) in described {
            let name = listed.names.get(*number);
            if !self.complete(&mut path, pending, name) {
                self.surveyor.found_unnamed(path.clone() + &name.to_string_lossy(), metadata);
                continue;
            }
            let is_folder = metadata.kind == Kind::Folder;
            let is_left_out =
                pending.is_left_out || name == ".git" || rules.is_some_and(|rules| rules.ignores(&path, is_folder));
            let insists = is_left_out && self.surveyor.insists_on(&path);
            let status = if is_left_out && !insists { IgnoreStatus::LeftOut } else { IgnoreStatus::Taken };
            self.surveyor.found(&path, metadata, status);
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

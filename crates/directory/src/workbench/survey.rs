//! Looking over all that programs left behind.

use std::{
    ffi::OsStr,
    mem::MaybeUninit,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::Path,
    sync::Arc,
};

use rustix::{
    fs::{OFlags, RawDir},
    io::Errno,
};

use super::{Workbench, is_dots, open_up};
use crate::{
    Kind, Metadata, Result,
    error::{At, found},
    sys,
    walk::rules::{Here, Rules},
};

/// Room for the entries that the kernel gives at a time.
const BUFFER_BYTES: usize = 64 << 10;

/// Learns what a survey finds. Paths begin with a slash.
pub trait Surveyor {
    /// Whether a path matters although rules leave it out. A folder matters if something below it does.
    fn insists_on(&self, path: &str) -> bool;

    /// Learns of something that stands there. What is in a folder follows later, unless rules leave it out.
    fn found(&mut self, path: &str, metadata: &Metadata, standing: Standing);

    /// Learns of a name that is no text, or has a control character or more bytes than a path may have.
    fn found_unnamed(&mut self, path: String, metadata: &Metadata);

    /// Learns of a folder that cannot be read.
    fn found_unreadable(&mut self, folder: &str);
}

/// How something stands to the rules of `.gitignore`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Taken,
    /// A rule leaves it out, or it is git's own.
    LeftOut,
}

/// A folder that is still to be read.
struct Waiting {
    /// With a slash at the end.
    path: String,
    /// The rules from above.
    rules: Option<Arc<Rules>>,
    /// Whether rules leave it out, and it is read for the sake of something in it.
    is_left_out: bool,
}

impl Workbench {
    /// Looks over all that is there, but not at what is in folders that rules leave out.
    pub fn survey(&self, longest_path_bytes: usize, surveyor: &mut impl Surveyor) -> Result<()> {
        let mut buffer = Vec::with_capacity(BUFFER_BYTES);
        let mut waiting = vec![Waiting { path: "/".to_owned(), rules: None, is_left_out: false }];
        while let Some(folder) = waiting.pop() {
            match self.survey_folder(&folder, longest_path_bytes, &mut buffer, surveyor) {
                Ok(below) => waiting.extend(below),
                // Gone since its parent was read, or no folder any more.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if folder.path != "/" => {}
                Err(errno) if folder.path == "/" => return Err(errno).at("."),
                Err(_) => surveyor.found_unreadable(folder.path.trim_end_matches('/')),
            }
        }
        Ok(())
    }

    fn survey_folder(
        &self,
        waiting: &Waiting,
        longest_path_bytes: usize,
        buffer: &mut Vec<u8>,
        surveyor: &mut impl Surveyor,
    ) -> rustix::io::Result<Vec<Waiting>> {
        let folder = self.open_folder(Path::new(waiting.path.trim_matches('/')))?;
        let names = Names::read(&folder, buffer)?;
        let rules = Rules::of_folder(&folder, names.here, waiting.rules.clone(), waiting.path.len()).rules;
        let mut below = Vec::new();
        let mut path = waiting.path.clone();
        for name in names.iter() {
            // A name that is gone by now was never there.
            let Some(stat) = found(sys::stat_name(&folder, name))? else { continue };
            let metadata = Metadata::from(stat);
            path.truncate(waiting.path.len());
            match name.to_str() {
                Some(name) if path.len() + name.len() <= longest_path_bytes && !name.chars().any(char::is_control) => {
                    path.push_str(name);
                }
                _ => {
                    surveyor.found_unnamed(path.clone() + &name.to_string_lossy(), &metadata);
                    continue;
                }
            }
            let is_folder = metadata.kind == Kind::Folder;
            let is_left_out = waiting.is_left_out
                || name == ".git"
                || rules.as_ref().is_some_and(|rules| rules.leave_out(&path, is_folder));
            let insists = is_left_out && surveyor.insists_on(&path);
            let standing = if is_left_out && !insists { Standing::LeftOut } else { Standing::Taken };
            surveyor.found(&path, &metadata, standing);
            if is_folder && standing == Standing::Taken {
                below.push(Waiting { path: format!("{path}/"), rules: rules.clone(), is_left_out });
            }
        }
        Ok(below)
    }

    /// Opens a folder to read it, also one that was closed to its owner.
    fn open_folder(&self, folder: &Path) -> rustix::io::Result<OwnedFd> {
        match self.top.open_real_folder(folder, OFlags::RDONLY) {
            Err(Errno::ACCESS) => {
                self.open_up(folder)?;
                self.top.open_real_folder(folder, OFlags::RDONLY)
            }
            Ok(opened) => {
                // Root can read all, but the next program is not root; and what can be read may still not be entered.
                open_up(&opened)?;
                Ok(opened)
            }
            other => other,
        }
    }
}

/// The names in a folder.
struct Names {
    text: Vec<u8>,
    ends: Vec<usize>,
    here: Here,
}

impl Names {
    fn read(folder: &OwnedFd, buffer: &mut Vec<u8>) -> rustix::io::Result<Self> {
        let mut names = Self { text: Vec::new(), ends: Vec::new(), here: Here { has_rules: false, has_git: false } };
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

    fn iter(&self) -> impl Iterator<Item = &OsStr> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let name = OsStr::from_bytes(&self.text[start..*end]);
            start = *end;
            name
        })
    }
}

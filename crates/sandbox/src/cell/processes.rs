//! The processes of a job, as PID 1 sees them.
//!
//! A read that fails is an error, and ends the job: what cannot be read cannot be limited. Only what has ended meanwhile
//! is passed over.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    os::fd::OwnedFd,
};

use rustix::{
    fs::{Dir, DirEntry, Mode, OFlags},
    io::{Errno, Result},
    mount::{FsMountFlags, FsOpenFlags, MountAttrFlags},
};

use crate::sys;

/// The watchdog's own view of `/proc`, which is mounted nowhere.
pub(super) struct Processes {
    folder: OwnedFd,
}

/// What became of an attempt to look into a process.
pub(super) enum Seen<T> {
    There(T),
    /// It has ended.
    Gone,
    /// The kernel does not let PID 1 look into it, as happens where its executable belongs to somebody else and may not
    /// be read.
    Closed,
}

impl<T> Seen<T> {
    fn of(result: Result<T>) -> Result<Self> {
        match result {
            Ok(value) => Ok(Self::There(value)),
            Err(errno) if is_gone(errno) => Ok(Self::Gone),
            Err(Errno::ACCESS | Errno::PERM) => Ok(Self::Closed),
            Err(errno) => Err(errno),
        }
    }
}

/// Whether an error means that a process, a file or a folder has gone, or has been replaced by something else.
pub(super) fn is_gone(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::SRCH | Errno::NOTDIR | Errno::LOOP | Errno::STALE)
}

impl Processes {
    /// Opens a view that hides no process, whatever `/proc` of the job hides. Needs the right to mount.
    pub(super) fn mount() -> Result<Self> {
        let context = rustix::mount::fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
        rustix::mount::fsconfig_create(&context)?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC
            | MountAttrFlags::MOUNT_ATTR_RDONLY;
        let mount = rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { folder: rustix::fs::openat(&mount, c".", flags, Mode::empty())? })
    }

    pub(super) fn all(&self) -> Result<Vec<u32>> {
        numbers(&self.folder)
    }

    /// Where each thread of a process is found. The first one can have ended and left the others; what a process has
    /// is then to be seen by them only.
    pub(super) fn threads(&self, pid: u32) -> Result<Vec<String>> {
        Ok(self.thread_numbers(pid)?.into_iter().map(|thread| format!("{pid}/task/{thread}")).collect())
    }

    /// Where each table of descriptors of a process is found: a thread can have its own.
    pub(super) fn descriptor_tables(&self, pid: u32) -> Result<Vec<String>> {
        let threads = self.thread_numbers(pid)?.into_iter();
        let tables = threads.filter(|thread| *thread == pid || !sys::share_descriptors(pid, *thread));
        Ok(tables.map(|thread| format!("{pid}/task/{thread}")).collect())
    }

    fn thread_numbers(&self, pid: u32) -> Result<Vec<u32>> {
        match self.open_folder(&format!("{pid}/task"))? {
            Seen::There(tasks) => numbers(&tasks),
            Seen::Gone | Seen::Closed => Ok(Vec::new()),
        }
    }

    /// The folder of what a thread has open.
    pub(super) fn descriptors(&self, thread: &str) -> Result<Seen<OwnedFd>> {
        let folder = self.open_folder(&format!("{thread}/fd"))?;
        self.unless_ended(thread, folder)
    }

    /// The mappings of a thread.
    pub(super) fn maps(&self, thread: &str) -> Result<Seen<String>> {
        let maps = self.read(&format!("{thread}/maps"))?;
        self.unless_ended(thread, maps)
    }

    /// Takes a closed thread that has ended for one that is gone: PID 1 cannot look into those either.
    fn unless_ended<T>(&self, thread: &str, seen: Seen<T>) -> Result<Seen<T>> {
        if !matches!(seen, Seen::Closed) {
            return Ok(seen);
        }
        match self.read(&format!("{thread}/status"))? {
            Seen::There(status) if field(&status, "RssAnon:").is_some() => Ok(Seen::Closed),
            Seen::There(_) | Seen::Gone => Ok(Seen::Gone),
            Seen::Closed => Ok(Seen::Closed),
        }
    }

    fn open_folder(&self, path: &str) -> Result<Seen<OwnedFd>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Seen::of(rustix::fs::openat(&self.folder, path, flags, Mode::empty()))
    }

    /// Reads a file of a process.
    pub(super) fn read(&self, path: &str) -> Result<Seen<String>> {
        Seen::of(self.read_text(path))
    }

    /// Reads a file that is always there. The names in it are the job's choice, and need not be UTF-8.
    pub(super) fn read_text(&self, path: &str) -> Result<String> {
        let mut bytes = Vec::new();
        self.open(path)?.read_to_end(&mut bytes).map_err(|error| to_errno(&error))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Counts the lines of a file of a process that begin with a word, up to a number: a job can make it very long.
    pub(super) fn count_lines(&self, path: &str, word: &str, at_most: u64) -> Result<Seen<u64>> {
        Seen::of(self.open(path).and_then(|file| {
            let mut count = 0;
            for line in BufReader::new(file).split(b'\n') {
                count += u64::from(line.map_err(|error| to_errno(&error))?.starts_with(word.as_bytes()));
                if count >= at_most {
                    break;
                }
            }
            Ok(count)
        }))
    }

    fn open(&self, path: &str) -> Result<File> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        rustix::fs::openat(&self.folder, path, flags, Mode::empty()).map(File::from)
    }
}

fn to_errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// The entries of a folder that are numbers.
fn numbers(folder: &OwnedFd) -> Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for entry in entries(folder)? {
        numbers.extend(entry?.file_name().to_str().ok().and_then(|name| name.parse::<u32>().ok()));
    }
    Ok(numbers)
}

/// Lists a folder. The list ends early where the folder is removed meanwhile.
pub(super) fn entries(folder: &OwnedFd) -> Result<impl Iterator<Item = Result<DirEntry>>> {
    let listed = match Dir::read_from(folder) {
        Ok(listed) => Some(listed),
        Err(errno) if is_gone(errno) => None,
        Err(errno) => return Err(errno),
    };
    let is_there = |entry: &Result<DirEntry>| !matches!(entry, Err(errno) if is_gone(*errno));
    Ok(listed.into_iter().flatten().take_while(is_there))
}

/// The number that follows a name at the start of a line.
pub(super) fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

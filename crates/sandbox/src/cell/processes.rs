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

/// What the kernel holds for a descriptor.
#[derive(Default)]
pub(super) struct DescriptorInfo {
    /// Locks on the file, of the process or of the descriptor itself.
    pub(super) locks: u64,
    /// Files that an epoll instance watches.
    pub(super) epoll_watches: u64,
    /// Descriptors that wait in a socket to be received.
    pub(super) in_flight: u64,
}

/// What became of an attempt to look into a process, or at a file.
pub(super) enum Seen<T> {
    There(T),
    /// It has ended, or is gone.
    Gone,
    /// The kernel does not let PID 1 look, as happens where the executable of a process belongs to somebody else and may
    /// not be read.
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

    /// The number of the last process or thread that was made in the job: another one than before says that there may be
    /// processes that no list shows.
    pub(super) fn last_made(&self) -> Result<u64> {
        let load = self.read_text("loadavg")?;
        load.split_whitespace().last().and_then(|number| number.parse().ok()).ok_or(Errno::IO)
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

    /// The letter by which the kernel tells the state of a process or thread; nothing where it is gone.
    pub(super) fn state(&self, path: &str) -> Result<Option<char>> {
        match self.read(&format!("{path}/stat"))? {
            // The name of the program, in parentheses, can hold anything.
            Seen::There(stat) => Ok(stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next())),
            Seen::Gone => Ok(None),
            Seen::Closed => Err(Errno::ACCESS),
        }
    }

    /// Whether a thread has ended and waits to be buried. It holds nothing.
    pub(super) fn is_dead(&self, thread: &str) -> Result<bool> {
        Ok(matches!(self.state(thread)?, Some('Z' | 'X')))
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

    /// What the kernel tells of a descriptor. Reading ends after so many lines: a job can make it very long.
    pub(super) fn descriptor_info(&self, path: &str, lines_most: usize) -> Result<Seen<DescriptorInfo>> {
        Seen::of(self.open(path).and_then(|file| {
            let mut info = DescriptorInfo::default();
            for line in BufReader::new(file).split(b'\n').take(lines_most) {
                let line = line.map_err(|error| to_errno(&error))?;
                info.locks += u64::from(line.starts_with(b"lock:"));
                info.epoll_watches += u64::from(line.starts_with(b"tfd:"));
                if line.starts_with(b"scm_fds:") {
                    info.in_flight += field(&String::from_utf8_lossy(&line), "scm_fds:").unwrap_or(0);
                }
            }
            Ok(info)
        }))
    }

    /// How many sockets there are in the network of the job, also those that only hold what was not read yet.
    pub(super) fn sockets(&self) -> Result<u64> {
        field(&self.read_text("self/net/sockstat")?, "sockets: used").ok_or(Errno::IO)
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

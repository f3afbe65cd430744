//! Reads the processes of a job from `/proc`.
//!
//! A failed read is an error and ends the job, because what cannot be measured cannot be limited. Only processes and
//! files that have gone meanwhile are skipped.

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

/// The watchdog's own `/proc`, which is not attached to any mount point.
pub(super) struct Processes {
    folder: OwnedFd,
}

/// Kernel objects behind a descriptor.
#[derive(Default)]
pub(super) struct DescriptorInfo {
    /// Locks on the file, held by the process or by the open file.
    pub(super) locks: u64,
    /// Files that an epoll instance watches.
    pub(super) epoll_watches: u64,
    /// Descriptors in flight: sent through this socket, but not received yet.
    pub(super) in_flight: u64,
}

/// The result of inspecting a process or a file.
pub(super) enum Inspection<T> {
    Found(T),
    /// It has ended or no longer exists.
    Gone,
    /// The kernel denies access. This happens if the executable of a process belongs to somebody else and is not
    /// readable.
    Denied,
}

impl<T> Inspection<T> {
    fn from_result(result: Result<T>) -> Result<Self> {
        match result {
            Ok(value) => Ok(Self::Found(value)),
            Err(errno) if is_gone(errno) => Ok(Self::Gone),
            Err(Errno::ACCESS | Errno::PERM) => Ok(Self::Denied),
            Err(errno) => Err(errno),
        }
    }
}

/// Whether an error means that a process, file or folder is gone or was replaced.
pub(super) fn is_gone(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::SRCH | Errno::NOTDIR | Errno::LOOP | Errno::STALE)
}

impl Processes {
    /// Opens a `/proc` that hides no processes, unlike the job's own. Needs the capability to mount.
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

    /// Returns the last PID assigned in the job. If it changes during a measurement, processes may have been missed.
    pub(super) fn last_pid(&self) -> Result<u64> {
        let load = self.read_text("loadavg")?;
        load.split_whitespace().last().and_then(|number| number.parse().ok()).ok_or(Errno::IO)
    }

    pub(super) fn all(&self) -> Result<Vec<u32>> {
        numbers(&self.folder)
    }

    /// Returns the `/proc` path of each thread of a process. The first thread may have ended before the others; then
    /// only those show the resources.
    pub(super) fn threads(&self, pid: u32) -> Result<Vec<String>> {
        Ok(self.thread_numbers(pid)?.into_iter().map(|thread| format!("{pid}/task/{thread}")).collect())
    }

    /// Returns one `/proc` path per descriptor table of a process. Threads can have separate tables.
    pub(super) fn descriptor_tables(&self, pid: u32) -> Result<Vec<String>> {
        let threads = self.thread_numbers(pid)?.into_iter();
        let tables = threads.filter(|thread| *thread == pid || !sys::share_descriptors(pid, *thread));
        Ok(tables.map(|thread| format!("{pid}/task/{thread}")).collect())
    }

    fn thread_numbers(&self, pid: u32) -> Result<Vec<u32>> {
        match self.open_folder(&format!("{pid}/task"))? {
            Inspection::Found(tasks) => numbers(&tasks),
            Inspection::Gone | Inspection::Denied => Ok(Vec::new()),
        }
    }

    /// Opens the folder of a thread's descriptors.
    pub(super) fn descriptors(&self, thread: &str) -> Result<Inspection<OwnedFd>> {
        let folder = self.open_folder(&format!("{thread}/fd"))?;
        self.denied_unless_ended(thread, folder)
    }

    /// Reads the mappings of a thread.
    pub(super) fn maps(&self, thread: &str) -> Result<Inspection<String>> {
        let maps = self.read(&format!("{thread}/maps"))?;
        self.denied_unless_ended(thread, maps)
    }

    /// Turns `Denied` into `Gone` if the thread has ended: access to ended threads is denied too.
    fn denied_unless_ended<T>(&self, thread: &str, inspected: Inspection<T>) -> Result<Inspection<T>> {
        if !matches!(inspected, Inspection::Denied) {
            return Ok(inspected);
        }
        match self.read(&format!("{thread}/status"))? {
            Inspection::Found(status) if field(&status, "RssAnon:").is_some() => Ok(Inspection::Denied),
            Inspection::Found(_) | Inspection::Gone => Ok(Inspection::Gone),
            Inspection::Denied => Ok(Inspection::Denied),
        }
    }

    /// Returns the state letter of a process or thread, or `None` if it is gone.
    pub(super) fn state(&self, path: &str) -> Result<Option<char>> {
        match self.read(&format!("{path}/stat"))? {
            // The name of the program, in parentheses, can contain anything.
            Inspection::Found(stat) => Ok(stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next())),
            Inspection::Gone => Ok(None),
            Inspection::Denied => Err(Errno::ACCESS),
        }
    }

    /// Whether a thread is a zombie. It holds no resources.
    pub(super) fn is_dead(&self, thread: &str) -> Result<bool> {
        Ok(matches!(self.state(thread)?, Some('Z' | 'X')))
    }

    fn open_folder(&self, path: &str) -> Result<Inspection<OwnedFd>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Inspection::from_result(rustix::fs::openat(&self.folder, path, flags, Mode::empty()))
    }

    /// Reads a file of a process.
    pub(super) fn read(&self, path: &str) -> Result<Inspection<String>> {
        Inspection::from_result(self.read_text(path))
    }

    /// Reads a file that always exists. Names in it are chosen by the job and may not be UTF-8.
    pub(super) fn read_text(&self, path: &str) -> Result<String> {
        let mut bytes = Vec::new();
        self.open(path)?.read_to_end(&mut bytes).map_err(|error| to_errno(&error))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Reads information about a descriptor. The number of lines is limited, because a job can make the file very long.
    pub(super) fn descriptor_info(&self, path: &str, max_lines: usize) -> Result<Inspection<DescriptorInfo>> {
        Inspection::from_result(self.open(path).and_then(|file| {
            let mut info = DescriptorInfo::default();
            for line in BufReader::new(file).split(b'\n').take(max_lines) {
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

    /// Returns the number of sockets in the job's network namespace, including closed ones with unread data.
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

/// Returns the entries of a folder that are numbers.
fn numbers(folder: &OwnedFd) -> Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for entry in entries(folder)? {
        numbers.extend(entry?.file_name().to_str().ok().and_then(|name| name.parse::<u32>().ok()));
    }
    Ok(numbers)
}

/// Lists a folder. The list ends early if the folder is removed meanwhile.
pub(super) fn entries(folder: &OwnedFd) -> Result<impl Iterator<Item = Result<DirEntry>>> {
    let listed = match Dir::read_from(folder) {
        Ok(listed) => Some(listed),
        Err(errno) if is_gone(errno) => None,
        Err(errno) => return Err(errno),
    };
    let is_there = |entry: &Result<DirEntry>| !matches!(entry, Err(errno) if is_gone(*errno));
    Ok(listed.into_iter().flatten().take_while(is_there))
}

/// Returns the number after a name at the start of a line.
pub(super) fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

//! The processes of a job, as PID 1 sees them.

use std::{io::Read, os::fd::OwnedFd};

use rustix::fs::{Dir, Mode, OFlags};

pub(super) struct Processes {
    folder: OwnedFd,
}

impl Processes {
    pub(super) fn new() -> rustix::io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { folder: rustix::fs::open("/proc", flags, Mode::empty())? })
    }

    pub(super) fn all(&self) -> Vec<u32> {
        numbers(&self.folder)
    }

    /// Where each thread of a process is found. The first one can have ended and left the others; what a process has
    /// is then to be seen by them only.
    pub(super) fn threads(&self, pid: u32) -> Vec<String> {
        let tasks = self.open_folder(&format!("{pid}/task"));
        let threads = tasks.map(|tasks| numbers(&tasks)).unwrap_or_default();
        threads.into_iter().map(|thread| format!("{pid}/task/{thread}")).collect()
    }

    pub(super) fn open_folder(&self, path: &str) -> Option<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::openat(&self.folder, path, flags, Mode::empty()).ok()
    }

    /// Reads a file. The names in it are the job's choice, and need not be UTF-8.
    pub(super) fn read(&self, path: &str) -> Option<String> {
        let file = rustix::fs::openat(&self.folder, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let mut bytes = Vec::new();
        std::fs::File::from(file).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn numbers(folder: &OwnedFd) -> Vec<u32> {
    let entries = Dir::read_from(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str().ok()?.parse().ok()).collect()
}

/// The number that follows a name at the start of a line.
pub(super) fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

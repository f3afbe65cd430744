//! What the kernel holds for a job besides the memory of its processes, as far as the job's descriptors show it.
//!
//! The kernel limits these for each user of the host, or not at all. Jobs share one user, which without root is the
//! server's own: a job that took all would stop the others, and the server.

use std::{
    collections::HashSet,
    os::fd::OwnedFd,
    rc::Rc,
    time::{Duration, Instant},
};

use rustix::{
    fs::{AtFlags, FileType},
    io::{Errno, Result},
};

use super::processes::{Processes, Seen, entries, field, is_gone};
use crate::Limit;

/// Files that a job may watch with epoll, counted for each epoll instance.
const EPOLL_WATCHES: u64 = 65_536;

/// Locks on files that a job may hold. They are kernel memory that no control group counts.
const FILE_LOCKS: u64 = 32_768;

/// The largest buffer of a pipe: the filter of system calls allows no larger one.
const PIPE_BYTES: u64 = 64 << 10;

/// How many times in a row a process may be closed to PID 1. It can be so for a moment while it ends.
const CLOSED_LIMIT: u32 = 4;

const INTERVAL: Duration = Duration::from_millis(250);

/// The part of all time that may go into looking.
const SHARE: u32 = 20;

/// Counts what the descriptors of a job stand for.
pub(super) struct KernelObjects {
    processes: Rc<Processes>,
    closed: u32,
    next: Instant,
    /// What pipes could hold at the last look.
    pipe_bytes: u64,
}

#[derive(Default)]
struct Count {
    epoll_watches: u64,
    file_locks: u64,
    pipes: HashSet<u64>,
    /// Descriptors on their way through sockets.
    in_flight: u64,
    /// Whether there is a process that PID 1 cannot look into.
    closed: bool,
}

impl KernelObjects {
    pub(super) fn new(processes: Rc<Processes>) -> Self {
        Self { processes, closed: 0, next: Instant::now(), pipe_bytes: 0 }
    }

    /// When the next look is due.
    pub(super) const fn next(&self) -> Instant {
        self.next
    }

    pub(super) const fn pipe_bytes(&self) -> u64 {
        self.pipe_bytes
    }

    pub(super) fn look(&mut self) -> Result<Option<Limit>> {
        let begun = Instant::now();
        let count = self.count()?;
        self.next = Instant::now() + INTERVAL.max(begun.elapsed() * SHARE);
        self.closed = if count.closed { self.closed + 1 } else { 0 };
        if self.closed > CLOSED_LIMIT {
            return Err(Errno::ACCESS);
        }
        self.pipe_bytes = (count.pipes.len() as u64 + count.in_flight) * PIPE_BYTES;
        Ok((count.epoll_watches >= EPOLL_WATCHES || count.file_locks >= FILE_LOCKS).then_some(Limit::Memory))
    }

    fn count(&self) -> Result<Count> {
        let mut count = Count::default();
        for pid in self.processes.all()? {
            for thread in self.processes.descriptor_tables(pid)? {
                match self.processes.descriptors(&thread)? {
                    Seen::There(folder) => self.add(&thread, &folder, &mut count)?,
                    Seen::Gone => {}
                    Seen::Closed => count.closed = true,
                }
            }
        }
        Ok(count)
    }

    fn add(&self, thread: &str, folder: &OwnedFd, count: &mut Count) -> Result<()> {
        for entry in entries(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let stat = match rustix::fs::statat(folder, name, AtFlags::empty()) {
                Ok(stat) => stat,
                Err(errno) if is_gone(errno) => continue,
                Err(errno) => return Err(errno),
            };
            let info = format!("{thread}/fdinfo/{}", name.to_string_lossy());
            let lines = |word, at_most| {
                Ok::<_, Errno>(match self.processes.count_lines(&info, word, at_most)? {
                    Seen::There(lines) => lines,
                    Seen::Gone | Seen::Closed => 0,
                })
            };
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Fifo => {
                    count.pipes.insert(stat.st_ino);
                }
                FileType::Socket => {
                    if let Seen::There(info) = self.processes.read(&info)? {
                        count.in_flight += field(&info, "scm_fds:").unwrap_or(0);
                    }
                }
                FileType::RegularFile => count.file_locks += lines("lock:", FILE_LOCKS)?,
                FileType::Directory | FileType::CharacterDevice | FileType::BlockDevice | FileType::Symlink => {}
                FileType::Unknown => count.epoll_watches += lines("tfd:", EPOLL_WATCHES)?,
            }
        }
        Ok(())
    }
}

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

use super::{
    certainty::{Certainty, Uncertainty},
    processes::{DescriptorInfo, Processes, Seen, entries, is_gone},
};
use crate::Limit;

/// Files that a job may watch with epoll, counted for each epoll instance.
const EPOLL_WATCHES: u64 = 65_536;

/// A descriptor that waits in a socket can be an epoll instance, which nobody can look into there. It counts as one that
/// watches so many files.
const WATCHES_IN_FLIGHT: u64 = 1_024;

/// Locks on files that a job may hold. They are kernel memory that no control group counts.
const FILE_LOCKS: u64 = 32_768;

/// Sockets that a job may have. The buffers of TCP connections come out of memory that the whole host has for them.
const SOCKETS: u64 = 1_024;

/// The lines that are read of what the kernel tells of one descriptor: more than any limit allows.
const LINES_MOST: usize = 70_000;

/// The largest buffer of a pipe: the filter of system calls allows no larger one.
const PIPE_BYTES: u64 = 64 << 10;

/// How many times in a row a process may be closed to PID 1. It can be so for a moment while it ends.
const CLOSED_LIMIT: u32 = 4;

const INTERVAL: Duration = Duration::from_millis(250);

/// The part of all time that may go into looking. A job can make each look take long, but not put off the next for long.
const SHARE: u32 = 20;
const INTERVAL_MOST: Duration = Duration::from_secs(3);

/// Counts what the descriptors of a job stand for.
pub(super) struct KernelObjects {
    processes: Rc<Processes>,
    closed: u32,
    next: Instant,
    /// What pipes could hold at the last look.
    pipe_bytes: u64,
    uncertainty: Uncertainty,
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
    /// Whether a descriptor can have passed from one process to another while they were looked at.
    is_uncertain: bool,
}

impl Count {
    fn add(&mut self, info: &DescriptorInfo) {
        self.epoll_watches += info.epoll_watches;
        self.file_locks += info.locks;
        self.in_flight += info.in_flight;
    }
}

impl KernelObjects {
    pub(super) fn new(processes: Rc<Processes>) -> Self {
        Self { processes, closed: 0, next: Instant::now(), pipe_bytes: 0, uncertainty: Uncertainty::default() }
    }

    /// When the next look is due.
    pub(super) const fn next(&self) -> Instant {
        self.next
    }

    pub(super) const fn pipe_bytes(&self) -> u64 {
        self.pipe_bytes
    }

    /// Whether the job has to be stopped for the next look.
    pub(super) fn is_uncertain(&self) -> bool {
        self.uncertainty.is_over()
    }

    /// Looks while the job is stopped.
    pub(super) fn look_at_rest(&mut self) -> Result<Option<Limit>> {
        let limit = self.look()?;
        self.uncertainty.note(Certainty::Certain);
        Ok(limit)
    }

    pub(super) fn look(&mut self) -> Result<Option<Limit>> {
        let begun = Instant::now();
        let count = self.count()?;
        self.next = Instant::now() + (begun.elapsed() * SHARE).clamp(INTERVAL, INTERVAL_MOST);
        self.uncertainty.note(if count.is_uncertain { Certainty::Uncertain } else { Certainty::Certain });
        self.closed = if count.closed { self.closed + 1 } else { 0 };
        if self.closed > CLOSED_LIMIT {
            return Err(Errno::ACCESS);
        }
        self.pipe_bytes = (count.pipes.len() as u64 + count.in_flight) * PIPE_BYTES;
        let watches = count.epoll_watches + count.in_flight * WATCHES_IN_FLIGHT;
        let is_over = watches >= EPOLL_WATCHES || count.file_locks >= FILE_LOCKS || self.processes.sockets()? > SOCKETS;
        Ok(is_over.then_some(Limit::Memory))
    }

    fn count(&self) -> Result<Count> {
        let mut count = Count::default();
        let last_made = self.processes.last_made()?;
        for pid in self.processes.all()? {
            let tables = self.processes.descriptor_tables(pid)?;
            count.is_uncertain |= tables.is_empty();
            for thread in tables {
                match self.processes.descriptors(&thread)? {
                    Seen::There(folder) => self.add(&thread, &folder, &mut count)?,
                    Seen::Gone => count.is_uncertain |= !self.processes.is_dead(&thread)?,
                    Seen::Closed => count.closed = true,
                }
            }
        }
        count.is_uncertain |= self.processes.last_made()? != last_made;
        Ok(count)
    }

    fn add(&self, thread: &str, folder: &OwnedFd, count: &mut Count) -> Result<()> {
        for entry in entries(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let stat = match rustix::fs::statat(folder, name, AtFlags::empty()) {
                Ok(stat) => stat,
                Err(errno) if is_gone(errno) => {
                    count.is_uncertain = true;
                    continue;
                }
                Err(errno) => return Err(errno),
            };
            if FileType::from_raw_mode(stat.st_mode) == FileType::Fifo {
                count.pipes.insert(stat.st_ino);
            }
            // Locks can be on anything that can be opened.
            let info = format!("{thread}/fdinfo/{}", name.to_string_lossy());
            if let Seen::There(info) = self.processes.descriptor_info(&info, LINES_MOST)? {
                count.add(&info);
            }
        }
        Ok(())
    }
}

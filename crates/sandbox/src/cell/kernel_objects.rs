//! Measures kernel objects that a job holds through its descriptors: epoll watches, locks, sockets, pipes.
//!
//! The kernel limits these per user or not at all. Without root, all jobs run as the server's own user: a job that
//! exhausted them would stop the other jobs and the server.

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
    certainty::{Certainty, UncertaintyTracker},
    processes::{DescriptorInfo, Inspection, Processes, entries, is_gone},
};
use crate::Limit;

/// Maximum number of files watched with epoll, over all epoll instances.
const MAX_EPOLL_WATCHES: u64 = 65_536;

/// A descriptor in flight through a socket may be an epoll instance that cannot be inspected there. It counts as this
/// many watches.
const WATCHES_PER_FD_IN_FLIGHT: u64 = 1_024;

/// Maximum number of file locks. They use kernel memory that no control group counts.
const MAX_FILE_LOCKS: u64 = 32_768;

/// Maximum number of sockets. Buffers of TCP connections use memory of the whole host.
const MAX_SOCKETS: u64 = 1_024;

/// Maximum number of lines that are read of a `fdinfo` file. A job that has more exceeds another limit.
const MAX_FDINFO_LINES: usize = 70_000;

/// Maximum size of a pipe buffer. The seccomp filter forbids larger ones.
const MAX_PIPE_BYTES: u64 = 64 << 10;

/// Maximum number of consecutive checks in which the kernel denies access to a process. It can do so for a moment while
/// a process ends.
const MAX_DENIED_CHECKS: u32 = 4;

/// Minimum interval between checks.
const MIN_INTERVAL: Duration = Duration::from_millis(250);

/// The interval between checks is this many times the duration of a check, up to a maximum. A job can make checks slow,
/// but cannot delay the next one for long.
const COST_FACTOR: u32 = 20;
const MAX_INTERVAL: Duration = Duration::from_secs(3);

/// Counts the kernel objects of a job.
pub(super) struct KernelObjectMonitor {
    processes: Rc<Processes>,
    denied_checks: u32,
    next_check: Instant,
    /// The capacity of all pipes at the last check.
    pipe_bytes: u64,
    uncertainty: UncertaintyTracker,
}

#[derive(Default)]
struct ObjectCount {
    epoll_watches: u64,
    file_locks: u64,
    pipes: HashSet<u64>,
    /// Descriptors in flight through sockets.
    in_flight: u64,
    /// Whether PID 1 was denied access to a process.
    has_denied_process: bool,
    /// Whether a descriptor may have passed from one process to another during the check.
    is_uncertain: bool,
}

impl ObjectCount {
    fn add(&mut self, info: &DescriptorInfo) {
        self.epoll_watches += info.epoll_watches;
        self.file_locks += info.locks;
        self.in_flight += info.in_flight;
    }
}

impl KernelObjectMonitor {
    pub(super) fn new(processes: Rc<Processes>) -> Self {
        Self {
            processes,
            denied_checks: 0,
            next_check: Instant::now(),
            pipe_bytes: 0,
            uncertainty: UncertaintyTracker::default(),
        }
    }

    /// Returns when the next check is due.
    pub(super) const fn next_check(&self) -> Instant {
        self.next_check
    }

    pub(super) const fn pipe_bytes(&self) -> u64 {
        self.pipe_bytes
    }

    /// Whether the next check needs stopped processes.
    pub(super) fn needs_pause(&self) -> bool {
        self.uncertainty.needs_pause()
    }

    /// Checks while all processes are stopped.
    pub(super) fn check_paused(&mut self) -> Result<Option<Limit>> {
        let limit = self.check()?;
        self.uncertainty.record(Certainty::Certain);
        Ok(limit)
    }

    pub(super) fn check(&mut self) -> Result<Option<Limit>> {
        let begun = Instant::now();
        let count = self.count()?;
        self.next_check = Instant::now() + (begun.elapsed() * COST_FACTOR).clamp(MIN_INTERVAL, MAX_INTERVAL);
        self.uncertainty.record(if count.is_uncertain { Certainty::Uncertain } else { Certainty::Certain });
        self.denied_checks = if count.has_denied_process { self.denied_checks + 1 } else { 0 };
        if self.denied_checks > MAX_DENIED_CHECKS {
            return Err(Errno::ACCESS);
        }
        self.pipe_bytes = (count.pipes.len() as u64 + count.in_flight) * MAX_PIPE_BYTES;
        let watches = count.epoll_watches + count.in_flight * WATCHES_PER_FD_IN_FLIGHT;
        let is_over = watches >= MAX_EPOLL_WATCHES
            || count.file_locks >= MAX_FILE_LOCKS
            || self.processes.sockets()? > MAX_SOCKETS;
        Ok(is_over.then_some(Limit::Memory))
    }

    fn count(&self) -> Result<ObjectCount> {
        let mut count = ObjectCount::default();
        let last_pid = self.processes.last_pid()?;
        for pid in self.processes.all()? {
            let tables = self.processes.descriptor_tables(pid)?;
            count.is_uncertain |= tables.is_empty();
            for thread in tables {
                match self.processes.descriptors(&thread)? {
                    Inspection::Found(folder) => self.add(&thread, &folder, &mut count)?,
                    Inspection::Gone => count.is_uncertain |= !self.processes.is_dead(&thread)?,
                    Inspection::Denied => count.has_denied_process = true,
                }
            }
        }
        count.is_uncertain |= self.processes.last_pid()? != last_pid;
        Ok(count)
    }

    fn add(&self, thread: &str, folder: &OwnedFd, count: &mut ObjectCount) -> Result<()> {
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
            // Every kind of file can be locked.
            let info = format!("{thread}/fdinfo/{}", name.to_string_lossy());
            if let Inspection::Found(info) = self.processes.descriptor_info(&info, MAX_FDINFO_LINES)? {
                count.add(&info);
            }
        }
        Ok(())
    }
}

//! Watches what the kernel does not limit by itself.

use std::{
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use super::{disk::Disk, memory::Memory};
use crate::{Limit, Limits, wire::Watched};

/// How often memory is looked at: a process can take a gigabyte a second.
const MEMORY_INTERVAL: Duration = Duration::from_millis(20);

/// How often the disk is looked at.
const DISK_INTERVAL: Duration = Duration::from_millis(50);

/// The watch over one job.
pub(super) struct Watch {
    memory: Option<Memory>,
    disk: Disk,
    next: Instant,
    interval: Duration,
}

impl Watch {
    pub(super) fn new(limits: &Limits, watched: Watched, folders: Vec<OwnedFd>) -> rustix::io::Result<Self> {
        let memory = if watched.memory || watched.processes { Some(Memory::new(limits, watched)?) } else { None };
        let interval = if watched.memory { MEMORY_INTERVAL } else { DISK_INTERVAL };
        let disk = Disk::new(limits, folders)?;
        Ok(Self { memory, disk, next: Instant::now() + interval, interval })
    }

    /// How long there is nothing to look at.
    pub(super) fn rest(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Looks, if it is time to, and says which limit has been passed.
    pub(super) fn look(&mut self, interrupted: impl Fn() -> bool) -> Option<Limit> {
        if Instant::now() < self.next {
            return None;
        }
        let limit = self.memory.as_mut().and_then(Memory::look).or_else(|| self.disk.look(&interrupted));
        self.next = Instant::now() + self.interval;
        limit
    }

    /// A limit that ends nothing by itself, but that a program which failed has run into.
    pub(super) fn reached_while_it_failed(&mut self, failed: bool) -> Option<Limit> {
        let memory = self.memory.as_mut().filter(|_| failed)?;
        memory.processes_reached().then_some(Limit::Processes)
    }
}

//! Watches what the kernel does not limit by itself.

use std::{
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use super::{disk::Disk, memory::Memory};
use crate::{
    Limit, Limits,
    wire::{Clock, Watched},
};

/// How often the disk is looked at.
const DISK_INTERVAL: Duration = Duration::from_millis(50);

/// The watch over one job.
pub(super) struct Watch {
    memory: Option<Memory>,
    disk: Disk,
    /// When to look at memory and at the disk; never before the job has begun.
    next: Option<(Instant, Instant)>,
}

impl Watch {
    pub(super) fn new(
        limits: &Limits,
        watched: Watched,
        folders: Vec<OwnedFd>,
        clock: Clock,
    ) -> rustix::io::Result<Self> {
        let memory = if watched.memory || watched.processes { Some(Memory::new(limits, watched)?) } else { None };
        let mut watch = Self { memory, disk: Disk::new(limits, folders)?, next: None };
        if clock == Clock::Now {
            watch.begin();
        }
        Ok(watch)
    }

    /// Begins to watch: an interpreter that waits for its script does nothing worth it.
    pub(super) fn begin(&mut self) {
        self.disk.begin();
        let now = Instant::now();
        self.next = Some((now + Memory::SOON, now + DISK_INTERVAL));
    }

    /// How long there is nothing to look at.
    pub(super) fn rest(&self) -> Option<Duration> {
        let (memory, disk) = self.next?;
        let next = if self.memory.is_some() { memory.min(disk) } else { disk };
        Some(next.saturating_duration_since(Instant::now()))
    }

    /// Looks, if it is time to, and says which limit has been passed.
    pub(super) fn look(&mut self, interrupted: impl Fn() -> bool) -> Option<Limit> {
        let (mut memory_next, mut disk_next) = self.next?;
        let mut limit = None;
        if let Some(memory) = self.memory.as_mut().filter(|_| memory_next <= Instant::now()) {
            limit = memory.look();
            memory_next = Instant::now() + memory.rest();
        }
        if limit.is_none() && disk_next <= Instant::now() {
            limit = self.disk.look(&interrupted);
            disk_next = Instant::now() + DISK_INTERVAL;
        }
        self.next = Some((memory_next, disk_next));
        limit
    }

    /// A limit that ends nothing by itself, but that a program which failed has run into.
    pub(super) fn reached_while_it_failed(&mut self, failed: bool) -> Option<Limit> {
        let memory = self.memory.as_mut().filter(|_| failed)?;
        memory.processes_reached().then_some(Limit::Processes)
    }
}

//! Watches what the kernel does not limit by itself.

use std::{
    os::fd::OwnedFd,
    rc::Rc,
    time::{Duration, Instant},
};

use super::{disk::Disk, kernel_objects::KernelObjects, memory::Memory, processes::Processes};
use crate::{
    Limit, Place,
    step::{At, Failure, Step},
    sys,
    wire::{self, Clock},
};

/// How often the disk is looked at.
const DISK_INTERVAL: Duration = Duration::from_millis(50);

/// How often anything is looked at before the script has come. What runs until then is the interpreter, and what
/// scripts before have left in the folder for it to run when it starts.
const WAITING_INTERVAL: Duration = Duration::from_secs(1);

/// How long a job runs at least between two stops, and how much longer than it was stopped.
const STOP_INTERVAL: Duration = Duration::from_millis(250);
const STOPPED_SHARE: u32 = 20;

/// What is watched.
pub(super) struct Watched<'a> {
    pub(super) place: &'a Place,
    /// What nobody but PID 1 can see to.
    pub(super) enforced: wire::Watched,
    pub(super) clock: Clock,
    /// What the buffers of one socket can take.
    pub(super) socket_bytes: u64,
}

/// The watch over one job. A look that fails is an error, which ends the job.
pub(super) struct Watch {
    processes: Rc<Processes>,
    memory: Option<Memory>,
    disk: Disk,
    objects: KernelObjects,
    begun: bool,
    memory_next: Instant,
    disk_next: Instant,
    /// When the job may be stopped again.
    stop_next: Instant,
}

impl Watch {
    pub(super) fn new(watched: &Watched<'_>, processes: Processes, folders: Vec<OwnedFd>) -> Result<Self, Failure> {
        let Watched { place, enforced, clock, socket_bytes } = *watched;
        let limits = &place.limits;
        let processes = Rc::new(processes);
        let memory = if enforced.memory || enforced.processes {
            Some(Memory::new(limits, enforced, socket_bytes, Rc::clone(&processes)).at(Step::Limits)?)
        } else {
            None
        };
        let now = Instant::now();
        let disk = Disk::new(limits, folders, Rc::clone(&processes)).at(Step::Limits)?;
        let objects = KernelObjects::new(Rc::clone(&processes));
        let (memory_next, disk_next, stop_next) = (now, now, now);
        let mut watch = Self { processes, memory, disk, objects, begun: false, memory_next, disk_next, stop_next };
        match clock {
            Clock::Now => watch.begin(sys::time_of_files())?,
            Clock::OnBegin => watch.disk.begin(sys::time_of_files()).on(Step::Watch, "disk")?,
        }
        Ok(watch)
    }

    /// Looks more often from now on, and takes what was made before a time for what was there before the job.
    pub(super) fn begin(&mut self, since: Duration) -> Result<(), Failure> {
        self.begun = true;
        self.disk.begin(since).on(Step::Watch, "disk")?;
        let now = Instant::now();
        (self.memory_next, self.disk_next) = (now + Memory::SOON, now + DISK_INTERVAL);
        Ok(())
    }

    /// How long there is nothing to look at.
    pub(super) fn rest(&self) -> Duration {
        let next = if self.memory.is_some() { self.memory_next.min(self.disk_next) } else { self.disk_next };
        next.saturating_duration_since(Instant::now())
    }

    /// Looks, if it is time to, and says which limit has been passed.
    pub(super) fn look(&mut self, interrupted: impl Fn() -> bool) -> Result<Option<Limit>, Failure> {
        let mut limit = None;
        if self.objects.next() <= Instant::now() {
            limit = self.objects.look().on(Step::Watch, "descriptors")?;
        }
        if let Some(memory) = self.memory.as_mut().filter(|_| limit.is_none() && self.memory_next <= Instant::now()) {
            limit = memory.look(self.objects.pipe_bytes()).on(Step::Watch, "memory")?;
            self.memory_next = Instant::now() + if self.begun { memory.rest() } else { WAITING_INTERVAL };
        }
        if limit.is_none() && self.disk_next <= Instant::now() {
            limit = self.disk.look(&interrupted).on(Step::Watch, "disk")?;
            self.disk_next = Instant::now() + if self.begun { DISK_INTERVAL } else { WAITING_INTERVAL };
        }
        let is_uncertain = self.objects.is_uncertain()
            || self.disk.is_uncertain()
            || self.memory.as_ref().is_some_and(Memory::is_uncertain);
        if limit.is_none() && is_uncertain && self.stop_next <= Instant::now() {
            limit = self.look_at_rest(&interrupted)?;
        }
        Ok(limit)
    }

    /// Looks at everything while all processes are stopped.
    fn look_at_rest(&mut self, interrupted: &dyn Fn() -> bool) -> Result<Option<Limit>, Failure> {
        let begun = Instant::now();
        let stopped = self.processes.stop_all().on(Step::Watch, "processes")?;
        let mut limit = self.objects.look_at_rest().on(Step::Watch, "descriptors")?;
        if let Some(memory) = self.memory.as_mut().filter(|_| limit.is_none()) {
            limit = memory.look_at_rest(self.objects.pipe_bytes()).on(Step::Watch, "memory")?;
        }
        if limit.is_none() {
            limit = self.disk.look_at_rest(interrupted).on(Step::Watch, "disk")?;
        }
        drop(stopped);
        self.stop_next = Instant::now() + STOP_INTERVAL.max(begun.elapsed() * STOPPED_SHARE);
        Ok(limit)
    }

    /// A limit that ends nothing by itself, but that a program which failed has run into.
    pub(super) fn reached_while_it_failed(&mut self, failed: bool) -> Result<Option<Limit>, Failure> {
        let Some(memory) = self.memory.as_mut().filter(|_| failed) else { return Ok(None) };
        let reached = memory.processes_reached().on(Step::Watch, "processes")?;
        Ok(reached.then_some(Limit::Processes))
    }
}

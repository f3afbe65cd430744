//! The watchdog: enforces limits that the kernel does not enforce.

use std::{
    os::fd::OwnedFd,
    rc::Rc,
    time::{Duration, Instant},
};

use super::{disk::DiskMonitor, kernel_objects::KernelObjectMonitor, memory::MemoryMonitor, processes::Processes};
use crate::{
    CellSpec, Limit,
    step::{Failure, Step, StepContext},
    sys,
    wire::{self, ClockStart},
};

/// Interval between disk checks.
const DISK_INTERVAL: Duration = Duration::from_millis(50);

/// Interval between checks of an idle interpreter. It may already run code that earlier scripts left in the folder.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);

/// A job runs at least this long between two pauses, and at least `PAUSE_FACTOR` times as long as it was paused.
const PAUSE_INTERVAL: Duration = Duration::from_millis(250);
const PAUSE_FACTOR: u32 = 20;

/// Configuration of the watchdog.
pub(super) struct WatchdogConfig<'a> {
    pub(super) spec: &'a CellSpec,
    /// The limits that only the watchdog enforces.
    pub(super) duties: wire::WatchdogDuties,
    pub(super) clock: ClockStart,
    /// The capacity of one socket's buffers.
    pub(super) socket_bytes: u64,
}

/// The watchdog of one job. A failed measurement is an error, which ends the job.
pub(super) struct Watchdog {
    processes: Rc<Processes>,
    memory: Option<MemoryMonitor>,
    disk: DiskMonitor,
    objects: KernelObjectMonitor,
    has_begun: bool,
    memory_next: Instant,
    disk_next: Instant,
    /// The earliest time of the next pause.
    pause_next: Instant,
}

impl Watchdog {
    pub(super) fn new(
        config: &WatchdogConfig<'_>,
        processes: Processes,
        folders: Vec<OwnedFd>,
    ) -> Result<Self, Failure> {
        let WatchdogConfig { spec, duties, clock, socket_bytes } = *config;
        let limits = &spec.limits;
        let processes = Rc::new(processes);
        let memory = if duties.memory || duties.processes {
            Some(MemoryMonitor::new(limits, duties, socket_bytes, Rc::clone(&processes)).at(Step::Limits)?)
        } else {
            None
        };
        let now = Instant::now();
        let disk = DiskMonitor::new(limits, folders, Rc::clone(&processes)).at(Step::Limits)?;
        let objects = KernelObjectMonitor::new(Rc::clone(&processes));
        let (memory_next, disk_next, pause_next) = (now, now, now);
        let mut watchdog =
            Self { processes, memory, disk, objects, has_begun: false, memory_next, disk_next, pause_next };
        match clock {
            ClockStart::Immediately => watchdog.begin(sys::file_clock_now())?,
            ClockStart::OnScript => watchdog.disk.begin(sys::file_clock_now()).on(Step::Watch, "disk")?,
        }
        Ok(watchdog)
    }

    /// Starts the normal check intervals. Files created before `since` do not count.
    pub(super) fn begin(&mut self, since: Duration) -> Result<(), Failure> {
        self.has_begun = true;
        self.disk.begin(since).on(Step::Watch, "disk")?;
        let now = Instant::now();
        (self.memory_next, self.disk_next) = (now + MemoryMonitor::MIN_INTERVAL, now + DISK_INTERVAL);
        Ok(())
    }

    /// Returns the time to the next check.
    pub(super) fn until_next_check(&self) -> Duration {
        let next = if self.memory.is_some() { self.memory_next.min(self.disk_next) } else { self.disk_next };
        next.saturating_duration_since(Instant::now())
    }

    /// Runs the checks that are due, and returns the limit that was exceeded.
    pub(super) fn check(&mut self, interrupted: impl Fn() -> bool) -> Result<Option<Limit>, Failure> {
        let mut limit = None;
        if self.objects.next_check() <= Instant::now() {
            limit = self.objects.check().on(Step::Watch, "descriptors")?;
        }
        if let Some(memory) = self.memory.as_mut().filter(|_| limit.is_none() && self.memory_next <= Instant::now()) {
            limit = memory.check(self.objects.pipe_bytes()).on(Step::Watch, "memory")?;
            self.memory_next = Instant::now() + if self.has_begun { memory.until_next_check() } else { IDLE_INTERVAL };
        }
        if limit.is_none() && self.disk_next <= Instant::now() {
            limit = self.disk.check(&interrupted).on(Step::Watch, "disk")?;
            self.disk_next = Instant::now() + if self.has_begun { DISK_INTERVAL } else { IDLE_INTERVAL };
        }
        let needs_pause = self.objects.needs_pause()
            || self.disk.needs_pause()
            || self.memory.as_ref().is_some_and(MemoryMonitor::needs_pause);
        if limit.is_none() && needs_pause && self.pause_next <= Instant::now() {
            limit = self.check_paused(&interrupted)?;
        }
        Ok(limit)
    }

    /// Runs all checks while all processes are stopped.
    fn check_paused(&mut self, interrupted: &dyn Fn() -> bool) -> Result<Option<Limit>, Failure> {
        let started = Instant::now();
        let paused = self.processes.pause_all().on(Step::Watch, "processes")?;
        let mut limit = self.objects.check_paused().on(Step::Watch, "descriptors")?;
        if let Some(memory) = self.memory.as_mut().filter(|_| limit.is_none()) {
            limit = memory.check_paused(self.objects.pipe_bytes()).on(Step::Watch, "memory")?;
        }
        if limit.is_none() {
            limit = self.disk.check_paused(interrupted).on(Step::Watch, "disk")?;
        }
        drop(paused);
        self.pause_next = Instant::now() + PAUSE_INTERVAL.max(started.elapsed() * PAUSE_FACTOR);
        Ok(limit)
    }

    /// Returns a limit that a failed program has reached, although reaching it does not end a job.
    pub(super) fn limit_behind_failure(&mut self, failed: bool) -> Result<Option<Limit>, Failure> {
        let Some(memory) = self.memory.as_mut().filter(|_| failed) else { return Ok(None) };
        let reached = memory.process_limit_reached().on(Step::Watch, "processes")?;
        Ok(reached.then_some(Limit::Processes))
    }
}

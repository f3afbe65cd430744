//! Measures the memory and the number of processes of a job.

use std::{os::fd::OwnedFd, rc::Rc, time::Duration};

use rustix::{
    fs::{Mode, OFlags},
    io::{Errno, Result},
};

use super::{
    certainty::{Certainty, UncertaintyTracker},
    processes::{Inspection, Processes, field},
};
use crate::{Limit, Limits, wire::WatchdogDuties};

/// Upper estimate of how fast a job can allocate memory.
const MAX_GROWTH_BYTES_PER_SECOND: u64 = 4 << 30;

/// Kernel memory per file in a temporary folder, besides its content.
const FILE_BYTES: u64 = 1024;

/// Measures all processes of the PID namespace.
pub(super) struct MemoryMonitor {
    processes: Rc<Processes>,
    /// Folders on tmpfs, whose files are memory.
    temporary: Vec<OwnedFd>,
    /// The capacity of one socket's buffers.
    socket_bytes: u64,
    bytes_limit: u64,
    count_limit: u64,
    count_peak: u64,
    /// The minimum of shared memory on the whole machine since the start.
    shared_minimum: u64,
    /// The minimum of anonymous memory on the whole machine since the last certain measurement.
    anonymous_minimum: u64,
    uncertainty: UncertaintyTracker,
    /// What was left below the limit at the last check.
    free_bytes: u64,
}

/// The result of one measurement.
#[derive(Default)]
struct Count {
    own_bytes: u64,
    shared_bytes: u64,
    /// Page tables. They can be larger than the pages.
    page_table_bytes: u64,
    threads: u64,
    processes: Vec<Process>,
}

/// The memory of one process.
struct Process {
    /// The path of the process or thread in `/proc`.
    path: String,
    own_bytes: u64,
    shared_bytes: u64,
}

impl MemoryMonitor {
    pub(super) const MIN_INTERVAL: Duration = Duration::from_millis(20);
    const MAX_INTERVAL: Duration = Duration::from_millis(250);

    pub(super) fn new(
        limits: &Limits,
        duties: WatchdogDuties,
        socket_bytes: u64,
        processes: Rc<Processes>,
    ) -> Result<Self> {
        let open =
            |path: &str| rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        Ok(Self {
            processes,
            temporary: vec![open("/tmp")?, open("/dev/shm")?],
            socket_bytes,
            bytes_limit: if duties.memory { limits.memory_bytes } else { u64::MAX },
            count_limit: if duties.processes { limits.processes } else { u64::MAX },
            count_peak: 0,
            shared_minimum: u64::MAX,
            anonymous_minimum: u64::MAX,
            uncertainty: UncertaintyTracker::default(),
            free_bytes: 0,
        })
    }

    /// Returns the time to the next check: how long the job needs at least to reach its limit, between a minimum and a
    /// maximum.
    pub(super) fn until_next_check(&self) -> Duration {
        let growth_bytes_per_ms = MAX_GROWTH_BYTES_PER_SECOND / 1000;
        Duration::from_millis(self.free_bytes / growth_bytes_per_ms).clamp(Self::MIN_INTERVAL, Self::MAX_INTERVAL)
    }

    /// Checks the memory limit. `pipe_bytes` is the capacity of the job's pipes.
    pub(super) fn check(&mut self, pipe_bytes: u64) -> Result<Option<Limit>> {
        let last_pid = self.processes.last_pid()?;
        let count = self.count()?;
        let is_uncertain = self.processes.last_pid()? != last_pid;
        self.record_certainty(is_uncertain)?;
        let temporary = self.temporary_bytes()?;
        // The content of sockets cannot be measured, so each counts with its capacity.
        let fixed = count.page_table_bytes + pipe_bytes + self.processes.sockets()? * self.socket_bytes;
        let used = count.own_bytes + fixed + count.shared_bytes.max(temporary);
        self.free_bytes = self.bytes_limit.saturating_sub(used);
        if self.hides_shared_memory(&count)? {
            return Ok(Some(Limit::Memory));
        }
        if used <= self.bytes_limit {
            return Ok(None);
        }
        // Shared pages were counted once per process. The exact numbers are slow to read, so they are read only now.
        let (mut own, mut shared) = (0, 0);
        for process in &count.processes {
            let proportional = self.proportional(process)?;
            own += proportional.0;
            shared += proportional.1;
        }
        Ok((own + fixed + shared.max(temporary) > self.bytes_limit).then_some(Limit::Memory))
    }

    /// Whether the next check needs stopped processes.
    pub(super) fn needs_pause(&self) -> bool {
        self.uncertainty.needs_pause()
    }

    /// Checks while all processes are stopped.
    pub(super) fn check_paused(&mut self, pipe_bytes: u64) -> Result<Option<Limit>> {
        let limit = self.check(pipe_bytes)?;
        self.uncertainty.record(Certainty::Certain);
        // All processes of the job were measured, so the rest belongs to others.
        self.anonymous_minimum = u64::MAX;
        Ok(limit)
    }

    /// Records whether processes may have been missed. A process that forks and exits all the time may never be listed,
    /// so the anonymous memory of the whole machine is compared too.
    fn record_certainty(&mut self, is_uncertain: bool) -> Result<()> {
        let all = field(&self.processes.read_text("meminfo")?, "AnonPages:").ok_or(Errno::IO)? << 10;
        self.anonymous_minimum = self.anonymous_minimum.min(all);
        self.uncertainty.record(match is_uncertain {
            false => Certainty::Certain,
            true if all - self.anonymous_minimum > self.bytes_limit => Certainty::Suspicious,
            true => Certainty::Uncertain,
        });
        Ok(())
    }

    /// Whether the job hides shared memory. Anonymous shared memory exists while any page of it is mapped, but only
    /// mapped pages can be measured. If the machine's shared memory has grown past the limit, it is charged to the job
    /// that has such a mapping.
    fn hides_shared_memory(&mut self, count: &Count) -> Result<bool> {
        let all = field(&self.processes.read_text("meminfo")?, "Shmem:").ok_or(Errno::IO)? << 10;
        self.shared_minimum = self.shared_minimum.min(all);
        if all - self.shared_minimum <= self.bytes_limit {
            return Ok(false);
        }
        for process in &count.processes {
            match self.processes.maps(&process.path)? {
                Inspection::Found(maps) if maps.contains("/dev/zero (deleted)\n") => return Ok(true),
                Inspection::Found(_) | Inspection::Gone => {}
                Inspection::Denied => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Whether the job has reached its maximum number of processes.
    pub(super) fn process_limit_reached(&mut self) -> Result<bool> {
        self.count()?;
        // PID 1 counts too, and the program has just ended.
        Ok(self.count_peak + 2 >= self.count_limit)
    }

    fn count(&mut self) -> Result<Count> {
        let mut count = Count::default();
        for pid in self.processes.all()? {
            let Some((path, status)) = self.status(pid)? else { continue };
            let bytes = |name| field(&status, name).unwrap_or(0) << 10;
            let process =
                Process { path, own_bytes: bytes("RssAnon:") + bytes("VmSwap:"), shared_bytes: bytes("RssShmem:") };
            count.threads += field(&status, "Threads:").unwrap_or(1);
            count.own_bytes += process.own_bytes;
            count.shared_bytes += process.shared_bytes;
            count.page_table_bytes += bytes("VmPTE:");
            count.processes.push(process);
        }
        self.count_peak = self.count_peak.max(count.threads);
        Ok(count)
    }

    /// Returns the path and the status of a process. If its first thread has ended, those of another thread are used.
    fn status(&self, pid: u32) -> Result<Option<(String, String)>> {
        let process = pid.to_string();
        let Some(status) = self.status_of(&process)? else { return Ok(None) };
        if field(&status, "RssAnon:").is_some() {
            return Ok(Some((process, status)));
        }
        for thread in self.processes.threads(pid)? {
            match self.status_of(&thread)? {
                Some(status) if field(&status, "RssAnon:").is_some() => return Ok(Some((thread, status))),
                _ => {}
            }
        }
        Ok(Some((process, status)))
    }

    /// Returns the status of a process or thread, or `None` if it has ended. Everybody may read it.
    fn status_of(&self, path: &str) -> Result<Option<String>> {
        match self.processes.read(&format!("{path}/status"))? {
            Inspection::Found(status) => Ok(Some(status)),
            Inspection::Gone => Ok(None),
            Inspection::Denied => Err(Errno::ACCESS),
        }
    }

    /// Returns the private and the shared memory of a process, with shared pages counted proportionally. If the kernel
    /// denies access, all of it counts.
    fn proportional(&self, process: &Process) -> Result<(u64, u64)> {
        let rollup = match self.processes.read(&format!("{}/smaps_rollup", process.path))? {
            Inspection::Found(rollup) => rollup,
            Inspection::Gone => return Ok((0, 0)),
            Inspection::Denied => return Ok((process.own_bytes, process.shared_bytes)),
        };
        let bytes = |name| field(&rollup, name).map(|kilobytes| kilobytes << 10);
        // The file is empty if the process has just ended.
        Ok((bytes("Pss_Anon:").unwrap_or(0) + bytes("SwapPss:").unwrap_or(0), bytes("Pss_Shmem:").unwrap_or(0)))
    }

    fn temporary_bytes(&self) -> Result<u64> {
        let mut used = 0;
        for folder in &self.temporary {
            let stat = rustix::fs::fstatvfs(folder)?;
            used += (stat.f_blocks - stat.f_bfree) * stat.f_frsize + (stat.f_files - stat.f_ffree) * FILE_BYTES;
        }
        Ok(used)
    }
}

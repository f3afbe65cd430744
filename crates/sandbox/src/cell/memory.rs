//! How much memory, and how many processes, a job has.

use std::{os::fd::OwnedFd, rc::Rc, time::Duration};

use rustix::{
    fs::{Mode, OFlags},
    io::{Errno, Result},
};

use super::{
    certainty::{Certainty, Uncertainty},
    processes::{Processes, Seen, field},
};
use crate::{Limit, Limits, wire::Watched};

/// How much memory a job could take in a second.
const PACE_BYTES: u64 = 4 << 30;

/// What the kernel keeps of each file in a temporary folder, besides what is in it.
const FILE_BYTES: u64 = 1024;

/// Looks at all processes of the namespace.
pub(super) struct Memory {
    processes: Rc<Processes>,
    /// Folders whose files are memory.
    temporary: Vec<OwnedFd>,
    /// What the buffers of one socket can take.
    socket_bytes: u64,
    bytes_limit: u64,
    count_limit: u64,
    count_peak: u64,
    /// The least shared memory that the whole system has had.
    shared_least: u64,
    /// The least anonymous memory that the whole system has had in use.
    anonymous_least: u64,
    uncertainty: Uncertainty,
    /// What was still free at the last look.
    room_bytes: u64,
}

/// What one look found.
#[derive(Default)]
struct Count {
    own_bytes: u64,
    shared_bytes: u64,
    /// The tables of pages, which can take more than the pages.
    table_bytes: u64,
    threads: u64,
    processes: Vec<Process>,
}

/// The memory of one process.
struct Process {
    /// Where it is found.
    path: String,
    own_bytes: u64,
    shared_bytes: u64,
}

impl Memory {
    pub(super) const SOON: Duration = Duration::from_millis(20);
    const LATE: Duration = Duration::from_millis(250);

    pub(super) fn new(limits: &Limits, watched: Watched, socket_bytes: u64, processes: Rc<Processes>) -> Result<Self> {
        let open =
            |path: &str| rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        Ok(Self {
            processes,
            temporary: vec![open("/tmp")?, open("/dev/shm")?],
            socket_bytes,
            bytes_limit: if watched.memory { limits.memory_bytes } else { u64::MAX },
            count_limit: if watched.processes { limits.processes } else { u64::MAX },
            count_peak: 0,
            shared_least: u64::MAX,
            anonymous_least: u64::MAX,
            uncertainty: Uncertainty::default(),
            room_bytes: 0,
        })
    }

    /// How long to wait for another look: as long as the job needs to take what is free, within reason.
    pub(super) fn rest(&self) -> Duration {
        let pace = PACE_BYTES / 1000;
        Duration::from_millis(self.room_bytes / pace).clamp(Self::SOON, Self::LATE)
    }

    /// Looks whether the job has more than it may have. `pipe_bytes` is what its pipes can hold.
    pub(super) fn look(&mut self, pipe_bytes: u64) -> Result<Option<Limit>> {
        let last_made = self.processes.last_made()?;
        let count = self.count()?;
        let is_uncertain = self.processes.last_made()? != last_made;
        self.note_certainty(is_uncertain)?;
        let temporary = self.temporary_bytes()?;
        // What is in sockets cannot be seen, so that each counts with what it can hold.
        let fixed = count.table_bytes + pipe_bytes + self.processes.sockets()? * self.socket_bytes;
        let used = count.own_bytes + fixed + count.shared_bytes.max(temporary);
        self.room_bytes = self.bytes_limit.saturating_sub(used);
        if self.hides_shared_memory(&count)? {
            return Ok(Some(Limit::Memory));
        }
        if used <= self.bytes_limit {
            return Ok(None);
        }
        // Pages that processes share were counted for each: only now is it worth to look more closely.
        let (mut own, mut shared) = (0, 0);
        for process in &count.processes {
            let proportional = self.proportional(process)?;
            own += proportional.0;
            shared += proportional.1;
        }
        Ok((own + fixed + shared.max(temporary) > self.bytes_limit).then_some(Limit::Memory))
    }

    /// Whether the job has to be stopped for the next look.
    pub(super) fn is_uncertain(&self) -> bool {
        self.uncertainty.is_over()
    }

    /// Looks while the job is stopped.
    pub(super) fn look_at_rest(&mut self, pipe_bytes: u64) -> Result<Option<Limit>> {
        let limit = self.look(pipe_bytes)?;
        self.uncertainty.note(Certainty::Certain);
        // What is in use by now, others use.
        self.anonymous_least = u64::MAX;
        Ok(limit)
    }

    /// A process that forks and ends again and again may never be seen. The system knows how much memory is in use in all.
    fn note_certainty(&mut self, is_uncertain: bool) -> Result<()> {
        let all = field(&self.processes.read_text("meminfo")?, "AnonPages:").ok_or(Errno::IO)? << 10;
        self.anonymous_least = self.anonymous_least.min(all);
        self.uncertainty.note(match is_uncertain {
            false => Certainty::Certain,
            true if all - self.anonymous_least > self.bytes_limit => Certainty::Suspicious,
            true => Certainty::Uncertain,
        });
        Ok(())
    }

    /// Shared memory without a file stays as long as any page of it is mapped, and only what is mapped can be seen. The
    /// system knows how much there is in all: where that has grown past the limit, who has such memory answers for it.
    fn hides_shared_memory(&mut self, count: &Count) -> Result<bool> {
        let all = field(&self.processes.read_text("meminfo")?, "Shmem:").ok_or(Errno::IO)? << 10;
        self.shared_least = self.shared_least.min(all);
        if all - self.shared_least <= self.bytes_limit {
            return Ok(false);
        }
        for process in &count.processes {
            match self.processes.maps(&process.path)? {
                Seen::There(maps) if maps.contains("/dev/zero (deleted)\n") => return Ok(true),
                Seen::There(_) | Seen::Gone => {}
                Seen::Closed => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Whether there were as many processes as there may be.
    pub(super) fn processes_reached(&mut self) -> Result<bool> {
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
            count.table_bytes += bytes("VmPTE:");
            count.processes.push(process);
        }
        self.count_peak = self.count_peak.max(count.threads);
        Ok(count)
    }

    /// What a process has, and where that is found: where its first thread has ended, with another one.
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

    /// The status of a process or a thread, which anybody may read; nothing where it has ended.
    fn status_of(&self, path: &str) -> Result<Option<String>> {
        match self.processes.read(&format!("{path}/status"))? {
            Seen::There(status) => Ok(Some(status)),
            Seen::Gone => Ok(None),
            Seen::Closed => Err(Errno::ACCESS),
        }
    }

    /// Memory of a process in which what it shares counts in part: its own, and what is in temporary files. All of it
    /// where the kernel does not tell what is shared.
    fn proportional(&self, process: &Process) -> Result<(u64, u64)> {
        let rollup = match self.processes.read(&format!("{}/smaps_rollup", process.path))? {
            Seen::There(rollup) => rollup,
            Seen::Gone => return Ok((0, 0)),
            Seen::Closed => return Ok((process.own_bytes, process.shared_bytes)),
        };
        let bytes = |name| field(&rollup, name).map(|kilobytes| kilobytes << 10);
        // It is empty where the process has just ended.
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

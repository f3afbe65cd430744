//! How much memory, and how many processes, a job has.

use std::{os::fd::OwnedFd, time::Duration};

use rustix::{
    fs::{Dir, Mode, OFlags},
    io::Result,
};

use crate::{Limit, Limits, wire::Watched};

/// How much memory a job could take in a second.
const PACE_BYTES: u64 = 4 << 30;

/// Looks at all processes of the namespace.
pub(super) struct Memory {
    processes: OwnedFd,
    /// Folders whose files are memory.
    temporary: Vec<OwnedFd>,
    bytes_limit: u64,
    count_limit: u64,
    count_peak: u64,
    /// What was still free at the last look.
    room_bytes: u64,
}

/// What one look found.
#[derive(Default)]
struct Seen {
    own_bytes: u64,
    shared_bytes: u64,
    threads: u64,
    pids: Vec<u32>,
}

impl Memory {
    pub(super) const SOON: Duration = Duration::from_millis(20);
    const LATE: Duration = Duration::from_millis(250);

    pub(super) fn new(limits: &Limits, watched: Watched) -> Result<Self> {
        let open =
            |path: &str| rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        Ok(Self {
            processes: open("/proc")?,
            temporary: vec![open("/tmp")?, open("/dev/shm")?],
            bytes_limit: if watched.memory { limits.memory_bytes } else { u64::MAX },
            count_limit: if watched.processes { limits.processes } else { u64::MAX },
            count_peak: 0,
            room_bytes: 0,
        })
    }

    /// How long to wait for another look: as long as the job needs to take what is free, within reason.
    pub(super) fn rest(&self) -> Duration {
        let pace = PACE_BYTES / 1000;
        Duration::from_millis(self.room_bytes / pace).clamp(Self::SOON, Self::LATE)
    }

    pub(super) fn look(&mut self) -> Option<Limit> {
        let seen = self.count();
        let temporary = self.temporary_bytes();
        let used = seen.own_bytes + seen.shared_bytes.max(temporary);
        self.room_bytes = self.bytes_limit.saturating_sub(used);
        if used <= self.bytes_limit {
            return None;
        }
        // Pages that processes share were counted for each: only now is it worth to look more closely.
        let (own, shared) = seen
            .pids
            .iter()
            .filter_map(|pid| self.proportional(*pid))
            .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        (own + shared.max(temporary) > self.bytes_limit).then_some(Limit::Memory)
    }

    /// Whether there were as many processes as there may be.
    pub(super) fn processes_reached(&mut self) -> bool {
        self.count();
        // PID 1 counts too, and the program has just ended.
        self.count_peak + 2 >= self.count_limit
    }

    fn count(&mut self) -> Seen {
        let mut seen = Seen::default();
        let Ok(folder) = Dir::read_from(&self.processes) else { return seen };
        for entry in folder.flatten() {
            let Some(pid) = entry.file_name().to_str().ok().and_then(|name| name.parse().ok()) else { continue };
            let Some(status) = self.read(pid, "status") else { continue };
            seen.threads += field(&status, "Threads:").unwrap_or(1);
            seen.own_bytes += field(&status, "RssAnon:").unwrap_or(0) << 10;
            seen.shared_bytes += field(&status, "RssShmem:").unwrap_or(0) << 10;
            seen.pids.push(pid);
        }
        self.count_peak = self.count_peak.max(seen.threads);
        seen
    }

    /// Memory of a process in which what it shares counts in part: its own, and what is in temporary files.
    fn proportional(&self, pid: u32) -> Option<(u64, u64)> {
        let rollup = self.read(pid, "smaps_rollup")?;
        Some((field(&rollup, "Pss_Anon:")? << 10, field(&rollup, "Pss_Shmem:")? << 10))
    }

    fn read(&self, pid: u32, name: &str) -> Option<String> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.processes, format!("{pid}/{name}"), flags, Mode::empty()).ok()?;
        let mut buffer = [0; 4096];
        let length = rustix::io::read(file, &mut buffer).ok()?;
        Some(String::from_utf8_lossy(&buffer[..length]).into_owned())
    }

    fn temporary_bytes(&self) -> u64 {
        let used = |folder: &OwnedFd| {
            let stat = rustix::fs::fstatvfs(folder).ok()?;
            Some((stat.f_blocks - stat.f_bfree) * stat.f_frsize)
        };
        self.temporary.iter().filter_map(used).sum()
    }
}

/// The number that follows a name at the start of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

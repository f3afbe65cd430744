//! How much memory, and how many processes, a job has.

use std::{os::fd::OwnedFd, time::Duration};

use rustix::{
    fs::{Mode, OFlags},
    io::Result,
};

use super::processes::{Processes, field};
use crate::{Limit, Limits, wire::Watched};

/// How much memory a job could take in a second.
const PACE_BYTES: u64 = 4 << 30;

/// Looks at all processes of the namespace.
pub(super) struct Memory {
    processes: Processes,
    /// Folders whose files are memory.
    temporary: Vec<OwnedFd>,
    bytes_limit: u64,
    count_limit: u64,
    count_peak: u64,
    /// The least shared memory that the whole system has had.
    shared_least: u64,
    /// What was still free at the last look.
    room_bytes: u64,
}

/// What one look found.
#[derive(Default)]
struct Seen {
    own_bytes: u64,
    shared_bytes: u64,
    /// The tables of pages, which can take more than the pages.
    table_bytes: u64,
    threads: u64,
    /// Where the memory of each process is found.
    processes: Vec<String>,
}

impl Memory {
    pub(super) const SOON: Duration = Duration::from_millis(20);
    const LATE: Duration = Duration::from_millis(250);

    pub(super) fn new(limits: &Limits, watched: Watched) -> Result<Self> {
        let open =
            |path: &str| rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        Ok(Self {
            processes: Processes::new()?,
            temporary: vec![open("/tmp")?, open("/dev/shm")?],
            bytes_limit: if watched.memory { limits.memory_bytes } else { u64::MAX },
            count_limit: if watched.processes { limits.processes } else { u64::MAX },
            count_peak: 0,
            shared_least: u64::MAX,
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
        let used = seen.own_bytes + seen.table_bytes + seen.shared_bytes.max(temporary);
        self.room_bytes = self.bytes_limit.saturating_sub(used);
        if self.hides_shared_memory(&seen) {
            return Some(Limit::Memory);
        }
        if used <= self.bytes_limit {
            return None;
        }
        // Pages that processes share were counted for each: only now is it worth to look more closely.
        let (own, shared) = seen
            .processes
            .iter()
            .filter_map(|process| self.proportional(process))
            .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        (own + seen.table_bytes + shared.max(temporary) > self.bytes_limit).then_some(Limit::Memory)
    }

    /// Shared memory without a file stays as long as any page of it is mapped, and only what is mapped can be seen. The
    /// system knows how much there is in all: where that has grown past the limit, who has such memory answers for it.
    fn hides_shared_memory(&mut self, seen: &Seen) -> bool {
        let all = self.processes.read("meminfo").and_then(|text| field(&text, "Shmem:")).unwrap_or(0) << 10;
        self.shared_least = self.shared_least.min(all);
        let maps = |process: &String| self.processes.read(&format!("{process}/maps"));
        all - self.shared_least > self.bytes_limit
            && seen.processes.iter().filter_map(maps).any(|maps| maps.contains("/dev/zero (deleted)\n"))
    }

    /// Whether there were as many processes as there may be.
    pub(super) fn processes_reached(&mut self) -> bool {
        self.count();
        // PID 1 counts too, and the program has just ended.
        self.count_peak + 2 >= self.count_limit
    }

    fn count(&mut self) -> Seen {
        let mut seen = Seen::default();
        for pid in self.processes.all() {
            let Some((process, status)) = self.status(pid) else { continue };
            let bytes = |name| field(&status, name).unwrap_or(0) << 10;
            seen.threads += field(&status, "Threads:").unwrap_or(1);
            seen.own_bytes += bytes("RssAnon:") + bytes("VmSwap:");
            seen.shared_bytes += bytes("RssShmem:");
            seen.table_bytes += bytes("VmPTE:");
            seen.processes.push(process);
        }
        self.count_peak = self.count_peak.max(seen.threads);
        seen
    }

    /// What a process has, and where that is found: where its first thread has ended, with another one.
    fn status(&self, pid: u32) -> Option<(String, String)> {
        let process = pid.to_string();
        let status = self.processes.read(&format!("{process}/status"))?;
        if field(&status, "RssAnon:").is_some() {
            return Some((process, status));
        }
        let of = |thread: String| Some((self.processes.read(&format!("{thread}/status"))?, thread));
        let mut threads = self.processes.threads(pid).into_iter().filter_map(of);
        let living = threads.find(|(status, _)| field(status, "RssAnon:").is_some());
        Some(living.map_or((process, status), |(status, thread)| (thread, status)))
    }

    /// Memory of a process in which what it shares counts in part: its own, and what is in temporary files.
    fn proportional(&self, process: &str) -> Option<(u64, u64)> {
        let rollup = self.processes.read(&format!("{process}/smaps_rollup"))?;
        let bytes = |name| field(&rollup, name).map(|kilobytes| kilobytes << 10);
        Some((bytes("Pss_Anon:")? + bytes("SwapPss:").unwrap_or(0), bytes("Pss_Shmem:")?))
    }

    fn temporary_bytes(&self) -> u64 {
        let used = |folder: &OwnedFd| {
            let stat = rustix::fs::fstatvfs(folder).ok()?;
            Some((stat.f_blocks - stat.f_bfree) * stat.f_frsize)
        };
        self.temporary.iter().filter_map(used).sum()
    }
}

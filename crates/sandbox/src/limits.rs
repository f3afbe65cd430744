//! The limits of a job, and what enforces them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The limits of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Maximum duration (wall clock).
    pub wall: Duration,
    /// Processor time per process.
    pub cpu: Duration,
    /// Memory of all processes together, including files in `/tmp` and `/dev/shm`.
    pub memory_bytes: u64,
    /// Address space of a process beyond the memory limit. Runtimes reserve far more than they use.
    pub reserved_bytes: u64,
    /// Number of concurrent processes and threads.
    pub processes: u64,
    /// Open descriptors per process.
    pub open_files: u64,
    /// Maximum size of a file.
    pub file_bytes: u64,
    /// Maximum growth of all writable folders together.
    pub disk_bytes: u64,
    /// Maximum number of files and folders added to the writable folders.
    pub new_files: u64,
    /// Size of `/tmp` and of `/dev/shm`, each.
    pub temporary_bytes: u64,
    /// Maximum output before the job is ended.
    pub output_bytes: u64,
    /// How much of each output stream is kept for the report.
    pub output_kept_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wall: Duration::from_secs(30),
            cpu: Duration::from_secs(60),
            memory_bytes: GIB,
            reserved_bytes: 64 * GIB,
            processes: 256,
            open_files: 1024,
            file_bytes: 512 * MIB,
            disk_bytes: 2 * GIB,
            new_files: 200_000,
            temporary_bytes: 256 * MIB,
            output_bytes: 256 * MIB,
            output_kept_bytes: 256 << 10,
        }
    }
}

impl Limits {
    /// The smallest limits that a job can have. Less would kill the cell itself; a size of 0 would mean no limit at
    /// all.
    pub const MIN_MEMORY_BYTES: u64 = 16 * MIB;
    pub const MIN_PROCESSES: u64 = 4;
    pub const MIN_OPEN_FILES: u64 = 32;
    pub const MIN_TEMPORARY_BYTES: u64 = 64 << 10;

    /// Returns these limits, each raised to its minimum.
    #[must_use]
    pub fn raised_to_minimum(&self) -> Self {
        Self {
            memory_bytes: self.memory_bytes.max(Self::MIN_MEMORY_BYTES),
            processes: self.processes.max(Self::MIN_PROCESSES),
            open_files: self.open_files.max(Self::MIN_OPEN_FILES),
            temporary_bytes: self.temporary_bytes.max(Self::MIN_TEMPORARY_BYTES),
            ..self.clone()
        }
    }

    /// Returns these limits, each lowered to the ceiling.
    #[must_use]
    pub fn capped(&self, ceiling: &Self) -> Self {
        Self {
            wall: self.wall.min(ceiling.wall),
            cpu: self.cpu.min(ceiling.cpu),
            memory_bytes: self.memory_bytes.min(ceiling.memory_bytes),
            reserved_bytes: self.reserved_bytes.min(ceiling.reserved_bytes),
            processes: self.processes.min(ceiling.processes),
            open_files: self.open_files.min(ceiling.open_files),
            file_bytes: self.file_bytes.min(ceiling.file_bytes),
            disk_bytes: self.disk_bytes.min(ceiling.disk_bytes),
            new_files: self.new_files.min(ceiling.new_files),
            temporary_bytes: self.temporary_bytes.min(ceiling.temporary_bytes),
            output_bytes: self.output_bytes.min(ceiling.output_bytes),
            output_kept_bytes: self.output_kept_bytes.min(ceiling.output_kept_bytes),
        }
    }
}

/// A limit that can end a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    Time,
    Memory,
    Output,
    Processes,
    Disk,
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Time => "time",
            Self::Memory => "memory",
            Self::Output => "output",
            Self::Processes => "processes",
            Self::Disk => "disk",
        })
    }
}

/// The mechanism that enforces a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Enforcer {
    CgroupV1,
    CgroupV2,
    /// A kernel limit per process or per user.
    Rlimit,
    /// PID 1 of the job, which measures at intervals.
    Watchdog,
}

impl std::fmt::Display for Enforcer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::CgroupV1 => "control group (v1)",
            Self::CgroupV2 => "control group (v2)",
            Self::Rlimit => "resource limit",
            Self::Watchdog => "watchdog",
        })
    }
}

/// The mechanisms that enforced a job's limits, for those limits that have several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitEnforcers {
    pub memory: Enforcer,
    pub processes: Enforcer,
    pub disk: Enforcer,
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod limits_tests;

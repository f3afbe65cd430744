//! What a job may use, and who sees to it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// What a job may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// How long it may run, by the clock on the wall.
    pub wall: Duration,
    /// Processor time of each process.
    pub cpu: Duration,
    /// Memory of all its processes together, files in `/tmp` and `/dev/shm` included.
    pub memory_bytes: u64,
    /// Processes and threads alive at once.
    pub processes: u64,
    /// Descriptors of each process.
    pub open_files: u64,
    /// Size of each file.
    pub file_bytes: u64,
    /// By how much the writable folders may grow, all together.
    pub disk_bytes: u64,
    /// How many files and folders may be added to the writable folders.
    pub new_files: u64,
    /// Size of `/tmp`, and of `/dev/shm`.
    pub temporary_bytes: u64,
    /// How much the job may print before it is ended.
    pub output_bytes: u64,
    /// How much of each of its streams is kept for the report.
    pub output_kept_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wall: Duration::from_secs(30),
            cpu: Duration::from_secs(60),
            memory_bytes: GIB,
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
    /// The least that a job can be given: less would end the cell that it is to run in, or, as a size of nought, be
    /// no limit at all.
    pub const LEAST_MEMORY_BYTES: u64 = 16 * MIB;
    pub const LEAST_PROCESSES: u64 = 4;
    pub const LEAST_OPEN_FILES: u64 = 32;
    pub const LEAST_TEMPORARY_BYTES: u64 = 64 << 10;

    /// The same, but nothing below the least that a job can be given.
    #[must_use]
    pub fn raised(&self) -> Self {
        Self {
            memory_bytes: self.memory_bytes.max(Self::LEAST_MEMORY_BYTES),
            processes: self.processes.max(Self::LEAST_PROCESSES),
            open_files: self.open_files.max(Self::LEAST_OPEN_FILES),
            temporary_bytes: self.temporary_bytes.max(Self::LEAST_TEMPORARY_BYTES),
            ..self.clone()
        }
    }

    /// What is asked for, as far as the ceiling allows it.
    #[must_use]
    pub fn capped(&self, ceiling: &Self) -> Self {
        Self {
            wall: self.wall.min(ceiling.wall),
            cpu: self.cpu.min(ceiling.cpu),
            memory_bytes: self.memory_bytes.min(ceiling.memory_bytes),
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

/// A limit that ended a job.
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

/// Who sees to a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Enforcer {
    CgroupV1,
    CgroupV2,
    /// A limit of the kernel on each process, or on each user.
    Rlimit,
    /// PID 1 of the job, which looks at intervals.
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

/// Who saw to the limits of a job that have more than one possible enforcer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enforced {
    pub memory: Enforcer,
    pub processes: Enforcer,
    pub disk: Enforcer,
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod limits_tests;

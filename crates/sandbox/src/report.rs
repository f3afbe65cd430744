//! The result of a job.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{CapturedOutput, Limit, LimitEnforcers};

/// How a job ended, and its output.
#[derive(Debug, Clone)]
pub struct Report {
    pub exit: Exit,
    /// Time from the request to the end of the last process.
    pub duration: Duration,
    /// Processor time of all processes that were waited for.
    pub cpu: Duration,
    /// The limit that ended the job, if one did.
    pub limit_hit: Option<Limit>,
    pub enforced_by: LimitEnforcers,
    pub stdout: CapturedOutput,
    pub stderr: CapturedOutput,
}

impl Report {
    /// Whether the program exited with 0 and hit no limit.
    pub const fn success(&self) -> bool {
        matches!(self.exit, Exit::Code(0)) && self.limit_hit.is_none()
    }
}

/// The exit status of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

impl Exit {
    /// Returns the exit code as shells report it: 128 is added to a signal.
    pub const fn code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }
}

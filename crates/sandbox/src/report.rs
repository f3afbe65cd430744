//! How a job ended.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Captured, Enforced, Limit};

/// How a job ended and what it printed.
#[derive(Debug, Clone)]
pub struct Report {
    pub exit: Exit,
    /// From the order to the end of its last process.
    pub duration: Duration,
    /// Processor time of all its processes that were waited for.
    pub cpu: Duration,
    /// The limit that ended it, if one did.
    pub limit_hit: Option<Limit>,
    pub enforced_by: Enforced,
    pub stdout: Captured,
    pub stderr: Captured,
}

impl Report {
    /// Whether the program ended by itself and without complaint.
    pub const fn success(&self) -> bool {
        matches!(self.exit, Exit::Code(0)) && self.limit_hit.is_none()
    }
}

/// How the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

impl Exit {
    /// One number for both, as shells count.
    pub const fn code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }
}

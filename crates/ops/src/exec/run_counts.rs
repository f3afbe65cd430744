//! Counts of ended programs, for monitoring.

use std::sync::atomic::{AtomicU64, Ordering};
use toolrest_sandbox::Report;

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOutcome {
    /// It exited with 0.
    Ok,
    /// It exited with another code or by a signal.
    Failed,
    /// It exceeded a limit.
    Limit,
    /// It was stopped, or its caller disconnected.
    Cancelled,
    /// It could not be started, or its end was not reported.
    Error,
}

impl RunOutcome {
    /// All outcomes.
    pub const ALL: [Self; 5] = [Self::Ok, Self::Failed, Self::Limit, Self::Cancelled, Self::Error];

    /// Returns the name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Limit => "limit",
            Self::Cancelled => "cancelled",
            Self::Error => "error",
        }
    }

    /// Returns the outcome of a program that was not stopped.
    pub(super) fn of(report: &Report) -> Self {
        match report.limit_hit {
            Some(_) => Self::Limit,
            None if report.success() => Self::Ok,
            None => Self::Failed,
        }
    }
}

/// The number of ended programs, by outcome.
#[derive(Default)]
pub(super) struct RunCounts([AtomicU64; RunOutcome::ALL.len()]);

impl RunCounts {
    pub(super) fn add(&self, outcome: RunOutcome) {
        self.0[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn by_outcome(&self) -> [(RunOutcome, u64); RunOutcome::ALL.len()] {
        RunOutcome::ALL.map(|outcome| (outcome, self.0[outcome as usize].load(Ordering::Relaxed)))
    }
}

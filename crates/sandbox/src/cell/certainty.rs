//! Whether what was counted of a job can be trusted.
//!
//! A job goes on while it is looked at. What it moves at that time from a place that has not been looked at to one that
//! has is counted nowhere. Where that is possible the count is uncertain; if it is so for long, or there are signs that
//! something is missing, all processes are stopped and everything is counted again.

use std::time::{Duration, Instant};

/// How long counts may be uncertain without a sign that something is missing.
const PATIENCE: Duration = Duration::from_secs(10);

/// How certain the last count was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Certainty {
    Certain,
    Uncertain,
    /// It is uncertain, and the machine has lost more than the job may have.
    Suspicious,
}

/// Since when counts have been uncertain.
#[derive(Debug, Default)]
pub(super) struct Uncertainty {
    since: Option<Instant>,
    is_suspicious: bool,
}

impl Uncertainty {
    pub(super) fn note(&mut self, certainty: Certainty) {
        self.since = match certainty {
            Certainty::Certain => None,
            Certainty::Uncertain | Certainty::Suspicious => self.since.or_else(|| Some(Instant::now())),
        };
        self.is_suspicious = certainty == Certainty::Suspicious;
    }

    /// Whether the next count has to be made while nothing moves.
    pub(super) fn is_over(&self) -> bool {
        self.is_suspicious || self.since.is_some_and(|since| since.elapsed() > PATIENCE)
    }
}

//! Whether a measurement of a running job can be trusted.
//!
//! A job keeps running while it is measured. A measurement misses files that are moved from a folder not yet read to
//! one already read, and processes that fork and exit before they are listed. If that is possible, the measurement is
//! uncertain. If measurements stay uncertain for long, or if something seems to be missing, all processes are stopped
//! for one more measurement.

use std::time::{Duration, Instant};

/// Maximum time that measurements may stay uncertain if nothing seems to be missing.
const MAX_UNCERTAIN: Duration = Duration::from_secs(10);

/// How certain a measurement is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Certainty {
    Certain,
    Uncertain,
    /// Uncertain, and the free disk space has shrunk, or the memory use of the machine has grown, by more than the
    /// job's limit.
    Suspicious,
}

/// Tracks how long measurements have been uncertain.
#[derive(Debug, Default)]
pub(super) struct UncertaintyTracker {
    since: Option<Instant>,
    is_suspicious: bool,
}

impl UncertaintyTracker {
    pub(super) fn record(&mut self, certainty: Certainty) {
        self.since = match certainty {
            Certainty::Certain => None,
            Certainty::Uncertain | Certainty::Suspicious => self.since.or_else(|| Some(Instant::now())),
        };
        self.is_suspicious = certainty == Certainty::Suspicious;
    }

    /// Whether all processes have to be stopped for the next measurement.
    pub(super) fn needs_pause(&self) -> bool {
        self.is_suspicious || self.since.is_some_and(|since| since.elapsed() > MAX_UNCERTAIN)
    }
}

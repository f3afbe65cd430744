//! Counters of tool calls, for monitoring.
//!
//! There is one set of counters for each known tool, made when the engine is. A name that a caller made up is counted
//! under [`UNKNOWN_TOOL`], so callers cannot make the counters grow.

use crate::{ErrorKind, Toolsets};
use std::{
    collections::HashMap,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// The tool under which calls of unknown tools are counted.
pub const UNKNOWN_TOOL: &str = "unknown";

/// Upper bounds of the buckets of durations, in microseconds. The last bucket, which has no bound, is not listed.
pub const DURATION_BUCKETS_US: [u64; 16] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000,
    10_000_000, 30_000_000, 60_000_000,
];

/// The counters of all calls.
pub struct CallMetrics {
    toolsets: HashMap<&'static str, ToolsetMetrics>,
    started: AtomicU64,
    ended: AtomicU64,
}

struct ToolsetMetrics {
    tools: HashMap<&'static str, ToolMetrics>,
    unknown: ToolMetrics,
}

/// The counters of one tool.
struct ToolMetrics {
    ok: AtomicU64,
    /// By the number of the error kind.
    errors: [AtomicU64; ErrorKind::ALL.len()],
    /// One more than the bounds.
    buckets: [AtomicU64; DURATION_BUCKETS_US.len() + 1],
    total_us: AtomicU64,
}

/// The counts of one tool at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCounts {
    /// The toolset.
    pub toolset: &'static str,
    /// The tool, or [`UNKNOWN_TOOL`].
    pub tool: &'static str,
    /// Successful calls.
    pub ok: u64,
    /// Failed calls, by the kind of the error; kinds that did not occur are left out.
    pub errors: Vec<(ErrorKind, u64)>,
    /// Calls by duration: one number for each bound, and one for longer calls. Not cumulative.
    pub buckets: [u64; DURATION_BUCKETS_US.len() + 1],
    /// The sum of all durations in microseconds.
    pub total_us: u64,
}

impl CallMetrics {
    /// Creates the counters of all tools.
    #[must_use]
    pub fn new(toolsets: &Toolsets) -> Self {
        let counters = toolsets.iter().map(|toolset| {
            let tools = toolset.tools().map(|tool| (tool.name(), ToolMetrics::new())).collect();
            (toolset.name(), ToolsetMetrics { tools, unknown: ToolMetrics::new() })
        });
        Self { toolsets: counters.collect(), started: AtomicU64::new(0), ended: AtomicU64::new(0) }
    }

    /// Counts the start of a call.
    pub fn begin(&self, toolset: &str, tool: &str) -> CallTimer<'_> {
        self.started.fetch_add(1, Ordering::Relaxed);
        let toolset = self.toolsets.get(toolset);
        let tool = toolset.map(|toolset| toolset.tools.get(tool).unwrap_or(&toolset.unknown));
        CallTimer { metrics: self, tool, started: Instant::now(), error: Some(ErrorKind::Cancelled) }
    }

    /// Returns the number of calls under way, including those that wait for a slot.
    pub fn under_way(&self) -> u64 {
        // Read in this order: a call between the two reads must not make the result negative.
        let ended = self.ended.load(Ordering::Acquire);
        self.started.load(Ordering::Relaxed).saturating_sub(ended)
    }

    /// Returns the counts of all tools, sorted by their names. Tools that were never called are included, but not
    /// unknown tools.
    pub fn counts(&self) -> Vec<ToolCounts> {
        let mut counts = Vec::new();
        for (toolset, metrics) in &self.toolsets {
            counts.extend(metrics.tools.iter().map(|(tool, metrics)| metrics.counts(toolset, tool)));
            let unknown = metrics.unknown.counts(toolset, UNKNOWN_TOOL);
            counts.extend(Some(unknown).filter(|counts| counts.ok > 0 || !counts.errors.is_empty()));
        }
        counts.sort_unstable_by_key(|counts| (counts.toolset, counts.tool));
        counts
    }
}

impl ToolMetrics {
    fn new() -> Self {
        let zero = |_| AtomicU64::new(0);
        Self { ok: zero(0), errors: std::array::from_fn(zero), buckets: std::array::from_fn(zero), total_us: zero(0) }
    }

    fn observe(&self, duration: Duration, error: Option<ErrorKind>) {
        let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        if let Some(outcome) = error.map_or(Some(&self.ok), |kind| self.errors.get(kind as usize)) {
            outcome.fetch_add(1, Ordering::Relaxed);
        }
        let bucket = DURATION_BUCKETS_US.partition_point(|bound| *bound < us);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.total_us.fetch_add(us, Ordering::Relaxed);
    }

    fn counts(&self, toolset: &'static str, tool: &'static str) -> ToolCounts {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let errors = ErrorKind::ALL.into_iter().map(|kind| (kind, self.errors.get(kind as usize).map_or(0, load)));
        ToolCounts {
            toolset,
            tool,
            ok: load(&self.ok),
            errors: errors.filter(|(_, count)| *count > 0).collect(),
            buckets: std::array::from_fn(|bucket| load(&self.buckets[bucket])),
            total_us: load(&self.total_us),
        }
    }
}

/// A call under way. If it is dropped before it has ended, the call is counted as cancelled.
pub struct CallTimer<'a> {
    metrics: &'a CallMetrics,
    tool: Option<&'a ToolMetrics>,
    started: Instant,
    error: Option<ErrorKind>,
}

impl CallTimer<'_> {
    /// Counts the end of the call, with the kind of its error if it failed.
    pub fn end(mut self, error: Option<ErrorKind>) {
        self.error = error;
    }
}

impl Drop for CallTimer<'_> {
    fn drop(&mut self) {
        if let Some(tool) = self.tool {
            tool.observe(self.started.elapsed(), self.error);
        }
        self.metrics.ended.fetch_add(1, Ordering::Release);
    }
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;

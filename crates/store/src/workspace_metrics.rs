//! What the calls and approvals of a workspace amounted to, computed in the database.

use crate::error::Result;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;
use toolrest_core::{Access, Timestamp};
use uuid::Uuid;

/// Maximum number of calls that are counted: the newest of the period.
pub(crate) const MAX_CALLS: i64 = 50_000;
/// Maximum number of approvals whose waits are counted: the newest of the period.
pub(crate) const MAX_APPROVALS: i64 = 10_000;

/// Reads the metrics of a workspace.
#[async_trait]
pub trait MetricsStore: Send + Sync {
    /// Computes the metrics of a period.
    async fn workspace_metrics(&self, access: Access, period: Period) -> Result<WorkspaceMetrics>;
}

/// A period in parts of the same length.
#[derive(Clone, Copy, Debug)]
pub struct Period {
    /// Its beginning.
    pub since: Timestamp,
    /// Its end, which is excluded.
    pub until: Timestamp,
    /// The length of a part.
    pub part: Duration,
}

impl Period {
    /// Returns the length of a part in microseconds, at least one.
    pub(crate) fn part_us(&self) -> i64 {
        i64::try_from(self.part.as_micros()).unwrap_or(i64::MAX).max(1)
    }

    /// Returns the lowest id that a call of the period can have. Ids begin with a time shortly before the call started.
    pub(crate) fn lowest_id(&self) -> Uuid {
        const MARGIN_MS: i64 = 60 * 60 * 1000;
        let ms = u64::try_from(self.since.as_millisecond() - MARGIN_MS).unwrap_or(0);
        Uuid::from_u128(u128::from(ms) << 80)
    }
}

/// What the calls and approvals of a period amounted to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkspaceMetrics {
    /// The tools that were called, the most called first.
    pub tools: Vec<ToolMetrics>,
    /// The parts of the period in which something was called, in their order.
    pub parts: Vec<PartMetrics>,
    /// How long calls waited for persons.
    pub approvals: ApprovalMetrics,
    /// Bytes that the workspace stores in the database.
    pub stored_bytes: i64,
}

impl WorkspaceMetrics {
    /// Whether there were more calls than are counted.
    pub fn is_truncated(&self) -> bool {
        self.parts.iter().map(|part| part.figures.calls).sum::<i64>() >= MAX_CALLS
    }
}

/// Numbers of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CallFigures {
    /// How many calls ended.
    pub calls: i64,
    /// How many of them failed. A call that waits for a person has not failed.
    pub errors: i64,
    /// The median of their durations in microseconds.
    pub p50_us: i64,
    /// The duration in microseconds within which 95 of 100 calls ended.
    pub p95_us: i64,
}

/// The calls of one tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ToolMetrics {
    /// Its toolset.
    pub toolset: String,
    /// Its name.
    pub tool: String,
    /// Its calls.
    #[serde(flatten)]
    pub figures: CallFigures,
}

/// The calls of one part of the period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartMetrics {
    /// Its number, counted from 0.
    pub part: i64,
    /// Its calls.
    pub figures: CallFigures,
}

/// How long calls waited for persons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ApprovalMetrics {
    /// How many calls wait now.
    pub waiting: i64,
    /// How many calls of the period a person decided about.
    pub decided: i64,
    /// The median of their waits in microseconds; null if there were none.
    pub p50_us: Option<i64>,
    /// The wait in microseconds within which 95 of 100 were decided; null if there were none.
    pub p95_us: Option<i64>,
}

/// The kinds of the events that end the wait for a person.
pub(crate) const DECIDED: &str = "('approved', 'denied', 'responded')";

/// Returns a query over `recent` (`toolset`, `tool`, `part`, `is_error`, `duration_us`), the same for both databases:
/// for each value of `keys` the calls, the errors and the percentiles by nearest rank.
pub(crate) fn figures_by(recent: &str, keys: &str, order: &str) -> String {
    format!(
        "WITH recent AS ({recent}), ranked AS (
             SELECT {keys}, is_error, duration_us, row_number() OVER (PARTITION BY {keys} ORDER BY duration_us) AS n,
                 count(*) OVER (PARTITION BY {keys}) AS total
             FROM recent
         )
         SELECT {keys}, max(total) AS calls, sum(is_error), max(CASE WHEN n = (total + 1) / 2 THEN duration_us END),
             max(CASE WHEN n = (total * 95 + 99) / 100 THEN duration_us END)
         FROM ranked GROUP BY {keys} ORDER BY {order} LIMIT 500"
    )
}

/// Returns a query over `waits` (`wait_us`): how many there are, and the percentiles.
pub(crate) fn wait_figures(waits: &str) -> String {
    format!(
        "WITH waits AS ({waits}), ranked AS (
             SELECT wait_us, row_number() OVER (ORDER BY wait_us) AS n, count(*) OVER () AS total FROM waits
         )
         SELECT count(*), max(CASE WHEN n = (total + 1) / 2 THEN wait_us END),
             max(CASE WHEN n = (total * 95 + 99) / 100 THEN wait_us END)
         FROM ranked"
    )
}

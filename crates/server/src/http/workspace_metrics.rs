//! The metrics of one workspace, for its members.

use super::App;
use super::reply::{Answer, Reply, ok};
use super::request::WorkspaceRequest;
use axum::extract::{Query, State};
use schemars::JsonSchema;
use serde::Serialize;
use std::{collections::HashMap, sync::Arc, time::Duration};
use toolrest_core::{Result, Role, Timestamp, ToolError, now};
use toolrest_store::{ApprovalMetrics, CallFigures, Location, Period, ToolMetrics};

/// The number of parts of a period.
const PARTS: u64 = 60;
const DEFAULT_HOURS: u64 = 24;
pub(super) const MAX_HOURS: u64 = 31 * 24;

/// The metrics of a workspace.
#[derive(Serialize, JsonSchema)]
pub(crate) struct MetricsAnswer {
    #[schemars(with = "String")]
    since: Timestamp,
    #[schemars(with = "String")]
    until: Timestamp,
    /// Length of a part of the period.
    part_seconds: u64,
    /// The parts of the period in which something was called, in their order.
    parts: Vec<Part>,
    /// The tools that were called, the most called first; at most 500.
    tools: Vec<ToolMetrics>,
    /// Whether there were more calls than are counted: 50,000, the newest.
    truncated: bool,
    approvals: ApprovalMetrics,
    storage: Storage,
}

#[derive(Serialize, JsonSchema)]
struct Part {
    /// Its beginning.
    #[schemars(with = "String")]
    at: Timestamp,
    #[serde(flatten)]
    figures: CallFigures,
}

/// What a workspace stores. Of a folder, its history.
#[derive(Serialize, JsonSchema)]
struct Storage {
    bytes: u64,
    /// The limit; null if there is none.
    limit_bytes: Option<u64>,
}

pub(crate) async fn show(
    State(app): State<Arc<App>>,
    target: WorkspaceRequest,
    Query(query): Query<HashMap<String, String>>,
) -> Answer<Reply<MetricsAnswer>> {
    let hours = match hours(&query) {
        Ok(hours) => hours,
        Err(error) => target.refuse(&app, error).await?,
    };
    let access = target.access(Role::Viewer);
    let until = now();
    let since = until.checked_sub(Duration::from_secs(hours * 3_600)).map_err(ToolError::internal)?;
    let part_seconds = hours * 3_600 / PARTS;
    let part = Duration::from_secs(part_seconds);
    let found = app.store.workspace_metrics(access, Period { since, until, part }).await?;
    let is_truncated = found.is_truncated();
    let parts = found.parts.iter().map(|one| {
        let at = since.checked_add(part * u32::try_from(one.part).unwrap_or(0)).map_err(ToolError::internal)?;
        Ok(Part { at, figures: one.figures })
    });
    let parts = parts.collect::<Result<_>>()?;
    let (bytes, limit) = match app.store.workspace(access).await?.location {
        Location::Database => (u64::try_from(found.stored_bytes).unwrap_or(0), app.settings.quotas.bytes_per_workspace),
        Location::Directory { .. } => {
            (app.store.history_bytes(access).await?, app.settings.folders.history_total_bytes)
        }
    };
    ok(&MetricsAnswer {
        since,
        until,
        part_seconds,
        parts,
        truncated: is_truncated,
        tools: found.tools,
        approvals: found.approvals,
        storage: Storage { bytes, limit_bytes: Some(limit).filter(|limit| *limit > 0) },
    })
}

/// Returns the length of the period in hours.
fn hours(query: &HashMap<String, String>) -> Result<u64> {
    let Some(text) = query.get("hours") else { return Ok(DEFAULT_HOURS) };
    text.parse().ok().filter(|hours| (1..=MAX_HOURS).contains(hours)).ok_or_else(|| {
        let message = format!("'{text}' is not a valid `hours`; it must be a whole number from 1 to {MAX_HOURS}");
        ToolError::argument("hours", message)
    })
}

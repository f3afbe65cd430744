//! The metrics of a workspace.

use super::Sqlite;
use super::row::{authorised, collect, find, micros};
use crate::error::Result;
use crate::workspace_metrics::{
    ApprovalMetrics, CallFigures, DECIDED, MAX_APPROVALS, MAX_CALLS, MetricsStore, PartMetrics, Period, ToolMetrics,
    WorkspaceMetrics, figures_by, wait_figures,
};
use async_trait::async_trait;
use rusqlite::Row;
use toolrest_core::Access;

const RECENT: &str = "SELECT toolset, tool, (started_at - ?3) / ?5 AS part, duration_us,
        CASE WHEN outcome IN ('ok', 'approval_required') THEN 0 ELSE 1 END AS is_error
    FROM calls WHERE ws = ?1 AND id >= ?2 AND started_at >= ?3 AND started_at < ?4 ORDER BY id DESC LIMIT ?6";

fn figures(row: &Row<'_>, first: usize) -> rusqlite::Result<CallFigures> {
    Ok(CallFigures {
        calls: row.get(first)?,
        errors: row.get(first + 1)?,
        p50_us: row.get(first + 2)?,
        p95_us: row.get(first + 3)?,
    })
}

#[async_trait]
impl MetricsStore for Sqlite {
    async fn workspace_metrics(&self, access: Access, period: Period) -> Result<WorkspaceMetrics> {
        self.read(move |db| {
            authorised(db, access)?;
            let ws = access.workspace.0;
            let (since, until) = (micros(period.since), micros(period.until));
            let of_period = (ws, period.lowest_id(), since, until, period.part_us(), MAX_CALLS);
            let by_tool = figures_by(RECENT, "toolset, tool", "calls DESC, toolset, tool");
            let tools = collect(db, &by_tool, of_period, |row| {
                Ok(ToolMetrics { toolset: row.get(0)?, tool: row.get(1)?, figures: figures(row, 2)? })
            })?;
            let parts = collect(db, &figures_by(RECENT, "part", "part"), of_period, |row| {
                Ok(PartMetrics { part: row.get(0)?, figures: figures(row, 1)? })
            })?;
            let waits = wait_figures(&format!(
                "SELECT min(e.at) - a.created_at AS wait_us FROM (
                     SELECT id, created_at FROM approvals
                     WHERE ws = ?1 AND id >= ?2 AND created_at >= ?3 AND created_at < ?4 ORDER BY id DESC LIMIT ?5
                 ) a JOIN approval_events e ON e.ws = ?1 AND e.approval_id = a.id AND e.kind IN {DECIDED}
                 GROUP BY a.id, a.created_at"
            ));
            let of_approvals = (ws, period.lowest_id(), since, until, MAX_APPROVALS);
            let (decided, p50_us, p95_us) =
                find(db, &waits, of_approvals, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.unwrap_or_default();
            let pending = "SELECT count(*) FROM approvals WHERE ws = ?1 AND state = 'pending'";
            let waiting = find(db, pending, [ws], |row| row.get(0))?.unwrap_or_default();
            let stored = "SELECT bytes FROM storage_used WHERE ws = ?1";
            let stored_bytes = find(db, stored, [ws], |row| row.get(0))?.unwrap_or_default();
            let approvals = ApprovalMetrics { waiting, decided, p50_us, p95_us };
            Ok(WorkspaceMetrics { tools, parts, approvals, stored_bytes })
        })
        .await
    }
}

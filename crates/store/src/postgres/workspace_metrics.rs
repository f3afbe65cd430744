//! The metrics of a workspace.

use super::Postgres;
use super::row::authorised;
use crate::error::Result;
use crate::workspace_metrics::{
    ApprovalMetrics, CallFigures, DECIDED, MAX_APPROVALS, MAX_CALLS, MetricsStore, PartMetrics, Period, ToolMetrics,
    WorkspaceMetrics, figures_by, wait_figures,
};
use async_trait::async_trait;
use tokio_postgres::{Row, types::ToSql};
use toolrest_core::Access;

const RECENT: &str = "SELECT toolset, tool, duration_us,
        floor(extract(epoch FROM started_at - $3) * 1000000 / $5::bigint)::bigint AS part,
        CASE WHEN outcome IN ('ok', 'approval_required') THEN 0 ELSE 1 END AS is_error
    FROM calls WHERE ws = $1 AND id >= $2 AND started_at >= $3 AND started_at < $4 ORDER BY id DESC LIMIT $6";

/// The rights of the caller, the calls that wait, and the bytes that the workspace stores.
const STATE: &str = "SELECT m.rights, (SELECT count(*) FROM approvals WHERE ws = $1 AND state = 'pending'),
        coalesce((SELECT bytes FROM storage_used WHERE ws = $1), 0)
    FROM members m WHERE m.ws = $1 AND m.user_id = $2";

fn figures(row: &Row, first: usize) -> CallFigures {
    CallFigures {
        calls: row.get(first),
        errors: row.get(first + 1),
        p50_us: row.get(first + 2),
        p95_us: row.get(first + 3),
    }
}

#[async_trait]
impl MetricsStore for Postgres {
    async fn workspace_metrics(&self, access: Access, period: Period) -> Result<WorkspaceMetrics> {
        let ws = access.workspace.0;
        let transaction = self.transaction().await?;
        let state = transaction.begin_snapshot((STATE, &[&ws, &access.user.0])).await?;
        authorised(access, &state, 0)?;
        let lowest = period.lowest_id();
        let part_us = period.part_us();
        let of_period: [&(dyn ToSql + Sync); 6] = [&ws, &lowest, &period.since, &period.until, &part_us, &MAX_CALLS];
        let by_tool = figures_by(RECENT, "toolset, tool", "calls DESC, toolset COLLATE \"C\", tool COLLATE \"C\"");
        let tools = transaction.query(&by_tool, &of_period).await?;
        let parts = transaction.query(&figures_by(RECENT, "part", "part"), &of_period).await?;
        let waits = wait_figures(&format!(
            "SELECT (extract(epoch FROM min(e.at) - a.created_at) * 1000000)::bigint AS wait_us FROM (
                 SELECT id, created_at FROM approvals
                 WHERE ws = $1 AND id >= $2 AND created_at >= $3 AND created_at < $4 ORDER BY id DESC LIMIT $5
             ) a JOIN approval_events e ON e.ws = $1 AND e.approval_id = a.id AND e.kind IN {DECIDED}
             GROUP BY a.id, a.created_at"
        ));
        let waits = transaction.query(&waits, &[&ws, &lowest, &period.since, &period.until, &MAX_APPROVALS]).await?;
        transaction.rollback().await?;
        let waits = waits.first().map(|row| (row.get(0), row.get(1), row.get(2))).unwrap_or_default();
        let tool = |row: &Row| ToolMetrics { toolset: row.get(0), tool: row.get(1), figures: figures(row, 2) };
        Ok(WorkspaceMetrics {
            tools: tools.iter().map(tool).collect(),
            parts: parts.iter().map(|row| PartMetrics { part: row.get(0), figures: figures(row, 1) }).collect(),
            approvals: ApprovalMetrics {
                waiting: state.first().map_or(0, |row| row.get(1)),
                decided: waits.0,
                p50_us: waits.1,
                p95_us: waits.2,
            },
            stored_bytes: state.first().map_or(0, |row| row.get(2)),
        })
    }
}

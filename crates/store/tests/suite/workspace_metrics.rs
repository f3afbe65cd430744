//! The metrics of a workspace.

use crate::calls::record_of;
use crate::test_workspace::{TestWorkspace, new_user, on_both_stores};
use std::time::Duration;
use toolrest_core::{Access, CallRecord, ErrorKind, now};
use toolrest_store::{CallFigures, PartMetrics, Period};

on_both_stores!(
    calls_are_counted_by_tool_and_by_time_with_percentiles_by_nearest_rank,
    a_workspace_without_calls_has_empty_metrics,
);

const MINUTE: Duration = Duration::from_secs(60);

fn last_hour() -> Period {
    let until = now().checked_add(MINUTE).unwrap();
    Period { since: until.checked_sub(60 * MINUTE).unwrap(), until, part: 30 * MINUTE }
}

async fn calls_are_counted_by_tool_and_by_time_with_percentiles_by_nearest_rank(ws: TestWorkspace) {
    let period = last_hour();
    let ago = |minutes: u32| period.until.checked_sub(minutes * MINUTE).unwrap();
    let record = |tool: &'static str, minutes: u32, us: i64, outcome: &'static str| CallRecord {
        tool: tool.into(),
        started_at: ago(minutes),
        duration_us: Some(us),
        outcome: Some(outcome.into()),
        ..record_of(&ws)
    };
    let mut records: Vec<CallRecord> = (1..=20).rev().map(|us| record("look", 5, us, "ok")).collect();
    records.push(record("other", 40, 7, "not_found"));
    records.push(record("other", 40, 9, "approval_required"));
    // Before the period, at its end, and in another workspace.
    records.push(record("look", 61, 1_000, "ok"));
    records.push(record("look", 0, 1_000, "ok"));
    ws.store.record_calls(records).await.unwrap();

    let metrics = ws.store.workspace_metrics(ws.access(), period).await.unwrap();
    let look = CallFigures { calls: 20, errors: 0, p50_us: 10, p95_us: 19 };
    let other = CallFigures { calls: 2, errors: 1, p50_us: 7, p95_us: 9 };
    let tools: Vec<(&str, CallFigures)> = metrics.tools.iter().map(|tool| (&*tool.tool, tool.figures)).collect();
    assert_eq!(tools, [("look", look), ("other", other)]);
    assert_eq!(metrics.parts, [PartMetrics { part: 0, figures: other }, PartMetrics { part: 1, figures: look }]);
    assert!(!metrics.is_truncated());

    let stranger = Access { user: new_user(&*ws.store).await, ..ws.access() };
    let refused = ws.store.workspace_metrics(stranger, period).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Forbidden);
}

async fn a_workspace_without_calls_has_empty_metrics(ws: TestWorkspace) {
    let metrics = ws.store.workspace_metrics(ws.access(), last_hour()).await.unwrap();
    assert!(metrics.tools.is_empty() && metrics.parts.is_empty(), "{metrics:?}");
    assert_eq!((metrics.approvals.decided, metrics.approvals.p50_us), (0, None));
}

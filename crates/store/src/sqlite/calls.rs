//! Records of calls, and server processes.

use super::Sqlite;
use super::row::{authorised, collect, find, micros, run, time};
use crate::calls::{CallFilter, CallState, CallStore, INSTANCE_TIMEOUT, Instance, InstanceStore};
use crate::error::Result;
use crate::files::CallInfo;
use async_trait::async_trait;
use rusqlite::{Connection, Row};
use std::borrow::Cow;
use std::collections::BTreeSet;
use toolrest_core::Page;
use toolrest_core::{
    Access, CallId, CallRecord, CommitId, OUTCOME_INTERRUPTED, Timestamp, UserId, WorkspaceId, WsPath,
};
use uuid::Uuid;

/// The time of the database in microseconds.
pub(super) const NOW: &str = "CAST(unixepoch('subsec') * 1000000 AS INTEGER)";

/// The columns that [`record`] reads.
const COLUMNS: &str = "ws, id, correlation, principal, user_id, toolset, tool, path, args, started_at";

fn record(row: &Row<'_>) -> rusqlite::Result<CallRecord> {
    let (principal, user): (Uuid, Uuid) = (row.get(3)?, row.get(4)?);
    Ok(CallRecord {
        workspace: WorkspaceId(row.get(0)?),
        id: CallId(row.get(1)?),
        correlation_id: row.get(2)?,
        user: UserId(user),
        key: Some(principal).filter(|key| *key != user),
        toolset: Cow::Owned(row.get(5)?),
        tool: Cow::Owned(row.get(6)?),
        path: row.get::<_, Option<String>>(7)?.map(WsPath::from_normal),
        args: row.get(8)?,
        started_at: time(row, 9)?,
        outcome: row.get::<_, Option<String>>(10)?.map(Cow::Owned),
        message: row.get(11)?,
        duration_us: row.get(12)?,
        commit_id: row.get::<_, Option<Uuid>>(13)?.map(CommitId),
        has_running_row: false,
    })
}

/// The position of the next call of the workspace `?1`. Positions are never used again, also if all calls were purged.
const NEXT_CALL: &str = "(SELECT max(coalesce((SELECT max(pos) FROM calls WHERE ws = ?1), 0),
    coalesce((SELECT upto FROM feed_purged WHERE ws = ?1 AND source = 1), 0)) + 1)";

/// Records a successful call in the transaction of its commit.
pub(super) fn insert_with_commit(
    db: &Connection,
    ws: WorkspaceId,
    call: &CallInfo,
    commit: CommitId,
    at: Timestamp,
) -> Result<()> {
    let sql = format!(
        "INSERT INTO calls (ws, pos, id, correlation, principal, user_id, toolset, tool, path, args, outcome, started_at,
             duration_us, commit_id)
         VALUES (?1, {NEXT_CALL}, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'ok', ?10, ?11, ?12)
         ON CONFLICT (ws, id) DO UPDATE SET commit_id = coalesce(calls.commit_id, excluded.commit_id)"
    );
    let values = (
        ws.0,
        call.id.0,
        &call.details.correlation,
        call.principal(),
        call.caller.0,
        &*call.toolset,
        &*call.tool,
        call.path(),
        &call.details.args,
        micros(call.started_at),
        micros(at) - micros(call.started_at),
        commit.0,
    );
    run(db, &sql, values).map(drop)
}

/// Adds a commit that was found in a journal to the record of its interrupted call.
pub(super) fn add_recovered_commit(db: &Connection, ws: WorkspaceId, call: CallId, commit: CommitId) -> Result<()> {
    let sql = "UPDATE calls SET commit_id = ?3 WHERE ws = ?1 AND id = ?2 AND commit_id IS NULL AND outcome = ?4";
    run(db, sql, (ws.0, call.0, commit.0, OUTCOME_INTERRUPTED)).map(drop)
}

fn insert(db: &Connection, record: &CallRecord) -> Result<()> {
    let sql = format!(
        "INSERT INTO calls (ws, pos, id, correlation, principal, user_id, toolset, tool, path, args, outcome, message,
                   started_at, duration_us, commit_id)
               SELECT ?1, {NEXT_CALL}, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14
               WHERE EXISTS (SELECT 1 FROM workspaces WHERE id = ?1)
                   -- Strangers, who are refused, leave no records.
                   AND (?10 <> 'forbidden' OR EXISTS (SELECT 1 FROM members WHERE ws = ?1 AND user_id = ?4))
               ON CONFLICT (ws, id) DO UPDATE SET outcome = excluded.outcome, message = excluded.message,
                   duration_us = excluded.duration_us, commit_id = coalesce(calls.commit_id, excluded.commit_id)"
    );
    let values = (
        record.workspace.0,
        record.id.0,
        &record.correlation_id,
        record.key.unwrap_or(record.user.0),
        record.user.0,
        &*record.toolset,
        &*record.tool,
        record.path.as_ref().map(WsPath::as_str),
        &record.args,
        record.outcome.as_deref(),
        &record.message,
        micros(record.started_at),
        record.duration_us,
        record.commit_id.map(|id| id.0),
    );
    run(db, &sql, values)?;
    if record.has_running_row {
        run(db, "DELETE FROM calls_running WHERE ws = ?1 AND id = ?2", (record.workspace.0, record.id.0))?;
    }
    Ok(())
}

#[async_trait]
impl CallStore for Sqlite {
    async fn record_calls(&self, records: Vec<CallRecord>) -> Result<()> {
        let changed: BTreeSet<Uuid> = records.iter().map(|record| record.workspace.0).collect();
        let wakeups = self.wakeups.clone();
        let wake = move |recorded: &Result<()>| {
            if recorded.is_ok() {
                for ws in changed {
                    wakeups.wake(ws);
                }
            }
        };
        self.write_then(move |db| records.iter().try_for_each(|record| insert(db, record)), wake).await
    }

    async fn record_running(&self, access: Access, call: CallRecord, instance: Uuid) -> Result<()> {
        self.write(move |db| {
            authorised(db, access)?;
            let sql = format!(
                "INSERT INTO calls_running ({COLUMNS}, instance)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT (ws, id) DO NOTHING"
            );
            let values = (
                call.workspace.0,
                call.id.0,
                &call.correlation_id,
                call.key.unwrap_or(call.user.0),
                call.user.0,
                &*call.toolset,
                &*call.tool,
                call.path.as_ref().map(WsPath::as_str),
                &call.args,
                micros(call.started_at),
                instance,
            );
            run(db, &sql, values).map(drop)
        })
        .await
    }

    async fn calls(&self, access: Access, filter: CallFilter, page: Page<CallId>) -> Result<Vec<CallRecord>> {
        self.read(move |db| {
            authorised(db, access)?;
            let (rest, table) = match filter.state {
                CallState::Ended => ("outcome, message, duration_us, commit_id", "calls"),
                CallState::Running => ("NULL AS outcome, NULL, NULL, NULL", "calls_running"),
            };
            // An index serves the principal only if the condition is not optional.
            let principal =
                if filter.principal.is_some() { "principal = ?9" } else { "(?9 IS NULL OR principal = ?9)" };
            let sql = format!(
                "SELECT {COLUMNS}, {rest} FROM {table}
                 WHERE ws = ?1 AND id >= ?2 AND id < ?3 AND {principal}
                     AND (?5 IS NULL OR toolset = ?5) AND (?6 IS NULL OR tool = ?6) AND (?7 IS NULL OR outcome = ?7)
                     AND (?8 IS NULL OR id = (SELECT call_id FROM commits WHERE ws = ?1 AND id = ?8))
                     AND (?10 IS NULL OR path = ?10 OR (path > ?11 AND path < ?12))
                     AND (?13 IS NULL OR started_at >= ?13) AND (?14 IS NULL OR started_at < ?14)
                 ORDER BY id DESC LIMIT ?4"
            );
            let (low, high) = filter.id_range(page.before);
            let (path, below_low, below_high) = filter.paths();
            let values = rusqlite::params![
                access.workspace.0,
                low,
                high,
                page.limit,
                filter.toolset,
                filter.tool,
                filter.outcome,
                filter.commit.map(|id| id.0),
                filter.principal,
                path,
                below_low,
                below_high,
                filter.since.map(micros),
                filter.until.map(micros),
            ];
            collect(db, &sql, values, record)
        })
        .await
    }
}

#[async_trait]
impl InstanceStore for Sqlite {
    async fn heartbeat(&self, instance: &Instance) -> Result<()> {
        let Instance { id, node } = instance.clone();
        let sql = format!(
            "INSERT INTO instances (id, node, started_at, seen_at) VALUES (?1, ?2, {NOW}, {NOW})
             ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at"
        );
        self.write(move |db| run(db, &sql, (id, node)).map(drop)).await
    }

    async fn interrupt_abandoned_calls(&self) -> Result<u64> {
        // Reads first, because there is rarely something to write.
        let sql = format!(
            "SELECT 1 FROM instances WHERE seen_at < {NOW} - ?1
             UNION ALL SELECT 1 FROM calls_running r WHERE NOT EXISTS (SELECT 1 FROM instances i WHERE i.id = r.instance)
                 OR EXISTS (SELECT 1 FROM calls c WHERE c.ws = r.ws AND c.id = r.id) LIMIT 1"
        );
        let timeout = i64::try_from(INSTANCE_TIMEOUT.as_micros()).unwrap_or(i64::MAX);
        if self.read(move |db| find(db, &sql, [timeout], |_| Ok(()))).await?.is_none() {
            return Ok(0);
        }
        let silent = format!("seen_at < {NOW} - ?1");
        self.write(move |db| {
            let gone = format!(
                "r.instance IN (SELECT id FROM instances WHERE {silent})
                 OR NOT EXISTS (SELECT 1 FROM instances i WHERE i.id = r.instance)
                 OR EXISTS (SELECT 1 FROM calls c WHERE c.ws = r.ws AND c.id = r.id)"
            );
            let interrupted = interrupt(db, &gone, timeout)?;
            let forget = format!(
                "DELETE FROM instances WHERE {silent} AND NOT EXISTS (
                     SELECT 1 FROM calls_running r WHERE r.instance = instances.id)"
            );
            run(db, &forget, [timeout])?;
            Ok(interrupted)
        })
        .await
    }

    async fn end_instance(&self, instance: Uuid) -> Result<()> {
        self.write(move |db| {
            interrupt(db, "r.instance = ?1", instance)?;
            run(db, "DELETE FROM instances WHERE id = ?1", [instance]).map(drop)
        })
        .await
    }
}

/// Records the running calls that match a condition with one parameter as interrupted. A call that is recorded already is
/// only removed from the running ones.
fn interrupt(db: &Connection, condition: &str, parameter: impl rusqlite::ToSql + Copy) -> Result<u64> {
    let insert = format!(
        "INSERT INTO calls (ws, pos, id, correlation, principal, user_id, toolset, tool, path, args, outcome, started_at,
             duration_us, commit_id)
         SELECT r.ws, max(coalesce((SELECT max(c.pos) FROM calls c WHERE c.ws = r.ws), 0),
                 coalesce((SELECT p.upto FROM feed_purged p WHERE p.ws = r.ws AND p.source = 1), 0))
                 + row_number() OVER (PARTITION BY r.ws ORDER BY r.id), r.id, r.correlation, r.principal, r.user_id, r.toolset, r.tool, r.path, r.args, ?2, r.started_at,
             max(0, coalesce((SELECT i.seen_at FROM instances i WHERE i.id = r.instance), 0) - r.started_at),
             (SELECT min(c.id) FROM commits c WHERE c.ws = r.ws AND c.id > r.id AND c.call_id = r.id)
         FROM calls_running r
         WHERE ({condition}) AND EXISTS (SELECT 1 FROM workspaces w WHERE w.id = r.ws)
         ON CONFLICT (ws, id) DO NOTHING"
    );
    let interrupted = run(db, &insert, (parameter, OUTCOME_INTERRUPTED))?;
    let recorded = "DELETE FROM calls_running AS r WHERE EXISTS (
                        SELECT 1 FROM calls c WHERE c.ws = r.ws AND c.id = r.id)";
    run(db, recorded, [])?;
    Ok(interrupted as u64)
}

//! Records of calls, and server processes.

use super::Postgres;
use super::files::has_id;
use super::row::authorised;
use crate::calls::{CallFilter, CallState, CallStore, INSTANCE_TIMEOUT, Instance, InstanceStore};
use crate::error::Result;
use crate::store::required_rights;
use async_trait::async_trait;
use std::borrow::Cow;
use std::collections::BTreeSet;
use tokio_postgres::{Row, types::ToSql};
use toolrest_core::Page;
use toolrest_core::{Access, CallId, CallRecord, CommitId, OUTCOME_INTERRUPTED, UserId, WorkspaceId, WsPath};
use uuid::Uuid;

/// Reads a record after the rights.
fn record(row: &Row) -> CallRecord {
    let (principal, user): (Uuid, Uuid) = (row.get(4), row.get(5));
    CallRecord {
        workspace: WorkspaceId(row.get(1)),
        id: CallId(row.get(2)),
        correlation_id: row.get(3),
        user: UserId(user),
        key: Some(principal).filter(|key| *key != user),
        toolset: Cow::Owned(row.get(6)),
        tool: Cow::Owned(row.get(7)),
        path: row.get::<_, Option<String>>(8).map(WsPath::from_normal),
        args: row.get(9),
        started_at: row.get(10),
        outcome: row.get::<_, Option<String>>(11).map(Cow::Owned),
        message: row.get(12),
        duration_us: row.get(13),
        commit_id: row.get::<_, Option<Uuid>>(14).map(CommitId),
        has_running_row: false,
    }
}

fn column<V>(records: &[CallRecord], value: impl Fn(&CallRecord) -> V) -> Vec<V> {
    records.iter().map(value).collect()
}

fn path_of(record: &CallRecord) -> Option<&str> {
    record.path.as_ref().map(WsPath::as_str)
}

fn principal_of(record: &CallRecord) -> Uuid {
    record.key.unwrap_or(record.user.0)
}

const RECORD: &str = "
WITH ended AS (
    DELETE FROM calls_running r USING unnest($15::uuid[], $16::uuid[]) AS e (ws, id) WHERE r.ws = e.ws AND r.id = e.id
)
INSERT INTO calls (ws, id, correlation, principal, user_id, toolset, tool, path, args, outcome, message, started_at,
    duration_us, commit_id)
SELECT r.* FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::uuid[], $5::uuid[], $6::text[], $7::text[], $8::text[],
        $9::text[], $10::text[], $11::text[], $12::timestamptz[], $13::bigint[], $14::uuid[])
    AS r (ws, id, correlation, principal, user_id, toolset, tool, path, args, outcome, message, started_at, duration_us,
        commit_id)
WHERE EXISTS (SELECT 1 FROM workspaces w WHERE w.id = r.ws)
    -- Strangers, who are refused, leave no records.
    AND (r.outcome <> 'forbidden' OR EXISTS (SELECT 1 FROM members m WHERE m.ws = r.ws AND m.user_id = r.principal))
ON CONFLICT (ws, id) DO UPDATE SET outcome = excluded.outcome, message = excluded.message,
    duration_us = excluded.duration_us, commit_id = coalesce(calls.commit_id, excluded.commit_id)";

const RECORD_RUNNING: &str = "
WITH me AS (
    SELECT rights, CASE WHEN $13::bigint < 0 THEN rights & 3 >= -$13 ELSE rights BETWEEN $13 AND $13 | 3 END AS is_allowed
    FROM members WHERE ws = $1 AND user_id = $12
), stored AS (
    INSERT INTO calls_running (ws, id, correlation, principal, user_id, toolset, tool, path, args, started_at, instance)
    SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11 FROM me WHERE is_allowed
    ON CONFLICT (ws, id) DO NOTHING
)
SELECT rights FROM me";

#[async_trait]
impl CallStore for Postgres {
    async fn record_calls(&self, records: Vec<CallRecord>) -> Result<()> {
        let running = records.iter().filter(|record| record.has_running_row);
        let (running_ws, running_ids): (Vec<Uuid>, Vec<Uuid>) =
            running.map(|record| (record.workspace.0, record.id.0)).unzip();
        let params: [&(dyn ToSql + Sync); 16] = [
            &column(&records, |record| record.workspace.0),
            &column(&records, |record| record.id.0),
            &records.iter().map(|record| &*record.correlation_id).collect::<Vec<_>>(),
            &column(&records, principal_of),
            &column(&records, |record| record.user.0),
            &records.iter().map(|record| &*record.toolset).collect::<Vec<_>>(),
            &records.iter().map(|record| &*record.tool).collect::<Vec<_>>(),
            &records.iter().map(path_of).collect::<Vec<_>>(),
            &records.iter().map(|record| record.args.as_deref()).collect::<Vec<_>>(),
            &records.iter().map(|record| record.outcome.as_deref()).collect::<Vec<_>>(),
            &records.iter().map(|record| record.message.as_deref()).collect::<Vec<_>>(),
            &column(&records, |record| record.started_at),
            &column(&records, |record| record.duration_us),
            &column(&records, |record| record.commit_id.map(|id| id.0)),
            &running_ws,
            &running_ids,
        ];
        self.execute(RECORD, &params).await?;
        let changed: BTreeSet<Uuid> = records.iter().map(|record| record.workspace.0).collect();
        for ws in changed {
            self.signals.changed(ws);
        }
        Ok(())
    }

    async fn record_running(&self, access: Access, call: CallRecord, instance: Uuid) -> Result<()> {
        let params: [&(dyn ToSql + Sync); 13] = [
            &call.workspace.0,
            &call.id.0,
            &call.correlation_id,
            &principal_of(&call),
            &call.user.0,
            &call.toolset,
            &call.tool,
            &path_of(&call),
            &call.args,
            &call.started_at,
            &instance,
            &access.user.0,
            &required_rights(access),
        ];
        let rows = self.execute(RECORD_RUNNING, &params).await?;
        authorised(access, &rows, 0).map(drop)
    }

    async fn calls(&self, access: Access, filter: CallFilter, page: Page<CallId>) -> Result<Vec<CallRecord>> {
        let (outcome, rest, table) = match filter.state {
            CallState::Ended => ("c.outcome", "c.outcome, c.message, c.duration_us, c.commit_id", "calls"),
            CallState::Running => ("NULL::text", "NULL::text, NULL::text, NULL::bigint, NULL::uuid", "calls_running"),
        };
        // An index serves the principal only if the condition is not optional.
        let principal = match filter.principal {
            Some(_) => "c.principal = $10::uuid",
            None => "($10::uuid IS NULL OR c.principal = $10)",
        };
        let sql = format!(
            "SELECT m.rights, c.* FROM members m LEFT JOIN LATERAL (
                 SELECT c.ws, c.id, c.correlation, c.principal, c.user_id, c.toolset, c.tool, c.path, c.args, c.started_at,
                     {rest}
                 FROM {table} c
                 WHERE c.ws = $1 AND c.id >= $3 AND c.id < $4 AND {principal}
                     AND ($6::text IS NULL OR c.toolset = $6) AND ($7::text IS NULL OR c.tool = $7)
                     AND ($8::text IS NULL OR {outcome} = $8)
                     AND ($9::uuid IS NULL OR c.id = (SELECT call_id FROM commits WHERE ws = $1 AND id = $9))
                     AND ($11::text IS NULL OR c.path = $11 OR (c.path > $12::text AND c.path < $13::text))
                     AND ($14::timestamptz IS NULL OR c.started_at >= $14)
                     AND ($15::timestamptz IS NULL OR c.started_at < $15)
                 ORDER BY c.id DESC LIMIT $5
             ) c ON true
             WHERE m.ws = $1 AND m.user_id = $2"
        );
        let (low, high) = filter.id_range(page.before);
        let (path, below_low, below_high) = filter.paths();
        let params: [&(dyn ToSql + Sync); 15] = [
            &access.workspace.0,
            &access.user.0,
            &low,
            &high,
            &i64::from(page.limit),
            &filter.toolset,
            &filter.tool,
            &filter.outcome,
            &filter.commit.map(|id| id.0),
            &filter.principal,
            &path,
            &below_low,
            &below_high,
            &filter.since,
            &filter.until,
        ];
        let rows = self.fetch(&sql, &params).await?;
        authorised(access, &rows, 0)?;
        Ok(rows.iter().filter(|row| has_id(row, 2)).map(record).collect())
    }
}

/// Returns the statement that records running calls as interrupted. `dead` deletes the instances, and returns their id and
/// when they were last seen; `gone` says which running calls to remove. A call that is recorded already is only removed.
fn interrupt(dead: &str, gone: &str) -> String {
    format!(
        "WITH dead AS (
             {dead}
         ), gone AS (
             DELETE FROM calls_running r WHERE {gone} RETURNING r.*
         )
         INSERT INTO calls (ws, id, correlation, principal, user_id, toolset, tool, path, args, outcome, started_at,
             duration_us, commit_id)
         SELECT g.ws, g.id, g.correlation, g.principal, g.user_id, g.toolset, g.tool, g.path, g.args, $2, g.started_at,
             greatest(0, (extract(epoch FROM coalesce((SELECT d.seen_at FROM dead d WHERE d.id = g.instance), g.started_at)
                 - g.started_at) * 1000000)::bigint),
             (SELECT c.id FROM commits c WHERE c.ws = g.ws AND c.id > g.id AND c.call_id = g.id ORDER BY c.id LIMIT 1)
         FROM gone g WHERE EXISTS (SELECT 1 FROM workspaces w WHERE w.id = g.ws)
         ON CONFLICT (ws, id) DO NOTHING RETURNING 1"
    )
}

#[async_trait]
impl InstanceStore for Postgres {
    async fn heartbeat(&self, instance: &Instance) -> Result<()> {
        let sql = "INSERT INTO instances (id, node, started_at, seen_at) VALUES ($1, $2, now(), now())
                   ON CONFLICT (id) DO UPDATE SET seen_at = now()";
        self.execute(sql, &[&instance.id, &instance.node]).await.map(drop)
    }

    async fn interrupt_abandoned_calls(&self) -> Result<u64> {
        let sql = interrupt(
            "DELETE FROM instances WHERE seen_at < now() - make_interval(secs => $1::float8) RETURNING id, seen_at",
            "r.instance IN (SELECT id FROM dead) OR NOT EXISTS (SELECT 1 FROM instances i WHERE i.id = r.instance)
                 OR EXISTS (SELECT 1 FROM calls c WHERE c.ws = r.ws AND c.id = r.id)",
        );
        Ok(self.execute(&sql, &[&INSTANCE_TIMEOUT.as_secs_f64(), &OUTCOME_INTERRUPTED]).await?.len() as u64)
    }

    async fn end_instance(&self, instance: Uuid) -> Result<()> {
        let sql = interrupt("DELETE FROM instances WHERE id = $1 RETURNING id, seen_at", "r.instance = $1");
        self.execute(&sql, &[&instance, &OUTCOME_INTERRUPTED]).await.map(drop)
    }
}

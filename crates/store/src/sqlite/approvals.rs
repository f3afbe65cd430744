//! Approvals.

use super::row::{authorised, collect, find, micros, optional_time, run, time};
use super::{Sqlite, rules};
use crate::Page;
use crate::approvals::{
    ANSWERS, ApprovalStore, Columns, ENDED_FOR, Event, IS_OPEN, LISTED_CHARS, Row, SWEEP_ROWS, Step, Texts, check_call,
    check_open, check_open_bytes, no_such_approval, state_of, storable,
};
use crate::calls::INSTANCE_TIMEOUT;
use crate::error::{Result, StoreError};
use crate::rules::check_person;
use async_trait::async_trait;
use rusqlite::{Connection, Params, types::Type};
use std::{collections::BTreeSet, time::Duration};
use toolrest_core::{
    Access, Approval, ApprovalEvent, ApprovalId, ApprovalPreview, ApprovalState, Ask, CommitId, Execution, NewApproval,
    NewDecision, NewRules, Timestamp, WorkspaceId, now,
};
use uuid::Uuid;

/// The columns that [`read`] reads, after the texts.
const COLUMNS: &str =
    "id, attach_key, state, revision, node, executor, created_at, expires_at, changed_at, delivered_at, ws";

/// The texts that [`read`] reads.
const TEXTS: &str = "body, args, diff, command, result";

/// The position of the next event of the workspace `?1`. Positions are never used again, also if all events were purged.
const NEXT_EVENT: &str = "(SELECT max(coalesce((SELECT max(pos) FROM approval_events WHERE ws = ?1), 0),
    coalesce((SELECT upto FROM feed_purged WHERE ws = ?1 AND source = 2), 0)) + 1)";

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    let texts =
        Texts { body: row.get(0)?, args: row.get(1)?, diff: row.get(2)?, command: row.get(3)?, result: row.get(4)? };
    let columns = Columns {
        id: ApprovalId(row.get(5)?),
        attach_key: row.get(6)?,
        state: row.get(7)?,
        revision: row.get(8)?,
        node: row.get(9)?,
        executor: row.get(10)?,
        created_at: time(row, 11)?,
        expires_at: time(row, 12)?,
        changed_at: time(row, 13)?,
        delivered_at: optional_time(row, 14)?,
    };
    Row::parse(columns, texts).map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, Type::Text, error.into()))
}

fn load(db: &Connection, ws: Uuid, id: ApprovalId) -> Result<Option<Row>> {
    find(db, &format!("SELECT {TEXTS}, {COLUMNS} FROM approvals WHERE ws = ?1 AND id = ?2"), (ws, id.0), read)
}

/// Returns the rows that match a condition, with their workspaces.
fn select(db: &Connection, condition: &str, params: impl Params) -> Result<Vec<(Uuid, Row)>> {
    let sql = format!("SELECT {TEXTS}, {COLUMNS} FROM approvals WHERE {condition}");
    collect(db, &sql, params, |row| Ok((row.get(15)?, read(row)?)))
}

fn insert(db: &Connection, ws: Uuid, row: &Row) -> Result<()> {
    let approval = &row.approval;
    let sql =
        "INSERT INTO approvals (ws, id, call_id, principal, user_id, toolset, tool, correlation, attach_key, state,
                   revision, node, created_at, expires_at, changed_at, body, args, diff)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?13, '', '', '')";
    let values = rusqlite::params![
        ws,
        approval.id.0,
        approval.call.id.0,
        row.principal(),
        approval.call.caller.user.0,
        approval.call.toolset,
        approval.call.tool,
        storable(&approval.call.correlation),
        row.attach_key,
        approval.state.name(),
        approval.revision,
        approval.node,
        micros(approval.created_at),
        micros(approval.expires_at),
    ];
    run(db, sql, values)?;
    save(db, ws, row)
}

fn save(db: &Connection, ws: Uuid, row: &Row) -> Result<()> {
    let (approval, texts) = (&row.approval, row.texts()?);
    let commit = approval.execution.as_ref().and_then(|execution| execution.commit);
    let sql = "UPDATE approvals SET state = ?3, revision = ?4, executor = ?5, commit_id = ?6, changed_at = ?7,
                   delivered_at = ?8, body = ?9, args = ?10, diff = ?11, command = ?12, result = ?13
               WHERE ws = ?1 AND id = ?2";
    let values = (
        ws,
        approval.id.0,
        approval.state.name(),
        approval.revision,
        row.executor,
        commit.map(|commit| commit.0),
        micros(approval.changed_at),
        approval.delivered_at.map(micros),
        texts.body,
        texts.args,
        texts.diff,
        texts.command,
        texts.result,
    );
    run(db, sql, values).map(drop)
}

fn add_event(db: &Connection, ws: Uuid, row: &Row, event: Event) -> Result<()> {
    let sql = format!(
        "INSERT INTO approval_events (ws, approval_id, seq, id, pos, at, kind, state, revision, by, via, address, detail)
         VALUES (?1, ?2, (SELECT coalesce(max(seq), 0) + 1 FROM approval_events WHERE ws = ?1 AND approval_id = ?2), ?3,
             {NEXT_EVENT}, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
    );
    let values = (
        ws,
        row.approval.id.0,
        Uuid::now_v7(),
        micros(now()),
        event.kind,
        row.approval.state.name(),
        row.approval.revision,
        event.by,
        event.via,
        event.address,
        event.detail.to_string(),
    );
    run(db, &sql, values).map(drop)
}

/// Stores what a transition did; returns false if it was refused.
fn store(db: &Connection, ws: Uuid, row: &Row, step: Step) -> Result<bool> {
    match step {
        Step::Refuse => return Ok(false),
        Step::Keep => {}
        Step::Change(event) => {
            save(db, ws, row)?;
            event.map_or(Ok(()), |event| add_event(db, ws, row, event))?;
        }
    }
    Ok(true)
}

/// Applies a transition to an approval. Returns none if there is no such approval, or it was refused.
fn change(
    db: &Connection,
    ws: Uuid,
    id: ApprovalId,
    transition: impl FnOnce(&mut Row) -> Result<Step>,
) -> Result<Option<Row>> {
    let Some(mut row) = load(db, ws, id)? else { return Ok(None) };
    let step = transition(&mut row)?;
    Ok(store(db, ws, &row, step)?.then_some(row))
}

/// Spends the approval of a call in the transaction of its commit.
pub(super) fn spend(db: &Connection, ws: WorkspaceId, of: (ApprovalId, Uuid), commit: CommitId) -> Result<()> {
    let (id, instance) = of;
    change(db, ws.0, id, |row| row.spend(instance, commit))?.map(drop).ok_or(StoreError::NotExecuting(id))
}

/// Stores the commit of a folder with the approval of its call.
pub(super) fn note_folder_commit(
    db: &Connection,
    ws: WorkspaceId,
    of: (ApprovalId, Uuid),
    commit: CommitId,
) -> Result<()> {
    let (id, instance) = of;
    change(db, ws.0, id, |row| Ok(row.note_folder_commit(instance, commit))).map(drop)
}

/// Cancels the open approvals that match a condition. Returns their workspaces.
pub(super) fn cancel(db: &Connection, condition: &str, params: impl Params, reason: &str) -> Result<BTreeSet<Uuid>> {
    let mut changed = BTreeSet::new();
    for (ws, mut row) in select(db, &format!("{IS_OPEN} AND {condition}"), params)? {
        let step = row.cancel(None, reason);
        store(db, ws, &row, step)?;
        changed.insert(ws);
    }
    Ok(changed)
}

fn ask(db: &Connection, access: Access, new: NewApproval) -> Result<(Approval, bool)> {
    authorised(db, access)?;
    check_call(access, &new.call)?;
    let ws = access.workspace.0;
    let open = select(db, &format!("ws = ?1 AND attach_key = ?2 AND {IS_OPEN}"), (ws, &new.attach_key))?;
    if let Some((_, mut row)) = open.into_iter().next() {
        if !row.is_overdue(now()) {
            let sql = "SELECT count(*) FROM approval_events WHERE ws = ?1 AND approval_id = ?2";
            let events = find(db, sql, (ws, row.approval.id.0), |row| row.get(0))?.unwrap_or(0);
            if let Some(event) = Row::attached(&new.call, events) {
                add_event(db, ws, &row, event)?;
            }
            return Ok((row.approval, false));
        }
        let step = row.expire(now());
        store(db, ws, &row, step)?;
    }
    let sql = format!("SELECT count(*) FROM approvals WHERE ws = ?1 AND principal = ?2 AND {IS_OPEN}");
    check_open(find(db, &sql, (ws, access.user.0), |row| row.get(0))?.unwrap_or(0))?;
    let (row, event) = Row::new(new);
    // The sizes of texts are known without reading them.
    let sql = format!(
        "SELECT sum(octet_length(body) + octet_length(args) + octet_length(diff) + coalesce(octet_length(command), 0))
         FROM approvals WHERE user_id = ?1 AND {IS_OPEN}"
    );
    let bytes: Option<Option<i64>> = find(db, &sql, [access.person.0], |row| row.get(0))?;
    check_open_bytes(bytes.flatten().unwrap_or(0), &row.texts()?)?;
    insert(db, ws, &row)?;
    add_event(db, ws, &row, event)?;
    Ok((row.approval, true))
}

fn decide(db: &Connection, access: Access, id: ApprovalId, decision: NewDecision) -> Result<Approval> {
    let NewDecision { revision, decided, address, rules: new_rules } = decision;
    authorised(db, access)?;
    check_person(access)?;
    let mut is_new = false;
    let granted_by = decided.by.unwrap_or(access.person);
    let decide = |row: &mut Row| {
        let step = row.decide(revision, decided, address)?;
        is_new = matches!(step, Step::Change(_));
        Ok(step)
    };
    let row = change(db, access.workspace.0, id, decide)?.ok_or_else(|| no_such_approval(id))?;
    if is_new {
        for grant in row.grants(granted_by) {
            rules::insert_grant(db, access.workspace, &grant)?;
        }
        if let Some(NewRules { if_match, body }) = new_rules {
            rules::replace(db, access, Some(if_match), &body)?;
        }
    }
    Ok(row.approval)
}

fn event(row: &rusqlite::Row<'_>) -> rusqlite::Result<ApprovalEvent> {
    Ok(ApprovalEvent {
        seq: row.get(0)?,
        at: time(row, 1)?,
        kind: row.get(2)?,
        revision: row.get(3)?,
        by: row.get(4)?,
        via: row.get(5)?,
        address: row.get(6)?,
        detail: serde_json::from_str(row.get_ref(7)?.as_str()?).unwrap_or_default(),
    })
}

impl Sqlite {
    /// Runs a change of approvals on the writer, and wakes the subscribers of their workspace.
    async fn write_approvals<T, F>(&self, ws: WorkspaceId, change: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        let wakeups = self.wakeups.clone();
        let wake = move |changed: &Result<T>| {
            if changed.is_ok() {
                wakeups.wake(ws.0);
            }
        };
        self.write_then(change, wake).await
    }

    /// Applies a transition to an approval, without checking rights.
    async fn change_approval<F>(&self, ws: WorkspaceId, id: ApprovalId, transition: F) -> Result<Option<Approval>>
    where
        F: FnOnce(&mut Row) -> Step + Send + 'static,
    {
        let change = move |db: &Connection| change(db, ws.0, id, |row| Ok(transition(row)));
        Ok(self.write_approvals(ws, change).await?.map(|row| row.approval))
    }

    /// Runs a change of approvals in several workspaces, and wakes the subscribers of those that it returns.
    pub(super) async fn write_and_wake<F>(&self, change: F) -> Result<()>
    where
        F: FnOnce(&Connection) -> Result<BTreeSet<Uuid>> + Send + 'static,
    {
        let wakeups = self.wakeups.clone();
        let wake = move |changed: &Result<BTreeSet<Uuid>>| {
            for ws in changed.iter().flatten() {
                wakeups.wake(*ws);
            }
        };
        self.write_then(change, wake).await.map(drop)
    }

    /// Applies a transition to the approvals that match a condition with two parameters. Returns how many it changed.
    async fn sweep<F>(&self, condition: String, params: (i64, String), transition: F) -> Result<u64>
    where
        F: Fn(&Connection, Uuid, &mut Row) -> Result<Step> + Copy + Send + 'static,
    {
        let mut total = 0;
        loop {
            // Reads first, because there is rarely something to write.
            let (exists, values) = (format!("SELECT 1 FROM approvals WHERE {condition} LIMIT 1"), params.clone());
            if self.read(move |db| find(db, &exists, values, |_| Ok(()))).await?.is_none() {
                return Ok(total);
            }
            let (limited, values) = (format!("{condition} LIMIT {SWEEP_ROWS}"), params.clone());
            let wakeups = self.wakeups.clone();
            let wake = move |changed: &Result<Vec<Uuid>>| {
                for ws in changed.iter().flatten() {
                    wakeups.wake(*ws);
                }
            };
            let sweep = move |db: &Connection| {
                let mut changed = Vec::new();
                for (ws, mut row) in select(db, &limited, values)? {
                    let step = transition(db, ws, &mut row)?;
                    if store(db, ws, &row, step)? {
                        changed.push(ws);
                    }
                }
                Ok(changed)
            };
            match self.write_then(sweep, wake).await?.len() {
                0 => return Ok(total),
                changed => total += changed as u64,
            }
        }
    }
}

#[async_trait]
impl ApprovalStore for Sqlite {
    async fn ask(&self, access: Access, new: NewApproval) -> Result<(Approval, bool)> {
        self.write_approvals(access.workspace, move |db| ask(db, access, new)).await
    }

    async fn earlier_call(
        &self,
        access: Access,
        attach_key: &str,
        correlation: Option<&str>,
    ) -> Result<Option<Approval>> {
        let (attach_key, correlation) = (attach_key.to_owned(), correlation.map(storable));
        let since = micros(now()) - i64::try_from(ENDED_FOR.as_micros()).unwrap_or(i64::MAX);
        self.read_inline(move |db| {
            authorised(db, access)?;
            let condition = format!(
                "ws = ?1 AND attach_key = ?2 AND principal = ?3 AND {ANSWERS} AND ({IS_OPEN}
                     OR (changed_at > ?4 AND (correlation = ?5 OR delivered_at IS NULL))) ORDER BY id DESC LIMIT 1"
            );
            let values = (access.workspace.0, &attach_key, access.user.0, since, &correlation);
            Ok(select(db, &condition, values)?.into_iter().next().map(|(_, row)| row.approval))
        })
        .await
    }

    async fn approval(&self, access: Access, id: ApprovalId) -> Result<(Approval, Vec<ApprovalEvent>)> {
        self.read(move |db| {
            authorised(db, access)?;
            let row = load(db, access.workspace.0, id)?.filter(|row| row.is_visible(access));
            let row = row.ok_or_else(|| no_such_approval(id))?;
            let sql = "SELECT seq, at, kind, revision, by, via, address, detail FROM approval_events
                       WHERE ws = ?1 AND approval_id = ?2 ORDER BY seq";
            Ok((row.approval, collect(db, sql, (access.workspace.0, id.0), event)?))
        })
        .await
    }

    async fn approval_status(&self, access: Access, id: ApprovalId) -> Result<(ApprovalState, Timestamp)> {
        self.read_inline(move |db| {
            authorised(db, access)?;
            let of_caller = if access.is_by_key() { "principal = ?3" } else { "?3 IS NOT NULL" };
            let sql = format!("SELECT state, changed_at FROM approvals WHERE ws = ?1 AND id = ?2 AND {of_caller}");
            let found = find(db, &sql, (access.workspace.0, id.0, access.user.0), |row| {
                Ok((row.get::<_, String>(0)?, time(row, 1)?))
            })?;
            let (state, changed_at) = found.ok_or_else(|| no_such_approval(id))?;
            Ok((state_of(&state)?, changed_at))
        })
        .await
    }

    async fn approvals(
        &self,
        access: Access,
        state: Option<ApprovalState>,
        page: Page<ApprovalId>,
    ) -> Result<Vec<Approval>> {
        self.read(move |db| {
            authorised(db, access)?;
            let (order, after) = match state {
                Some(ApprovalState::Pending) => ("id", "id > ?2"),
                _ => ("id DESC", "id < ?2"),
            };
            let end = if order == "id" { Uuid::nil() } else { Uuid::max() };
            let of_state = if state.is_some() { "state = ?3" } else { "?3 IS NULL" };
            let of_caller = if access.is_by_key() { "principal = ?4" } else { "?4 IS NOT NULL" };
            let sql = format!(
                "SELECT body, CASE WHEN length(args) <= {LISTED_CHARS} THEN args END, substr(diff, 1, {LISTED_CHARS} + 1),
                     substr(command, 1, {LISTED_CHARS} + 1), NULL, {COLUMNS} FROM approvals
                 WHERE ws = ?1 AND {after} AND {of_state} AND {of_caller} ORDER BY {order} LIMIT ?5"
            );
            let before = page.before.map_or(end, |id| id.0);
            let state = state.map(ApprovalState::name);
            collect(db, &sql, (access.workspace.0, before, state, access.user.0, page.limit), |row| {
                Ok(read(row)?.approval)
            })
        })
        .await
    }

    async fn decide(&self, access: Access, id: ApprovalId, decision: NewDecision) -> Result<Approval> {
        self.write_approvals(access.workspace, move |db| decide(db, access, id, decision)).await
    }

    async fn release(&self, ws: WorkspaceId, id: ApprovalId, revision: i64) -> Result<Option<Approval>> {
        self.change_approval(ws, id, move |row| row.release(revision)).await
    }

    async fn claim(&self, ws: WorkspaceId, id: ApprovalId, instance: Uuid, node: &str) -> Result<Option<Approval>> {
        let node = node.to_owned();
        self.change_approval(ws, id, move |row| row.claim(instance, &node)).await
    }

    async fn revise(
        &self,
        ws: WorkspaceId,
        id: ApprovalId,
        instance: Uuid,
        asks: Vec<Ask>,
        preview: ApprovalPreview,
    ) -> Result<Option<Approval>> {
        self.change_approval(ws, id, move |row| row.revise(instance, asks, preview)).await
    }

    async fn finish(
        &self,
        ws: WorkspaceId,
        id: ApprovalId,
        instance: Uuid,
        execution: Execution,
    ) -> Result<Option<Approval>> {
        self.change_approval(ws, id, move |row| row.finish(instance, execution)).await
    }

    async fn check_executing(&self, ws: WorkspaceId, id: ApprovalId, instance: Uuid) -> Result<()> {
        self.read(move |db| load(db, ws.0, id)?.ok_or(StoreError::NotExecuting(id))?.check_executing(instance)).await
    }

    async fn delivered(&self, ws: WorkspaceId, id: ApprovalId) -> Result<()> {
        self.write(move |db| change(db, ws.0, id, |row| Ok(row.deliver())).map(drop)).await
    }

    async fn withdraw(&self, access: Access, id: ApprovalId) -> Result<Approval> {
        let withdraw = move |db: &Connection| {
            authorised(db, access)?;
            let withdraw = |row: &mut Row| {
                if !row.is_visible(access) {
                    return Err(no_such_approval(id));
                }
                row.withdraw(access)
            };
            change(db, access.workspace.0, id, withdraw)?.ok_or_else(|| no_such_approval(id))
        };
        Ok(self.write_approvals(access.workspace, withdraw).await?.approval)
    }

    async fn cancel_open_of(&self, ws: WorkspaceId, principal: Uuid) -> Result<()> {
        let condition = "ws = ?1 AND principal = ?2";
        self.write_and_wake(move |db| cancel(db, condition, (ws.0, principal), "the caller lost its access")).await
    }

    async fn expire_approvals(&self, now: Timestamp) -> Result<u64> {
        let condition = format!("{IS_OPEN} AND state IN ('pending', 'approved') AND expires_at <= ?1 AND ?2 = ''");
        let params = (micros(now), String::new());
        self.sweep(condition, params, move |_, _, row| Ok(row.expire(now))).await
    }

    async fn unclaimed(&self, node: &str, older_than: Duration) -> Result<Vec<(WorkspaceId, ApprovalId)>> {
        let (node, now) = (node.to_owned(), micros(now()));
        let before = now - i64::try_from(older_than.as_micros()).unwrap_or(i64::MAX);
        self.read(move |db| {
            let sql = format!(
                "SELECT ws, id FROM approvals WHERE {IS_OPEN} AND state = 'approved' AND expires_at > ?1
                     AND changed_at <= ?2 AND (node IS NULL OR node = ?3) ORDER BY changed_at LIMIT ?4"
            );
            collect(db, &sql, (now, before, &node, SWEEP_ROWS), |row| {
                Ok((WorkspaceId(row.get(0)?), ApprovalId(row.get(1)?)))
            })
        })
        .await
    }

    async fn fail_abandoned(&self, node: &str) -> Result<u64> {
        let timeout = i64::try_from(INSTANCE_TIMEOUT.as_micros()).unwrap_or(i64::MAX);
        let condition = format!(
            "{IS_OPEN} AND state = 'executing' AND (node IS NULL OR node = ?2) AND NOT EXISTS (
                 SELECT 1 FROM instances i WHERE i.id = approvals.executor AND i.seen_at >= {} - ?1)",
            super::calls::NOW
        );
        self.sweep(condition, (timeout, node.to_owned()), |db, ws, row| {
            let sql = "SELECT min(id) FROM commits WHERE ws = ?1 AND id > ?2 AND call_id = ?3";
            let values = (ws, row.approval.id.0, row.approval.call.id.0);
            let commit: Option<Uuid> = find(db, sql, values, |row| row.get(0))?.flatten();
            Ok(row.abandon(commit.map(CommitId)))
        })
        .await
    }
}

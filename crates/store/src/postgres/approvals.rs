//! Approvals.
//!
//! Every transition locks the row of the approval. A decision with a grant locks the workspace before it, like every change
//! of rules and grants.

use super::row::authorised;
use super::rules::{self, lock_workspace};
use super::transaction::Transaction;
use super::{Postgres, files::has_id};
use crate::Page;
use crate::approvals::{
    ANSWERS, ApprovalStore, Columns, ENDED_FOR, Event, IS_OPEN, LISTED_CHARS, Row, SWEEP_ROWS, Step, Texts, check_call,
    check_open, check_open_bytes, no_such_approval, state_of, storable,
};
use crate::calls::INSTANCE_TIMEOUT;
use crate::error::{Result, StoreError};
use crate::files::FileStore;
use crate::rules::check_person;
use async_trait::async_trait;
use std::{collections::BTreeSet, time::Duration};
use tokio_postgres::types::ToSql;
use toolrest_core::{
    Access, Approval, ApprovalEvent, ApprovalId, ApprovalPreview, ApprovalState, Ask, CommitId, Execution, NewApproval,
    NewDecision, NewRules, Timestamp, WorkspaceId, now,
};
use uuid::Uuid;

/// The columns that [`read`] reads, after the texts.
const COLUMNS: &str = "a.id, a.attach_key, a.state, a.revision, a.node, a.executor, a.created_at, a.expires_at, \
     a.changed_at, a.delivered_at, a.ws";

/// The texts that [`read`] reads.
const TEXTS: &str = "a.body, a.args, a.diff, a.command, a.result";

/// The membership of the caller.
const MEMBER: &str = "SELECT rights FROM members WHERE ws = $1 AND user_id = $2";

/// Reads a row from column `at` on.
fn read(row: &tokio_postgres::Row, at: usize) -> Result<Row> {
    let texts = Texts {
        body: row.get(at),
        args: row.get(at + 1),
        diff: row.get(at + 2),
        command: row.get(at + 3),
        result: row.get(at + 4),
    };
    let columns = Columns {
        id: ApprovalId(row.get(at + 5)),
        attach_key: row.get(at + 6),
        state: row.get(at + 7),
        revision: row.get(at + 8),
        node: row.get(at + 9),
        executor: row.get(at + 10),
        created_at: row.get(at + 11),
        expires_at: row.get(at + 12),
        changed_at: row.get(at + 13),
        delivered_at: row.get(at + 14),
    };
    Row::parse(columns, texts)
}

/// Returns the rows that match a condition, with their workspaces, and locks them.
async fn select(
    transaction: &Transaction,
    condition: &str,
    params: &[&(dyn ToSql + Sync)],
) -> Result<Vec<(Uuid, Row)>> {
    let sql = format!("SELECT {TEXTS}, {COLUMNS} FROM approvals a WHERE {condition}");
    transaction.query(&sql, params).await?.iter().map(|row| Ok((row.get(15), read(row, 0)?))).collect()
}

/// Locks and reads an approval.
async fn load(transaction: &Transaction, ws: Uuid, id: ApprovalId) -> Result<Option<Row>> {
    let found = select(transaction, "a.ws = $1 AND a.id = $2 FOR NO KEY UPDATE", &[&ws, &id.0]).await?;
    Ok(found.into_iter().next().map(|(_, row)| row))
}

async fn insert(transaction: &Transaction, ws: Uuid, row: &Row) -> Result<()> {
    let approval = &row.approval;
    let sql =
        "INSERT INTO approvals (ws, id, call_id, principal, user_id, toolset, tool, correlation, attach_key, state,
                   revision, node, created_at, expires_at, changed_at, body, args, diff)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $13, '', '', '')";
    let params: [&(dyn ToSql + Sync); 14] = [
        &ws,
        &approval.id.0,
        &approval.call.id.0,
        &row.principal(),
        &approval.call.caller.user.0,
        &approval.call.toolset,
        &approval.call.tool,
        &storable(&approval.call.correlation),
        &row.attach_key,
        &approval.state.name(),
        &approval.revision,
        &approval.node,
        &approval.created_at,
        &approval.expires_at,
    ];
    transaction.query(sql, &params).await?;
    save(transaction, ws, row).await
}

async fn save(transaction: &Transaction, ws: Uuid, row: &Row) -> Result<()> {
    let (approval, texts) = (&row.approval, row.texts()?);
    let commit = approval.execution.as_ref().and_then(|execution| execution.commit);
    let sql = "UPDATE approvals SET state = $3, revision = $4, executor = $5, commit_id = $6, changed_at = $7,
                   delivered_at = $8, body = $9, args = $10, diff = $11, command = $12, result = $13
               WHERE ws = $1 AND id = $2";
    let params: [&(dyn ToSql + Sync); 13] = [
        &ws,
        &approval.id.0,
        &approval.state.name(),
        &approval.revision,
        &row.executor,
        &commit.map(|commit| commit.0),
        &approval.changed_at,
        &approval.delivered_at,
        &texts.body,
        &texts.args,
        &texts.diff,
        &texts.command,
        &texts.result,
    ];
    transaction.query(sql, &params).await.map(drop)
}

async fn add_event(transaction: &Transaction, ws: Uuid, row: &Row, event: Event) -> Result<()> {
    let sql = "INSERT INTO approval_events (ws, approval_id, seq, id, at, kind, state, revision, by, via, address, detail)
               VALUES ($1, $2, (SELECT coalesce(max(seq), 0) + 1 FROM approval_events WHERE ws = $1 AND approval_id = $2),
                   $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    let params: [&(dyn ToSql + Sync); 11] = [
        &ws,
        &row.approval.id.0,
        &Uuid::now_v7(),
        &now(),
        &event.kind,
        &row.approval.state.name(),
        &row.approval.revision,
        &event.by,
        &event.via,
        &event.address,
        &event.detail.to_string(),
    ];
    transaction.query(sql, &params).await.map(drop)
}

/// Stores what a transition did; returns false if it was refused.
async fn store(transaction: &Transaction, ws: Uuid, row: &Row, step: Step) -> Result<bool> {
    match step {
        Step::Refuse => return Ok(false),
        Step::Keep => {}
        Step::Change(event) => {
            save(transaction, ws, row).await?;
            if let Some(event) = event {
                add_event(transaction, ws, row, event).await?;
            }
        }
    }
    Ok(true)
}

/// Applies a transition to an approval. Returns none if there is no such approval, or it was refused.
async fn change(
    transaction: &Transaction,
    ws: Uuid,
    id: ApprovalId,
    transition: impl FnOnce(&mut Row) -> Result<Step>,
) -> Result<Option<Row>> {
    let Some(mut row) = load(transaction, ws, id).await? else { return Ok(None) };
    let step = transition(&mut row)?;
    Ok(store(transaction, ws, &row, step).await?.then_some(row))
}

/// Spends the approval of a call in the transaction of its commit.
pub(super) async fn spend(transaction: &Transaction, ws: Uuid, of: (ApprovalId, Uuid), commit: CommitId) -> Result<()> {
    let (id, instance) = of;
    let spent = change(transaction, ws, id, |row| row.spend(instance, commit)).await?;
    spent.map(drop).ok_or(StoreError::NotExecuting(id))
}

/// Stores the commit of a folder with the approval of its call.
pub(super) async fn note_folder_commit(
    transaction: &Transaction,
    ws: Uuid,
    of: (ApprovalId, Uuid),
    commit: CommitId,
) -> Result<()> {
    let (id, instance) = of;
    change(transaction, ws, id, |row| Ok(row.note_folder_commit(instance, commit))).await.map(drop)
}

/// Cancels the open approvals that match a condition. Returns their workspaces.
pub(super) async fn cancel(
    transaction: &Transaction,
    condition: &str,
    params: &[&(dyn ToSql + Sync)],
    reason: &str,
) -> Result<BTreeSet<Uuid>> {
    let condition = format!("a.{IS_OPEN} AND {condition} ORDER BY a.ws, a.id FOR NO KEY UPDATE");
    let mut changed = BTreeSet::new();
    for (ws, mut row) in select(transaction, &condition, params).await? {
        let step = row.cancel(None, reason);
        store(transaction, ws, &row, step).await?;
        changed.insert(ws);
    }
    Ok(changed)
}

/// Returns the key of the advisory lock that serialises the questions of one caller.
fn ask_lock_key(principal: Uuid) -> i64 {
    let (time, random) = principal.as_u64_pair();
    (time ^ random).cast_signed()
}

async fn ask(transaction: &Transaction, access: Access, new: NewApproval) -> Result<(Approval, bool)> {
    let (ws, principal) = (access.workspace.0, access.user.0);
    // Open approvals of a caller are counted, and a repetition finds the first call.
    transaction.query("SELECT pg_advisory_xact_lock($1)", &[&ask_lock_key(principal)]).await?;
    // Who removes the member waits, and then cancels this approval.
    let member = "SELECT rights FROM members WHERE ws = $1 AND user_id = $2 FOR KEY SHARE";
    authorised(access, &transaction.query(member, &[&ws, &principal]).await?, 0)?;
    check_call(access, &new.call)?;
    let condition = format!("a.ws = $1 AND a.attach_key = $2 AND a.{IS_OPEN} FOR NO KEY UPDATE");
    let open = select(transaction, &condition, &[&ws, &new.attach_key]).await?;
    if let Some((_, mut row)) = open.into_iter().next() {
        if !row.is_overdue(now()) {
            let sql = "SELECT count(*) FROM approval_events WHERE ws = $1 AND approval_id = $2";
            let rows = transaction.query(sql, &[&ws, &row.approval.id.0]).await?;
            if let Some(event) = Row::attached(&new.call, rows.first().map_or(0, |row| row.get(0))) {
                add_event(transaction, ws, &row, event).await?;
            }
            return Ok((row.approval, false));
        }
        let step = row.expire(now());
        store(transaction, ws, &row, step).await?;
    }
    let sql = format!("SELECT count(*) FROM approvals WHERE ws = $1 AND principal = $2 AND {IS_OPEN}");
    let rows = transaction.query(&sql, &[&ws, &principal]).await?;
    check_open(rows.first().map_or(0, |row| row.get(0)))?;
    let (row, event) = Row::new(new);
    // The sizes as stored are known without reading the texts.
    let sql = format!(
        "SELECT sum(pg_column_size(body) + pg_column_size(args) + pg_column_size(diff)
             + coalesce(pg_column_size(command), 0)) FROM approvals WHERE user_id = $1 AND {IS_OPEN}"
    );
    let rows = transaction.query(&sql, &[&access.person.0]).await?;
    let bytes = rows.first().and_then(|row| row.get::<_, Option<i64>>(0));
    check_open_bytes(bytes.unwrap_or(0), &row.texts()?)?;
    insert(transaction, ws, &row).await?;
    add_event(transaction, ws, &row, event).await?;
    Ok((row.approval, true))
}

fn event(row: &tokio_postgres::Row) -> ApprovalEvent {
    ApprovalEvent {
        seq: row.get(0),
        at: row.get(1),
        kind: row.get(2),
        revision: row.get(3),
        by: row.get(4),
        via: row.get(5),
        address: row.get(6),
        detail: serde_json::from_str(row.get(7)).unwrap_or_default(),
    }
}

impl Postgres {
    /// Ends a transaction and wakes the subscribers of workspaces.
    pub(super) async fn commit_and_wake(
        &self,
        mut transaction: Transaction,
        changed: impl IntoIterator<Item = Uuid>,
    ) -> Result<()> {
        transaction.commit().await?;
        transaction.finished();
        for ws in changed {
            self.signals.changed(ws);
        }
        Ok(())
    }

    /// Applies a transition to an approval, without checking rights.
    async fn change_approval(
        &self,
        ws: WorkspaceId,
        id: ApprovalId,
        transition: impl FnOnce(&mut Row) -> Step + Send,
    ) -> Result<Option<Approval>> {
        let transaction = self.transaction().await?;
        transaction.begin().await?;
        let changed = change(&transaction, ws.0, id, |row| Ok(transition(row))).await?;
        self.commit_and_wake(transaction, changed.as_ref().map(|_| ws.0)).await?;
        Ok(changed.map(|row| row.approval))
    }

    async fn try_ask(&self, access: Access, new: NewApproval) -> Result<(Approval, bool)> {
        let transaction = self.transaction().await?;
        transaction.begin().await?;
        let asked = ask(&transaction, access, new).await?;
        self.commit_and_wake(transaction, [access.workspace.0]).await?;
        Ok(asked)
    }
}

#[async_trait]
impl ApprovalStore for Postgres {
    async fn ask(&self, access: Access, new: NewApproval) -> Result<(Approval, bool)> {
        // Strangers are refused before anything is locked.
        self.authorise(access).await?;
        match self.try_ask(access, new.clone()).await {
            Err(StoreError::LostRace) => self.try_ask(access, new).await,
            other => other,
        }
    }

    async fn earlier_call(
        &self,
        access: Access,
        attach_key: &str,
        correlation: Option<&str>,
    ) -> Result<Option<Approval>> {
        let since = now().checked_sub(ENDED_FOR).map_err(StoreError::internal)?;
        let sql = format!(
            "SELECT m.rights, {TEXTS}, {COLUMNS} FROM members m LEFT JOIN LATERAL (
                 SELECT * FROM approvals a WHERE a.ws = m.ws AND a.attach_key = $3 AND a.principal = m.user_id
                     AND a.{ANSWERS} AND (a.{IS_OPEN}
                         OR (a.changed_at > $4 AND (a.correlation = $5::text OR a.delivered_at IS NULL)))
                 ORDER BY a.id DESC LIMIT 1
             ) a ON true
             WHERE m.ws = $1 AND m.user_id = $2"
        );
        let correlation = correlation.map(storable);
        let params: [&(dyn ToSql + Sync); 5] = [&access.workspace.0, &access.user.0, &attach_key, &since, &correlation];
        let rows = self.fetch(&sql, &params).await?;
        authorised(access, &rows, 0)?;
        let found = rows.first().filter(|row| has_id(row, 6));
        found.map(|row| read(row, 1).map(|row| row.approval)).transpose()
    }

    async fn approval(&self, access: Access, id: ApprovalId) -> Result<(Approval, Vec<ApprovalEvent>)> {
        let sql = format!(
            "SELECT m.rights, {TEXTS}, {COLUMNS} FROM members m LEFT JOIN approvals a ON a.ws = m.ws AND a.id = $3
             WHERE m.ws = $1 AND m.user_id = $2"
        );
        let events = "SELECT seq, at, kind, revision, by, via, address, detail FROM approval_events
                      WHERE ws = $1 AND approval_id = $2 ORDER BY seq";
        let ws = access.workspace.0;
        let (rows, events) = self.fetch_both((&sql, &[&ws, &access.user.0, &id.0]), (events, &[&ws, &id.0])).await?;
        authorised(access, &rows, 0)?;
        let row = rows.first().filter(|row| has_id(row, 6)).map(|row| read(row, 1)).transpose()?;
        let row = row.filter(|row| row.is_visible(access)).ok_or_else(|| no_such_approval(id))?;
        Ok((row.approval, events.iter().map(event).collect()))
    }

    async fn approval_status(&self, access: Access, id: ApprovalId) -> Result<(ApprovalState, Timestamp)> {
        let of_caller = if access.is_by_key() { "AND a.principal = m.user_id" } else { "" };
        let sql = format!(
            "SELECT m.rights, a.state, a.changed_at FROM members m
             LEFT JOIN approvals a ON a.ws = m.ws AND a.id = $3 {of_caller} WHERE m.ws = $1 AND m.user_id = $2"
        );
        let rows = self.fetch(&sql, &[&access.workspace.0, &access.user.0, &id.0]).await?;
        authorised(access, &rows, 0)?;
        let found = rows.first().and_then(|row| Some((row.get::<_, Option<String>>(1)?, row.get(2))));
        let (state, changed_at) = found.ok_or_else(|| no_such_approval(id))?;
        Ok((state_of(&state)?, changed_at))
    }

    async fn approvals(
        &self,
        access: Access,
        state: Option<ApprovalState>,
        page: Page<ApprovalId>,
    ) -> Result<Vec<Approval>> {
        let (order, after, end) = match state {
            Some(ApprovalState::Pending) => ("a.id", "a.id > $3", Uuid::nil()),
            _ => ("a.id DESC", "a.id < $3", Uuid::max()),
        };
        let of_state = if state.is_some() { "a.state = $4" } else { "$4::text IS NULL" };
        let of_caller = if access.is_by_key() { "a.principal = m.user_id" } else { "true" };
        let sql = format!(
            "SELECT m.rights, a.* FROM members m LEFT JOIN LATERAL (
                 SELECT a.body, CASE WHEN length(a.args) <= {LISTED_CHARS} THEN a.args END, left(a.diff, {LISTED_CHARS} + 1),
                     left(a.command, {LISTED_CHARS} + 1), NULL::text, {COLUMNS} FROM approvals a
                 WHERE a.ws = $1 AND {after} AND {of_state} AND {of_caller} ORDER BY {order} LIMIT $5
             ) a ON true
             WHERE m.ws = $1 AND m.user_id = $2"
        );
        let before = page.before.map_or(end, |id| id.0);
        let state = state.map(ApprovalState::name);
        let params: [&(dyn ToSql + Sync); 5] =
            [&access.workspace.0, &access.user.0, &before, &state, &i64::from(page.limit)];
        let rows = self.fetch(&sql, &params).await?;
        authorised(access, &rows, 0)?;
        rows.iter().filter(|row| has_id(row, 6)).map(|row| Ok(read(row, 1)?.approval)).collect()
    }

    async fn decide(&self, access: Access, id: ApprovalId, decision: NewDecision) -> Result<Approval> {
        let NewDecision { revision, decided, address, rules: new_rules } = decision;
        self.authorise(access).await?;
        check_person(access)?;
        let ws = access.workspace;
        let transaction = self.transaction().await?;
        transaction.begin().await?;
        if !decided.grants.is_empty() || new_rules.is_some() {
            lock_workspace(&transaction, access).await?;
        } else {
            authorised(access, &transaction.query(MEMBER, &[&ws.0, &access.user.0]).await?, 0)?;
        }
        let granted_by = decided.by.unwrap_or(access.person);
        let mut is_new = false;
        let decide = |row: &mut Row| {
            let step = row.decide(revision, decided, address)?;
            is_new = matches!(step, Step::Change(_));
            Ok(step)
        };
        let row = change(&transaction, ws.0, id, decide).await?.ok_or_else(|| no_such_approval(id))?;
        if is_new {
            for grant in row.grants(granted_by) {
                rules::insert_grant(&transaction, ws, &grant).await?;
            }
            if let Some(NewRules { if_match, body }) = new_rules {
                rules::replace(&transaction, access, Some(if_match), &body).await?;
            }
        }
        self.commit_and_wake(transaction, [ws.0]).await?;
        Ok(row.approval)
    }

    async fn release(&self, ws: WorkspaceId, id: ApprovalId, revision: i64) -> Result<Option<Approval>> {
        self.change_approval(ws, id, |row| row.release(revision)).await
    }

    async fn claim(&self, ws: WorkspaceId, id: ApprovalId, instance: Uuid, node: &str) -> Result<Option<Approval>> {
        self.change_approval(ws, id, |row| row.claim(instance, node)).await
    }

    async fn revise(
        &self,
        ws: WorkspaceId,
        id: ApprovalId,
        instance: Uuid,
        asks: Vec<Ask>,
        preview: ApprovalPreview,
    ) -> Result<Option<Approval>> {
        self.change_approval(ws, id, |row| row.revise(instance, asks, preview)).await
    }

    async fn finish(
        &self,
        ws: WorkspaceId,
        id: ApprovalId,
        instance: Uuid,
        execution: Execution,
    ) -> Result<Option<Approval>> {
        self.change_approval(ws, id, |row| row.finish(instance, execution)).await
    }

    async fn check_executing(&self, ws: WorkspaceId, id: ApprovalId, instance: Uuid) -> Result<()> {
        let sql = format!("SELECT {TEXTS}, {COLUMNS} FROM approvals a WHERE a.ws = $1 AND a.id = $2");
        let rows = self.fetch(&sql, &[&ws.0, &id.0]).await?;
        read(rows.first().ok_or(StoreError::NotExecuting(id))?, 0)?.check_executing(instance)
    }

    async fn delivered(&self, ws: WorkspaceId, id: ApprovalId) -> Result<()> {
        self.change_approval(ws, id, Row::deliver).await.map(drop)
    }

    async fn withdraw(&self, access: Access, id: ApprovalId) -> Result<Approval> {
        let ws = access.workspace.0;
        let transaction = self.transaction().await?;
        transaction.begin().await?;
        authorised(access, &transaction.query(MEMBER, &[&ws, &access.user.0]).await?, 0)?;
        let withdraw = |row: &mut Row| {
            if !row.is_visible(access) {
                return Err(no_such_approval(id));
            }
            row.withdraw(access)
        };
        let row = change(&transaction, ws, id, withdraw).await?.ok_or_else(|| no_such_approval(id))?;
        self.commit_and_wake(transaction, [ws]).await?;
        Ok(row.approval)
    }

    async fn cancel_open_of(&self, ws: WorkspaceId, principal: Uuid) -> Result<()> {
        let transaction = self.transaction().await?;
        transaction.begin().await?;
        let condition = "a.ws = $1 AND a.principal = $2";
        let changed = cancel(&transaction, condition, &[&ws.0, &principal], "the caller lost its access").await?;
        self.commit_and_wake(transaction, changed).await
    }

    async fn expire_approvals(&self, now: Timestamp) -> Result<u64> {
        let condition = format!(
            "a.state IN ('pending', 'approved') AND a.expires_at <= $1 LIMIT {SWEEP_ROWS} FOR NO KEY UPDATE SKIP LOCKED"
        );
        let mut total = 0;
        loop {
            let transaction = self.transaction().await?;
            transaction.begin().await?;
            let rows = select(&transaction, &condition, &[&now]).await?;
            let expired = rows.len();
            let mut changed = BTreeSet::new();
            for (ws, mut row) in rows {
                let step = row.expire(now);
                store(&transaction, ws, &row, step).await?;
                changed.insert(ws);
            }
            self.commit_and_wake(transaction, changed).await?;
            if expired == 0 {
                return Ok(total);
            }
            total += expired as u64;
        }
    }

    async fn unclaimed(&self, node: &str, older_than: Duration) -> Result<Vec<(WorkspaceId, ApprovalId)>> {
        let sql = "SELECT ws, id FROM approvals WHERE state = 'approved' AND expires_at > $1 AND changed_at <= $2
                   AND (node IS NULL OR node = $3) ORDER BY changed_at LIMIT $4";
        let (now, before) = (now(), now().checked_sub(older_than).map_err(StoreError::internal)?);
        let rows = self.fetch(sql, &[&now, &before, &node, &SWEEP_ROWS]).await?;
        Ok(rows.iter().map(|row| (WorkspaceId(row.get(0)), ApprovalId(row.get(1)))).collect())
    }

    async fn fail_abandoned(&self, node: &str) -> Result<u64> {
        let condition = format!(
            "a.state = 'executing' AND (a.node IS NULL OR a.node = $2) AND NOT EXISTS (
                 SELECT 1 FROM instances i
                 WHERE i.id = a.executor AND i.seen_at >= now() - make_interval(secs => $1::float8))
             LIMIT {SWEEP_ROWS} FOR NO KEY UPDATE SKIP LOCKED"
        );
        let transaction = self.transaction().await?;
        transaction.begin().await?;
        let rows = select(&transaction, &condition, &[&INSTANCE_TIMEOUT.as_secs_f64(), &node]).await?;
        let (failed, mut changed) = (rows.len(), BTreeSet::new());
        for (ws, mut row) in rows {
            let sql = "SELECT id FROM commits WHERE ws = $1 AND id > $2 AND call_id = $3 ORDER BY id LIMIT 1";
            let found = transaction.query(sql, &[&ws, &row.approval.id.0, &row.approval.call.id.0]).await?;
            let step = row.abandon(found.first().map(|row| CommitId(row.get(0))));
            store(&transaction, ws, &row, step).await?;
            changed.insert(ws);
        }
        self.commit_and_wake(transaction, changed).await?;
        Ok(failed as u64)
    }
}

//! The feed on PostgreSQL. A cursor is a snapshot: new are the events that are visible now and were not visible then.

use super::files::has_id;
use super::row::authorised;
use super::snapshot::{Cursor, Position, Snapshot};
use super::{Postgres, notifications};
use crate::error::{Result, StoreError};
use crate::feed::{FeedStore, FirstChanges, PAGE_BYTES, PAGE_EVENTS, Source};
use crate::files::FileStore;
use crate::wakeups::Subscription;
use async_trait::async_trait;
use tokio_postgres::Row;
use toolrest_core::{
    Access, ApprovalFeedEvent, ApprovalId, ApprovalState, CallEvent, CallId, CommitEvent, CommitId, FeedCursor,
    FeedEvent, FeedGap, FeedPage, FeedRecord, FeedSources, KeyId, UserId, WorkspaceId,
};
use uuid::Uuid;

/// The membership and the current snapshot.
const NOW: &str = "SELECT rights, pg_current_snapshot()::text FROM members WHERE ws = $1 AND user_id = $2";

/// The membership, the current snapshot, the newest event that purges deleted, and the next events of the set between
/// two snapshots. The second is the current one unless the reader is inside a set.
///
/// `start` is the first transaction that can have events of the set: the index finds it, and what the first snapshot saw
/// is filtered out. Snapshots are read through subqueries, so that each is parsed once and not for each row.
const PAGE: &str = "
WITH span AS MATERIALIZED (
    SELECT $3::text::pg_snapshot AS since, coalesce($4::text::pg_snapshot, pg_current_snapshot()) AS until,
        $5::bigint::text::xid8 AS start, $6::bigint::text::xid8 AS reached
)
SELECT m.rights, pg_current_snapshot()::text,
    (SELECT max(p.upto) FROM feed_purged p WHERE p.ws = $1 AND p.source = ANY($9::smallint[])),
    e.total, e.xid::text::bigint, e.source, e.id, e.toolset, e.tool, e.who, e.at, e.related, e.undoes, e.changes,
    e.duration_us, e.outcome, e.call_id
FROM members m
LEFT JOIN LATERAL (
    SELECT * FROM (
        SELECT u.*, count(*) OVER () AS total,
            sum(u.bytes) OVER (ORDER BY u.xid, u.source, u.id ROWS UNBOUNDED PRECEDING) - u.bytes AS bytes_before
        FROM (
            (SELECT c.xid, 0::smallint AS source, c.id, c.toolset, c.tool, c.author AS who, c.created_at AS at,
                c.call_id AS related, c.undoes, c.changes, NULL::bigint AS duration_us, NULL::text AS outcome,
                octet_length(c.changes)::bigint AS bytes, NULL::uuid AS call_id
             FROM commits c
             WHERE c.ws = m.ws AND c.xid >= (SELECT start FROM span) AND 0 = ANY($9::smallint[])
                AND (c.xid, c.id) > ((SELECT reached FROM span), $7)
                AND NOT pg_visible_in_snapshot(c.xid, (SELECT since FROM span))
                AND pg_visible_in_snapshot(c.xid, (SELECT until FROM span))
             ORDER BY c.xid, c.id LIMIT $10)
            UNION ALL
            (SELECT c.xid, 1::smallint, c.id, c.toolset, c.tool, c.user_id, c.started_at,
                c.commit_id, nullif(c.principal, c.user_id), NULL::text, c.duration_us, c.outcome, 0::bigint, NULL::uuid
             FROM calls c
             WHERE c.ws = m.ws AND c.xid >= (SELECT start FROM span) AND 1 = ANY($9::smallint[])
                AND (c.xid, c.id) > ((SELECT reached FROM span), $8)
                AND NOT pg_visible_in_snapshot(c.xid, (SELECT since FROM span))
                AND pg_visible_in_snapshot(c.xid, (SELECT until FROM span))
             ORDER BY c.xid, c.id LIMIT $10)
            UNION ALL
            (SELECT e.xid, 2::smallint, e.id, a.toolset, a.tool, a.user_id, e.at,
                e.approval_id, nullif(a.principal, a.user_id), e.kind, e.revision, e.state, 0::bigint, a.call_id
             FROM approval_events e JOIN approvals a ON a.ws = e.ws AND a.id = e.approval_id
             WHERE e.ws = m.ws AND e.xid >= (SELECT start FROM span) AND 2 = ANY($9::smallint[])
                AND (e.xid, e.id) > ((SELECT reached FROM span), $12)
                AND NOT pg_visible_in_snapshot(e.xid, (SELECT since FROM span))
                AND pg_visible_in_snapshot(e.xid, (SELECT until FROM span))
             ORDER BY e.xid, e.id LIMIT $10)
        ) u
        ORDER BY u.xid, u.source, u.id LIMIT $10
    ) limited WHERE bytes_before < $11::bigint
) e ON true
WHERE m.ws = $1 AND m.user_id = $2
ORDER BY e.xid, e.source, e.id";

/// Which of some workspaces have events that were not visible in an earlier snapshot; also the current snapshot.
const CHANGED: &str = "
WITH span AS MATERIALIZED (SELECT $2::text::pg_snapshot AS since)
SELECT pg_current_snapshot()::text, ARRAY(
    SELECT w.id FROM unnest($1::uuid[]) AS w (id)
    WHERE EXISTS (
        SELECT 1 FROM commits c WHERE c.ws = w.id AND c.xid >= (SELECT pg_snapshot_xmin(since) FROM span)
            AND NOT pg_visible_in_snapshot(c.xid, (SELECT since FROM span)))
    OR EXISTS (
        SELECT 1 FROM calls c WHERE c.ws = w.id AND c.xid >= (SELECT pg_snapshot_xmin(since) FROM span)
            AND NOT pg_visible_in_snapshot(c.xid, (SELECT since FROM span)))
    OR EXISTS (
        SELECT 1 FROM approval_events e WHERE e.ws = w.id AND e.xid >= (SELECT pg_snapshot_xmin(since) FROM span)
            AND NOT pg_visible_in_snapshot(e.xid, (SELECT since FROM span))))";

fn number(xid: u64) -> Result<i64> {
    i64::try_from(xid).map_err(StoreError::internal)
}

/// The position of an event, if the row has one.
fn position(row: &Row) -> Result<Option<Position>> {
    if !has_id(row, 6) {
        return Ok(None);
    }
    let code: i16 = row.get(5);
    let source = Source::ALL.into_iter().find(|source| source.code() == code);
    let source = source.ok_or_else(|| StoreError::internal("an event of no source"))?;
    Ok(Some(Position { xid: row.get::<_, i64>(4).unsigned_abs(), source, id: row.get(6) }))
}

fn record(row: &Row, position: Position) -> Result<FeedRecord> {
    let related: Option<Uuid> = row.get(11);
    Ok(match position.source {
        Source::Commit => {
            let FirstChanges { first, more } = FirstChanges::parse(row.get(13))?;
            FeedRecord::Commit(CommitEvent {
                id: CommitId(position.id),
                call_id: CallId(related.ok_or_else(|| StoreError::internal("a commit without a call"))?),
                toolset: row.get(7),
                tool: row.get(8),
                author: UserId(row.get(9)),
                created_at: row.get(10),
                undoes: row.get::<_, Option<Uuid>>(12).map(CommitId),
                changes: first,
                more_changes: more,
            })
        }
        Source::Call => FeedRecord::Call(CallEvent {
            id: CallId(position.id),
            toolset: row.get(7),
            tool: row.get(8),
            user: UserId(row.get(9)),
            key: row.get::<_, Option<Uuid>>(12).map(KeyId),
            started_at: row.get(10),
            duration_us: row.get(14),
            outcome: row.get(15),
            commit_id: related.map(CommitId),
        }),
        Source::Approval => FeedRecord::Approval(ApprovalFeedEvent {
            id: ApprovalId(related.ok_or_else(|| StoreError::internal("an event without an approval"))?),
            kind: row.get(13),
            state: ApprovalState::from_name(row.get(15)).ok_or_else(|| StoreError::internal("an unknown state"))?,
            revision: row.get(14),
            call_id: CallId(row.get(16)),
            toolset: row.get(7),
            tool: row.get(8),
            user: UserId(row.get(9)),
            key: row.get::<_, Option<Uuid>>(12).map(KeyId),
            at: row.get(10),
        }),
    })
}

impl Postgres {
    async fn feed_from_now(&self, access: Access, gap: Option<FeedGap>) -> Result<FeedPage> {
        let rows = self.fetch(NOW, &[&access.workspace.0, &access.user.0]).await?;
        authorised(access, &rows, 0)?;
        let now = rows.first().map(|row| Snapshot::from_sql(row.get(1))).transpose()?;
        let now = now.ok_or_else(|| StoreError::internal("a member without a row"))?;
        Ok(FeedPage { gap, events: Vec::new(), cursor: Cursor::after(now).encode(), has_more: false })
    }

    /// Returns the current snapshot, and those of the workspaces that have events which an earlier one did not see.
    pub(super) async fn changed_feeds(&self, ids: &[Uuid], since: &str) -> Result<(String, Vec<Uuid>)> {
        let rows = self.fetch(CHANGED, &[&ids, &since]).await?;
        let row = rows.first().ok_or_else(|| StoreError::internal("a query without a table has one row"))?;
        Ok((row.get(0), row.get(1)))
    }

    /// Returns the current snapshot.
    pub(super) async fn current_snapshot(&self) -> Result<String> {
        let rows = self.fetch("SELECT pg_current_snapshot()::text", &[]).await?;
        rows.first().map(|row| row.get(0)).ok_or_else(|| StoreError::internal("a query without a table has one row"))
    }
}

#[async_trait]
impl FeedStore for Postgres {
    async fn feed(&self, access: Access, after: Option<&FeedCursor>, sources: FeedSources) -> Result<FeedPage> {
        let Some(after) = after else { return self.feed_from_now(access, None).await };
        let cursor = match Cursor::decode(after) {
            Ok(cursor) => cursor,
            Err(error) => {
                self.authorise(access).await?;
                return Err(error);
            }
        };
        let wanted: Vec<i16> = Source::ALL.iter().filter(|of| of.is_wanted(sources)).map(|of| of.code()).collect();
        // The events of a transaction are ordered by source. Of the sources before that of the last event all events were
        // read, and of those after it none.
        let (until, reached) = cursor.within.as_ref().map(|(until, position)| (until.to_sql(), *position)).unzip();
        let reached_id = |source: Source| match reached {
            Some(reached) if source.code() == reached.source.code() => reached.id,
            Some(reached) if source.code() < reached.source.code() => Uuid::max(),
            _ => Uuid::nil(),
        };
        let last_xid = reached.map_or(0, |reached| reached.xid);
        let rows = self
            .fetch(
                PAGE,
                &[
                    &access.workspace.0,
                    &access.user.0,
                    &cursor.since.to_sql(),
                    &until,
                    &number(cursor.since.xmin.max(last_xid))?,
                    &number(last_xid)?,
                    &reached_id(Source::Commit),
                    &reached_id(Source::Call),
                    &wanted,
                    &i64::try_from(PAGE_EVENTS).unwrap_or(i64::MAX),
                    &i64::try_from(PAGE_BYTES).unwrap_or(i64::MAX),
                    &reached_id(Source::Approval),
                ],
            )
            .await?;
        authorised(access, &rows, 0)?;
        let first = rows.first().ok_or_else(|| StoreError::internal("a member without a row"))?;
        let now = Snapshot::from_sql(first.get(1))?;
        if cursor.is_in_future_of(&now) {
            return self.feed_from_now(access, Some(FeedGap::FUTURE)).await;
        }
        let purged: Option<i64> = first.get(2);
        let gap = purged.map(i64::unsigned_abs).filter(|purged| *purged >= cursor.first_missing()).map(FeedGap);
        let total = usize::try_from(first.get::<_, Option<i64>>(3).unwrap_or(0)).map_err(StoreError::internal)?;
        let Cursor { since, within } = cursor;
        // Events may have been added after the end of an earlier set.
        let (until, is_current) = within.map_or((now, true), |(until, _)| (until, false));
        let returned = rows.iter().filter(|row| has_id(row, 6)).count();
        let is_whole_set = returned == total && total < PAGE_EVENTS;
        let mut events = Vec::with_capacity(returned);
        let mut at = Cursor { since, within: None };
        for row in &rows {
            let Some(position) = position(row)? else { continue };
            at = if is_whole_set && events.len() + 1 == returned {
                Cursor::after(until.clone())
            } else {
                Cursor { within: Some((until.clone(), position)), ..at }
            };
            events.push(FeedEvent { cursor: at.encode(), record: record(row, position)? });
        }
        if is_whole_set {
            at = Cursor::after(until);
        }
        Ok(FeedPage { gap, events, cursor: at.encode(), has_more: !is_whole_set || !is_current })
    }

    fn subscribe(&self, workspace: WorkspaceId) -> Subscription {
        self.signals.wakeups.subscribe(workspace.0, || {
            tokio::spawn(notifications::watch(self.clone()));
        })
    }
}

//! The feed on SQLite: commits, calls and events of approvals are numbered as the one writer inserts them, so a cursor is a position in each.

use super::row::{authorised, find, micros, time};
use super::{Sqlite, to_store_error};
use crate::error::{Result, StoreError};
use crate::feed::{FeedStore, FirstChanges, PAGE_BYTES, PAGE_EVENTS, Source, unreadable_cursor};
use crate::wakeups::Subscription;
use async_trait::async_trait;
use rusqlite::{Connection, Row};
use std::collections::VecDeque;
use toolrest_core::{
    Access, ApprovalFeedEvent, ApprovalId, ApprovalState, CallEvent, CallId, CommitEvent, CommitId, FeedCursor,
    FeedEvent, FeedGap, FeedPage, FeedRecord, FeedSources, KeyId, UserId, WorkspaceId,
};
use uuid::Uuid;

/// The last event of each source that a reader has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Positions {
    commits: i64,
    calls: i64,
    approvals: i64,
}

impl Positions {
    fn parse(cursor: &FeedCursor) -> Result<Self> {
        let parse = || {
            let number = |text: &str| i64::from_str_radix(text, 16).ok().filter(|number| *number >= 0);
            let mut parts = cursor.0.strip_prefix('s')?.split('.').map(number);
            let (commits, calls) = (parts.next()??, parts.next()??);
            // Cursors of releases without approvals lack the last number.
            let approvals = parts.next().unwrap_or(Some(0))?;
            parts.next().is_none().then_some(Self { commits, calls, approvals })
        };
        parse().ok_or_else(unreadable_cursor)
    }

    fn cursor(self) -> FeedCursor {
        FeedCursor(format!("s{:x}.{:x}.{:x}", self.commits, self.calls, self.approvals))
    }

    fn get(self, source: Source) -> i64 {
        match source {
            Source::Commit => self.commits,
            Source::Call => self.calls,
            Source::Approval => self.approvals,
        }
    }

    fn set(&mut self, source: Source, position: i64) {
        match source {
            Source::Commit => self.commits = position,
            Source::Call => self.calls = position,
            Source::Approval => self.approvals = position,
        }
    }
}

/// The ends of a workspace's feed.
struct Ends {
    /// The newest events that there are or were.
    newest: Positions,
    /// The newest events that purges deleted.
    purged: Positions,
}

fn ends(db: &Connection, ws: Uuid) -> Result<Ends> {
    // Each subquery reads one end of an index.
    let sql = "SELECT coalesce((SELECT max(pos) FROM commits WHERE ws = ?1), 0),
                      coalesce((SELECT max(pos) FROM calls WHERE ws = ?1), 0),
                      coalesce((SELECT max(pos) FROM approval_events WHERE ws = ?1), 0),
                      coalesce((SELECT upto FROM feed_purged WHERE ws = ?1 AND source = ?2), 0),
                      coalesce((SELECT upto FROM feed_purged WHERE ws = ?1 AND source = ?3), 0),
                      coalesce((SELECT upto FROM feed_purged WHERE ws = ?1 AND source = ?4), 0)";
    let codes = Source::ALL.map(Source::code);
    let found = find(db, sql, (ws, codes[0], codes[1], codes[2]), |row| {
        let purged = Positions { commits: row.get(3)?, calls: row.get(4)?, approvals: row.get(5)? };
        let newest = Positions {
            commits: purged.commits.max(row.get(0)?),
            calls: purged.calls.max(row.get(1)?),
            approvals: purged.approvals.max(row.get(2)?),
        };
        Ok(Ends { newest, purged })
    })?;
    found.ok_or_else(|| StoreError::internal("a query without a table has one row"))
}

/// An event with its position and the time when it happened.
struct Numbered {
    position: i64,
    at: i64,
    record: FeedRecord,
}

/// The next events of one source.
#[derive(Default)]
struct Rows {
    events: VecDeque<Numbered>,
    /// Whether a limit ended the list, so that more events may follow.
    is_cut: bool,
}

impl Rows {
    /// Reads events until a limit of the page is reached. `read` returns an event and its size.
    fn read(
        db: &Connection,
        sql: &str,
        ws: Uuid,
        after: i64,
        read: impl Fn(&Row<'_>) -> Result<(Numbered, usize)>,
    ) -> Result<Self> {
        let mut query = db.prepare_cached(sql).map_err(to_store_error)?;
        let mut rows = query.query((ws, after)).map_err(to_store_error)?;
        let (mut list, mut bytes) = (Self::default(), 0);
        while let Some(row) = rows.next().map_err(to_store_error)? {
            let (event, size) = read(row)?;
            list.events.push_back(event);
            bytes += size;
            if bytes >= PAGE_BYTES || list.events.len() == PAGE_EVENTS {
                list.is_cut = true;
                break;
            }
        }
        Ok(list)
    }

    /// Whether the next event of this source is not known.
    fn ends_early(&self) -> bool {
        self.is_cut && self.events.is_empty()
    }
}

fn commits(db: &Connection, ws: Uuid, after: i64) -> Result<Rows> {
    let sql = "SELECT pos, id, call_id, toolset, tool, author, created_at, undoes, changes
               FROM commits WHERE ws = ?1 AND pos > ?2 ORDER BY pos";
    Rows::read(db, sql, ws, after, |row| {
        let stored = row.get_ref(8).map_err(to_store_error)?.as_str().map_err(StoreError::internal)?;
        let changes = FirstChanges::parse(stored)?;
        let event = || -> rusqlite::Result<_> {
            let commit = CommitEvent {
                id: CommitId(row.get(1)?),
                call_id: CallId(row.get(2)?),
                toolset: row.get(3)?,
                tool: row.get(4)?,
                author: UserId(row.get(5)?),
                created_at: time(row, 6)?,
                undoes: row.get::<_, Option<Uuid>>(7)?.map(CommitId),
                changes: changes.first,
                more_changes: changes.more,
            };
            let at = micros(commit.created_at);
            Ok(Numbered { position: row.get(0)?, at, record: FeedRecord::Commit(commit) })
        };
        Ok((event().map_err(to_store_error)?, stored.len()))
    })
}

fn calls(db: &Connection, ws: Uuid, after: i64) -> Result<Rows> {
    let sql = "SELECT pos, id, toolset, tool, user_id, started_at, duration_us, outcome, commit_id,
                   nullif(principal, user_id)
               FROM calls WHERE ws = ?1 AND pos > ?2 ORDER BY pos";
    Rows::read(db, sql, ws, after, |row| {
        let event = || -> rusqlite::Result<_> {
            let call = CallEvent {
                id: CallId(row.get(1)?),
                toolset: row.get(2)?,
                tool: row.get(3)?,
                user: UserId(row.get(4)?),
                key: row.get::<_, Option<Uuid>>(9)?.map(KeyId),
                started_at: time(row, 5)?,
                duration_us: row.get(6)?,
                outcome: row.get(7)?,
                commit_id: row.get::<_, Option<Uuid>>(8)?.map(CommitId),
            };
            let at = micros(call.started_at).saturating_add(call.duration_us);
            Ok(Numbered { position: row.get(0)?, at, record: FeedRecord::Call(call) })
        };
        Ok((event().map_err(to_store_error)?, 0))
    })
}

fn approvals(db: &Connection, ws: Uuid, after: i64) -> Result<Rows> {
    let sql = "SELECT e.pos, e.approval_id, e.kind, e.state, e.revision, a.call_id, a.toolset, a.tool, a.user_id,
                   nullif(a.principal, a.user_id), e.at
               FROM approval_events e JOIN approvals a ON a.ws = e.ws AND a.id = e.approval_id
               WHERE e.ws = ?1 AND e.pos > ?2 ORDER BY e.pos";
    Rows::read(db, sql, ws, after, |row| {
        let event = || -> rusqlite::Result<_> {
            let state = ApprovalState::from_name(row.get_ref(3)?.as_str()?);
            let event = ApprovalFeedEvent {
                id: ApprovalId(row.get(1)?),
                kind: row.get(2)?,
                state: state.ok_or(rusqlite::types::FromSqlError::InvalidType)?,
                revision: row.get(4)?,
                call_id: CallId(row.get(5)?),
                toolset: row.get(6)?,
                tool: row.get(7)?,
                user: UserId(row.get(8)?),
                key: row.get::<_, Option<Uuid>>(9)?.map(KeyId),
                at: time(row, 10)?,
            };
            Ok(Numbered { position: row.get(0)?, at: micros(event.at), record: FeedRecord::Approval(event) })
        };
        Ok((event().map_err(to_store_error)?, 0))
    })
}

fn page(db: &Connection, access: Access, after: Option<&FeedCursor>, sources: FeedSources) -> Result<FeedPage> {
    authorised(db, access)?;
    let ws = access.workspace.0;
    let Ends { newest, purged } = ends(db, ws)?;
    let from_now = |gap| FeedPage { gap, events: Vec::new(), cursor: newest.cursor(), has_more: false };
    let Some(after) = after else { return Ok(from_now(None)) };
    let mut positions = Positions::parse(after)?;
    // A cursor in the future belongs to a database that was replaced by an older copy.
    if Source::ALL.iter().any(|source| positions.get(*source) > newest.get(*source)) {
        return Ok(from_now(Some(FeedGap::FUTURE)));
    }
    let mut gap = None;
    for source in Source::ALL {
        if !source.is_wanted(sources) {
            positions.set(source, newest.get(source));
        } else if positions.get(source) < purged.get(source) {
            gap = Some(FeedGap(purged.get(source).unsigned_abs()));
        }
    }
    let mut lists = Vec::with_capacity(Source::ALL.len());
    for source in Source::ALL.into_iter().filter(|source| source.is_wanted(sources)) {
        let read = match source {
            Source::Commit => commits,
            Source::Call => calls,
            Source::Approval => approvals,
        };
        lists.push((source, read(db, ws, positions.get(source))?));
    }
    let mut events = Vec::new();
    // The sources are merged by time, a commit before the call that made it. If the next event of a source is not known,
    // the page ends, because that event may come before those of the other sources.
    while events.len() < PAGE_EVENTS && !lists.iter().any(|(_, rows)| rows.ends_early()) {
        let next = lists.iter_mut().filter(|(_, rows)| !rows.events.is_empty());
        // Of several with the same time, the first source is taken.
        let next = next.min_by_key(|(_, rows)| rows.events.front().map(|event| event.at));
        let Some((source, rows)) = next else { break };
        let Some(Numbered { position, record, .. }) = rows.events.pop_front() else { break };
        positions.set(*source, position);
        events.push(FeedEvent { cursor: positions.cursor(), record });
    }
    let has_more = lists.iter().any(|(_, rows)| rows.is_cut || !rows.events.is_empty());
    Ok(FeedPage { gap, events, cursor: positions.cursor(), has_more })
}

#[async_trait]
impl FeedStore for Sqlite {
    async fn feed(&self, access: Access, after: Option<&FeedCursor>, sources: FeedSources) -> Result<FeedPage> {
        let after = after.cloned();
        self.read(move |db| page(db, access, after.as_ref(), sources)).await
    }

    fn subscribe(&self, workspace: WorkspaceId) -> Subscription {
        self.wakeups.subscribe(workspace.0, || {
            tokio::spawn(super::watcher::watch(self.path.clone(), self.wakeups.clone()));
        })
    }
}

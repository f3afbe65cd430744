//! Snapshots of PostgreSQL, and cursors made of them.
//!
//! Transactions do not become visible in the order of any number that they could take, so a cursor cannot be a number. A
//! snapshot says exactly which transactions were visible: those before `xmin`, and those before `xmax` that were not
//! running.

use crate::error::{Result, StoreError};
use crate::feed::{Source, unreadable_cursor};
use std::fmt::Write as _;
use toolrest_core::FeedCursor;
use uuid::Uuid;

/// Maximum length of a cursor. The longest snapshots list one running transaction per connection of the cluster.
const MAX_CURSOR_BYTES: usize = 64 << 10;

/// A snapshot: which transactions are visible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Snapshot {
    /// All transactions before this one are visible.
    pub(super) xmin: u64,
    /// This transaction and all after it are not visible.
    pub(super) xmax: u64,
    /// The transactions in between that are not visible, in ascending order.
    running: Vec<u64>,
}

impl Snapshot {
    /// Parses the text form of PostgreSQL: `xmin:xmax:running,running`.
    pub(super) fn from_sql(text: &str) -> Result<Self> {
        let parse = || {
            let mut parts = text.split(':');
            let (xmin, xmax, running) = (parts.next()?, parts.next()?, parts.next()?);
            let running = running.split(',').filter(|xid| !xid.is_empty());
            let running = running.map(|xid| xid.parse().ok()).collect::<Option<_>>()?;
            Self { xmin: xmin.parse().ok()?, xmax: xmax.parse().ok()?, running }.checked()
        };
        parse().ok_or_else(|| StoreError::internal(format!("not a snapshot: {text}")))
    }

    /// Formats the snapshot as PostgreSQL does.
    pub(super) fn to_sql(&self) -> String {
        let running: Vec<String> = self.running.iter().map(u64::to_string).collect();
        format!("{}:{}:{}", self.xmin, self.xmax, running.join(","))
    }

    /// Returns the snapshot if it is one that PostgreSQL accepts.
    fn checked(self) -> Option<Self> {
        let is_ascending = self.running.windows(2).all(|pair| pair[0] < pair[1]);
        let is_within = self.running.iter().all(|xid| (self.xmin..self.xmax).contains(xid));
        // Ids count on in 32 bits below an epoch, and zero is none in any epoch.
        let is_valid = |xid: u64| xid & u64::from(u32::MAX) != 0 && i64::try_from(xid).is_ok();
        let in_range = is_valid(self.xmin) && is_valid(self.xmax) && self.xmin <= self.xmax;
        (is_ascending && is_within && in_range).then_some(self)
    }

    /// Writes the snapshot as hexadecimal numbers, each but the first as the difference to an earlier one: `xmin`, then
    /// `xmax`, then the running transactions.
    fn encode(&self, text: &mut String) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{:x}.{:x}", self.xmin, self.xmax - self.xmin);
        let mut last = self.xmin;
        for xid in &self.running {
            let _ = write!(text, ".{:x}", xid - last);
            last = *xid;
        }
    }

    fn decode(text: &str) -> Option<Self> {
        let mut numbers = text.split('.').map(|number| u64::from_str_radix(number, 16).ok());
        let xmin = numbers.next()??;
        let xmax = xmin.checked_add(numbers.next()??)?;
        let mut running = Vec::new();
        let mut last = xmin;
        for difference in numbers {
            last = last.checked_add(difference?)?;
            running.push(last);
        }
        Self { xmin, xmax, running }.checked()
    }
}

/// The last event that a reader has of a set of events. The events of a set are ordered by these fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) xid: u64,
    pub(super) source: Source,
    pub(super) id: Uuid,
}

/// A position in the feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    /// The reader has all events that are visible in this snapshot.
    pub(super) since: Snapshot,
    /// The reader is inside the set of the events that are visible in this snapshot and not in `since`. The set never
    /// changes, so the position in it is exact.
    pub(super) within: Option<(Snapshot, Position)>,
}

impl Cursor {
    /// The position after all events that are visible in a snapshot.
    pub(super) fn after(since: Snapshot) -> Self {
        Self { since, within: None }
    }

    pub(super) fn encode(&self) -> FeedCursor {
        let mut text = "p".to_owned();
        self.since.encode(&mut text);
        if let Some((until, position)) = &self.within {
            text.push('~');
            until.encode(&mut text);
            let Position { xid, source, id } = position;
            let _ = write!(text, "~{xid:x}.{}.{}", source.code(), id.simple());
        }
        FeedCursor(text)
    }

    pub(super) fn decode(cursor: &FeedCursor) -> Result<Self> {
        let decode = || {
            let text = cursor.0.strip_prefix('p').filter(|text| text.len() <= MAX_CURSOR_BYTES)?;
            let mut parts = text.split('~');
            let since = Snapshot::decode(parts.next()?)?;
            let within = match parts.next() {
                None => None,
                Some(until) => Some((Snapshot::decode(until)?, decode_position(parts.next()?)?)),
            };
            parts.next().is_none().then_some(Self { since, within })
        };
        decode().ok_or_else(unreadable_cursor)
    }

    /// The first transaction of which the reader may miss an event.
    pub(super) fn first_missing(&self) -> u64 {
        let reached = self.within.as_ref().map_or(0, |(until, position)| position.xid.min(until.xmin));
        self.since.xmin.max(reached)
    }

    /// Whether the cursor belongs to a database that was replaced by an older copy.
    pub(super) fn is_in_future_of(&self, now: &Snapshot) -> bool {
        let newest = self.within.as_ref().map_or(self.since.xmax, |(until, _)| until.xmax.max(self.since.xmax));
        newest > now.xmax
    }
}

fn decode_position(text: &str) -> Option<Position> {
    let mut parts = text.split('.');
    let xid = u64::from_str_radix(parts.next()?, 16).ok().filter(|xid| i64::try_from(*xid).is_ok())?;
    let code: i16 = parts.next()?.parse().ok()?;
    let source = Source::ALL.into_iter().find(|source| source.code() == code)?;
    let id = Uuid::try_parse(parts.next()?).ok()?;
    parts.next().is_none().then_some(Position { xid, source, id })
}

#[cfg(test)]
#[path = "snapshot_tests.rs"]
mod tests;

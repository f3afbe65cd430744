//! The feed of a workspace: its commits, the records of its calls and the events of its approvals, read by cursor.
//!
//! There is no table of events. Each row of `commits`, `calls` and `approval_events` has a number that its insertion assigns, and a cursor
//! says which rows a reader has. What purges delete is noted in `feed_purged`, so that a reader learns of the gap.

use crate::error::{Result, StoreError};
use crate::wakeups::Subscription;
use async_trait::async_trait;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, SeqAccess, Visitor},
};
use std::fmt;
use toolrest_core::{Access, FeedCursor, FeedPage, FeedSources, PathChange, ToolError, WorkspaceId};

/// Maximum number of events in a page.
pub(crate) const PAGE_EVENTS: usize = 500;
/// Maximum size of the stored changes of the commits in a page. A page has at least one event, whatever its size.
pub(crate) const PAGE_BYTES: usize = 256 << 10;
/// Maximum number of changes shown of one commit.
const MAX_CHANGES: usize = 100;

/// Reads feeds.
#[async_trait]
pub trait FeedStore: Send + Sync {
    /// Reads the events after a cursor, up to the limits of a page. Without a cursor it returns the current position and
    /// no events. The statement that reads also checks the caller's rights.
    async fn feed(&self, access: Access, after: Option<&FeedCursor>, sources: FeedSources) -> Result<FeedPage>;

    /// Subscribes to changes of a workspace's feed, made by any process on the same database. A signal may come without
    /// a change. Must be called on a runtime.
    fn subscribe(&self, workspace: WorkspaceId) -> Subscription;
}

/// The sources of events. The codes are stored in `feed_purged`, and order the events of one transaction: a commit comes
/// before the call that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Commit,
    Call,
    Approval,
}

impl Source {
    pub(crate) const ALL: [Self; 3] = [Self::Commit, Self::Call, Self::Approval];

    pub(crate) fn code(self) -> i16 {
        match self {
            Self::Commit => 0,
            Self::Call => 1,
            Self::Approval => 2,
        }
    }

    pub(crate) fn is_wanted(self, sources: FeedSources) -> bool {
        match self {
            Self::Commit => sources.commits,
            Self::Call => sources.calls,
            Self::Approval => sources.approvals,
        }
    }
}

/// Returns the error for a cursor that cannot be interpreted.
pub(crate) fn unreadable_cursor() -> StoreError {
    let message = "The cursor cannot be read; send the `id` of an event of this stream as it is, or none to start now";
    ToolError::argument("after", message).into()
}

/// The first changes of a commit, and the number of the others.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct FirstChanges {
    pub(crate) first: Vec<PathChange>,
    pub(crate) more: u64,
}

impl FirstChanges {
    /// Parses the stored changes of a commit. Only the first are kept in memory.
    pub(crate) fn parse(stored: &str) -> Result<Self> {
        serde_json::from_str(stored).map_err(StoreError::internal)
    }
}

impl<'de> Deserialize<'de> for FirstChanges {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Changes;

        impl<'de> Visitor<'de> for Changes {
            type Value = FirstChanges;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of changes")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<FirstChanges, A::Error> {
                let mut changes = FirstChanges::default();
                while changes.first.len() < MAX_CHANGES {
                    match list.next_element()? {
                        Some(change) => changes.first.push(change),
                        None => return Ok(changes),
                    }
                }
                while list.next_element::<IgnoredAny>()?.is_some() {
                    changes.more += 1;
                }
                Ok(changes)
            }
        }

        deserializer.deserialize_seq(Changes)
    }
}

#[cfg(test)]
#[path = "feed_tests.rs"]
mod tests;

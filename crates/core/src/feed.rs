//! The feed: commits, finished calls and approvals of a workspace, in an order in which a reader can continue after any event.

use crate::{ApprovalId, ApprovalState, CallId, CommitId, EffectKind, KeyId, Timestamp, UserId, WsPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A position in the feed of a workspace. Only the store that made it can interpret the text, which has no characters
/// with a meaning in URLs or headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedCursor(pub String);

impl fmt::Display for FeedCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The types of events that a reader wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedSources {
    /// Commits.
    pub commits: bool,
    /// Finished calls.
    pub calls: bool,
    /// What happens to approvals.
    pub approvals: bool,
}

impl FeedSources {
    /// Every type.
    pub const ALL: Self = Self { commits: true, calls: true, approvals: true };

    /// No type.
    pub const NONE: Self = Self { commits: false, calls: false, approvals: false };

    /// Whether no type is wanted.
    pub fn is_empty(self) -> bool {
        self == Self::NONE
    }
}

/// A part of the feed. Its number of events and their size are limited.
#[derive(Clone, Debug)]
pub struct FeedPage {
    /// Set if events after the reader's cursor are missing.
    pub gap: Option<FeedGap>,
    /// The events, in order.
    pub events: Vec<FeedEvent>,
    /// The position after the page.
    pub cursor: FeedCursor,
    /// Whether more events follow at once.
    pub has_more: bool,
}

impl FeedPage {
    /// Leaves out changes at other paths than these.
    pub(crate) fn retain_paths(&mut self, shows: impl Fn(&WsPath) -> bool) {
        for event in &mut self.events {
            if let FeedRecord::Commit(commit) = &mut event.record {
                commit.changes.retain(|change| shows(&change.path) && change.from.as_ref().is_none_or(&shows));
            }
        }
    }
}

/// Events that a reader cannot get any more: retention deleted them, or the cursor belongs to a database that was
/// replaced by an older copy. Two gaps with the same value are the same gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedGap(pub u64);

impl FeedGap {
    /// The gap of a cursor that belongs to a database which was replaced by an older copy. Nothing tells what is new
    /// since such a cursor, so the feed goes on from now.
    pub const FUTURE: Self = Self(u64::MAX);
}

/// An event and the position after it.
#[derive(Clone, Debug)]
pub struct FeedEvent {
    /// The position after the event.
    pub cursor: FeedCursor,
    /// What happened.
    pub record: FeedRecord,
}

/// What an event is about.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum FeedRecord {
    /// Files were changed.
    Commit(CommitEvent),
    /// A call ended.
    Call(CallEvent),
    /// Something happened to an approval.
    Approval(ApprovalFeedEvent),
}

impl FeedRecord {
    /// The name of the type, as readers see it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Commit(_) => "commit",
            Self::Call(_) => "call",
            Self::Approval(_) => "approval",
        }
    }
}

/// Something that happened to an approval.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ApprovalFeedEvent {
    /// The approval.
    pub id: ApprovalId,
    /// What happened: `asked`, `approved`, `executing`, `done`, … ([`ApprovalEvent::kind`](crate::ApprovalEvent)).
    pub kind: String,
    /// The state after it.
    pub state: ApprovalState,
    /// The revision at that time.
    pub revision: i64,
    /// The call that waits, or waited.
    pub call_id: CallId,
    /// The toolset of that call.
    pub toolset: String,
    /// The tool of that call.
    pub tool: String,
    /// The person who called, or whose key called.
    #[serde(rename = "user_id")]
    pub user: UserId,
    /// The agent key that called; none if the person did.
    #[serde(rename = "key_id")]
    pub key: Option<KeyId>,
    /// When it happened.
    pub at: Timestamp,
}

/// A commit.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CommitEvent {
    /// Its id.
    pub id: CommitId,
    /// The call that made it.
    pub call_id: CallId,
    /// The toolset of that call.
    pub toolset: String,
    /// The tool of that call.
    pub tool: String,
    /// The user whose call made it.
    pub author: UserId,
    /// When it was created.
    pub created_at: Timestamp,
    /// The commit that it undoes.
    pub undoes: Option<CommitId>,
    /// The first of its changes.
    pub changes: Vec<PathChange>,
    /// The number of changes that are left out.
    pub more_changes: u64,
}

/// What a commit did at one path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathChange {
    /// What happened.
    pub op: EffectKind,
    /// The path; for a move, the new path.
    pub path: WsPath,
    /// The old path, for a move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<WsPath>,
}

/// A call that ended.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CallEvent {
    /// Its id.
    pub id: CallId,
    /// The toolset.
    pub toolset: String,
    /// The tool.
    pub tool: String,
    /// The person who called, or whose key called.
    #[serde(rename = "user_id")]
    pub user: UserId,
    /// The agent key that called; none if the person did.
    #[serde(rename = "key_id")]
    pub key: Option<KeyId>,
    /// When it started.
    pub started_at: Timestamp,
    /// Its duration in microseconds.
    pub duration_us: i64,
    /// `ok`, or the name of the error kind.
    pub outcome: String,
    /// Its commit, if it changed something.
    pub commit_id: Option<CommitId>,
}

//! The history of a folder: what the database keeps of files that live elsewhere.
//!
//! A commit in a folder is planned against what is recorded, made on disk, and then kept. Between the two it stands in
//! the folder's journal as bytes, so that no crash can come between them.

use crate::blob::{Encoding, Prepared};
use crate::error::{Result, StoreError};
use crate::files::CallInfo;
use crate::plan::{Plan, RowOp, View};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use toolrest_core::{Access, Changeset, CommitId, ContentHash, Effect, Form, Listed, Timestamp, WorkspaceId};

/// Keeps the history of folders.
#[async_trait]
pub trait FolderHistory: Send + Sync {
    /// Checks the caller's rights and tells what is recorded of the files that the changes are about.
    async fn recorded(&self, access: Access, changes: &Changeset) -> Result<Recorded>;

    /// Keeps a commit that was made; one that is kept already stays as it is.
    async fn record(&self, commit: FolderCommit) -> Result<()>;

    /// The bytes of a content that history knows.
    async fn kept(&self, workspace: WorkspaceId, content: ContentHash) -> Result<Vec<u8>>;

    /// Checks the caller's rights and tells how many bytes the history takes.
    async fn history_bytes(&self, access: Access) -> Result<u64>;

    /// Drops the oldest contents of a history, as long as it takes more bytes than this. What files hold now stays.
    async fn limit_history(&self, workspace: WorkspaceId, limit_bytes: u64) -> Result<Limited>;

    /// Checks the caller's rights and lists the files that are not on disk because the system makes them.
    async fn virtual_files(&self, access: Access) -> Result<Vec<Listed>>;
}

/// What is left of a history that was brought to its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limited {
    /// How many contents were dropped.
    pub dropped: u64,
    /// How many bytes the history takes.
    pub left_bytes: u64,
}

/// How many of the oldest contents have to go, so that no more than the limit is left.
pub fn excess(oldest_bytes: impl IntoIterator<Item = i64>, total: i64, limit: i64) -> usize {
    let mut left = total;
    let goes = |bytes: &i64| {
        let is_too_much = left > limit;
        left -= bytes;
        is_too_much
    };
    oldest_bytes.into_iter().take_while(goes).count()
}

/// What is recorded of some files.
pub struct Recorded(pub View);

/// A commit that was made in a folder, as it is kept.
#[derive(Debug)]
pub struct FolderCommit {
    pub workspace: WorkspaceId,
    pub id: CommitId,
    pub at: Timestamp,
    pub call: CallInfo,
    pub undoes: Option<CommitId>,
    pub plan: Plan,
    pub contents: Vec<Prepared>,
}

/// A commit without its contents, which follow it.
#[derive(Serialize, Deserialize)]
struct Head {
    workspace: WorkspaceId,
    id: CommitId,
    at: Timestamp,
    call: CallInfo,
    undoes: Option<CommitId>,
    ops: Vec<RowOp>,
    effects: Vec<Effect>,
    contents: Vec<ContentHead>,
}

#[derive(Serialize, Deserialize)]
struct ContentHead {
    hash: ContentHash,
    form: Form,
    size: i64,
    encoding: i16,
    bytes: usize,
}

impl FolderCommit {
    /// The commit as bytes: the length of the head, the head, the contents.
    pub fn encode(&mut self) -> Result<Vec<u8>> {
        let contents = self.contents.iter().map(|content| ContentHead {
            hash: content.hash,
            form: content.form,
            size: content.size,
            encoding: content.encoding.code(),
            bytes: content.data.len(),
        });
        let head = Head {
            workspace: self.workspace,
            id: self.id,
            at: self.at,
            call: self.call.clone(),
            undoes: self.undoes,
            contents: contents.collect(),
            ops: std::mem::take(&mut self.plan.ops),
            effects: std::mem::take(&mut self.plan.effects),
        };
        let text = serde_json::to_vec(&head).map_err(StoreError::internal)?;
        (self.plan.ops, self.plan.effects) = (head.ops, head.effects);
        let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(&text);
        for content in &self.contents {
            bytes.extend_from_slice(&content.data);
        }
        Ok(bytes)
    }

    /// Takes the bytes that [`FolderCommit::encode`] gave.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let torn = || StoreError::internal("the journal holds a commit that cannot be understood");
        let (length, rest) = bytes.split_first_chunk().ok_or_else(torn)?;
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(StoreError::internal)?;
        let (head, mut rest) = rest.split_at_checked(length).ok_or_else(torn)?;
        let head: Head = serde_json::from_slice(head).map_err(StoreError::internal)?;
        let mut contents = Vec::new();
        for content in head.contents {
            let (data, after) = rest.split_at_checked(content.bytes).ok_or_else(torn)?;
            rest = after;
            contents.push(Prepared {
                hash: content.hash,
                form: content.form,
                // In folders there is no JSON, whose stored bytes would have another hash.
                key: content.hash,
                size: content.size,
                shown_size: content.size,
                encoding: Encoding::from_code(content.encoding).ok_or_else(torn)?,
                data: data.to_vec(),
                signature: None,
            });
        }
        Ok(Self {
            workspace: head.workspace,
            id: head.id,
            at: head.at,
            call: head.call,
            undoes: head.undoes,
            plan: Plan { ops: head.ops, effects: head.effects, outcomes: Vec::new() },
            contents,
        })
    }
}

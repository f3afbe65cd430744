//! The history of a folder: what the database stores about files that are on disk.
//!
//! A commit to a folder is planned against the recorded rows, applied to the disk, and then recorded. In between, the
//! folder's journal has the encoded commit, so that a crash loses no record.

use crate::blob::{Encoding, Prepared};
use crate::error::{Result, StoreError};
use crate::files::CallInfo;
use crate::plan::{Plan, RowOp, View};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use toolrest_core::{Access, Changeset, CommitId, ContentHash, Effect, Form, Listed, Timestamp, WorkspaceId};

/// Stores the history of folders.
#[async_trait]
pub trait FolderHistory: Send + Sync {
    /// Checks the caller's rights and reads the recorded rows that the changes concern.
    async fn recorded(&self, access: Access, changes: &Changeset) -> Result<Recorded>;

    /// Records a commit that was applied to the disk. Does nothing if it is recorded already.
    async fn record(&self, commit: FolderCommit) -> Result<()>;

    /// Reads the bytes of a content of the history.
    async fn kept(&self, workspace: WorkspaceId, content: ContentHash) -> Result<Vec<u8>>;

    /// Checks the caller's rights and returns how many bytes the history takes.
    async fn history_bytes(&self, access: Access) -> Result<u64>;

    /// Drops the oldest contents of a history until it takes at most this many bytes. Current contents stay.
    async fn limit_history(&self, workspace: WorkspaceId, limit_bytes: u64) -> Result<TrimmedHistory>;

    /// Checks the caller's rights and lists the virtual files, which are generated and not on disk.
    async fn virtual_files(&self, access: Access) -> Result<Vec<Listed>>;
}

/// The result of reducing a history to its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrimmedHistory {
    /// How many contents were dropped.
    pub dropped: u64,
    /// How many bytes the history takes.
    pub left_bytes: u64,
}

/// Returns how many of the oldest contents to drop so that at most `limit` bytes are left.
pub fn excess(oldest_bytes: impl IntoIterator<Item = i64>, total: i64, limit: i64) -> usize {
    let mut left = total;
    let is_dropped = |bytes: &i64| {
        let is_over_limit = left > limit;
        left -= bytes;
        is_over_limit
    };
    oldest_bytes.into_iter().take_while(is_dropped).count()
}

/// The recorded rows that a changeset concerns.
pub struct Recorded(pub View);

/// A commit that was applied to a folder, as it is recorded.
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

/// A commit without its contents, which follow it in the encoded form.
#[derive(Serialize, Deserialize)]
struct CommitHeader {
    workspace: WorkspaceId,
    id: CommitId,
    at: Timestamp,
    call: CallInfo,
    undoes: Option<CommitId>,
    ops: Vec<RowOp>,
    effects: Vec<Effect>,
    contents: Vec<ContentHeader>,
}

#[derive(Serialize, Deserialize)]
struct ContentHeader {
    hash: ContentHash,
    form: Form,
    size: i64,
    encoding: i16,
    bytes: usize,
}

impl FolderCommit {
    /// Encodes the commit: the length of the header, the header, the contents.
    pub fn encode(&mut self) -> Result<Vec<u8>> {
        let contents = self.contents.iter().map(|content| ContentHeader {
            hash: content.hash,
            form: content.form,
            size: content.size,
            encoding: content.encoding.code(),
            bytes: content.data.len(),
        });
        let header = CommitHeader {
            workspace: self.workspace,
            id: self.id,
            at: self.at,
            call: self.call.clone(),
            undoes: self.undoes,
            contents: contents.collect(),
            ops: std::mem::take(&mut self.plan.ops),
            effects: std::mem::take(&mut self.plan.effects),
        };
        let text = serde_json::to_vec(&header).map_err(StoreError::internal)?;
        (self.plan.ops, self.plan.effects) = (header.ops, header.effects);
        let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(&text);
        for content in &self.contents {
            bytes.extend_from_slice(&content.data);
        }
        Ok(bytes)
    }

    /// Decodes the bytes that [`FolderCommit::encode`] returned.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let torn = || StoreError::internal("the commit in the journal cannot be decoded");
        let (length, rest) = bytes.split_first_chunk().ok_or_else(torn)?;
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(StoreError::internal)?;
        let (header, mut rest) = rest.split_at_checked(length).ok_or_else(torn)?;
        let header: CommitHeader = serde_json::from_slice(header).map_err(StoreError::internal)?;
        let mut contents = Vec::new();
        for content in header.contents {
            let (data, after) = rest.split_at_checked(content.bytes).ok_or_else(torn)?;
            rest = after;
            contents.push(Prepared {
                hash: content.hash,
                form: content.form,
                // Only the stored bytes of JSON have another hash, and folders have no JSON contents.
                key: content.hash,
                size: content.size,
                shown_size: content.size,
                encoding: Encoding::from_code(content.encoding).ok_or_else(torn)?,
                data: data.to_vec(),
                signature: None,
            });
        }
        Ok(Self {
            workspace: header.workspace,
            id: header.id,
            at: header.at,
            call: header.call,
            undoes: header.undoes,
            plan: Plan { ops: header.ops, effects: header.effects, outcomes: Vec::new() },
            contents,
        })
    }
}

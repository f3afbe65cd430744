//! The journal of a root: one file with the intent of the last commit and its progress.
//!
//! The file is written in place and never shrinks, so that making it durable takes one disk flush and no change of file
//! system metadata. It has three parts, each in separate blocks:
//!
//! | offset | content |
//! |---|---|
//! | 0 | the digest of the intent that is committed |
//! | 4096 | the digest of the intent that is closed: completed or rolled back, and cleaned up |
//! | 8192 | the intent: magic, version, length, digest, body |
//!
//! If the digest of an intent does not match, it was written incompletely, and no change was made. A mark is valid
//! only for the intent whose digest it contains, so writing a new intent invalidates both marks at once.
//!
//! A commit that writes a single file does not wait for the journal to be durable, because its one rename is atomic.
//! For such commits the journal only covers the death of the process. If the machine itself went down, which the boot id in
//! the intent shows, the journal may be lost or old, and removals of temporary files may be lost. Recovery then searches
//! for temporary files everywhere beneath the root.

use std::{
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::io::Errno;

use super::{
    Outcome, Step,
    step::{Decoder, Encoder},
};
use crate::{Error, ErrorKind, Hash, Result, Root, error::PathContext, sys};

const COMMITTED_AT: u64 = 0;
const CLOSED_AT: u64 = 4096;
const INTENT_AT: u64 = 8192;
/// Initial size of the file. A longer intent makes it grow.
const FIRST_SIZE_BYTES: usize = 64 * 1024;
/// Enough for both marks and most intents.
const FIRST_READ_BYTES: usize = 12 * 1024;
const MAGIC: &[u8; 8] = b"toolrest";
const VERSION: u64 = 1;
const HEAD_BYTES: usize = MAGIC.len() + 8 + 8 + 32;

/// Everything that is needed to complete a commit or to roll it back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Intent {
    pub(super) id: Vec<u8>,
    pub(super) payload: Vec<u8>,
    pub(super) steps: Vec<Step>,
    /// The id of the boot in which it was written.
    pub(super) boot: Vec<u8>,
}

/// The state of the last commit.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum State {
    /// No commit was ever started.
    Empty,
    /// The last intent did not become durable, or was written incompletely.
    Lost,
    Closed {
        intent: Intent,
    },
    /// The outcome that recovery must produce.
    Pending {
        intent: Intent,
        outcome: Outcome,
    },
}

/// The journal, locked until dropped.
pub(super) struct Journal {
    file: OwnedFd,
    path: PathBuf,
    digest: Hash,
}

impl Intent {
    /// Returns the intent of work without a commit. It has no steps; only temporary files may be left.
    pub(super) fn run_without_commit(boot: Vec<u8>) -> Self {
        Self { id: Vec::new(), payload: Vec::new(), steps: Vec::new(), boot }
    }

    pub(super) fn is_without_commit(&self) -> bool {
        self.id.is_empty() && self.payload.is_empty() && self.steps.is_empty()
    }

    /// Returns the step of a commit that writes a single file. Its result can be derived from the existing names.
    pub(super) fn single_write(&self) -> Option<&Step> {
        match &self.steps[..] {
            [step @ (Step::Add { .. } | Step::Replace { .. })] => Some(step),
            _ => None,
        }
    }

    /// Encodes the intent. The nonce makes each one unique, so that no mark is valid for two.
    fn encode(&self, nonce: [u8; 16]) -> Vec<u8> {
        let mut out = Encoder(nonce.to_vec());
        out.bytes(&self.id);
        out.bytes(&self.payload);
        out.number(self.steps.len() as u64);
        self.steps.iter().for_each(|step| step.encode(&mut out));
        out.bytes(&self.boot);
        out.0
    }

    fn decode(body: &[u8]) -> Option<Self> {
        let mut from = Decoder(body.get(16..)?);
        let id = from.bytes()?.to_vec();
        let payload = from.bytes()?.to_vec();
        let count = from.number()?;
        let steps = (0..count).map(|_| Step::decode(&mut from)).collect::<Option<_>>()?;
        let boot = from.bytes()?.to_vec();
        Some(Self { id, payload, steps, boot })
    }
}

impl Journal {
    /// Opens the journal of a root and waits for its lock.
    pub(super) fn open(root: &Root, journal_dir: &Path) -> Result<Self> {
        let identity = root.identity();
        let path = journal_dir.join(format!("{:x}-{:x}.journal", identity.device, identity.inode));
        let file = sys::open_or_create(&path).at(&path)?;
        sys::lock(&file).at(&path)?;
        Ok(Self { file, path, digest: Hash([0; 32]) })
    }

    pub(super) fn unfinished(&self) -> Error {
        ErrorKind::Unfinished.at(&self.path)
    }

    pub(super) fn read(&mut self) -> Result<State> {
        let mut start = vec![0; FIRST_READ_BYTES];
        let count = sys::read_at(&self.file, &mut start, 0).at(&self.path)?;
        start.truncate(count);
        let Some((marks, mut rest)) = start.split_at_checked(usize::try_from(INTENT_AT).unwrap_or(0)) else {
            return Ok(State::Empty);
        };
        let Some((version, length, digest)) = head(&mut rest) else { return Ok(State::Lost) };
        let Some(body) = self.body(rest, length)?.filter(|body| digest_of(version, body) == digest) else {
            return Ok(State::Lost);
        };
        if version != VERSION {
            return Err(ErrorKind::Unsupported("the journal was written by another version").at(&self.path));
        }
        let unreadable = || ErrorKind::Unsupported("the journal cannot be parsed").at(&self.path);
        let intent = Intent::decode(&body).ok_or_else(unreadable)?;
        self.digest = digest;
        let marked = |at| marks[usize::try_from(at).unwrap_or(0)..].starts_with(&digest.0);
        let outcome = if marked(COMMITTED_AT) { Outcome::Finished } else { Outcome::RolledBack };
        Ok(if marked(CLOSED_AT) { State::Closed { intent } } else { State::Pending { intent, outcome } })
    }

    /// Returns the body. Its prefix is already read.
    fn body(&self, prefix: &[u8], length: u64) -> Result<Option<Vec<u8>>> {
        let size = u64::try_from(sys::stat(&self.file).at(&self.path)?.st_size).unwrap_or(0);
        if length > size {
            return Ok(None);
        }
        let Ok(length) = usize::try_from(length) else { return Ok(None) };
        let mut body = vec![0; length];
        let known = prefix.len().min(length);
        body[..known].copy_from_slice(&prefix[..known]);
        if known < length {
            let offset = INTENT_AT + (HEAD_BYTES + known) as u64;
            let count = sys::read_at(&self.file, &mut body[known..], offset).at(&self.path)?;
            body.truncate(known + count);
        }
        Ok(Some(body))
    }

    /// Writes an intent and makes it durable, unless it writes a single file. No change may have been made before.
    pub(super) fn begin(&mut self, intent: &Intent) -> Result<()> {
        self.write_intent(intent)?;
        self.sync_unless_single(intent)
    }

    /// Writes an intent, in case the process dies.
    pub(super) fn write_intent(&mut self, intent: &Intent) -> Result<()> {
        self.make_room()?;
        let mut nonce = [0; 16];
        getrandom::fill(&mut nonce).map_err(|_| Errno::IO).at(&self.path)?;
        let body = intent.encode(nonce);
        self.digest = digest_of(VERSION, &body);
        let mut out = Encoder(MAGIC.to_vec());
        out.number(VERSION);
        out.number(body.len() as u64);
        out.0.extend_from_slice(&self.digest.0);
        out.0.extend_from_slice(&body);
        self.write(&out.0, INTENT_AT)
    }

    /// Marks the commit as committed.
    pub(super) fn mark_committed(&self, intent: &Intent) -> Result<()> {
        self.write(&self.digest.0, COMMITTED_AT)?;
        self.sync_unless_single(intent)
    }

    /// Clears the mark, whether or not it is on disk.
    pub(super) fn clear_committed(&self) -> Result<()> {
        self.write(&[0; 32], COMMITTED_AT)?;
        self.sync()
    }

    /// Marks the commit as completed and cleaned up. This need not be durable, because repeating it changes nothing.
    pub(super) fn mark_finished(&self) -> Result<()> {
        self.write(&self.digest.0, CLOSED_AT)
    }

    /// Marks the commit as closed, durably. A second rollback could undo later changes of others.
    pub(super) fn mark_closed(&self) -> Result<()> {
        self.write(&self.digest.0, CLOSED_AT)?;
        self.sync()
    }

    fn sync_unless_single(&self, intent: &Intent) -> Result<()> {
        if intent.single_write().is_some() { Ok(()) } else { self.sync() }
    }

    fn make_room(&self) -> Result<()> {
        let size = sys::stat(&self.file).at(&self.path)?.st_size;
        if usize::try_from(size).is_ok_and(|size| size >= FIRST_SIZE_BYTES) {
            return Ok(());
        }
        self.write(&vec![0; FIRST_SIZE_BYTES], 0)?;
        sys::sync(&self.file).at(&self.path)?;
        let folder = self.path.parent().unwrap_or(Path::new("."));
        sys::open_folder(folder).and_then(sys::sync).at(folder)
    }

    fn write(&self, bytes: &[u8], offset: u64) -> Result<()> {
        sys::write_at(&self.file, bytes, offset).at(&self.path)
    }

    pub(super) fn sync(&self) -> Result<()> {
        sys::sync_data(&self.file).at(&self.path)
    }
}

/// Returns the digest of the version and the body. A flipped bit in the version is detected too.
fn digest_of(version: u64, body: &[u8]) -> Hash {
    let mut bytes = version.to_le_bytes().to_vec();
    bytes.extend_from_slice(body);
    Hash::of(&bytes)
}

/// Splits off the header: version, length and digest of the body.
fn head(bytes: &mut &[u8]) -> Option<(u64, u64, Hash)> {
    let mut from = Decoder(bytes.strip_prefix(MAGIC)?);
    let version = from.number()?;
    let length = from.number()?;
    let (digest, rest) = from.0.split_at_checked(32)?;
    *bytes = rest;
    Some((version, length, Hash(digest.try_into().ok()?)))
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod journal_tests;

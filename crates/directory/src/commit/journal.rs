//! The journal of a root: one file that holds the last commit's intent and how far it came.
//!
//! The file is written in place and never gets shorter, so that making it durable costs one flush of the disk and no
//! change of the file system's own metadata. It has three parts, each in blocks of its own:
//!
//! | offset | content |
//! |---|---|
//! | 0 | the digest of the intent that is committed |
//! | 4096 | the digest of the intent that is settled: finished or rolled back, and cleaned up |
//! | 8192 | the intent: magic, version, length, digest, body |
//!
//! An intent whose digest does not fit was torn while it was written: nothing had begun. A mark counts only for the
//! intent whose digest it holds, so that writing a new intent takes back both marks at once.
//!
//! A commit that writes one file and does nothing else does not wait for the journal to be durable, as its one change
//! of a name is all or nothing by itself: the journal is there for the case that the process dies. Where the machine
//! itself went down, which the intent tells by the name of the boot, it may be lost or old, and so may be the removal
//! of temporary files; recovery then looks for them everywhere beneath the root.

use std::{
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::io::Errno;

use super::{
    Outcome, Step,
    step::{Decoder, Encoder},
};
use crate::{Error, ErrorKind, Hash, Result, Root, error::At, sys};

const COMMITTED_AT: u64 = 0;
const SETTLED_AT: u64 = 4096;
const INTENT_AT: u64 = 8192;
/// Room that is made at once; a longer intent makes the file longer.
const FIRST_SIZE_BYTES: usize = 64 * 1024;
/// Both marks and most intents.
const FIRST_READ_BYTES: usize = 12 * 1024;
const MAGIC: &[u8; 8] = b"toolrest";
const VERSION: u64 = 1;
const HEAD_BYTES: usize = MAGIC.len() + 8 + 8 + 32;

/// All that is needed to finish a commit or to roll it back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Intent {
    pub(super) id: Vec<u8>,
    pub(super) payload: Vec<u8>,
    pub(super) steps: Vec<Step>,
    /// The boot in which it was written.
    pub(super) boot: Vec<u8>,
}

/// What the journal says of the last commit.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum State {
    /// No commit was ever begun.
    Empty,
    /// The last intent did not become durable, or was torn while it was written.
    Lost,
    Settled {
        intent: Intent,
    },
    /// The outcome is the one that recovery must bring about.
    Pending {
        intent: Intent,
        outcome: Outcome,
    },
}

/// The journal, locked until it is dropped.
pub(super) struct Journal {
    file: OwnedFd,
    path: PathBuf,
    digest: Hash,
}

impl Intent {
    /// What is done past commits: of it no step is known, only that temporary files may be left.
    pub(super) fn past_commits(boot: Vec<u8>) -> Self {
        Self { id: Vec::new(), payload: Vec::new(), steps: Vec::new(), boot }
    }

    pub(super) fn is_past_commits(&self) -> bool {
        self.id.is_empty() && self.payload.is_empty() && self.steps.is_empty()
    }

    /// Gives the step of a commit that does nothing but write one file. What became of it can be told from the names
    /// that are there.
    pub(super) fn single_write(&self) -> Option<&Step> {
        match &self.steps[..] {
            [step @ (Step::Add { .. } | Step::Replace { .. })] => Some(step),
            _ => None,
        }
    }

    /// Encodes the intent. The nonce makes each one different, so that no mark counts for two.
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
        let unreadable = || ErrorKind::Unsupported("the journal cannot be understood").at(&self.path);
        let intent = Intent::decode(&body).ok_or_else(unreadable)?;
        self.digest = digest;
        let marked = |at| marks[usize::try_from(at).unwrap_or(0)..].starts_with(&digest.0);
        let outcome = if marked(COMMITTED_AT) { Outcome::Finished } else { Outcome::RolledBack };
        Ok(if marked(SETTLED_AT) { State::Settled { intent } } else { State::Pending { intent, outcome } })
    }

    /// Gives the body, of which the beginning is read already.
    fn body(&self, baseline: &[u8], length: u64) -> Result<Option<Vec<u8>>> {
        let size = u64::try_from(sys::stat(&self.file).at(&self.path)?.st_size).unwrap_or(0);
        if length > size {
            return Ok(None);
        }
        let Ok(length) = usize::try_from(length) else { return Ok(None) };
        let mut body = vec![0; length];
        let known = baseline.len().min(length);
        body[..known].copy_from_slice(&baseline[..known]);
        if known < length {
            let offset = INTENT_AT + (HEAD_BYTES + known) as u64;
            let count = sys::read_at(&self.file, &mut body[known..], offset).at(&self.path)?;
            body.truncate(known + count);
        }
        Ok(Some(body))
    }

    /// Writes an intent and, unless it writes only one file, makes it durable. Nothing may have begun before.
    pub(super) fn begin(&mut self, intent: &Intent) -> Result<()> {
        self.write_intent(intent)?;
        self.sync_unless_single(intent)
    }

    /// Writes an intent, for the case that the process dies.
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

    /// Makes the commit count.
    pub(super) fn mark_committed(&self, intent: &Intent) -> Result<()> {
        self.write(&self.digest.0, COMMITTED_AT)?;
        self.sync_unless_single(intent)
    }

    /// Takes back a mark that may or may not be there.
    pub(super) fn clear_committed(&self) -> Result<()> {
        self.write(&[0; 32], COMMITTED_AT)?;
        self.sync()
    }

    /// Says that the commit is finished and cleaned up. That need not be durable: doing it again changes nothing.
    pub(super) fn mark_finished(&self) -> Result<()> {
        self.write(&self.digest.0, SETTLED_AT)
    }

    /// Says that the commit is settled, for good: to roll back twice could undo what others did in between.
    pub(super) fn mark_settled(&self) -> Result<()> {
        self.write(&self.digest.0, SETTLED_AT)?;
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

/// The digest covers the version too, so that a flipped bit there is seen as a tear.
fn digest_of(version: u64, body: &[u8]) -> Hash {
    let mut bytes = version.to_le_bytes().to_vec();
    bytes.extend_from_slice(body);
    Hash::of(&bytes)
}

/// Splits the head off: version, length and digest of the body.
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

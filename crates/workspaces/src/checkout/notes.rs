//! What a folder held when it was last looked at.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use toolrest_core::ContentHash;
use toolrest_directory::{Identity, Metadata};

/// How far the clock that files are stamped with may be behind.
const TICK: Duration = Duration::from_millis(20);

/// Something that stood in the folder.
#[derive(Debug)]
pub(super) struct Note {
    pub(super) stamp: Stamp,
    pub(super) what: Noted,
    /// The last look that saw it. The threads of a look share the notes.
    seen_in: AtomicU64,
}

impl Note {
    pub(super) fn new(stamp: Stamp, what: Noted, look: u64) -> Self {
        Self { stamp, what, seen_in: AtomicU64::new(look) }
    }

    /// Notes that a look has seen it.
    pub(super) fn see_in(&self, look: u64) {
        self.seen_in.store(look, Ordering::Relaxed);
    }

    pub(super) fn is_seen_in(&self, look: u64) -> bool {
        self.seen_in.load(Ordering::Relaxed) == look
    }

    /// Whether it stands there just as it was noted, and nothing can have happened since that does not show.
    pub(super) fn shows_all(&self, stamp: Stamp, quiet_since: SystemTime) -> bool {
        self.stamp == stamp && (self.what == Noted::LeftOut || !stamp.is_fresh(quiet_since))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Noted {
    /// A folder of the workspace.
    Folder,
    /// A file of the workspace, with the hash of the bytes that programs see.
    File(ContentHash),
    /// Something of programs alone.
    LeftOut,
}

impl Noted {
    pub(super) fn is_tracked(self) -> bool {
        self != Self::LeftOut
    }
}

/// What tells whether a file is still the same, without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) identity: Identity,
    size_bytes: u64,
    modified: SystemTime,
    changed: SystemTime,
    mode: u32,
}

impl Stamp {
    pub(super) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Whether it may be run.
    pub(super) fn is_executable(&self) -> bool {
        self.mode & 0o100 != 0
    }

    /// Whether something may have happened after a moment that the stamp does not show.
    pub(super) fn is_fresh(&self, moment: SystemTime) -> bool {
        moment.checked_sub(TICK).is_none_or(|before| self.changed >= before)
    }
}

impl From<&Metadata> for Stamp {
    fn from(metadata: &Metadata) -> Self {
        let Metadata { identity, size_bytes, modified, changed, mode, .. } = *metadata;
        Self { identity, size_bytes, modified, changed, mode }
    }
}

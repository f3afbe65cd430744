//! What a folder held when it was last looked at.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use toolrest_core::ContentHash;
use toolrest_directory::{Identity, Metadata};

/// How far the clock that files are stamped with may be behind.
const TICK: Duration = Duration::from_millis(20);

/// Something that stood in the folder.
#[derive(Debug)]
pub(super) struct FileState {
    pub(super) fingerprint: StatFingerprint,
    pub(super) what: StateKind,
    /// The last look that saw it. The threads of a look share the notes.
    seen_in_scan: AtomicU64,
}

impl FileState {
    pub(super) fn new(fingerprint: StatFingerprint, what: StateKind, scan: u64) -> Self {
        Self { fingerprint, what, seen_in_scan: AtomicU64::new(scan) }
    }

    /// Notes that a look has seen it.
    pub(super) fn mark_seen_in(&self, scan: u64) {
        self.seen_in_scan.store(scan, Ordering::Relaxed);
    }

    pub(super) fn is_seen_in(&self, scan: u64) -> bool {
        self.seen_in_scan.load(Ordering::Relaxed) == scan
    }

    /// Whether it stands there just as it was noted, and nothing can have happened since that does not show.
    pub(super) fn is_certainly_unchanged(&self, fingerprint: StatFingerprint, unchanged_since: SystemTime) -> bool {
        self.fingerprint == fingerprint
            && (self.what == StateKind::LeftOut || !fingerprint.may_hide_changes_since(unchanged_since))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StateKind {
    /// A folder of the workspace.
    Folder,
    /// A file of the workspace, with the hash of the bytes that programs see.
    File(ContentHash),
    /// Something of programs alone.
    LeftOut,
}

impl StateKind {
    pub(super) fn is_tracked(self) -> bool {
        self != Self::LeftOut
    }
}

/// What tells whether a file is still the same, without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StatFingerprint {
    pub(super) identity: Identity,
    size_bytes: u64,
    modified: SystemTime,
    changed: SystemTime,
    mode: u32,
}

impl StatFingerprint {
    pub(super) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Whether it may be run.
    pub(super) fn is_executable(&self) -> bool {
        self.mode & 0o100 != 0
    }

    /// Whether something may have happened after a moment that the stamp does not show.
    pub(super) fn may_hide_changes_since(&self, synced_to: SystemTime) -> bool {
        synced_to.checked_sub(TICK).is_none_or(|before| self.changed >= before)
    }
}

impl From<&Metadata> for StatFingerprint {
    fn from(metadata: &Metadata) -> Self {
        let Metadata { identity, size_bytes, modified, changed, mode, .. } = *metadata;
        Self { identity, size_bytes, modified, changed, mode }
    }
}

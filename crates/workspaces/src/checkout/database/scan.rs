//! Detects by a scan what a program changed in a working copy.

use crate::checkout::diff::{Diff, FileState, Node};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime},
};
use toolrest_core::{ContentHash, LeftOut, LeftOutReason, MAX_PATH_BYTES, WsPath};
use toolrest_directory::{CheckoutDir, IgnoreStatus, Kind, Metadata, Result, ScanVisitor};

/// Maximum delay of the clock that file times are taken from.
const TICK: Duration = Duration::from_millis(20);

/// Something that was in the directory at the last scan or update.
#[derive(Debug)]
pub(super) struct KnownEntry {
    pub(super) metadata: Metadata,
    pub(super) kind: EntryKind,
    /// Number of the last scan that found it. The threads of a scan share the entries.
    seen_in_scan: AtomicU64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    /// A folder of the workspace.
    Folder,
    /// A file of the workspace, with the hash of the bytes that programs see.
    File(ContentHash),
    /// Something that is in the working copy only.
    LeftOut,
}

impl KnownEntry {
    pub(super) fn new(metadata: Metadata, kind: EntryKind, scan: u64) -> Self {
        Self { metadata, kind, seen_in_scan: AtomicU64::new(scan) }
    }

    /// Whether it is part of the workspace.
    pub(super) fn is_tracked(&self) -> bool {
        self.kind != EntryKind::LeftOut
    }

    fn node(&self) -> Option<Node> {
        match self.kind {
            EntryKind::Folder => Some(Node::Folder(Some(self.metadata))),
            EntryKind::File(hash) => Some(Node::File(FileState { metadata: self.metadata, hash: Some(hash) })),
            EntryKind::LeftOut => None,
        }
    }

    fn mark_seen_in(&self, scan: u64) {
        self.seen_in_scan.store(scan, Ordering::Relaxed);
    }

    /// Whether the metadata is the same and no later change can be missing from it.
    fn is_certainly_unchanged(&self, metadata: &Metadata, unchanged_since: SystemTime) -> bool {
        self.metadata == *metadata && (self.kind == EntryKind::LeftOut || !may_hide_changes(metadata, unchanged_since))
    }
}

/// Whether a file may have been changed after a time without a change of its metadata.
pub(super) fn may_hide_changes(metadata: &Metadata, since: SystemTime) -> bool {
    since.checked_sub(TICK).is_none_or(|before| metadata.changed >= before)
}

/// What differs from the known entries.
#[derive(Debug, Default)]
pub(super) struct ScanResult {
    pub(super) diffs: BTreeMap<WsPath, Diff>,
    /// Paths of the workspace at which there is something that cannot be kept.
    pub(super) blocked: BTreeSet<WsPath>,
    /// What cannot be kept and is new.
    pub(super) left_out: Vec<LeftOut>,
}

impl ScanResult {
    /// Scans the directory. Changes before `unchanged_since` show in the metadata of files.
    pub(super) fn of(
        dir: &CheckoutDir,
        entries: &mut HashMap<WsPath, KnownEntry>,
        scan: u64,
        unchanged_since: SystemTime,
    ) -> Result<Self> {
        let mut collector = ScanCollector { entries, scan, unchanged_since, found: Self::default() };
        dir.scan(MAX_PATH_BYTES, &mut collector)?;
        let ScanCollector { entries, mut found, .. } = collector;
        let mut gone = Vec::new();
        for (path, entry) in &*entries {
            if entry.seen_in_scan.load(Ordering::Relaxed) == scan {
                continue;
            }
            let is_below_blocked =
                || !found.blocked.is_empty() && path.folders_above().any(|above| found.blocked.contains(above));
            match entry.node() {
                None => gone.push(path.clone()),
                Some(_) if is_below_blocked() => drop(found.blocked.insert(path.clone())),
                before => found.diff(path.clone()).before = before,
            }
        }
        for path in gone {
            entries.remove(&path);
        }
        Ok(found)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.diffs.is_empty() && self.blocked.is_empty() && self.left_out.is_empty()
    }

    fn diff(&mut self, path: WsPath) -> &mut Diff {
        self.diffs.entry(path.clone()).or_insert(Diff { path, before: None, after: None })
    }

    fn leave_out(&mut self, path: impl Into<String>, reason: LeftOutReason) {
        self.left_out.push(LeftOut { path: path.into(), reason });
    }
}

struct ScanCollector<'a> {
    entries: &'a mut HashMap<WsPath, KnownEntry>,
    scan: u64,
    unchanged_since: SystemTime,
    found: ScanResult,
}

impl ScanCollector<'_> {
    /// Notes something that cannot be kept. It is reported if it is new, and blocks a path of the workspace.
    fn refuse(&mut self, path: &str, metadata: &Metadata, reason: LeftOutReason) {
        match self.entries.get(path) {
            Some(entry) if entry.is_tracked() => {
                entry.mark_seen_in(self.scan);
                self.found.blocked.insert(WsPath::from_normal(path.to_owned()));
            }
            Some(entry) if entry.metadata == *metadata => {
                entry.mark_seen_in(self.scan);
                return;
            }
            _ => {
                let entry = KnownEntry::new(*metadata, EntryKind::LeftOut, self.scan);
                self.entries.insert(WsPath::from_normal(path.to_owned()), entry);
            }
        }
        self.found.leave_out(path, reason);
    }

    fn found_folder(&mut self, path: &str, metadata: &Metadata) {
        match self.entries.get_mut(path) {
            Some(entry) if !matches!(entry.kind, EntryKind::File(_)) => {
                entry.metadata = *metadata;
                entry.mark_seen_in(self.scan);
            }
            // A file that was there counts as not found.
            _ => self.found.diff(WsPath::from_normal(path.to_owned())).after = Some(Node::Folder(Some(*metadata))),
        }
    }

    fn found_file(&mut self, path: &str, metadata: &Metadata) {
        let mut before = None;
        // A folder that was there counts as not found.
        if let Some(entry) = self.entries.get(path).filter(|entry| entry.kind != EntryKind::Folder) {
            entry.mark_seen_in(self.scan);
            if entry.is_certainly_unchanged(metadata, self.unchanged_since) {
                return;
            }
            before = entry.node();
        }
        let after = Some(Node::File(FileState { metadata: *metadata, hash: None }));
        let path = WsPath::from_normal(path.to_owned());
        self.found.diffs.insert(path.clone(), Diff { path, before, after });
    }
}

impl ScanVisitor for ScanCollector<'_> {
    fn expected(&self) -> usize {
        self.entries.len()
    }

    fn knows(&self, file: &str, metadata: &Metadata) -> bool {
        let is_known = |entry: &&KnownEntry| {
            matches!(entry.kind, EntryKind::File(_)) && entry.is_certainly_unchanged(metadata, self.unchanged_since)
        };
        self.entries.get(file).filter(is_known).inspect(|entry| entry.mark_seen_in(self.scan)).is_some()
    }

    fn insists_on(&self, path: &str) -> bool {
        self.entries.get(path).is_some_and(KnownEntry::is_tracked)
    }

    fn found(&mut self, path: &str, metadata: &Metadata, status: IgnoreStatus) {
        match (status, metadata.kind) {
            (IgnoreStatus::LeftOut, _) => self.refuse(path, metadata, LeftOutReason::Ignored),
            (_, Kind::Symlink) => self.refuse(path, metadata, LeftOutReason::Link),
            (_, Kind::Other) => self.refuse(path, metadata, LeftOutReason::Special),
            (_, Kind::Folder) => self.found_folder(path, metadata),
            (_, Kind::File) => self.found_file(path, metadata),
        }
    }

    fn found_unnamed(&mut self, path: String, metadata: &Metadata) {
        // No path of a workspace contains this byte.
        let key = WsPath::from_normal(format!("{path}\0"));
        let known = self.entries.insert(key, KnownEntry::new(*metadata, EntryKind::LeftOut, self.scan));
        if known.is_none_or(|known| known.metadata != *metadata) {
            self.found.leave_out(path, LeftOutReason::Name);
        }
    }

    fn found_unreadable(&mut self, folder: &str) {
        if let Some(entry) = self.entries.get(folder) {
            entry.mark_seen_in(self.scan);
        }
        self.found.diffs.remove(folder);
        self.found.blocked.insert(WsPath::from_normal(folder.to_owned()));
        self.found.leave_out(folder, LeftOutReason::Unreadable);
    }
}

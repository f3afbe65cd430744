//! What a program left behind, as far as it differs from what was there.

use super::file_state::{FileState, StatFingerprint, StateKind};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::SystemTime,
};
use toolrest_core::{LeftOut, LeftOutReason, MAX_PATH_BYTES, WsPath};
use toolrest_directory::{CheckoutDir, IgnoreStatus, Kind, Metadata, Result, ScanVisitor};

/// What differs from what was noted.
#[derive(Debug, Default)]
pub(super) struct ScanResult {
    /// Files that are new, or may have another content.
    pub(super) files: BTreeMap<WsPath, StatFingerprint>,
    /// Folders that are new.
    pub(super) folders: BTreeMap<WsPath, StatFingerprint>,
    /// Files and folders of the workspace that are gone.
    pub(super) removed_paths: BTreeSet<WsPath>,
    /// Where something stands that cannot be kept, in place of what is the workspace's.
    pub(super) blocked: BTreeSet<WsPath>,
    /// What cannot be kept, as far as it is new.
    pub(super) left_out: Vec<LeftOut>,
}

impl ScanResult {
    /// Looks over the folder. What changed before the quiet moment shows in the stamps of files.
    pub(super) fn of(
        dir: &CheckoutDir,
        states: &mut HashMap<WsPath, FileState>,
        scan: u64,
        unchanged_since: SystemTime,
    ) -> Result<Self> {
        let mut collector = ScanCollector { states, scan, unchanged_since, scan_result: Self::default() };
        dir.scan(MAX_PATH_BYTES, &mut collector)?;
        let ScanCollector { states, mut scan_result, .. } = collector;
        let is_below_blocked = |blocked: &BTreeSet<WsPath>, path: &WsPath| {
            !blocked.is_empty() && path.folders_above().any(|above| blocked.contains(above))
        };
        let mut gone = Vec::new();
        for (path, state) in &*states {
            if state.is_seen_in(scan) {
                continue;
            }
            if !state.what.is_tracked() {
                gone.push(path.clone());
            } else if is_below_blocked(&scan_result.blocked, path) {
                scan_result.blocked.insert(path.clone());
            } else {
                scan_result.removed_paths.insert(path.clone());
            }
        }
        for path in gone {
            states.remove(&path);
        }
        Ok(scan_result)
    }

    /// Whether nothing differs.
    pub(super) fn is_empty(&self) -> bool {
        let Self { files, folders, removed_paths, blocked, left_out } = self;
        files.is_empty() && folders.is_empty() && removed_paths.is_empty() && blocked.is_empty() && left_out.is_empty()
    }

    /// Lets something stay in the folder that is not kept.
    pub(super) fn leave_out(&mut self, path: impl Into<String>, reason: LeftOutReason) {
        self.left_out.push(LeftOut { path: path.into(), reason });
    }
}

struct ScanCollector<'a> {
    states: &'a mut HashMap<WsPath, FileState>,
    scan: u64,
    unchanged_since: SystemTime,
    scan_result: ScanResult,
}

impl ScanCollector<'_> {
    /// Something that cannot be kept: told if it is new, and in the way if it stands where a file of the workspace stood.
    fn refuse(&mut self, path: &str, fingerprint: StatFingerprint, reason: LeftOutReason) {
        let known = self.states.get_mut(path);
        match known {
            Some(state) if state.what.is_tracked() => {
                state.mark_seen_in(self.scan);
                self.scan_result.blocked.insert(WsPath::from_normal(path.to_owned()));
            }
            Some(state) if state.fingerprint == fingerprint => {
                state.mark_seen_in(self.scan);
                return;
            }
            _ => {
                let state = FileState::new(fingerprint, StateKind::LeftOut, self.scan);
                self.states.insert(WsPath::from_normal(path.to_owned()), state);
            }
        }
        self.scan_result.leave_out(path, reason);
    }

    fn found_folder(&mut self, path: &str, fingerprint: StatFingerprint) {
        let (scan, scan_result) = (self.scan, &mut self.scan_result);
        match self.states.get_mut(path) {
            Some(state) if !matches!(state.what, StateKind::File(_)) => {
                state.fingerprint = fingerprint;
                state.mark_seen_in(scan);
            }
            // In place of a file, which is not seen then.
            _ => {
                scan_result.folders.insert(WsPath::from_normal(path.to_owned()), fingerprint);
            }
        }
    }

    fn found_file(&mut self, path: &str, fingerprint: StatFingerprint) {
        // In place of a folder, that is not seen then.
        if let Some(state) = self.states.get_mut(path).filter(|state| state.what != StateKind::Folder) {
            state.mark_seen_in(self.scan);
            if state.is_certainly_unchanged(fingerprint, self.unchanged_since) {
                return;
            }
        }
        self.scan_result.files.insert(WsPath::from_normal(path.to_owned()), fingerprint);
    }
}

impl ScanVisitor for ScanCollector<'_> {
    fn expected(&self) -> usize {
        self.states.len()
    }

    fn knows(&self, file: &str, metadata: &Metadata) -> bool {
        let is_known = |state: &&FileState| {
            matches!(state.what, StateKind::File(_))
                && state.is_certainly_unchanged(StatFingerprint::from(metadata), self.unchanged_since)
        };
        let known = self.states.get(file).filter(is_known);
        known.inspect(|state| state.mark_seen_in(self.scan)).is_some()
    }

    fn insists_on(&self, path: &str) -> bool {
        self.states.get(path).is_some_and(|state| state.what.is_tracked())
    }

    fn found(&mut self, path: &str, metadata: &Metadata, standing: IgnoreStatus) {
        let fingerprint = StatFingerprint::from(metadata);
        match (standing, metadata.kind) {
            (IgnoreStatus::LeftOut, _) => self.refuse(path, fingerprint, LeftOutReason::Ignored),
            (_, Kind::Symlink) => self.refuse(path, fingerprint, LeftOutReason::Link),
            (_, Kind::Other) => self.refuse(path, fingerprint, LeftOutReason::Special),
            (_, Kind::Folder) => self.found_folder(path, fingerprint),
            (_, Kind::File) => self.found_file(path, fingerprint),
        }
    }

    fn found_unnamed(&mut self, path: String, metadata: &Metadata) {
        // No path that is one ends like this.
        let key = WsPath::from_normal(format!("{path}\0"));
        let fingerprint = StatFingerprint::from(metadata);
        let known = self.states.insert(key, FileState::new(fingerprint, StateKind::LeftOut, self.scan));
        if known.is_none_or(|known| known.fingerprint != fingerprint) {
            self.scan_result.leave_out(path, LeftOutReason::Name);
        }
    }

    fn found_unreadable(&mut self, folder: &str) {
        if let Some(state) = self.states.get_mut(folder) {
            state.mark_seen_in(self.scan);
        }
        self.scan_result.folders.remove(folder);
        self.scan_result.blocked.insert(WsPath::from_normal(folder.to_owned()));
        self.scan_result.leave_out(folder, LeftOutReason::Unreadable);
    }
}

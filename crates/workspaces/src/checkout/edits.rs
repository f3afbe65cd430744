//! The files that a program made or gave another content.

use super::file_state::{FileState, StatFingerprint, StateKind};
use super::renames::Renames;
use super::scan_result::ScanResult;
use super::tree::Row;
use super::working_copy::MergeBase;
use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
    time::SystemTime,
};
use toolrest_core::{ContentHash, KeepLimits, LeftOutReason, WsPath};
use toolrest_directory::{CheckoutDir, Content, ErrorKind, Identity};

/// What a program wrote.
#[derive(Debug, Default)]
pub(super) struct Edits {
    /// Files with another content or other permissions, and new ones.
    pub(super) files: BTreeMap<WsPath, Edit>,
    /// Files that turned out to be as they were, though maybe elsewhere.
    pub(super) same: BTreeMap<WsPath, (StatFingerprint, ContentHash)>,
    /// Where files were that there is no room for as new ones: they can only be moved.
    pub(super) moved: BTreeMap<WsPath, WsPath>,
    /// Files that cannot be kept.
    pub(super) refused: BTreeMap<WsPath, (StatFingerprint, LeftOutReason)>,
}

/// What a program wrote to a file.
#[derive(Debug)]
pub(super) struct Edit {
    pub(super) fingerprint: StatFingerprint,
    pub(super) hash: ContentHash,
    /// Until they become part of a commit.
    pub(super) bytes: Vec<u8>,
}

/// Reads what a program wrote, as far as there is room for it in a commit.
pub(super) struct EditReader<'a> {
    pub(super) dir: &'a CheckoutDir,
    pub(super) base: MergeBase<'a>,
    pub(super) keep: KeepLimits,
    pub(super) unchanged_since: SystemTime,
}

impl EditReader<'_> {
    pub(super) fn read(&self, scan_result: &ScanResult, renames: &Renames) -> Edits {
        let mut edits = Edits::default();
        let mut bytes_left = self.keep.commit_bytes;
        let mut changes_left = self.keep.commit_files.saturating_sub(scan_result.folders.len());
        let mut move_sources = self.move_sources(scan_result, renames);
        for (path, fingerprint) in &scan_result.files {
            let origin = renames.origin(path);
            let known = origin.filter(|origin| origin == path || scan_result.removed_paths.contains(origin));
            let before = known.as_ref().and_then(|origin| self.base.states.get(origin)).and_then(known_file);
            let is_moved_only = |(noted, _): &(StatFingerprint, ContentHash)| {
                known.as_ref() != Some(path)
                    && noted == fingerprint
                    && !fingerprint.may_hide_changes_since(self.unchanged_since)
            };
            if let Some(before) = before.filter(is_moved_only) {
                edits.same.insert(path.clone(), before);
                continue;
            }
            let has_room = changes_left > 0 && fingerprint.size_bytes() <= self.keep.file_bytes.min(bytes_left);
            if let Some((noted, hash)) = before
                && (noted == *fingerprint || !has_room && noted.size_bytes() == fingerprint.size_bytes())
                && noted.is_executable() == fingerprint.is_executable()
                && let Some(fingerprint) = self.still_holds(path, hash)
            {
                edits.same.insert(path.clone(), (fingerprint, hash));
                continue;
            }
            if !has_room
                && changes_left > 0
                && let Some((from, (noted, hash), fingerprint)) = self.same_elsewhere(path, fingerprint, &move_sources)
            {
                move_sources.remove(&fingerprint.identity);
                changes_left -= 1;
                edits.moved.insert(path.clone(), from.clone());
                edits.same.insert(path.clone(), (fingerprint, hash));
                if noted.is_executable() != fingerprint.is_executable() {
                    // That takes a version with the same content.
                    edits.refused.insert(path.clone(), (fingerprint, self.lack_of_room(fingerprint.size_bytes())));
                }
                continue;
            }
            match self.read_file(path, bytes_left, changes_left > 0) {
                Ok(edit)
                    if before.is_some_and(|(noted, hash)| {
                        hash == edit.hash && noted.is_executable() == edit.fingerprint.is_executable()
                    }) =>
                {
                    edits.same.insert(path.clone(), (edit.fingerprint, edit.hash));
                }
                Ok(edit) => {
                    bytes_left = bytes_left.saturating_sub(edit.bytes.len() as u64);
                    changes_left = changes_left.saturating_sub(1);
                    edits.files.insert(path.clone(), edit);
                }
                Err(Unread::Gone) => {}
                Err(Unread::Refused(reason)) => {
                    edits.refused.insert(path.clone(), (*fingerprint, reason));
                }
            }
        }
        edits
    }

    /// Files that left their paths for the program's reasons alone, by what tells them apart wherever they are.
    fn move_sources<'a>(&self, scan_result: &'a ScanResult, renames: &Renames) -> HashMap<Identity, &'a WsPath> {
        let is_leaver = |path: &&WsPath| {
            let now = renames.destination(path);
            let is_unchanged = self.base.tree.get(path).is_some_and(|row| self.base.row(path) == Some(row));
            // Folders are made before files are moved.
            is_unchanged
                && !scan_result.folders.contains_key(*path)
                && (now == **path || !scan_result.files.contains_key(&now))
        };
        let gone = scan_result.removed_paths.iter().filter(|path| self.base.is_known_file(path)).filter(is_leaver);
        gone.filter_map(|path| Some((self.base.states.get(path)?.fingerprint.identity, path))).collect()
    }

    /// Finds where a file was before: the same one, with the same content.
    fn same_elsewhere<'a>(
        &self,
        path: &WsPath,
        fingerprint: &StatFingerprint,
        move_sources: &HashMap<Identity, &'a WsPath>,
    ) -> Option<(&'a WsPath, (StatFingerprint, ContentHash), StatFingerprint)> {
        // Files are moved before folders are removed.
        let from = *move_sources
            .get(&fingerprint.identity)
            .filter(|_| !self.base.tree.get(path).is_some_and(Row::is_folder))?;
        let (noted, hash) = self.base.states.get(from).and_then(known_file)?;
        if noted.size_bytes() != fingerprint.size_bytes() {
            return None;
        }
        let now = self.still_holds(path, hash).filter(|now| now.identity == fingerprint.identity)?;
        Some((from, (noted, hash), now))
    }

    fn lack_of_room(&self, size_bytes: u64) -> LeftOutReason {
        if size_bytes <= self.keep.file_bytes { LeftOutReason::TooMuch } else { LeftOutReason::TooLarge }
    }

    /// Tells how a file looks that still has that content.
    fn still_holds(&self, path: &WsPath, hash: ContentHash) -> Option<StatFingerprint> {
        let (found, metadata) = self.dir.hash(Path::new(path.without_slash())).ok()?;
        (found.0 == hash.0).then(|| StatFingerprint::from(&metadata))
    }

    fn read_file(&self, path: &WsPath, bytes_left: u64, has_room: bool) -> Result<Edit, Unread> {
        if !has_room {
            return Err(Unread::Refused(LeftOutReason::TooMuch));
        }
        let limit = self.keep.file_bytes.min(bytes_left);
        match self.dir.read(Path::new(path.without_slash()), limit) {
            Ok(Content { bytes, hash, metadata }) => {
                Ok(Edit { fingerprint: StatFingerprint::from(&metadata), hash: ContentHash(hash.0), bytes })
            }
            Err(error) => Err(match error.kind {
                ErrorKind::NotFound | ErrorKind::NotAFolder | ErrorKind::IsFolder | ErrorKind::Loop => Unread::Gone,
                ErrorKind::TooLarge { size_bytes, .. } => Unread::Refused(self.lack_of_room(size_bytes)),
                ErrorKind::Special => Unread::Refused(LeftOutReason::Special),
                _ => Unread::Refused(LeftOutReason::Unreadable),
            }),
        }
    }
}

/// Why a file was not read.
enum Unread {
    /// It is not there any more, or no file.
    Gone,
    Refused(LeftOutReason),
}

fn known_file(state: &FileState) -> Option<(StatFingerprint, ContentHash)> {
    if let StateKind::File(hash) = state.what { Some((state.fingerprint, hash)) } else { None }
}

//! The files that a program made or gave another content.

use super::desk::Base;
use super::notes::{Note, Noted, Stamp};
use super::renames::Renames;
use super::sight::Sight;
use super::tree::Row;
use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
    time::SystemTime,
};
use toolrest_core::{ContentHash, KeepLimits, LeftOutReason, WsPath};
use toolrest_directory::{Content, ErrorKind, Identity, Workbench};

/// What a program wrote.
#[derive(Debug, Default)]
pub(super) struct Edits {
    /// Files with another content or other permissions, and new ones.
    pub(super) files: BTreeMap<WsPath, Edit>,
    /// Files that turned out to be as they were, though maybe elsewhere.
    pub(super) same: BTreeMap<WsPath, (Stamp, ContentHash)>,
    /// Where files were that there is no room for as new ones: they can only be moved.
    pub(super) moved: BTreeMap<WsPath, WsPath>,
    /// Files that cannot be kept.
    pub(super) refused: BTreeMap<WsPath, (Stamp, LeftOutReason)>,
}

/// What a program wrote to a file.
#[derive(Debug)]
pub(super) struct Edit {
    pub(super) stamp: Stamp,
    pub(super) hash: ContentHash,
    /// Until they become part of a commit.
    pub(super) bytes: Vec<u8>,
}

/// Reads what a program wrote, as far as there is room for it in a commit.
pub(super) struct EditReader<'a> {
    pub(super) bench: &'a Workbench,
    pub(super) base: Base<'a>,
    pub(super) keep: KeepLimits,
    pub(super) quiet_since: SystemTime,
}

impl EditReader<'_> {
    pub(super) fn read(&self, sight: &Sight, renames: &Renames) -> Edits {
        let mut edits = Edits::default();
        let mut bytes_left = self.keep.commit_bytes;
        let mut changes_left = self.keep.commit_files.saturating_sub(sight.folders.len());
        let mut leavers = self.leavers(sight, renames);
        for (path, stamp) in &sight.files {
            let origin = renames.origin(path);
            let known = origin.filter(|origin| origin == path || sight.vanished.contains(origin));
            let before = known.as_ref().and_then(|origin| self.base.notes.get(origin)).and_then(noted_file);
            let is_moved_only = |(noted, _): &(Stamp, ContentHash)| {
                known.as_ref() != Some(path) && noted == stamp && !stamp.is_fresh(self.quiet_since)
            };
            if let Some(before) = before.filter(is_moved_only) {
                edits.same.insert(path.clone(), before);
                continue;
            }
            let has_room = changes_left > 0 && stamp.size_bytes() <= self.keep.file_bytes.min(bytes_left);
            if let Some((noted, hash)) = before
                && (noted == *stamp || !has_room && noted.size_bytes() == stamp.size_bytes())
                && noted.is_executable() == stamp.is_executable()
                && let Some(stamp) = self.still_holds(path, hash)
            {
                edits.same.insert(path.clone(), (stamp, hash));
                continue;
            }
            if !has_room
                && changes_left > 0
                && let Some((from, (noted, hash), stamp)) = self.same_elsewhere(path, stamp, &leavers)
            {
                leavers.remove(&stamp.identity);
                changes_left -= 1;
                edits.moved.insert(path.clone(), from.clone());
                edits.same.insert(path.clone(), (stamp, hash));
                if noted.is_executable() != stamp.is_executable() {
                    // That takes a version with the same content.
                    edits.refused.insert(path.clone(), (stamp, self.lack_of_room(stamp.size_bytes())));
                }
                continue;
            }
            match self.read_file(path, bytes_left, changes_left > 0) {
                Ok(edit)
                    if before.is_some_and(|(noted, hash)| {
                        hash == edit.hash && noted.is_executable() == edit.stamp.is_executable()
                    }) =>
                {
                    edits.same.insert(path.clone(), (edit.stamp, edit.hash));
                }
                Ok(edit) => {
                    bytes_left = bytes_left.saturating_sub(edit.bytes.len() as u64);
                    changes_left = changes_left.saturating_sub(1);
                    edits.files.insert(path.clone(), edit);
                }
                Err(Unread::Gone) => {}
                Err(Unread::Refused(reason)) => {
                    edits.refused.insert(path.clone(), (*stamp, reason));
                }
            }
        }
        edits
    }

    /// Files that left their paths for the program's reasons alone, by what tells them apart wherever they are.
    fn leavers<'a>(&self, sight: &'a Sight, renames: &Renames) -> HashMap<Identity, &'a WsPath> {
        let is_leaver = |path: &&WsPath| {
            let now = renames.destination(path);
            let is_unchanged = self.base.tree.get(path).is_some_and(|row| self.base.row(path) == Some(row));
            // Folders are made before files are moved.
            is_unchanged && !sight.folders.contains_key(*path) && (now == **path || !sight.files.contains_key(&now))
        };
        let gone = sight.vanished.iter().filter(|path| self.base.is_noted_file(path)).filter(is_leaver);
        gone.filter_map(|path| Some((self.base.notes.get(path)?.stamp.identity, path))).collect()
    }

    /// Finds where a file was before: the same one, with the same content.
    fn same_elsewhere<'a>(
        &self,
        path: &WsPath,
        stamp: &Stamp,
        leavers: &HashMap<Identity, &'a WsPath>,
    ) -> Option<(&'a WsPath, (Stamp, ContentHash), Stamp)> {
        // Files are moved before folders are removed.
        let from = *leavers.get(&stamp.identity).filter(|_| !self.base.tree.get(path).is_some_and(Row::is_folder))?;
        let (noted, hash) = self.base.notes.get(from).and_then(noted_file)?;
        if noted.size_bytes() != stamp.size_bytes() {
            return None;
        }
        let now = self.still_holds(path, hash).filter(|now| now.identity == stamp.identity)?;
        Some((from, (noted, hash), now))
    }

    fn lack_of_room(&self, size_bytes: u64) -> LeftOutReason {
        if size_bytes <= self.keep.file_bytes { LeftOutReason::TooMuch } else { LeftOutReason::TooLarge }
    }

    /// Tells how a file looks that still has that content.
    fn still_holds(&self, path: &WsPath, hash: ContentHash) -> Option<Stamp> {
        let (found, metadata) = self.bench.hash(Path::new(path.without_slash())).ok()?;
        (found.0 == hash.0).then(|| Stamp::from(&metadata))
    }

    fn read_file(&self, path: &WsPath, bytes_left: u64, has_room: bool) -> Result<Edit, Unread> {
        if !has_room {
            return Err(Unread::Refused(LeftOutReason::TooMuch));
        }
        let limit = self.keep.file_bytes.min(bytes_left);
        match self.bench.read(Path::new(path.without_slash()), limit) {
            Ok(Content { bytes, hash, metadata }) => {
                Ok(Edit { stamp: Stamp::from(&metadata), hash: ContentHash(hash.0), bytes })
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

fn noted_file(note: &Note) -> Option<(Stamp, ContentHash)> {
    if let Noted::File(hash) = note.what { Some((note.stamp, hash)) } else { None }
}

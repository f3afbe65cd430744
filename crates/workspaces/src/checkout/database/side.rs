//! Gives the merge access to a working copy and to the rows of its workspace.

use super::scan::{EntryKind, KnownEntry, may_hide_changes};
use super::tree::{Row, RowKind, Tree, Version};
use crate::checkout::diff::FileState;
use crate::checkout::moves::FolderMoves;
use crate::checkout::net_changes::{NodeNow, Read, Side, WrittenContent};
use std::{collections::HashMap, path::Path, time::SystemTime};
use toolrest_core::{Content, ContentHash, Expect, FileType, LeftOutReason, MAX_PATH_BYTES, Result, WsPath};
use toolrest_directory::{CheckoutDir, Content as FileContent, ErrorKind, Metadata};

/// Implements [`Side`] for checkouts of database workspaces.
pub(super) struct DatabaseSide<'a> {
    pub(super) dir: &'a CheckoutDir,
    pub(super) tree: &'a Tree,
    /// The original rows of the working copy, for paths whose row in `tree` has changed since; `None` if there was no
    /// row.
    pub(super) base_rows: &'a HashMap<WsPath, Option<Row>>,
    pub(super) entries: &'a HashMap<WsPath, KnownEntry>,
    /// A file whose ctime is more than a tick older than this has changed only if its metadata differs.
    pub(super) unchanged_since: SystemTime,
    /// Stored contents that are converted for programs, by the hash of the stored form.
    pub(super) originals: &'a HashMap<ContentHash, Content>,
    /// Metadata and hash of the files that were read, at the time of the read.
    pub(super) read: &'a mut HashMap<WsPath, (Metadata, ContentHash)>,
}

impl DatabaseSide<'_> {
    /// Returns the row that the working copy was made from.
    pub(super) fn base_row(&self, path: &WsPath) -> Option<&Row> {
        self.base_rows.get(path).map_or_else(|| self.tree.get(path), Option::as_ref)
    }

    fn version(&self, path: &WsPath) -> Option<&Version> {
        self.tree.get(path).and_then(Row::file)
    }

    /// Hashes a file and returns whether the hash is the expected one. If it is, records the file in `read`.
    fn holds(&mut self, path: &WsPath, expected: ContentHash) -> bool {
        let Ok((hash, metadata)) = self.dir.hash(Path::new(path.without_slash())) else { return false };
        if hash.0 == expected.0 {
            self.read.insert(path.clone(), (metadata, expected));
        }
        hash.0 == expected.0
    }
}

impl Side for DatabaseSide<'_> {
    fn now(&self, path: &WsPath) -> Result<Option<NodeNow>> {
        Ok(self.tree.get(path).map(|row| match &row.what {
            RowKind::Folder => NodeNow::Folder,
            RowKind::File(version) => NodeNow::File { is_executable: version.is_executable },
            RowKind::Unseen => NodeNow::Protected,
        }))
    }

    fn is_changed(&self, path: &WsPath) -> Result<bool> {
        Ok(self.base_row(path) != self.tree.get(path))
    }

    fn can_move(&self, from: &WsPath, to: &WsPath) -> bool {
        let fits = |path: &WsPath| path.as_str().len() + to.as_str().len() <= MAX_PATH_BYTES + from.as_str().len();
        let is_free = self.tree.below(to).next().is_none() && !self.entries.contains_key(to);
        is_free && self.tree.below(from).all(|(path, row)| row.what != RowKind::Unseen && fits(path))
    }

    fn holds_more(&self, folder: &WsPath, is_removed: &dyn Fn(&str) -> bool, moves: &FolderMoves) -> bool {
        let destination = moves.destination(folder);
        // Descendants of a removed folder are skipped, because they are removed with it.
        let mut below = self.tree.below_without(folder, is_removed);
        below.any(|path| !is_removed(path.as_str()) && moves.destination(path).is_below(&destination))
    }

    fn hash_before(&self, _: &WsPath, before: &FileState) -> Result<Result<ContentHash, LeftOutReason>> {
        Ok(before.hash.ok_or(LeftOutReason::Unreadable))
    }

    fn hash_after(&mut self, path: &WsPath) -> Option<ContentHash> {
        let (hash, metadata) = self.dir.hash(Path::new(path.without_slash())).ok()?;
        self.read.insert(path.clone(), (metadata, ContentHash(hash.0)));
        Some(ContentHash(hash.0))
    }

    fn read(
        &mut self,
        path: &WsPath,
        after: &FileState,
        before: Option<(&WsPath, &FileState)>,
        limit_bytes: Option<u64>,
    ) -> Result<Read> {
        let metadata = &after.metadata;
        let before = before.and_then(|(origin, before)| Some((origin, before, before.hash?)));
        let limit_bytes = limit_bytes.filter(|limit| metadata.size_bytes <= *limit);
        if let Some((origin, before, hash)) = before {
            let has_same_metadata = before.metadata == *metadata;
            if origin != path && has_same_metadata && !may_hide_changes(metadata, self.unchanged_since) {
                self.read.insert(path.clone(), (*metadata, hash));
                return Ok(Read::Same);
            }
            let may_be_same = has_same_metadata || limit_bytes.is_none() && before.size_bytes() == metadata.size_bytes;
            if may_be_same && before.is_executable() == after.is_executable() && self.holds(path, hash) {
                return Ok(Read::Same);
            }
        }
        let Some(limit_bytes) = limit_bytes else { return Ok(Read::OverLimit { size_bytes: metadata.size_bytes }) };
        let FileContent { bytes, hash, metadata } = match self.dir.read(Path::new(path.without_slash()), limit_bytes) {
            Ok(content) => content,
            Err(error) => {
                return Ok(match error.kind {
                    ErrorKind::NotFound | ErrorKind::NotAFolder | ErrorKind::IsFolder | ErrorKind::Loop => Read::Gone,
                    ErrorKind::TooLarge { size_bytes, .. } => Read::OverLimit { size_bytes },
                    ErrorKind::Special => Read::LeftOut(LeftOutReason::Special),
                    _ => Read::LeftOut(LeftOutReason::Unreadable),
                });
            }
        };
        let (hash, is_executable) = (ContentHash(hash.0), metadata.is_executable());
        self.read.insert(path.clone(), (metadata, hash));
        let is_same = |(_, before, before_hash): (&WsPath, &FileState, ContentHash)| {
            before_hash == hash && before.is_executable() == is_executable
        };
        Ok(if before.is_some_and(is_same) {
            Read::Same
        } else {
            Read::Written(WrittenContent { hash, is_executable, bytes })
        })
    }

    fn shows(&self, path: &WsPath, _: Option<&FileState>, written: &WrittenContent) -> bool {
        self.version(path).is_some_and(|version| {
            if version.is_plain() {
                return version.blob == written.hash;
            }
            let original = self.originals.get(&version.blob).cloned();
            original.is_some_and(|content| content.shown(version.file_type) == written.bytes)
        })
    }

    fn content(&self, path: &WsPath, bytes: Vec<u8>) -> Result<(FileType, Content), (String, Vec<u8>)> {
        let typed = self.version(path).filter(|version| !version.is_plain());
        let Some(version) = typed else {
            let content = Content::of_bytes(bytes);
            return Ok((content.form().plain_type(), content));
        };
        let content = match self.originals.get(&version.blob) {
            Some(before) => Content::of_shown(bytes.clone(), version.file_type, before),
            None => Ok(Content::of_bytes(bytes.clone())),
        };
        // JSON with a number that has no canonical form cannot be hashed.
        match content.and_then(|content| content.hash().map(|_| content)) {
            Ok(content) => Ok((version.file_type, content)),
            Err(error) => {
                let file_type = version.file_type;
                Err((format!("it is a {file_type} and cannot hold what was written: {}", error.message), bytes))
            }
        }
    }

    fn expect_file(&self, path: &WsPath, _: Option<&FileState>) -> Vec<Expect> {
        let Some(row) = self.tree.get(path) else { return Vec::new() };
        let version = row.file().map(|version| Expect::Version(row.id, version.id));
        version.into_iter().chain([Expect::At(row.id, path.clone())]).collect()
    }

    fn expect_folder(&self, path: &WsPath) -> Option<Expect> {
        self.tree.get(path).map(|row| Expect::At(row.id, path.clone()))
    }
}

/// Whether the entry at a path is known as a folder of the workspace.
pub(super) fn is_known_folder(entries: &HashMap<WsPath, KnownEntry>, path: &WsPath) -> bool {
    entries.get(path).is_some_and(|entry| entry.kind == EntryKind::Folder)
}

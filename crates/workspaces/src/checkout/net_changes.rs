//! The net effect of a program on each path, known before any lock is taken.
//!
//! Moves of folders are found, contents are read, and the limits of a commit are applied. What others changed meanwhile
//! is not considered here: that is the merge.

use super::diff::{Diff, Diffs, FileState, Node};
use super::moves::FolderMoves;
use std::collections::{BTreeMap, HashMap};
use toolrest_core::{Content, ContentHash, Expect, FileType, KeepLimits, LeftOutReason, Result, WsPath};
use toolrest_directory::Identity;

/// One kind of checkout as reading and merging see it: the files of the program, and the workspace as it is now.
pub(crate) trait Side {
    /// Returns what is in the workspace at a path.
    fn now(&self, path: &WsPath) -> Result<Option<NodeNow>>;

    /// Whether somebody else changed what is at a path since the program found it there.
    fn is_changed(&self, _path: &WsPath) -> Result<bool> {
        Ok(false)
    }

    /// Whether a folder can be moved as a whole to a path at which there is nothing.
    fn can_move(&self, _from: &WsPath, _to: &WsPath) -> bool {
        true
    }

    /// Whether the workspace holds something below a folder that is neither removed nor moved out of it.
    fn holds_more(&self, _folder: &WsPath, _is_removed: &dyn Fn(&str) -> bool, _moves: &FolderMoves) -> bool {
        false
    }

    /// Returns the hash of a file as the program found it, or the reason why it is not known.
    fn hash_before(&self, path: &WsPath, before: &FileState) -> Result<Result<ContentHash, LeftOutReason>>;

    /// Whether files for which a commit has no room are brought to the workspace without versions.
    fn transfers(&self) -> bool {
        false
    }

    /// Hashes a file that the program left, where files keep their inodes if they are moved; none if it cannot be read.
    fn hash_after(&mut self, _path: &WsPath) -> Option<ContentHash> {
        None
    }

    /// Reads a file that the program left, unless it is the same as before. `before` is the file that it was made from,
    /// with its path. Without a limit there is no room for any file.
    fn read(
        &mut self,
        path: &WsPath,
        after: &FileState,
        before: Option<(&WsPath, &FileState)>,
        limit_bytes: Option<u64>,
    ) -> Result<Read>;

    /// Whether the workspace shows the content at a path that the program wrote.
    fn shows(&self, _path: &WsPath, before: Option<&FileState>, written: &Written) -> bool {
        before.is_some_and(|before| before.hash == Some(written.hash))
    }

    /// Returns the content for the file at a path of the workspace; if the file cannot hold it, the reason and the bytes.
    fn content(&self, _path: &WsPath, bytes: Vec<u8>) -> Result<(FileType, Content), (String, Vec<u8>)> {
        let content = Content::of_bytes(bytes);
        Ok((content.form().plain_type(), content))
    }

    /// Returns the conditions that the file at a path is still the one that was compared.
    fn expect_file(&self, path: &WsPath, before: Option<&FileState>) -> Vec<Expect> {
        before.and_then(|before| before.hash).map(|hash| Expect::Hash(path.clone(), hash)).into_iter().collect()
    }

    /// Returns the condition that the folder at a path is still the one that was compared.
    fn expect_folder(&self, _path: &WsPath) -> Option<Expect> {
        None
    }
}

/// What is at a path of the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeNow {
    Folder,
    File {
        is_executable: bool,
    },
    /// A file of the system, which programs do not see and cannot change.
    Protected,
}

/// What came of reading a file.
pub(crate) enum Read {
    /// It is as it was before.
    Same,
    Written(Written),
    /// It has more bytes than the limit.
    OverLimit {
        size_bytes: u64,
    },
    /// It is not there any more, or it is changing.
    Gone,
    LeftOut(LeftOutReason),
}

/// The content that a program wrote to a file.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) hash: ContentHash,
    pub(crate) is_executable: bool,
    /// Empty once they are part of a changeset.
    pub(crate) bytes: Vec<u8>,
}

/// How much of a program's changes becomes part of a commit.
#[derive(Clone, Copy)]
pub(crate) struct CommitLimits {
    pub(crate) keep: KeepLimits,
    /// Which of the contents that the program replaced count, because the commit records them.
    pub(crate) counted: CountedContents,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CountedContents {
    /// Only those that the program wrote.
    Written,
    /// Also those that they replace.
    Replaced,
    /// Also those of removed files.
    Removed,
}

/// What a program did to a file that it left.
#[derive(Debug)]
pub(crate) enum FileChange {
    Same,
    Written(Written),
    /// The file is over the limits of a commit, but only has to be moved from another path.
    Moved(WsPath),
    /// It has no version in the commit. Where a checkout transfers files without versions, this is one of them.
    OverLimit(LeftOutReason),
    /// It cannot be read.
    Unreadable(LeftOutReason),
}

/// The net effect of a program on each path.
#[derive(Debug, Default)]
pub(crate) struct NetChanges {
    pub(crate) diffs: Diffs,
    pub(super) moves: FolderMoves,
    /// The files that the program left, by path.
    pub(super) files: BTreeMap<WsPath, FileChange>,
    /// Removed files that get no version in the commit.
    pub(super) unversioned_removals: BTreeMap<WsPath, LeftOutReason>,
    /// Files that were moved and also changed in a way for which there is no room.
    pub(super) partly_left_out: BTreeMap<WsPath, LeftOutReason>,
}

impl NetChanges {
    /// Reads what a program changed, as far as it has room in a commit.
    pub(crate) fn read(diffs: Vec<Diff>, side: &mut impl Side, limits: CommitLimits, find: FindMoves) -> Result<Self> {
        let diffs = Diffs::from(diffs);
        let moves = if find == FindMoves::ByIdentity {
            FolderMoves::by_identity(&diffs, side)?
        } else {
            FolderMoves::default()
        };
        let mut net = Self { diffs, moves, ..Self::default() };
        let mut room = Room::new(limits, &net.diffs);
        if limits.counted == CountedContents::Removed {
            net.hash_removed_files(side, &mut room)?;
        }
        net.read_files(side, &mut room)?;
        if find == FindMoves::ByContent {
            net.moves = FolderMoves::by_content(&net, side)?;
        }
        Ok(net)
    }

    /// Returns the files with a new content.
    pub(crate) fn written(&self) -> impl Iterator<Item = (&WsPath, &Written)> {
        self.files.iter().filter_map(|(path, change)| {
            if let FileChange::Written(written) = change { Some((path, written)) } else { None }
        })
    }

    /// Returns where a path of the program was before the program moved folders.
    pub(crate) fn origin(&self, path: &WsPath) -> Option<WsPath> {
        self.moves.origin(path)
    }

    /// Returns why a file that the program left is not part of the commit, or not all of it.
    pub(crate) fn left_out(&self, path: &WsPath) -> Option<LeftOutReason> {
        match self.files.get(path)? {
            FileChange::OverLimit(reason) | FileChange::Unreadable(reason) => Some(*reason),
            _ => self.partly_left_out.get(path).copied(),
        }
    }

    fn hash_removed_files(&mut self, side: &impl Side, room: &mut Room) -> Result<()> {
        let removed = self.diffs.iter().filter(|diff| diff.is_removed());
        let removed = removed.filter_map(|diff| Some((diff.path.clone(), *diff.file_before()?)));
        for (path, before) in removed.collect::<Vec<_>>() {
            if side.is_changed(&path)? {
                continue;
            }
            let hash = match room.take(before.size_bytes()) {
                Ok(()) => side.hash_before(&path, &before)?,
                Err(reason) => Err(reason),
            };
            match hash {
                Ok(hash) => self.set_hash_before(&path, hash),
                Err(reason) => drop(self.unversioned_removals.insert(path, reason)),
            }
        }
        Ok(())
    }

    fn set_hash_before(&mut self, path: &WsPath, hash: ContentHash) {
        if let Some(before) = self.diffs.file_before_mut(path) {
            before.hash = Some(hash);
        }
    }

    fn read_files(&mut self, side: &mut impl Side, room: &mut Room) -> Result<()> {
        let left = self.diffs.iter().filter_map(|diff| Some((diff.path.clone(), *diff.file_after()?)));
        let mut sources = None;
        for (path, after) in left.collect::<Vec<_>>() {
            let change = self.read_file(&path, &after, side, room, &mut sources)?;
            self.files.extend(change.map(|change| (path, change)));
        }
        Ok(())
    }

    fn read_file(
        &mut self,
        path: &WsPath,
        after: &FileState,
        side: &mut impl Side,
        room: &mut Room,
        sources: &mut Option<HashMap<Identity, WsPath>>,
    ) -> Result<Option<FileChange>> {
        let origin = self.made_from(path);
        let mut before = origin.as_ref().and_then(|origin| self.diffs.file_before(origin)).copied();
        let mut replaced_bytes = 0;
        if let Some((origin, before)) = origin.as_ref().zip(before.as_mut()) {
            let is_changed = side.is_changed(origin)?;
            replaced_bytes = if is_changed { 0 } else { room.replaced_bytes(before) };
            let has_room = !is_changed && room.limit(replaced_bytes).is_some_and(|limit| after.size_bytes() <= limit);
            let is_comparable =
                before.size_bytes() == after.size_bytes() && after.size_bytes() <= room.limits.keep.file_bytes;
            if before.hash.is_none() && (has_room || is_comparable) {
                match side.hash_before(origin, before)? {
                    Ok(hash) => {
                        before.hash = Some(hash);
                        self.set_hash_before(origin, hash);
                    }
                    Err(reason) if !is_changed => return Ok(Some(FileChange::OverLimit(reason))),
                    Err(_) => {}
                }
            }
        }
        let limit = room.limit(replaced_bytes);
        let size_bytes = match side.read(path, after, origin.as_ref().zip(before.as_ref()), limit)? {
            Read::Same => return Ok(Some(FileChange::Same)),
            Read::Gone => return Ok(None),
            Read::LeftOut(reason) => return Ok(Some(FileChange::Unreadable(reason))),
            Read::OverLimit { size_bytes } => size_bytes,
            Read::Written(written) => {
                room.spend(written.bytes.len() as u64, replaced_bytes);
                return Ok(Some(FileChange::Written(written)));
            }
        };
        let reason = room.reason(size_bytes.max(replaced_bytes));
        if room.files_left > 0 {
            if sources.is_none() {
                *sources = Some(self.move_sources(side)?);
            }
            if let Some(from) = sources.as_mut().map_or(Ok(None), |from| self.moved_from(path, after, side, from))? {
                room.files_left -= 1;
                if self.diffs.file_before(&from).is_some_and(|before| before.is_executable() != after.is_executable()) {
                    // That takes a version with the same content.
                    self.partly_left_out.insert(path.clone(), reason);
                }
                return Ok(Some(FileChange::Moved(from)));
            }
        }
        Ok(Some(FileChange::OverLimit(reason)))
    }

    /// Returns the path in the workspace of the file or folder that the program's file at a path was made from.
    pub(super) fn made_from(&self, path: &WsPath) -> Option<WsPath> {
        self.moves.origin(path).filter(|origin| origin == path || self.diffs.is_removed(origin))
    }

    /// Returns the files that only the program took away from their paths, by their inodes.
    fn move_sources(&self, side: &impl Side) -> Result<HashMap<Identity, WsPath>> {
        let mut sources = HashMap::new();
        for diff in self.diffs.iter().filter(|diff| diff.is_removed() && !diff.makes_folder()) {
            let destination = self.moves.destination(&diff.path);
            let stays_in_folder = destination != diff.path && self.diffs.leaves_file(&destination);
            if let Some(before) = diff.file_before().filter(|_| !stays_in_folder)
                && !side.is_changed(&diff.path)?
            {
                sources.insert(before.metadata.identity, diff.path.clone());
            }
        }
        Ok(sources)
    }

    /// Takes the source that is the same file with the same content.
    fn moved_from(
        &self,
        path: &WsPath,
        after: &FileState,
        side: &mut impl Side,
        sources: &mut HashMap<Identity, WsPath>,
    ) -> Result<Option<WsPath>> {
        let Some(from) = sources.get(&after.metadata.identity) else { return Ok(None) };
        // Files are moved before folders are removed.
        let is_on_folder = side.now(path)? == Some(NodeNow::Folder);
        let before = self.diffs.file_before(from).filter(|before| before.size_bytes() == after.size_bytes());
        let hash = before.and_then(|before| before.hash);
        if is_on_folder || hash.is_none() || side.hash_after(path) != hash {
            return Ok(None);
        }
        Ok(sources.remove(&after.metadata.identity))
    }
}

/// How moves of folders are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FindMoves {
    /// A moved folder has the inode that it had.
    ByIdentity,
    /// A moved folder has all the contents that it had.
    ByContent,
    /// Moves are recorded as removed and created files.
    No,
}

/// The room that is left in a commit.
struct Room {
    limits: CommitLimits,
    bytes_left: u64,
    files_left: usize,
}

impl Room {
    /// All room but that for folders, which are never left out.
    fn new(limits: CommitLimits, diffs: &Diffs) -> Self {
        let counts_removed = limits.counted == CountedContents::Removed;
        let is_folder = |diff: &&Diff| {
            let is_removed_folder = || diff.is_removed() && diff.before.as_ref().is_some_and(Node::is_folder);
            diff.makes_folder() || counts_removed && is_removed_folder()
        };
        let folders = diffs.iter().filter(is_folder).count();
        let files_left = limits.keep.commit_files.saturating_sub(folders);
        Self { limits, bytes_left: limits.keep.commit_bytes, files_left }
    }

    fn replaced_bytes(&self, before: &FileState) -> u64 {
        if self.limits.counted == CountedContents::Written { 0 } else { before.size_bytes() }
    }

    /// Returns the maximum size of a file that replaces so many bytes; none if there is no room for any.
    fn limit(&self, replaced_bytes: u64) -> Option<u64> {
        let has_room = self.files_left > 0 && replaced_bytes <= self.limits.keep.file_bytes;
        let left = self.bytes_left.checked_sub(replaced_bytes).filter(|_| has_room)?;
        Some(left.min(self.limits.keep.file_bytes))
    }

    fn reason(&self, size_bytes: u64) -> LeftOutReason {
        if size_bytes > self.limits.keep.file_bytes { LeftOutReason::TooLarge } else { LeftOutReason::TooMuch }
    }

    fn take(&mut self, bytes: u64) -> Result<(), LeftOutReason> {
        if self.limit(0).is_none_or(|limit| bytes > limit) {
            return Err(self.reason(bytes));
        }
        self.spend(bytes, 0);
        Ok(())
    }

    fn spend(&mut self, bytes: u64, replaced_bytes: u64) {
        self.bytes_left = self.bytes_left.saturating_sub(bytes.saturating_add(replaced_bytes));
        self.files_left = self.files_left.saturating_sub(1);
    }
}

//! The net effect of a program on each path, computed before any lock is taken.
//!
//! Moves of folders are found, contents are read, and the limits of a commit are applied. Concurrent changes by others
//! are merged later.

use super::diff::{Diff, Diffs, FileState, Node, judge};
use super::moves::FolderMoves;
use std::collections::{BTreeMap, HashMap};
use toolrest_core::{Content, ContentHash, Expect, FileType, Guard, KeepLimits, LeftOutReason, Result, WsPath};
use toolrest_directory::Identity;

/// What reading and merging need from a kind of checkout: the files of the program, and the current state of the
/// workspace.
pub(crate) trait Side {
    /// Returns the file or folder that is now at a path of the workspace.
    fn now(&self, path: &WsPath) -> Result<Option<NodeNow>>;

    /// Whether somebody else has changed the file or folder at a path since the baseline of the program's changes.
    fn is_changed(&self, _path: &WsPath) -> Result<bool> {
        Ok(false)
    }

    /// Whether a folder can be moved as a whole to a free path.
    fn can_move(&self, _from: &WsPath, _to: &WsPath) -> bool {
        true
    }

    /// Whether a folder of the workspace still has entries after the removals and moves.
    fn holds_more(&self, _folder: &WsPath, _is_removed: &dyn Fn(&str) -> bool, _moves: &FolderMoves) -> bool {
        false
    }

    /// Returns the hash of a file before the program changed it, or the reason why it is not known.
    fn hash_before(&self, path: &WsPath, before: &FileState) -> Result<Result<ContentHash, LeftOutReason>>;

    /// Whether files that exceed the limits of a commit are transferred to the workspace without versions.
    fn transfers(&self) -> bool {
        false
    }

    /// Hashes a file after the program ran. `None` if it cannot be read, or if this kind of checkout does not find
    /// moved files by their inodes.
    fn hash_after(&mut self, _path: &WsPath) -> Option<ContentHash> {
        None
    }

    /// Reads a file after the program ran, unless it is unchanged. `before` is the file that it was made from, with its
    /// path. `limit_bytes` is `None` if the commit cannot hold the file, whatever its size.
    fn read(
        &mut self,
        path: &WsPath,
        after: &FileState,
        before: Option<(&WsPath, &FileState)>,
        limit_bytes: Option<u64>,
    ) -> Result<Read>;

    /// Whether the content of the workspace at a path already equals what the program wrote.
    fn shows(&self, _path: &WsPath, before: Option<&FileState>, written: &WrittenContent) -> bool {
        before.is_some_and(|before| before.hash == Some(written.hash))
    }

    /// Converts bytes to the content of the file at a path of the workspace. If the file cannot have this content,
    /// returns the reason and the bytes.
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

/// The file or folder that is now at a path of the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeNow {
    Folder,
    File {
        is_executable: bool,
    },
    /// A virtual file, such as a chat, which programs do not see and cannot change.
    Protected,
}

/// The result of reading a file.
pub(crate) enum Read {
    /// It is unchanged.
    Same,
    Written(WrittenContent),
    /// It has more bytes than the limit, or the commit cannot hold it, whatever its size.
    OverLimit {
        size_bytes: u64,
    },
    /// It no longer exists, or it is being changed.
    Gone,
    LeftOut(LeftOutReason),
}

/// The content that a program wrote to a file.
#[derive(Debug)]
pub(crate) struct WrittenContent {
    pub(crate) hash: ContentHash,
    pub(crate) is_executable: bool,
    /// The content. Empty once it is part of a changeset.
    pub(crate) bytes: Vec<u8>,
}

/// Limits on the changes of a program that become part of a commit.
#[derive(Clone, Copy)]
pub(crate) struct CommitLimits {
    pub(crate) keep: KeepLimits,
    /// Which contents count towards the limits.
    pub(crate) counted: CountedContents,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CountedContents {
    /// Only contents that the program wrote.
    Written,
    /// Contents that the program wrote, and those that they replaced.
    Replaced,
    /// Contents that the program wrote, those that they replaced, and those of removed files.
    Removed,
}

/// The change to a file that exists after the program ran.
#[derive(Debug)]
pub(crate) enum FileChange {
    Same,
    Written(WrittenContent),
    /// The file exceeds the limits of a commit, but is only moved from this path, so its content is not needed.
    Moved(WsPath),
    /// It has no version in the commit. If [`Side::transfers`] is true, it is transferred without one.
    OverLimit(LeftOutReason),
    /// It cannot be read.
    Unreadable(LeftOutReason),
}

/// The net effect of a program on each path.
#[derive(Debug, Default)]
pub(crate) struct NetChanges {
    pub(crate) diffs: Diffs,
    pub(super) moves: FolderMoves,
    /// The changes to the files that exist after the program ran, by path.
    pub(super) files: BTreeMap<WsPath, FileChange>,
    /// Removed files that get no version in the commit.
    pub(super) unversioned_removals: BTreeMap<WsPath, LeftOutReason>,
    /// Moved files whose change of the executable bit is not part of the commit, because it would exceed the limits.
    pub(super) partly_left_out: BTreeMap<WsPath, LeftOutReason>,
}

impl NetChanges {
    /// Reads what a program changed, within the limits of a commit.
    pub(crate) fn read(diffs: Vec<Diff>, side: &mut impl Side, limits: CommitLimits, find: FindMoves) -> Result<Self> {
        let diffs = Diffs::from(diffs);
        let moves = if find == FindMoves::ByIdentity {
            FolderMoves::by_identity(&diffs, side)?
        } else {
            FolderMoves::default()
        };
        let mut net = Self { diffs, moves, ..Self::default() };
        let mut room = RemainingLimits::new(limits, &net.diffs);
        if limits.counted == CountedContents::Removed {
            net.hash_removed_files(side, &mut room)?;
        }
        net.read_files(side, &mut room)?;
        if find == FindMoves::ByContent {
            net.moves = FolderMoves::by_content(&net, side)?;
        }
        Ok(net)
    }

    /// Refuses the changes if the guard does not allow one of them. A file that was only looked at again, because its times
    /// could not tell whether it changed, is no change.
    pub(crate) fn judge(&self, guard: &Guard) -> Result<()> {
        let is_same = |diff: &Diff| {
            let is_executable = |node: &Option<Node>| matches!(node, Some(Node::File(file)) if file.is_executable());
            matches!(self.files.get(&diff.path), Some(FileChange::Same))
                && is_executable(&diff.before) == is_executable(&diff.after)
        };
        let changed = self.diffs.iter().filter(|diff| !is_same(diff));
        judge(guard, changed.map(|diff| (Some(diff.path.clone()), diff.before.is_some(), diff.after.is_some())))
    }

    /// Returns the files with a new content.
    pub(crate) fn written(&self) -> impl Iterator<Item = (&WsPath, &WrittenContent)> {
        self.files.iter().filter_map(|(path, change)| {
            if let FileChange::Written(written) = change { Some((path, written)) } else { None }
        })
    }

    /// Returns the path that a file or folder had before the program moved folders.
    pub(crate) fn origin(&self, path: &WsPath) -> Option<WsPath> {
        self.moves.origin(path)
    }

    /// Returns why a file that exists after the program ran is not part of the commit, or only partly.
    pub(crate) fn left_out(&self, path: &WsPath) -> Option<LeftOutReason> {
        match self.files.get(path)? {
            FileChange::OverLimit(reason) | FileChange::Unreadable(reason) => Some(*reason),
            _ => self.partly_left_out.get(path).copied(),
        }
    }

    fn hash_removed_files(&mut self, side: &impl Side, room: &mut RemainingLimits) -> Result<()> {
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

    fn read_files(&mut self, side: &mut impl Side, room: &mut RemainingLimits) -> Result<()> {
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
        room: &mut RemainingLimits,
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
                    // A change of the executable bit needs a new version, which would exceed the limits.
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

    /// Returns the files that the program removed from their paths and nobody else changed. The key is the inode.
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

    /// Removes and returns the source with the same inode and content as the file at `path`.
    fn moved_from(
        &self,
        path: &WsPath,
        after: &FileState,
        side: &mut impl Side,
        sources: &mut HashMap<Identity, WsPath>,
    ) -> Result<Option<WsPath>> {
        let Some(from) = sources.get(&after.metadata.identity) else { return Ok(None) };
        // Files are moved before folders are removed, so a file cannot be moved to the path of a folder.
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
    /// A moved folder has the same inode as before.
    ByIdentity,
    /// A moved folder has the same contents as before.
    ByContent,
    /// Moves are recorded as removed and created files.
    No,
}

/// The number of bytes and files that a commit can still hold.
struct RemainingLimits {
    limits: CommitLimits,
    bytes_left: u64,
    files_left: usize,
}

impl RemainingLimits {
    /// Starts with the limits of the commit, minus the folders, which are always part of it.
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

    /// Returns the maximum size of a file that replaces `replaced_bytes`; `None` if the commit can hold no such file.
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

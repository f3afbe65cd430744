//! Merges the net changes of a program with what others changed meanwhile, for every kind of checkout.
//!
//! Others' changes win. Where the program changed the same file, its version becomes a conflict copy.

use super::conflict_paths::ConflictPaths;
use super::diff::{Diff, FileState, Node};
use super::moves::MAX_MOVES;
use super::net_changes::{FileChange, NetChanges, NodeNow, Side, WrittenContent};
use super::path_tree::PathTree;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use toolrest_core::{
    Attribution, CallId, Change, Changeset, CheckedIn, CommitId, Content, ContentHash, Destination, Expect, LeftOut,
    LeftOutReason, Parents, ProgramChange, ProgramChangeKind, ProgramConflict, Put, Removal, Result, WsPath,
};

pub(crate) const CHANGED: &str = "somebody else changed it while the program ran";
pub(crate) const NOT_REMOVED: &str = "somebody else changed it while the program ran, so it was not removed";
const REMOVED: &str = "somebody else removed or moved it while the program ran";
const CREATED: &str = "somebody else created something at this path while the program ran";
pub(super) const FILE_IN_THE_WAY: &str = "a file of somebody else is at the path of a folder";
const PROTECTED: &str = "the system shows something there that programs cannot change";

/// What becomes of a program's changes.
#[derive(Debug, Default)]
pub(crate) struct MergeOutcome {
    pub(crate) changes: Changeset,
    pub(crate) changed: Vec<ProgramChange>,
    pub(crate) conflicts: Vec<ProgramConflict>,
    /// What the program left that is not part of the changeset.
    pub(crate) left_out: Vec<Unversioned>,
    /// What the program removed without a version in the changeset.
    pub(crate) unversioned_removals: BTreeMap<WsPath, LeftOutReason>,
    /// What the program left that is part of the changeset, or is the same as before.
    pub(crate) placed: Vec<PlacedEntry>,
    /// Conflict paths, by the paths that they stand for.
    pub(crate) conflict_paths: BTreeMap<WsPath, WsPath>,
}

/// Something that the program left and that has no version.
#[derive(Debug)]
pub(crate) struct Unversioned {
    /// The path in the program's files.
    pub(crate) path: WsPath,
    /// The path in the workspace where it belongs; none if it is not to be transferred.
    pub(crate) to: Option<WsPath>,
    pub(crate) reason: LeftOutReason,
}

/// A file or folder that the program left, and its path in the workspace.
#[derive(Debug)]
pub(crate) struct PlacedEntry {
    pub(crate) path: WsPath,
    pub(crate) to: WsPath,
    pub(crate) kind: PlacedKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlacedKind {
    Same,
    Changed,
    Created,
    CreatedFolder,
}

impl MergeOutcome {
    pub(crate) fn into_checked_in(
        mut self,
        commit: Option<CommitId>,
        attribution: Attribution,
        mut left_out: Vec<LeftOut>,
    ) -> CheckedIn {
        // What was removed comes before what replaced it.
        self.changed.sort_by(|one, other| {
            let key = |change: &ProgramChange| change.change != ProgramChangeKind::Removed;
            one.path.cmp(&other.path).then(key(one).cmp(&key(other)))
        });
        self.conflicts.sort_by(|one, other| one.path.cmp(&other.path));
        left_out.sort_by(|one, other| one.path.cmp(&other.path));
        left_out.dedup();
        CheckedIn { attribution, commit, changed: self.changed, conflicts: self.conflicts, left_out }
    }
}

/// Where something that the program left belongs.
enum Target {
    /// In the place of the file at that path of the workspace, which nobody else changed.
    Replaces(WsPath),
    /// Something else is at that path, or somebody else removed the file.
    Taken(Option<WsPath>, &'static str),
    /// Nothing is at the path, or nothing that stays.
    Free(Option<WsPath>),
}

struct Merge<'a, S> {
    net: &'a NetChanges,
    side: &'a S,
    conflict_paths: ConflictPaths,
    /// Paths of the workspace that are removed.
    removed: BTreeSet<WsPath>,
    /// Paths, after the moves, of what the program removed and others keep.
    staying: PathTree<()>,
    /// Changes that come before all others.
    leading_changes: Vec<Change>,
    removed_files: BTreeSet<WsPath>,
    removed_folders: BTreeSet<WsPath>,
    /// Removed files that may have been moved, by their contents.
    move_sources: HashMap<ContentHash, Vec<WsPath>>,
    made_folders: BTreeSet<WsPath>,
    moves: Vec<(WsPath, WsPath)>,
    puts: Vec<Put>,
    expect: Vec<Expect>,
    /// Paths of conflicts.
    conflict_index: PathTree<()>,
    outcome: MergeOutcome,
}

/// Borrows only what is needed, so that conflict paths can be given meanwhile.
macro_rules! occupied {
    ($merge:ident) => {{
        let (net, side, removed) = ($merge.net, $merge.side, &$merge.removed);
        move |path: &WsPath| occupied_by(net, side, removed, path)
    }};
}

/// Returns what is at a path after the moves of folders, and stays there.
fn occupied_by(
    net: &NetChanges,
    side: &impl Side,
    removed: &BTreeSet<WsPath>,
    path: &WsPath,
) -> Result<Option<NodeNow>> {
    let origin = net.moves.origin(path).filter(|origin| !removed.contains(origin));
    let now = origin.map_or(Ok(None), |origin| side.now(&origin))?;
    Ok(now.or_else(|| {
        let after = net.diffs.after(path).filter(|after| !after.is_folder());
        after.map(|_| NodeNow::File { is_executable: false })
    }))
}

impl NetChanges {
    /// Merges the changes with the workspace as it is now. Takes the contents, so that they are in memory once.
    pub(crate) fn merge(&mut self, side: &impl Side, call: CallId) -> Result<MergeOutcome> {
        let mut files = std::mem::take(&mut self.files);
        let mut merge = Merge {
            net: self,
            side,
            conflict_paths: ConflictPaths::new(call),
            removed: BTreeSet::new(),
            staying: PathTree::default(),
            leading_changes: Vec::new(),
            removed_files: BTreeSet::new(),
            removed_folders: BTreeSet::new(),
            move_sources: HashMap::new(),
            made_folders: BTreeSet::new(),
            moves: Vec::new(),
            puts: Vec::new(),
            expect: Vec::new(),
            conflict_index: PathTree::default(),
            outcome: MergeOutcome::default(),
        };
        merge.move_folders();
        merge.remove_files()?;
        merge.remove_folders()?;
        merge.make_folders()?;
        for (path, change) in &files {
            if let FileChange::Moved(from) = change {
                merge.move_large_file(path, from)?;
            }
        }
        for (path, change) in &mut files {
            merge.keep_file(path, change)?;
        }
        merge.keep_unversioned()?;
        let outcome = merge.into_outcome();
        self.files = files;
        Ok(outcome)
    }
}

impl<S: Side> Merge<'_, S> {
    fn move_folders(&mut self) {
        for folder in self.net.moves.iter() {
            if let Some(above) = folder.to.parent().filter(|above| !above.is_root()) {
                self.leading_changes.push(Change::MakeDir(above));
            }
            let to = Destination::Exactly(folder.to.clone());
            self.leading_changes.push(Change::Move { from: folder.from.clone(), to });
            self.expect.extend(self.side.expect_folder(&folder.origin));
            self.expect.push(Expect::Absent(folder.to.clone()));
            self.report(&folder.to, ProgramChangeKind::Moved, Some(&folder.origin));
        }
    }

    fn remove_files(&mut self) -> Result<()> {
        let net = self.net;
        for diff in net.diffs.iter().filter(|diff| diff.is_removed()) {
            let Diff { path, before: Some(before), after } = diff else { continue };
            let destination = net.moves.destination(path);
            let moves_along = destination != *path && net.diffs.leaves_file(&destination);
            if before.is_folder() || moves_along || self.side.now(path)?.is_none() {
                continue;
            }
            if self.side.is_changed(path)? {
                self.staying.insert(&destination, ());
                // What the program left there instead becomes a conflict copy, which is reported with its path.
                if after.is_none() {
                    self.conflict(path, None, NOT_REMOVED);
                }
                continue;
            }
            self.removed.insert(path.clone());
            let reason = match before {
                Node::Unversioned(reason) => Some(*reason),
                _ => net.unversioned_removals.get(path).copied(),
            };
            if let Some(reason) = reason {
                self.outcome.unversioned_removals.insert(path.clone(), reason);
                continue;
            }
            self.removed_files.insert(path.clone());
            if let Some(hash) = net.diffs.file_before(path).and_then(|file| file.hash)
                && !diff.makes_folder()
            {
                self.move_sources.entry(hash).or_default().push(path.clone());
            }
        }
        Ok(())
    }

    /// Removes folders in which nothing is left.
    fn remove_folders(&mut self) -> Result<()> {
        for Diff { path, before, .. } in self.net.diffs.iter().rev().filter(|diff| diff.is_removed()) {
            let destination = self.net.moves.destination(path);
            let moves_along = destination != *path && self.net.diffs.makes_folder(&destination);
            if !before.as_ref().is_some_and(Node::is_folder)
                || moves_along
                || self.side.now(path)? != Some(NodeNow::Folder)
                || self.side.is_changed(path)?
                || self.net.moves.lead_to_or_below(&destination)
            {
                continue;
            }
            let is_removed = |path: &str| self.removed.contains(path);
            if self.staying.any_at_or_below(&destination) || self.side.holds_more(path, &is_removed, &self.net.moves) {
                self.staying.insert(&destination, ());
            } else {
                self.removed_folders.insert(path.clone());
                self.removed.insert(path.clone());
            }
        }
        Ok(())
    }

    fn make_folders(&mut self) -> Result<()> {
        for Diff { path, .. } in self.net.diffs.iter().filter(|diff| diff.makes_folder()) {
            let occupied = occupied!(self);
            let to = match occupied(path)? {
                Some(NodeNow::Folder) => continue,
                Some(_) => self.conflict_paths.conflict_copy(path, &occupied)?,
                None => self.conflict_paths.usable_path(path, &occupied)?,
            };
            self.report_relocation(path, &to);
            self.report(&to, ProgramChangeKind::Created, None);
            self.place(path, &to, PlacedKind::CreatedFolder);
            self.made_folders.insert(to);
        }
        Ok(())
    }

    /// Decides where something that the program left at a path belongs.
    fn target(&self, path: &WsPath) -> Result<Target> {
        let origin = self.net.moves.origin(path);
        let now = origin.as_ref().map_or(Ok(None), |origin| self.side.now(origin))?;
        let is_removed = |origin: &WsPath| self.removed.contains(origin);
        if now == Some(NodeNow::Protected) {
            return Ok(Target::Taken(origin, PROTECTED));
        }
        let made_from = self.net.made_from(path).filter(|from| self.replaces(path, from));
        if let Some(from) = made_from {
            return Ok(match now {
                Some(_) if !self.side.is_changed(&from)? => Target::Replaces(from),
                Some(_) => Target::Taken(Some(from), CHANGED),
                None => Target::Taken(Some(from), REMOVED),
            });
        }
        Ok(match origin {
            Some(origin) if now.is_some() && !is_removed(&origin) => Target::Taken(Some(origin), CREATED),
            origin => Target::Free(origin),
        })
    }

    /// Whether the program left a new version of what was at a path: not something of another kind.
    fn replaces(&self, path: &WsPath, from: &WsPath) -> bool {
        match (self.net.diffs.before(from), self.net.diffs.after(path)) {
            (Some(Node::File(_)), Some(Node::File(_))) => true,
            (Some(Node::Unversioned(_)), Some(Node::Unversioned(_))) => from == path,
            _ => false,
        }
    }

    fn keep_file(&mut self, path: &WsPath, change: &mut FileChange) -> Result<()> {
        match change {
            FileChange::Same => self.place(path, path, PlacedKind::Same),
            FileChange::Written(written) => self.put(path, written)?,
            FileChange::Moved(_) => {
                if let Some(reason) = self.net.partly_left_out.get(path) {
                    self.leave_out(path, None, *reason);
                }
            }
            FileChange::OverLimit(reason) if self.side.transfers() => self.transfer(path, *reason)?,
            FileChange::OverLimit(reason) | FileChange::Unreadable(reason) => self.leave_out(path, None, *reason),
        }
        Ok(())
    }

    fn put(&mut self, path: &WsPath, written: &mut WrittenContent) -> Result<()> {
        match self.target(path)? {
            Target::Replaces(origin) => {
                let before = self.net.diffs.file_before(&origin);
                let is_same = before.is_some_and(|before| {
                    before.hash == Some(written.hash) && before.is_executable() == written.is_executable
                });
                if is_same {
                    self.place(path, path, PlacedKind::Same);
                    return Ok(());
                }
                self.change(path, &origin, written)
            }
            Target::Taken(Some(origin), _)
                if self.side.shows(&origin, self.net.diffs.file_before(&origin), written) =>
            {
                let was_executable = self.net.diffs.file_before(&origin).is_some_and(FileState::is_executable);
                let is_executable = Some(NodeNow::File { is_executable: written.is_executable });
                if written.is_executable == was_executable || self.side.now(&origin)? == is_executable {
                    self.place(path, path, PlacedKind::Same);
                    return Ok(());
                }
                self.change(path, &origin, written)
            }
            Target::Taken(_, reason) => self.put_conflict_copy(path, written, reason),
            Target::Free(origin) => self.create(path, origin.as_ref(), written),
        }
    }

    fn change(&mut self, path: &WsPath, origin: &WsPath, written: &mut WrittenContent) -> Result<()> {
        let (file_type, content) = match self.side.content(origin, std::mem::take(&mut written.bytes)) {
            Ok(content) => content,
            Err((reason, bytes)) => {
                written.bytes = bytes;
                return self.put_conflict_copy(path, written, &reason);
            }
        };
        self.expect_file(origin);
        let now = self.side.now(origin)?;
        let is_executable = written.is_executable;
        let executable = (now != Some(NodeNow::File { is_executable })).then_some(is_executable);
        self.puts.push(Put { path: path.clone(), file_type, content, parents: Parents::Create, executable });
        self.report(path, ProgramChangeKind::Changed, None);
        self.place(path, path, PlacedKind::Changed);
        Ok(())
    }

    fn create(&mut self, path: &WsPath, origin: Option<&WsPath>, written: &mut WrittenContent) -> Result<()> {
        let to = self.usable_path(path)?;
        if to == *path
            && let Some(from) = self.moved_from(path, written)?
        {
            self.place(path, &to, PlacedKind::Created);
            return self.move_file(&from, to, origin);
        }
        self.expect_absent(&to, origin)?;
        self.put_new(path, to, written);
        Ok(())
    }

    /// Moves a file for which there is no room as a new one.
    fn move_large_file(&mut self, path: &WsPath, from: &WsPath) -> Result<()> {
        let hash = self.net.diffs.file_before(from).and_then(|file| file.hash);
        if let Some(sources) = hash.and_then(|hash| self.move_sources.get_mut(&hash)) {
            sources.retain(|source| source != from);
        }
        let to = match self.target(path)? {
            Target::Replaces(origin) => {
                self.expect_file(&origin);
                self.leading_changes.push(Change::Remove { path: path.clone(), removal: Removal::File });
                self.removed.insert(origin);
                path.clone()
            }
            Target::Taken(Some(origin), reason) if self.side.now(&origin)?.is_some() => {
                self.conflict_copy(path, reason)?
            }
            Target::Taken(..) | Target::Free(_) => self.usable_path(path)?,
        };
        self.place(path, &to, PlacedKind::Created);
        self.move_file(from, to, self.net.moves.origin(path).as_ref())
    }

    fn move_file(&mut self, from: &WsPath, to: WsPath, origin: Option<&WsPath>) -> Result<()> {
        self.removed_files.remove(from);
        self.expect_file(from);
        self.expect_absent(&to, origin)?;
        self.make_folder_above(&to)?;
        self.report(&to, ProgramChangeKind::Moved, Some(from));
        self.moves.push((self.net.moves.destination(from), to));
        Ok(())
    }

    /// Makes the folder of a moved file if others removed it: a move makes no folders.
    fn make_folder_above(&mut self, path: &WsPath) -> Result<()> {
        let Some(above) = path.parent().filter(|above| !above.is_root()) else { return Ok(()) };
        let origin = self.net.moves.origin(&above);
        let is_missing = origin.map_or(Ok(None), |origin| self.side.now(&origin))?.is_none();
        if is_missing && self.made_folders.insert(above.clone()) {
            self.report(&above, ProgramChangeKind::Created, None);
        }
        Ok(())
    }

    /// Takes a removed file that had the content of a new one.
    fn moved_from(&mut self, path: &WsPath, written: &WrittenContent) -> Result<Option<WsPath>> {
        // Folders are removed after files are moved.
        let is_replaced = path.folders_above().chain([path.as_str()]).any(|above| self.removed.contains(above));
        if written.bytes.is_empty() || self.moves.len() >= MAX_MOVES || is_replaced || self.side.now(path)?.is_some() {
            return Ok(None);
        }
        let Some(sources) = self.move_sources.get_mut(&written.hash) else { return Ok(None) };
        let is_alike = |from: &WsPath| {
            let before = self.net.diffs.file_before(from);
            before.is_some_and(|before| before.is_executable() == written.is_executable)
        };
        let same_name = sources.iter().position(|from| from.name() == path.name() && is_alike(from));
        let index = same_name.or_else(|| sources.iter().position(is_alike));
        Ok(index.map(|index| sources.remove(index)))
    }

    fn put_conflict_copy(&mut self, path: &WsPath, written: &mut WrittenContent, reason: &str) -> Result<()> {
        let to = self.conflict_copy(path, reason)?;
        self.expect.push(Expect::Absent(to.clone()));
        self.put_new(path, to, written);
        Ok(())
    }

    fn put_new(&mut self, path: &WsPath, to: WsPath, written: &mut WrittenContent) {
        let content = Content::of_bytes(std::mem::take(&mut written.bytes));
        self.report(&to, ProgramChangeKind::Created, None);
        self.place(path, &to, PlacedKind::Created);
        let (file_type, executable) = (content.form().plain_type(), Some(written.is_executable));
        self.puts.push(Put { path: to, file_type, content, parents: Parents::Create, executable });
    }

    /// Decides where something without versions belongs.
    fn transfer(&mut self, path: &WsPath, reason: LeftOutReason) -> Result<()> {
        let to = match self.target(path)? {
            Target::Replaces(_) => path.clone(),
            Target::Taken(_, conflict) => self.conflict_copy(path, conflict)?,
            Target::Free(_) => self.usable_path(path)?,
        };
        self.leave_out(path, Some(to), reason);
        Ok(())
    }

    fn keep_unversioned(&mut self) -> Result<()> {
        for Diff { path, after, .. } in self.net.diffs.iter() {
            match after {
                Some(Node::Unversioned(LeftOutReason::Special)) => self.leave_out(path, None, LeftOutReason::Special),
                Some(Node::Unversioned(reason)) => self.transfer(path, *reason)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn leave_out(&mut self, path: &WsPath, to: Option<WsPath>, reason: LeftOutReason) {
        self.outcome.left_out.push(Unversioned { path: path.clone(), to, reason });
    }

    fn place(&mut self, path: &WsPath, to: &WsPath, kind: PlacedKind) {
        self.outcome.placed.push(PlacedEntry { path: path.clone(), to: to.clone(), kind });
    }

    /// Returns the path itself, unless a file of somebody else is at the path of a folder above it.
    fn usable_path(&mut self, path: &WsPath) -> Result<WsPath> {
        let to = self.conflict_paths.usable_path(path, &occupied!(self))?;
        self.report_relocation(path, &to);
        Ok(to)
    }

    fn conflict_copy(&mut self, path: &WsPath, reason: &str) -> Result<WsPath> {
        let to = self.conflict_paths.conflict_copy(path, &occupied!(self))?;
        self.conflict(path, Some(&to), reason);
        Ok(to)
    }

    fn report_relocation(&mut self, path: &WsPath, to: &WsPath) {
        if to != path && self.conflict_index.at_or_above(path).is_none() {
            self.conflict(path, Some(to), FILE_IN_THE_WAY);
        }
    }

    fn expect_file(&mut self, path: &WsPath) {
        self.expect.extend(self.side.expect_file(path, self.net.diffs.file_before(path)));
    }

    fn expect_absent(&mut self, path: &WsPath, origin: Option<&WsPath>) -> Result<()> {
        for path in std::iter::once(path).chain(origin) {
            if !self.removed.contains(path) && self.side.now(path)?.is_none() {
                self.expect.push(Expect::Absent(path.clone()));
            }
        }
        Ok(())
    }

    fn report(&mut self, path: &WsPath, change: ProgramChangeKind, from: Option<&WsPath>) {
        self.outcome.changed.push(ProgramChange { path: path.clone(), change, from: from.cloned() });
    }

    fn conflict(&mut self, path: &WsPath, kept_as: Option<&WsPath>, reason: &str) {
        let (path, kept_as, reason) = (path.clone(), kept_as.cloned(), reason.to_owned());
        self.conflict_index.insert(&path, ());
        self.outcome.conflicts.push(ProgramConflict { path, kept_as, reason });
    }

    /// Orders the changes so that each finds what it needs: paths first, then contents.
    fn into_outcome(mut self) -> MergeOutcome {
        for path in std::mem::take(&mut self.removed_files) {
            self.expect_file(&path);
            let path = self.net.moves.destination(&path);
            self.report(&path, ProgramChangeKind::Removed, None);
            self.leading_changes.push(Change::Remove { path, removal: Removal::File });
        }
        let mut changes = std::mem::take(&mut self.leading_changes);
        changes.extend(self.made_folders.iter().cloned().map(Change::MakeDir));
        let moves = self.moves.iter().cloned();
        changes.extend(moves.map(|(from, to)| Change::Move { from, to: Destination::Exactly(to) }));
        for path in std::mem::take(&mut self.removed_folders).into_iter().rev() {
            self.expect.extend(self.side.expect_folder(&path));
            let path = self.net.moves.destination(&path);
            self.report(&path, ProgramChangeKind::Removed, None);
            changes.push(Change::Remove { path, removal: Removal::Single });
        }
        changes.extend(self.puts.into_iter().map(Change::Put));
        self.outcome.changes = Changeset { changes, expect: self.expect, undoes: None };
        self.outcome.conflict_paths = self.conflict_paths.into_given();
        self.outcome
    }
}

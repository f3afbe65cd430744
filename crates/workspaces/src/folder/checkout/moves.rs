//! The changeset of what a program did. A view shows a move as a file that is gone and one that is new.

use super::merge_result::{MergeResult, Written};
use std::collections::{BTreeMap, BTreeSet};
use toolrest_core::{
    Change, Changeset, ContentHash, Destination, Expect, FileType, Parents, ProgramChange, ProgramChangeKind, Put,
    Removal, WsPath,
};

/// So many moves are told as such; each of them takes longer, the more there are.
const MOVES_MOST: usize = 200;

/// How moves are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moves {
    Told,
    /// As files that are gone and others that are new.
    AsFiles,
}

impl MergeResult {
    /// The changes that make the folder what the program made of its view, and what they expect of it. Names go before
    /// contents, and nothing is removed that still holds something.
    pub(super) fn changeset(&mut self, moves: Moves) -> Changeset {
        let moves = if moves == Moves::Told { self.moves() } else { Vec::new() };
        let mut set = Changeset::default();
        let mut elsewhere: BTreeSet<WsPath> = BTreeSet::new();
        for (from, to) in &moves {
            elsewhere.extend(self.removed.keys().filter(|path| *path == from || path.is_below(from)).cloned());
            self.written.retain(|path, _| path != to && !path.is_below(to));
            self.removed_folders.retain(|path| path != from && !path.is_below(from));
            self.made_folders.retain(|path| path != to && !path.is_below(to));
        }
        for (path, before) in &self.removed {
            set.expect.push(Expect::Hash(path.clone(), before.hash));
            if !elsewhere.contains(path) {
                set.changes.push(Change::Remove { path: path.clone(), removal: Removal::File });
                self.changed.push(to_tool_error(path, ProgramChangeKind::Removed));
            }
        }
        for path in &self.made_folders {
            set.changes.push(Change::MakeDir(path.clone()));
            self.changed.push(to_tool_error(path, ProgramChangeKind::Created));
        }
        for (from, to) in moves {
            set.expect.push(Expect::Absent(to.clone()));
            set.changes.push(Change::Move { from: from.clone(), to: Destination::Exactly(to.clone()) });
            self.changed.push(ProgramChange { path: to, change: ProgramChangeKind::Moved, from: Some(from) });
        }
        for path in self.removed_folders.iter().rev() {
            set.changes.push(Change::Remove { path: path.clone(), removal: Removal::Single });
            self.changed.push(to_tool_error(path, ProgramChangeKind::Removed));
        }
        for (path, written) in std::mem::take(&mut self.written) {
            let takes_a_place = self.removed.contains_key(&path) || self.removed_folders.contains(&path);
            set.expect.extend(match written.before {
                Some(before) => Some(Expect::Hash(path.clone(), before.hash)),
                None => (!takes_a_place).then(|| Expect::Absent(path.clone())),
            });
            let kind = if written.before.is_some() { ProgramChangeKind::Changed } else { ProgramChangeKind::Created };
            self.changed.push(to_tool_error(&path, kind));
            set.changes.push(Change::Put(put(path, written)));
        }
        set
    }

    /// What was moved, and where to: whole folders first.
    fn moves(&self) -> Vec<(WsPath, WsPath)> {
        let files = self.moved_files();
        let mut moves: Vec<(WsPath, WsPath)> = Vec::new();
        for folder in self.removed_folders.iter().filter(|folder| !self.written.contains_key(*folder)) {
            if !moves.iter().any(|(from, _)| folder.is_below(from)) {
                moves.extend(self.moved_folder(folder, &files).map(|to| (folder.clone(), to)));
            }
        }
        let folders: Vec<WsPath> = moves.iter().map(|(from, _)| from.clone()).collect();
        let alone = files.into_iter().filter(|(from, _)| !folders.iter().any(|folder| from.is_below(folder)));
        moves.extend(alone);
        moves.truncate(MOVES_MOST);
        moves
    }

    /// Each file that is gone with one that is new and holds the same, preferably of the same name.
    fn moved_files(&self) -> BTreeMap<WsPath, WsPath> {
        let mut gone: BTreeMap<(ContentHash, bool), Vec<&WsPath>> = BTreeMap::new();
        // Where a folder takes its place, a file has to be out of the way before anything is moved.
        let can_move = |path: &WsPath| !self.made_folders.contains(path);
        for (path, before) in self.removed.iter().filter(|(path, before)| before.size_bytes > 0 && can_move(path)) {
            gone.entry((before.hash, before.is_executable)).or_default().push(path);
        }
        let mut moves = BTreeMap::new();
        for (to, written) in self.written.iter().filter(|(to, written)| written.before.is_none() && self.is_free(to)) {
            let Some(sources) = gone.get_mut(&(written.hash, written.is_executable)) else { continue };
            let place = sources.iter().position(|from| from.name() == to.name()).unwrap_or(0);
            if !sources.is_empty() {
                moves.insert(sources.remove(place).clone(), to.clone());
            }
        }
        moves
    }

    /// Whether nothing has to give way before something can be moved to a path.
    fn is_free(&self, to: &WsPath) -> bool {
        let is_taken = |path: &WsPath| self.removed.contains_key(path) || self.removed_folders.contains(path);
        !is_taken(to) && !to.ancestors().iter().any(is_taken)
    }

    /// Where a folder went, if all of it went there and nothing else is there.
    fn moved_folder(&self, folder: &WsPath, files: &BTreeMap<WsPath, WsPath>) -> Option<WsPath> {
        let (first, moved) = files.iter().find(|(from, _)| from.is_below(folder))?;
        let rest = &first.as_str()[folder.as_str().len()..];
        let to = WsPath::from_normal(moved.as_str().strip_suffix(rest).filter(|to| !to.is_empty())?.to_owned());
        let went = |path: &WsPath| path.moved(folder, &to);
        let all_files =
            self.removed.keys().filter(|path| path.is_below(folder)).all(|path| files.get(path) == went(path).as_ref());
        let count = |paths: &BTreeSet<WsPath>, above: &WsPath| paths.iter().filter(|path| path.is_below(above)).count();
        let below = |path: &&WsPath| path.is_below(folder);
        let all_folders = self
            .removed_folders
            .iter()
            .filter(below)
            .all(|path| went(path).is_some_and(|to| self.made_folders.contains(&to)));
        let nothing_else = self.removed.keys().filter(below).count()
            == self.written.keys().filter(|path| path.is_below(&to)).count()
            && count(&self.removed_folders, folder) == count(&self.made_folders, &to);
        let past_history = |path: &std::path::Path| {
            let path = format!("/{}/", path.to_string_lossy());
            path.starts_with(&format!("{folder}/")) || path.starts_with(&format!("{to}/"))
        };
        let all_versioned = !self.unversioned_removals.iter().any(|path| past_history(path))
            && !self.transferred.iter().any(|(_, path)| past_history(path));
        let is_whole = self.made_folders.contains(&to) && all_files && all_folders && nothing_else && all_versioned;
        (is_whole && self.is_free(&to)).then_some(to)
    }
}

fn to_tool_error(path: &WsPath, change: ProgramChangeKind) -> ProgramChange {
    ProgramChange { path: path.clone(), change, from: None }
}

fn put(path: WsPath, written: Written) -> Put {
    let is_other = written.before.is_none_or(|before| before.is_executable != written.is_executable);
    Put {
        path,
        file_type: FileType::Document,
        content: written.content,
        parents: Parents::Create,
        executable: is_other.then_some(written.is_executable),
    }
}

//! Conversion of the files before and after a patch into a changeset.

use super::stage::{FileAfter, PathState, StagedPatch};
use super::{PatchAction, PatchResult, PatchedFile};
use crate::write_text::{TypedContent, visible_bytes_if_any};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use toolrest_core::{CallId, Change, Changeset, Destination, Parents, Put, Removal, Result, WsPath};
use toolrest_edit::StopFlag;
use toolrest_edit::diff::{FileChange, LIMIT_BYTES, Origin, Side};

/// The diff takes at most this fraction of an answer, which contains it as JSON.
const DIFFS_IN_ANSWER: usize = 8;

/// The result of applying a patch in memory.
pub(super) struct Outcome {
    pub(super) changes: Changeset,
    pub(super) patched: PatchResult,
    pub(super) warnings: Vec<String>,
}

impl StagedPatch {
    /// Returns the changes to the workspace and the result to report.
    pub(super) fn outcome(self, stop: StopFlag<'_>) -> Result<Outcome> {
        let moves = Moves::of(&self.paths);
        let mut files = Vec::new();
        let mut named = BTreeSet::new();
        for path in self.order.iter().filter(|path| named.insert(*path)) {
            let action = self.paths.get(path).and_then(|state| moves.action(path, state));
            let Some(action) = action else { continue };
            let now = self.paths.get(path).and_then(|state| state.now.as_ref());
            let hash = now.map(|now| now.held.1.hash()).transpose()?;
            let from = moves.sources.get(path).filter(|_| action == PatchAction::Move).cloned();
            files.push(PatchedFile { path: path.clone(), action, from, hash });
        }
        let diff = self.diff(&moves, stop)?;
        let Self { paths, expect, warnings, .. } = self;
        let changes = Changeset { changes: changes(paths, &moves), expect, undoes: None };
        Ok(Outcome { changes, patched: PatchResult { files, diff }, warnings })
    }

    fn diff(&self, moves: &Moves, stop: StopFlag<'_>) -> Result<String> {
        let max_bytes = self.limit_bytes / DIFFS_IN_ANSWER;
        let mut diff = String::new();
        for (path, state) in &self.paths {
            if moves.action(path, state).is_none() {
                continue;
            }
            let origin = state.now.as_ref().and_then(|now| now.origin.as_ref());
            let origin = origin.filter(|(_, origin)| *origin == Origin::Copied || moves.is_target(path));
            let held_before = |path: &WsPath| self.paths.get(path).and_then(|state| state.before.as_ref());
            let (old_path, old, kind) = match origin {
                Some((from, kind)) => (from, held_before(from), *kind),
                None => (path, state.before.as_ref(), Origin::Renamed),
            };
            let mode_change = state.now.as_ref().and_then(|now| now.modes);
            let old = visible_bytes_if_any(old.map(Arc::as_ref), path, self.limit_bytes)?;
            let new = visible_bytes_if_any(state.now.as_ref().map(|now| &*now.held), path, self.limit_bytes)?;
            let change = FileChange {
                old: old.as_deref().map(|content| Side {
                    path: old_path.without_slash().as_bytes(),
                    content,
                    mode: mode_change.and_then(|(old, _)| old),
                }),
                new: new.as_deref().map(|content| Side {
                    path: path.without_slash().as_bytes(),
                    content,
                    mode: mode_change.map(|(_, new)| new),
                }),
                origin: kind,
            };
            diff.push_str(&change.unified(LIMIT_BYTES.min(max_bytes.saturating_sub(diff.len())), stop));
        }
        Ok(diff)
    }
}

/// The files that are moved, by their old paths.
struct Moves {
    targets: BTreeMap<WsPath, WsPath>,
    sources: BTreeMap<WsPath, WsPath>,
}

impl Moves {
    fn of(paths: &BTreeMap<WsPath, PathState>) -> Self {
        let mut moves = Self { targets: BTreeMap::new(), sources: BTreeMap::new() };
        for (path, state) in paths {
            // A file is moved to one path only. Its other copies are new files.
            if let Some((from, Origin::Renamed)) = state.now.as_ref().and_then(|now| now.origin.as_ref())
                && from != path
                && !moves.targets.contains_key(from)
            {
                moves.targets.insert(from.clone(), path.clone());
                moves.sources.insert(path.clone(), from.clone());
            }
        }
        moves
    }

    fn is_target(&self, path: &WsPath) -> bool {
        self.sources.contains_key(path)
    }

    /// Returns what happens to the file at a path; `None` if it does not change, or is reported at its new path.
    fn action(&self, path: &WsPath, state: &PathState) -> Option<PatchAction> {
        match (&state.before, &state.now) {
            (_, Some(_)) if self.is_target(path) => Some(PatchAction::Move),
            (Some(_), Some(_)) if self.targets.contains_key(path) => Some(PatchAction::Add),
            (Some(before), Some(now)) => (is_other(before, now) || now.modes.is_some()).then_some(PatchAction::Update),
            (None, Some(_)) => Some(PatchAction::Add),
            (Some(_), None) => (!self.targets.contains_key(path)).then_some(PatchAction::Delete),
            (None, None) => None,
        }
    }
}

/// Orders the changes so that each finds its path free. A file whose new path is not free yet is moved to a temporary
/// name first.
fn changes(paths: BTreeMap<WsPath, PathState>, moves: &Moves) -> Vec<Change> {
    let (mut make_way, mut removals, mut direct, mut arrivals) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (from, to) in &moves.targets {
        if is_free(to, &paths) {
            direct.extend(moved(from.clone(), to));
        } else {
            let aside = aside(from, to);
            make_way.push(Change::Move { from: from.clone(), to: Destination::Exactly(aside.clone()) });
            arrivals.extend(moved(aside, to));
        }
    }
    let mut written = BTreeSet::new();
    for (path, state) in &paths {
        let stays = state.now.is_some() && !moves.is_target(path);
        if state.before.is_some() && !stays && !moves.targets.contains_key(path) {
            removals.push(Change::Remove { path: path.clone(), removal: Removal::File });
        }
        let base = match moves.sources.get(path) {
            Some(from) => paths.get(from).and_then(|state| state.before.as_ref()),
            None if moves.targets.contains_key(path) => None,
            None => state.before.as_ref(),
        };
        if state.now.as_ref().is_some_and(|now| now.modes.is_some() || base.is_none_or(|base| is_other(base, now))) {
            written.insert(path.clone());
        }
    }
    let emptied = emptied(&removals, moves);
    let puts = paths.into_iter().filter(|(path, _)| written.contains(path));
    let puts = puts.filter_map(|(path, state)| state.now.map(|now| put(path, now))).collect();
    [make_way, removals, direct, emptied, arrivals, puts].concat()
}

/// Whether the content or the type of a file differs.
fn is_free(path: &WsPath, paths: &BTreeMap<WsPath, PathState>) -> bool {
    let holds_file = |path: &str| paths.get(path).is_some_and(|state| state.before.is_some());
    let is_folder = paths.get(path).is_some_and(|state| state.is_folder);
    !is_folder && !holds_file(path.as_str()) && !path.folders_above().any(holds_file)
}

fn moved(from: WsPath, to: &WsPath) -> impl Iterator<Item = Change> {
    let folder = to.parent().filter(|folder| !folder.is_root()).map(Change::MakeDir);
    folder.into_iter().chain([Change::Move { from, to: Destination::Exactly(to.clone()) }])
}

/// Returns a temporary name in the common folder of the two paths, which is not removed.
fn aside(from: &WsPath, to: &WsPath) -> WsPath {
    let above_both = from.ancestors().into_iter().rev().find(|folder| to.is_below(folder));
    let folder = above_both.unwrap_or_else(WsPath::root);
    let name = format!(".renaming-{}", CallId::new());
    // The name is valid; a path that is too long is refused when it is used.
    folder.join(&name).unwrap_or_else(|_| WsPath::from_normal(format!("/{name}")))
}

/// Whether a file has another content or type than before.
fn is_other(before: &Arc<TypedContent>, now: &FileAfter) -> bool {
    !Arc::ptr_eq(before, &now.held) && *before != now.held
}

/// Returns the change that writes the new content and mode.
fn put(path: WsPath, now: FileAfter) -> Change {
    let (file_type, content) = Arc::unwrap_or_clone(now.held);
    let executable = now.modes.map(|(_, mode)| mode & 0o111 != 0);
    Change::Put(Put { path, file_type, content, parents: Parents::Create, executable })
}

/// Returns the removal of all folders that files leave, the deepest first. Folders that are not empty are kept.
fn emptied(removals: &[Change], moves: &Moves) -> Vec<Change> {
    let removed = removals.iter().filter_map(|change| match change {
        Change::Remove { path, .. } => Some(path),
        _ => None,
    });
    let left = removed.chain(moves.targets.keys());
    let folders: BTreeSet<WsPath> = left.flat_map(WsPath::ancestors).filter(|folder| !folder.is_root()).collect();
    let removal = |path: WsPath| Change::Remove { path, removal: Removal::FolderIfEmpty };
    folders.into_iter().rev().map(removal).collect()
}

//! From the files before and after a patch to the changes that lead there.

use super::stage::{Now, Place, Stage};
use super::{PatchAction, Patched, PatchedFile};
use crate::write_text::{Held, seen_if_any};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use toolrest_core::{CallId, Change, Changeset, Destination, Parents, Put, Removal, Result, WsPath};
use toolrest_edit::StopFlag;
use toolrest_edit::diff::{FileChange, LIMIT_BYTES, Origin, Side};

/// The diff of all files takes at most this fraction of an answer, which must hold it as JSON.
const DIFFS_IN_ANSWER: usize = 8;

/// What an applied patch comes to.
pub(super) struct Outcome {
    pub(super) changes: Changeset,
    pub(super) patched: Patched,
    pub(super) warnings: Vec<String>,
}

impl Stage {
    /// Tells what has to change in the workspace, and what the caller is told of it.
    pub(super) fn outcome(self, stop: StopFlag<'_>) -> Result<Outcome> {
        let moves = Moves::of(&self.places);
        let mut files = Vec::new();
        let mut named = BTreeSet::new();
        for path in self.order.iter().filter(|path| named.insert(*path)) {
            let action = self.places.get(path).and_then(|place| moves.action(path, place));
            files.extend(action.map(|action| PatchedFile { path: path.clone(), action }));
        }
        let diff = self.diff(&moves, stop)?;
        let Self { places, expect, warnings, .. } = self;
        let changes = Changeset { changes: changes(places, &moves), expect, undoes: None };
        Ok(Outcome { changes, patched: Patched { files, diff }, warnings })
    }

    fn diff(&self, moves: &Moves, stop: StopFlag<'_>) -> Result<String> {
        let most_bytes = self.limit_bytes / DIFFS_IN_ANSWER;
        let mut diff = String::new();
        for (path, place) in &self.places {
            if moves.action(path, place).is_none() {
                continue;
            }
            let origin = place.now.as_ref().and_then(|now| now.origin.as_ref());
            let origin = origin.filter(|(_, origin)| *origin == Origin::Copied || moves.is_target(path));
            let held_before = |path: &WsPath| self.places.get(path).and_then(|place| place.before.as_ref());
            let (old_path, old, kind) = match origin {
                Some((from, kind)) => (from, held_before(from), *kind),
                None => (path, place.before.as_ref(), Origin::Renamed),
            };
            let mode_change = place.now.as_ref().and_then(|now| now.modes);
            let old = seen_if_any(old.map(Arc::as_ref), path, self.limit_bytes)?;
            let new = seen_if_any(place.now.as_ref().map(|now| &*now.held), path, self.limit_bytes)?;
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
            diff.push_str(&change.unified(LIMIT_BYTES.min(most_bytes.saturating_sub(diff.len())), stop));
        }
        Ok(diff)
    }
}

/// The files that get another path, by the path that they come from.
struct Moves {
    targets: BTreeMap<WsPath, WsPath>,
    sources: BTreeMap<WsPath, WsPath>,
}

impl Moves {
    fn of(places: &BTreeMap<WsPath, Place>) -> Self {
        let mut moves = Self { targets: BTreeMap::new(), sources: BTreeMap::new() };
        for (path, place) in places {
            // A file goes to one path only. What else is made from it is new.
            if let Some((from, Origin::Renamed)) = place.now.as_ref().and_then(|now| now.origin.as_ref())
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

    /// What happens to the file at a path; nothing if it stays as it is, or is told of at its new path.
    fn action(&self, path: &WsPath, place: &Place) -> Option<PatchAction> {
        match (&place.before, &place.now) {
            (_, Some(_)) if self.is_target(path) => Some(PatchAction::Move),
            (Some(_), Some(_)) if self.targets.contains_key(path) => Some(PatchAction::Add),
            (Some(before), Some(now)) => (is_other(before, now) || now.modes.is_some()).then_some(PatchAction::Update),
            (None, Some(_)) => Some(PatchAction::Add),
            (Some(_), None) => (!self.targets.contains_key(path)).then_some(PatchAction::Delete),
            (None, None) => None,
        }
    }
}

/// The changes in an order in which each finds its path free. A file whose new path is not free yet waits under another
/// name.
fn changes(places: BTreeMap<WsPath, Place>, moves: &Moves) -> Vec<Change> {
    let (mut make_way, mut removals, mut direct, mut arrivals) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (from, to) in &moves.targets {
        if is_free(to, &places) {
            direct.extend(moved(from.clone(), to));
        } else {
            let aside = aside(from, to);
            make_way.push(Change::Move { from: from.clone(), to: Destination::Exactly(aside.clone()) });
            arrivals.extend(moved(aside, to));
        }
    }
    let mut written = BTreeSet::new();
    for (path, place) in &places {
        let stays = place.now.is_some() && !moves.is_target(path);
        if place.before.is_some() && !stays && !moves.targets.contains_key(path) {
            removals.push(Change::Remove { path: path.clone(), removal: Removal::File });
        }
        let base = match moves.sources.get(path) {
            Some(from) => places.get(from).and_then(|place| place.before.as_ref()),
            None if moves.targets.contains_key(path) => None,
            None => place.before.as_ref(),
        };
        if place.now.as_ref().is_some_and(|now| now.modes.is_some() || base.is_none_or(|base| is_other(base, now))) {
            written.insert(path.clone());
        }
    }
    let emptied = emptied(&removals, moves);
    let puts = places.into_iter().filter(|(path, _)| written.contains(path));
    let puts = puts.filter_map(|(path, place)| place.now.map(|now| put(path, now))).collect();
    [make_way, removals, direct, emptied, arrivals, puts].concat()
}

/// Whether nothing stands in the way of a file that is moved to a path before anything else is done.
fn is_free(path: &WsPath, places: &BTreeMap<WsPath, Place>) -> bool {
    let holds_file = |path: &str| places.get(path).is_some_and(|place| place.before.is_some());
    let is_folder = places.get(path).is_some_and(|place| place.is_folder);
    !is_folder && !holds_file(path.as_str()) && !path.folders_above().any(holds_file)
}

fn moved(from: WsPath, to: &WsPath) -> impl Iterator<Item = Change> {
    let folder = to.parent().filter(|folder| !folder.is_root()).map(Change::MakeDir);
    folder.into_iter().chain([Change::Move { from, to: Destination::Exactly(to.clone()) }])
}

/// A name that a file can wait under: in the folder that its two paths have in common, which stays.
fn aside(from: &WsPath, to: &WsPath) -> WsPath {
    let above_both = from.ancestors().into_iter().rev().find(|folder| to.is_below(folder));
    let folder = above_both.unwrap_or_else(WsPath::root);
    let name = format!(".renaming-{}", CallId::new());
    // The name is a good one, and a path that is too long is refused where it is used.
    folder.join(&name).unwrap_or_else(|_| WsPath::from_normal(format!("/{name}")))
}

/// Whether a file has another content or type than before.
fn is_other(before: &Arc<Held>, now: &Now) -> bool {
    !Arc::ptr_eq(before, &now.held) && *before != now.held
}

/// Gives a file its new content and mode.
fn put(path: WsPath, now: Now) -> Change {
    let (file_type, content) = Arc::unwrap_or_clone(now.held);
    let executable = now.modes.map(|(_, mode)| mode & 0o111 != 0);
    Change::Put(Put { path, file_type, content, parents: Parents::Create, executable })
}

/// The removal of all folders that files leave, the deepest first. Those that are not empty then stay.
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

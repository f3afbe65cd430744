//! Which folders a program gave another path.

use super::desk::Base;
use super::sight::Sight;
use super::tree::{Row, What};
use std::collections::HashMap;
use toolrest_core::{MAX_PATH_BYTES, WsPath};

/// Folders that were moved, each seen as of after the moves before it.
#[derive(Debug, Default)]
pub(super) struct Renames(Vec<Rename>);

#[derive(Debug)]
pub(super) struct Rename {
    /// Where it was in the workspace.
    pub(super) origin: WsPath,
    pub(super) from: WsPath,
    pub(super) to: WsPath,
}

impl Renames {
    /// Finds folders that are gone from one path and stand at another, if they can move in the workspace too.
    pub(super) fn find(sight: &Sight, base: &Base<'_>) -> Self {
        let mut gone = HashMap::new();
        for path in &sight.vanished {
            if let Some(note) = base.notes.get(path).filter(|_| base.is_noted_folder(path)) {
                gone.insert(note.stamp.identity, path);
            }
        }
        let mut renames = Self::default();
        for (to, stamp) in &sight.folders {
            let Some(origin) = gone.get(&stamp.identity) else { continue };
            let from = renames.destination(origin);
            if from != *to && renames.can_move(origin, &from, to, sight, base) {
                renames.0.push(Rename { origin: (*origin).clone(), from, to: to.clone() });
            }
        }
        renames
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Rename> {
        self.0.iter()
    }

    /// Where something is after the moves.
    pub(super) fn destination(&self, path: &WsPath) -> WsPath {
        self.0.iter().fold(path.clone(), |path, rename| path.moved(&rename.from, &rename.to).unwrap_or(path))
    }

    /// Where something was before the moves.
    pub(super) fn origin(&self, path: &WsPath) -> WsPath {
        self.0.iter().rev().fold(path.clone(), |path, rename| path.moved(&rename.to, &rename.from).unwrap_or(path))
    }

    fn can_move(&self, origin: &WsPath, from: &WsPath, to: &WsPath, sight: &Sight, base: &Base<'_>) -> bool {
        let Some(folder) = base.row(origin).filter(|row| row.is_folder()) else { return false };
        // The file system gives the numbers of what is gone to what is new.
        let is_the_same = base.tree.below(origin).any(|(path, _)| {
            let moved = path.moved(origin, to);
            let found = moved.and_then(|moved| sight.files.get(&moved).or_else(|| sight.folders.get(&moved)));
            let known = base.notes.get(path).filter(|note| note.what.is_tracked());
            known.is_some_and(|known| found.is_some_and(|found| found.identity == known.stamp.identity))
        });
        let leads_through_folders = to.ancestors().iter().all(|above| {
            let there = base.tree.get(&self.origin(above));
            above.is_root() || there.is_none_or(Row::is_folder)
        });
        let fits = base.tree.below(origin).all(|(path, row)| {
            let grown = path.as_str().len() + to.as_str().len();
            row.what != What::Unseen && grown <= MAX_PATH_BYTES + origin.as_str().len()
        });
        is_the_same
            && leads_through_folders
            && fits
            && base.tree.get(origin) == Some(folder)
            && base.tree.get(to).is_none()
            && base.tree.below(to).next().is_none()
            && !base.notes.contains_key(to)
            && !to.is_below(from)
    }
}

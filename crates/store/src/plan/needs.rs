//! Which rows a changeset concerns.

use super::FileRow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use toolrest_core::{Change, Changeset, Destination, Expect, FileId, WsPath};

/// The rows that must be read to plan a changeset.
#[derive(Debug, Default)]
pub struct Needs {
    /// Paths whose rows may change.
    pub at: BTreeSet<WsPath>,
    /// Folders that must not move or be removed before the commit.
    pub above: BTreeSet<WsPath>,
    /// Folders whose content is counted.
    pub below: BTreeSet<WsPath>,
    /// Files referred to by id, in the trash or not.
    pub ids: BTreeSet<FileId>,
    /// Earlier versions to restore.
    pub versions: BTreeSet<(FileId, i64)>,
    /// Whether files are restored from the trash. Folders removed with them may have to be restored too.
    pub restores: bool,
}

impl Needs {
    pub fn of(changes: &Changeset) -> Self {
        let mut needs = Self::default();
        for change in &changes.changes {
            match change {
                Change::Put(put) => needs.path(&put.path),
                Change::Touch(path) | Change::MakeDir(path) => needs.path(path),
                Change::Remove { path, .. } => {
                    needs.path(path);
                    needs.below.insert(path.clone());
                }
                Change::Move { from, to } => {
                    needs.path(from);
                    needs.below.insert(from.clone());
                    let (Destination::Into(to) | Destination::At(to) | Destination::Exactly(to)) = to;
                    needs.path(to);
                    if let Ok(inside) = to.join(from.name()) {
                        needs.path(&inside);
                    }
                }
                Change::Restore(file) => {
                    needs.ids.insert(*file);
                    needs.restores = true;
                }
                Change::Revert { file, seq, .. } => {
                    needs.ids.insert(*file);
                    needs.versions.insert((*file, *seq));
                }
            }
        }
        for expect in &changes.expect {
            match expect {
                Expect::Hash(path, _) | Expect::Absent(path) | Expect::NotEncoded(path) => needs.path(path),
                Expect::Version(file, _) | Expect::At(file, _) | Expect::InTrash(file, ..) => {
                    needs.ids.insert(*file);
                }
            }
        }
        needs.follow_moves(changes);
        needs
    }

    /// Adds the paths of files that were requested by id.
    pub fn add_paths_of(&mut self, found: &BTreeMap<FileId, FileRow>) {
        for row in found.values() {
            self.path(&row.path);
        }
    }

    fn path(&mut self, path: &WsPath) {
        self.at.insert(path.clone());
        // If a folder is in the set, those above it are too.
        let unknown = path.folders_above().rev().take_while(|above| !self.above.contains(*above));
        let unknown: Vec<WsPath> = unknown.map(|above| WsPath::from_normal(above.to_owned())).collect();
        self.above.extend(unknown);
    }

    /// Adds the sources of moves: what a later change finds at or below the target of a move was at or below its
    /// source. Changes are processed last to first, so that repeated moves are followed too.
    fn follow_moves(&mut self, changes: &Changeset) {
        for change in changes.changes.iter().rev() {
            let Change::Move { from, to } = change else { continue };
            for target in targets(from, to) {
                let moved = |paths: &BTreeSet<WsPath>| -> Vec<WsPath> {
                    let (low, high) = target.below_range();
                    let below = paths.range::<str, _>((Bound::Excluded(&*low), Bound::Excluded(&*high)));
                    paths.get(&target).into_iter().chain(below).filter_map(|path| path.moved(&target, from)).collect()
                };
                let (sources, folders) = (moved(&self.at), moved(&self.below));
                for source in sources {
                    self.path(&source);
                }
                self.below.extend(folders);
            }
        }
    }
}

/// Returns the possible targets of a move. Which one applies depends on what exists there.
fn targets(from: &WsPath, to: &Destination) -> Vec<WsPath> {
    match to {
        Destination::Exactly(path) => vec![path.clone()],
        Destination::Into(folder) => folder.join(from.name()).into_iter().collect(),
        Destination::At(path) => std::iter::once(path.clone()).chain(path.join(from.name())).collect(),
    }
}

//! Removals without versions that are applied together with a commit.

use super::commit::failed;
use super::disk::{Budget, Disk, DiskState, below_root};
use super::reconcile::BaseState;
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};
use toolrest_core::{Result, WsPath};
use toolrest_directory::{Change, FolderLock, Links, Root};
use toolrest_store::plan::FileRow;

/// Paths that are removed, with all that is below them, if and only if the commit is applied.
#[derive(Default)]
pub(super) struct UnversionedRemovals(BTreeSet<PathBuf>);

impl UnversionedRemovals {
    pub(super) fn add(&mut self, paths: impl IntoIterator<Item = PathBuf>) {
        self.0.extend(paths);
    }

    fn covers(&self, path: &Path) -> bool {
        !self.0.is_empty() && path.ancestors().any(|above| self.0.contains(above))
    }

    /// Returns the paths that are not below another one.
    fn outermost(&self) -> impl Iterator<Item = &PathBuf> {
        self.0.iter().filter(|path| path.parent().is_none_or(|above| !self.covers(above)))
    }

    /// Returns the changes that remove what is still there.
    pub(super) fn changes(&self, root: &Root) -> Result<Vec<Change>> {
        let mut changes = Vec::new();
        for path in self.outermost() {
            if root.stat_real(path).map_err(|error| failed(&error))?.is_some() {
                changes.push(Change::Clear { path: path.clone() });
            }
        }
        Ok(changes)
    }

    /// Removes them at once, if there is nothing to commit.
    pub(super) fn apply(&self, lock: &mut FolderLock<'_>) -> Result<()> {
        self.outermost().try_for_each(|path| lock.clear(path).map_err(|error| failed(&error)))
    }
}

/// The state of the folder without the removed paths.
pub(super) struct WithoutCleared<'a> {
    pub(super) disk: &'a Disk,
    pub(super) unversioned_removals: &'a UnversionedRemovals,
}

impl BaseState for WithoutCleared<'_> {
    fn budget(&self) -> Budget {
        self.disk.budget()
    }

    fn read_state(&self, path: &WsPath, links: Links, budget: &mut Budget) -> Result<Option<DiskState>> {
        if self.unversioned_removals.covers(below_root(path)) {
            Ok(None)
        } else {
            self.disk.read_state(path, links, budget)
        }
    }

    fn stat_kind(&self, path: &WsPath) -> Result<Option<DiskState>> {
        if self.unversioned_removals.covers(below_root(path)) { Ok(None) } else { self.disk.stat_kind(path) }
    }

    fn paths_below(&self, folder: &WsPath) -> Result<(Vec<WsPath>, usize)> {
        self.disk.paths_below_that(folder, |path| !self.unversioned_removals.covers(path))
    }

    fn is_older_than(&self, row: &FileRow) -> bool {
        self.disk.is_older_than(row)
    }
}

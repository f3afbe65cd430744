//! Which folders a program gave another path.

use super::paths::Paths;
use super::scan_result::ScanResult;
use super::tree::{Row, RowKind};
use super::working_copy::MergeBase;
use std::collections::{HashMap, HashSet};
use toolrest_core::{MAX_PATH_BYTES, WsPath};

/// Folders that were moved, in an order in which each gets to where it stands now. None of them is moved twice.
#[derive(Debug, Default)]
pub(super) struct Renames {
    moves: Vec<Rename>,
    /// The places of the moves, by where the folders were and by where they are.
    by_origin: Paths<usize>,
    by_destination: Paths<usize>,
}

#[derive(Debug)]
pub(super) struct Rename {
    /// Where it was in the workspace.
    pub(super) origin: WsPath,
    /// Where the moves before it left it.
    pub(super) from: WsPath,
    pub(super) to: WsPath,
}

impl Renames {
    /// Finds folders that are gone from one path and stand at another, if they can move in the workspace too.
    pub(super) fn find(scan_result: &ScanResult, base: &MergeBase<'_>) -> Self {
        let mut gone = HashMap::new();
        for path in &scan_result.removed_paths {
            if let Some(state) = base.states.get(path).filter(|_| base.is_known_folder(path)) {
                gone.insert(state.fingerprint.identity, path);
            }
        }
        let mut finder = Finder { scan_result, base, renames: Self::default(), passable: HashSet::new() };
        for (to, fingerprint) in &scan_result.folders {
            let Some(origin) = gone.get(&fingerprint.identity) else { continue };
            let from = finder.renames.destination(origin);
            if from != *to && finder.can_move(origin, &from, to) {
                finder.passable.insert(to.as_str());
                finder.renames.push(Rename { origin: (*origin).clone(), from, to: to.clone() });
            }
        }
        finder.renames
    }

    fn push(&mut self, rename: Rename) {
        self.by_origin.insert(&rename.origin, self.moves.len());
        self.by_destination.insert(&rename.to, self.moves.len());
        self.moves.push(rename);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Rename> {
        self.moves.iter()
    }

    /// Where something is after the moves.
    pub(super) fn destination(&self, path: &WsPath) -> WsPath {
        let rename = self.by_origin.at_or_above(path).map(|place| &self.moves[*place]);
        rename.and_then(|rename| path.moved(&rename.origin, &rename.to)).unwrap_or_else(|| path.clone())
    }

    /// Where something was before the moves; none if they left nothing there.
    pub(super) fn origin(&self, path: &WsPath) -> Option<WsPath> {
        let rename = self.by_destination.at_or_above(path).map(|place| &self.moves[*place]);
        let origin = rename.and_then(|rename| path.moved(&rename.to, &rename.origin)).unwrap_or_else(|| path.clone());
        (self.destination(&origin) == *path).then_some(origin)
    }

    /// Whether a folder was moved to the path, or to one below it.
    pub(super) fn lead_to_or_below(&self, path: &WsPath) -> bool {
        self.by_destination.any_at_or_below(path)
    }
}

/// Finds the moves, from the first path to the last: what is above a folder comes before it.
struct Finder<'a> {
    scan_result: &'a ScanResult,
    base: &'a MergeBase<'a>,
    renames: Renames,
    /// Where folders stand or nothing does, and will after later moves too: those lead to later paths.
    passable: HashSet<&'a str>,
}

impl<'a> Finder<'a> {
    fn can_move(&mut self, origin: &WsPath, from: &WsPath, to: &'a WsPath) -> bool {
        let base = self.base;
        let Some(folder) = base.row(origin).filter(|row| row.is_folder()) else { return false };
        base.tree.get(origin) == Some(folder)
            && self.is_the_same(origin, to)
            && self.leads_through_folders(to)
            && self.is_free(to)
            && fits(base, origin, to)
            && !to.is_below(from)
            // What was moved there would be taken along.
            && !self.renames.lead_to_or_below(from)
    }

    /// Whether it is the folder that was there. The file system gives the numbers of what is gone to what is new.
    fn is_the_same(&self, origin: &WsPath, to: &WsPath) -> bool {
        let Self { scan_result, base, .. } = self;
        base.tree.below(origin).any(|(path, _)| {
            let moved = path.moved(origin, to);
            let found =
                moved.and_then(|moved| scan_result.files.get(&moved).or_else(|| scan_result.folders.get(&moved)));
            found.is_some_and(|found| {
                let known = base.states.get(path).filter(|state| state.what.is_tracked());
                known.is_some_and(|known| found.identity == known.fingerprint.identity)
            })
        })
    }

    fn leads_through_folders(&mut self, to: &'a WsPath) -> bool {
        let is_known = |above: &&str| *above == "/" || self.passable.contains(above);
        let unknown: Vec<&str> = to.folders_above().rev().take_while(|above| !is_known(above)).collect();
        let is_passable = unknown.iter().all(|above| {
            let origin = self.renames.origin(&WsPath::from_normal((*above).to_owned()));
            origin.and_then(|origin| self.base.tree.get(&origin)).is_none_or(Row::is_folder)
        });
        if is_passable {
            self.passable.extend(unknown);
        }
        is_passable
    }

    /// Whether nothing stands at a path, before and after the moves so far.
    fn is_free(&self, to: &WsPath) -> bool {
        let tree = self.base.tree;
        tree.get(to).is_none()
            && tree.below(to).next().is_none()
            && self.renames.origin(to).is_none_or(|origin| tree.get(&origin).is_none())
            && !self.base.states.contains_key(to)
    }
}

/// Whether programs see all that is in a folder, and no path gets too long where it is moved to.
fn fits(base: &MergeBase<'_>, origin: &WsPath, to: &WsPath) -> bool {
    base.tree.below(origin).all(|(path, row)| {
        let grown = path.as_str().len() + to.as_str().len();
        row.what != RowKind::Unseen && grown <= MAX_PATH_BYTES + origin.as_str().len()
    })
}

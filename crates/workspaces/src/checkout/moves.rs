//! Detects which folders a program moved.

use super::diff::{Diff, Diffs, Node};
use super::net_changes::{NetChanges, NodeNow, Side};
use super::path_tree::PathTree;
use std::collections::{BTreeMap, HashMap, HashSet};
use toolrest_core::{ContentHash, Result, WsPath};

/// Maximum number of moves that are found by content in one commit. Further files are removed and created instead.
pub(super) const MAX_MOVES: usize = 256;

/// Folders that a program moved, in an order in which the moves can be applied. No folder is moved twice.
#[derive(Debug, Default)]
pub(crate) struct FolderMoves {
    moves: Vec<FolderMove>,
    /// Indexes of the moves, by where the folders were and by where they are.
    by_origin: PathTree<usize>,
    by_destination: PathTree<usize>,
}

#[derive(Debug)]
pub(super) struct FolderMove {
    /// Where the folder is in the workspace.
    pub(super) origin: WsPath,
    /// Where the moves before this one put it.
    pub(super) from: WsPath,
    pub(super) to: WsPath,
}

impl FolderMoves {
    /// Finds folders that are gone from one path and are at another by their inodes.
    pub(super) fn by_identity(diffs: &Diffs, side: &impl Side) -> Result<Self> {
        let mut gone = HashMap::new();
        for diff in diffs.iter().filter(|diff| diff.is_removed()) {
            if let Some(Node::Folder(Some(folder))) = diff.before {
                gone.insert(folder.identity, &diff.path);
            }
        }
        let mut finder = Finder { diffs, side, moves: Self::default(), passable: HashSet::new() };
        for diff in diffs.iter().filter(|diff| diff.makes_folder()) {
            let identity = diff.after.as_ref().and_then(Node::identity);
            if let Some(origin) = identity.and_then(|identity| gone.get(&identity)) {
                finder.try_add(origin, &diff.path)?;
            }
        }
        Ok(finder.moves)
    }

    /// Finds folders whose whole content is gone from one path and is at another, where inodes tell nothing.
    pub(super) fn by_content(net: &NetChanges, side: &impl Side) -> Result<Self> {
        let diffs = &net.diffs;
        let files = moved_files(net);
        let mut finder = Finder { diffs, side, moves: Self::default(), passable: HashSet::new() };
        let is_gone_folder = |diff: &&Diff| diff.is_removed() && diff.before.as_ref().is_some_and(Node::is_folder);
        for Diff { path: folder, after, .. } in diffs.iter().filter(is_gone_folder) {
            let is_inside_moved = finder.moves.by_origin.at_or_above(folder).is_some();
            if after.is_some() || is_inside_moved || finder.moves.moves.len() == MAX_MOVES {
                continue;
            }
            if let Some(to) = whole_destination(diffs, folder, &files) {
                finder.try_add(folder, to)?;
            }
        }
        Ok(finder.moves)
    }

    fn push(&mut self, folder_move: FolderMove) {
        self.by_origin.insert(&folder_move.origin, self.moves.len());
        self.by_destination.insert(&folder_move.to, self.moves.len());
        self.moves.push(folder_move);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &FolderMove> {
        self.moves.iter()
    }

    /// Returns where something is after the moves.
    pub(super) fn destination(&self, path: &WsPath) -> WsPath {
        let nearest = self.by_origin.at_or_above(path).map(|index| &self.moves[*index]);
        nearest.and_then(|nearest| path.moved(&nearest.origin, &nearest.to)).unwrap_or_else(|| path.clone())
    }

    /// Returns where something was before the moves; none if they left nothing at the path.
    pub(crate) fn origin(&self, path: &WsPath) -> Option<WsPath> {
        let nearest = self.by_destination.at_or_above(path).map(|index| &self.moves[*index]);
        let origin =
            nearest.and_then(|nearest| path.moved(&nearest.to, &nearest.origin)).unwrap_or_else(|| path.clone());
        (self.destination(&origin) == *path).then_some(origin)
    }

    /// Whether a folder was moved to the path, or to one below it.
    pub(super) fn lead_to_or_below(&self, path: &WsPath) -> bool {
        self.by_destination.any_at_or_below(path)
    }
}

/// Pairs each removed file with a new one of the same content, preferably of the same name.
fn moved_files(net: &NetChanges) -> BTreeMap<&WsPath, &WsPath> {
    let mut gone: HashMap<(ContentHash, bool), Vec<&WsPath>> = HashMap::new();
    for diff in net.diffs.iter().filter(|diff| diff.after.is_none()) {
        if let Some((file, hash)) = diff.file_before().and_then(|file| Some((file, file.hash?))) {
            gone.entry((hash, file.is_executable())).or_default().push(&diff.path);
        }
    }
    let mut pairs = BTreeMap::new();
    for (to, written) in net.written().filter(|(to, _)| net.diffs.before(to).is_none()) {
        let Some(sources) = gone.get_mut(&(written.hash, written.is_executable)) else { continue };
        let index = sources.iter().position(|from| from.name() == to.name()).unwrap_or(0);
        if !sources.is_empty() {
            pairs.insert(sources.remove(index), to);
        }
    }
    pairs
}

/// Returns the new folder that holds all that a removed folder held, and nothing else.
fn whole_destination<'a>(diffs: &'a Diffs, folder: &WsPath, files: &BTreeMap<&WsPath, &WsPath>) -> Option<&'a WsPath> {
    let first = diffs.below(folder).find_map(|diff| files.get_key_value(&diff.path))?;
    let to = first.1.as_str().strip_suffix(&first.0.as_str()[folder.as_str().len()..])?;
    let to = diffs.get(to).filter(|diff| diff.makes_folder() && diff.before.is_none()).map(|diff| &diff.path)?;
    let is_at_destination = |diff: &Diff| {
        let destination = diff.path.moved(folder, to);
        destination.is_some_and(|destination| match &diff.before {
            Some(Node::Folder(_)) => diff.after.is_none() && diffs.makes_folder(&destination),
            Some(Node::File(_)) => files.get(&diff.path) == Some(&&destination),
            _ => false,
        })
    };
    let is_whole = diffs.below(folder).all(is_at_destination);
    (is_whole && diffs.below(folder).count() == diffs.below(to).count()).then_some(to)
}

/// Finds the moves in the order of their destinations: the folder above another comes before it.
struct Finder<'a, S> {
    diffs: &'a Diffs,
    side: &'a S,
    moves: FolderMoves,
    /// Paths at which there is a folder or nothing, now and after later moves.
    passable: HashSet<&'a str>,
}

impl<'a, S: Side> Finder<'a, S> {
    fn try_add(&mut self, origin: &WsPath, to: &'a WsPath) -> Result<()> {
        let from = self.moves.destination(origin);
        if from != *to && self.can_move(origin, &from, to)? {
            self.passable.insert(to.as_str());
            self.moves.push(FolderMove { origin: origin.clone(), from, to: to.clone() });
        }
        Ok(())
    }

    fn can_move(&mut self, origin: &WsPath, from: &WsPath, to: &'a WsPath) -> Result<bool> {
        Ok(self.side.now(origin)? == Some(NodeNow::Folder)
            && !self.side.is_changed(origin)?
            && self.is_same_folder(origin, to)
            && self.leads_through_folders(to)?
            && self.is_free(to)?
            && self.side.can_move(origin, to)
            && !to.is_below(from)
            // Otherwise the folders that were moved into it would be moved along.
            && !self.moves.lead_to_or_below(from))
    }

    /// Whether the inodes below confirm that it is the same folder: a new folder can get the inode of a removed one.
    fn is_same_folder(&self, origin: &WsPath, to: &WsPath) -> bool {
        if !matches!(self.diffs.before(origin), Some(Node::Folder(Some(_)))) {
            return true;
        }
        self.diffs.below(origin).filter(|diff| diff.before.is_some()).any(|diff| {
            let found = diff.path.moved(origin, to).and_then(|moved| self.diffs.after(&moved)?.identity());
            found.is_some() && found == diff.before.as_ref().and_then(Node::identity)
        })
    }

    fn leads_through_folders(&mut self, to: &'a WsPath) -> Result<bool> {
        let is_known = |above: &&str| *above == "/" || self.passable.contains(above);
        let unknown: Vec<&str> = to.folders_above().rev().take_while(|above| !is_known(above)).collect();
        for above in &unknown {
            let origin = self.moves.origin(&WsPath::from_normal((*above).to_owned()));
            let now = origin.map_or(Ok(None), |origin| self.side.now(&origin))?;
            if !matches!(now, None | Some(NodeNow::Folder)) {
                return Ok(false);
            }
        }
        self.passable.extend(unknown);
        Ok(true)
    }

    /// Whether nothing is at a path, before the moves and after those found so far.
    fn is_free(&self, to: &WsPath) -> Result<bool> {
        let origin = self.moves.origin(to);
        Ok(self.side.now(to)?.is_none() && origin.map_or(Ok(None), |origin| self.side.now(&origin))?.is_none())
    }
}

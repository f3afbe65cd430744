//! Detects what a program changed in its view of a folder, by the upper layer of the overlay, and merges it.

use super::LeftOutReport;
use crate::checkout::FolderMoves;
use crate::checkout::diff::{Diff, FileState, Node, judge};
use crate::checkout::merge::{MergeOutcome, NOT_REMOVED, PlacedKind};
use crate::checkout::net_changes::{
    CommitLimits, CountedContents, FindMoves, NetChanges, NodeNow, Read, Side, WrittenContent,
};
use crate::folder::commit::failed;
use crate::folder::disk::{Disk, below_root, path_of};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Bound,
    path::{Path, PathBuf},
    sync::Arc,
};
use toolrest_core::{CallId, ContentHash, Guard, KeepLimits, LeftOutReason, ProgramConflict, Result, WsPath};
use toolrest_directory::{
    Baseline, Difference, ErrorKind as DiskError, Identity, Kind, ListOptions, Metadata, Owner, Root, is_git,
};

/// What becomes of a program's changes to a view: a changeset, and what is transferred without versions.
#[derive(Default)]
pub(super) struct LayerMerge {
    pub(super) outcome: MergeOutcome,
    /// Paths that are removed without versions, together with the commit.
    pub(super) unversioned_removals: Vec<PathBuf>,
    /// Paths of the upper layer that are transferred without versions after the commit, with their destinations.
    pub(super) transfers: Vec<(PathBuf, PathBuf)>,
    /// Destinations that are synced to disk, because no build makes them again.
    pub(super) durable: Vec<PathBuf>,
    /// Paths in transferred trees that are part of the commit.
    pub(super) committed: Vec<PathBuf>,
    /// Permissions that the program gave to what is in the folder.
    pub(super) permissions: Vec<(PathBuf, Metadata, Owner)>,
    /// The names of each file with several names (hard links).
    pub(super) linked_names: HashMap<Identity, Vec<PathBuf>>,
    pub(super) left_out: LeftOutReport,
}

impl LayerMerge {
    /// Reports that somebody else changed something that has no versions.
    pub(super) fn changed_by_others(&mut self, path: &Path, kept_as: Option<&Path>, reason: &str) {
        let Some(at) = path_of(path) else { return self.left_out.add(path, LeftOutReason::Name) };
        let kept_as = kept_as.and_then(path_of);
        self.outcome.conflicts.push(ProgramConflict { path: at, kept_as, reason: reason.to_owned() });
    }
}

/// What is compared and merged.
pub(super) struct LayerInput {
    pub(super) disk: Disk,
    pub(super) upper: Arc<Root>,
    pub(super) baseline: Arc<Baseline>,
    pub(super) keep: KeepLimits,
    pub(super) call: CallId,
    pub(super) guard: Arc<Guard>,
    /// Files that the system shows, which are not on disk.
    pub(super) virtual_files: BTreeSet<WsPath>,
}

impl LayerInput {
    pub(super) fn merge(self, mut differences: Vec<Difference>) -> Result<LayerMerge> {
        differences.sort_by(|one, other| one.path.cmp(&other.path));
        let changes = differences.iter().flat_map(|found| {
            let at = |was_there, is_there| (path_of(&found.path), was_there, is_there);
            // Of an ignored folder only the top is known; files in it may have been removed.
            let may_remove = found.is_ignored && found.lower.is_some_and(|lower| lower.kind == Kind::Folder);
            let removal = may_remove.then(|| at(true, false));
            [Some(at(found.lower.is_some(), found.upper.is_some())), removal].into_iter().flatten()
        });
        judge(&self.guard, changes)?;
        let (ignored, versioned): (Vec<_>, Vec<_>) = differences.into_iter().partition(|found| found.is_ignored);
        let mut layer = LayerMerge::default();
        let (keep, call) = (self.keep, self.call);
        let virtual_folders = self.virtual_files.iter().flat_map(WsPath::ancestors).collect();
        let mut detector = Detector {
            layer: &mut layer,
            diffs: Vec::new(),
            unnamed: Vec::new(),
            side: LayerSide::new(self, virtual_folders),
        };
        let committed: BTreeSet<PathBuf> = versioned.iter().map(|found| found.path.clone()).collect();
        for found in versioned {
            detector.versioned(found)?;
        }
        for found in &ignored {
            detector.ignored(found, &committed)?;
        }
        let Detector { diffs, unnamed, mut side, .. } = detector;
        let limits = CommitLimits { keep, counted: CountedContents::Removed };
        let mut net = NetChanges::read(diffs, &mut side, limits, FindMoves::ByContent)?;
        let outcome = net.merge(&side, call)?;
        layer.outcome.conflicts.extend(outcome.conflicts);
        layer.add_permissions(&net, &side, &outcome.placed);
        let relocated = |path: &Path| relocated(path, &outcome.conflict_paths);
        for (path, reason) in &outcome.unversioned_removals {
            layer.left_out.add(below_root(path), *reason);
            layer.unversioned_removals.push(below_root(path).to_owned());
        }
        for left_out in &outcome.left_out {
            let to = left_out.to.as_ref().unwrap_or(&left_out.path);
            layer.left_out.add(below_root(to), left_out.reason);
            if left_out.to.is_some() {
                layer.transfers.push((below_root(&left_out.path).to_owned(), below_root(to).to_owned()));
                layer.durable.push(below_root(to).to_owned());
            }
        }
        for path in unnamed {
            let to = relocated(&path);
            layer.left_out.add(&to, LeftOutReason::Name);
            layer.durable.push(to.clone());
            layer.transfers.push((path, to));
        }
        let is_left = |found: &&Difference| found.upper.is_some() && !committed.contains(&found.path);
        let transferred = ignored.iter().filter(is_left);
        layer.transfers.extend(transferred.map(|found| (found.path.clone(), relocated(&found.path))));
        let conflicts = std::mem::take(&mut layer.outcome.conflicts);
        layer.outcome = MergeOutcome { conflicts, ..outcome };
        Ok(layer)
    }
}

impl LayerMerge {
    fn add_permissions(&mut self, net: &NetChanges, side: &LayerSide, placed: &[crate::checkout::merge::PlacedEntry]) {
        for placed in placed {
            let Some(left) = side.left.get(&placed.path) else { continue };
            let to = below_root(&placed.to).to_owned();
            if left.links > 1 && left.kind == Kind::File {
                self.linked_names.entry(left.identity).or_default().push(to.clone());
            }
            let owner = match placed.kind {
                PlacedKind::Created | PlacedKind::CreatedFolder => Owner::AsLeft,
                PlacedKind::Changed | PlacedKind::Same => Owner::Same,
            };
            let before = net.diffs.file_before(&placed.path).filter(|_| placed.kind == PlacedKind::Same);
            let is_kept = before.is_some_and(|before| {
                before.metadata.mode == left.mode || side.changed_by_others.contains(&placed.path)
            });
            if !is_kept {
                self.permissions.push((to, *left, owner));
            }
        }
    }
}

/// Returns where something in a folder belongs that may have become a conflict copy.
fn relocated(path: &Path, conflict_paths: &BTreeMap<WsPath, WsPath>) -> PathBuf {
    let find = |above: &Path| {
        Some((path_of(above).and_then(|above| conflict_paths.get(&above))?, path.strip_prefix(above).ok()?))
    };
    let found = if conflict_paths.is_empty() { None } else { path.ancestors().skip(1).find_map(find) };
    found.map_or_else(|| path.to_owned(), |(to, below)| below_root(to).join(below))
}

/// Whether any of the paths is at or below a folder.
fn any_below(paths: &BTreeSet<PathBuf>, folder: &Path) -> bool {
    let mut from = paths.range::<Path, _>((Bound::Included(folder), Bound::Unbounded));
    from.next().is_some_and(|path| path.starts_with(folder))
}

/// Turns the differences of an upper layer into diffs, and sorts out what has no versions.
struct Detector<'a> {
    layer: &'a mut LayerMerge,
    diffs: Vec<Diff>,
    /// Paths of the upper layer that no path of a workspace can name.
    unnamed: Vec<PathBuf>,
    side: LayerSide,
}

impl Detector<'_> {
    fn versioned(&mut self, found: Difference) -> Result<()> {
        let Difference { path, upper, lower, is_changed_by_others, .. } = found;
        let Some(at) = path_of(&path) else {
            self.side.unversioned.insert(path.clone());
            if upper.is_none() {
                self.layer.left_out.add(&path, LeftOutReason::Name);
                self.layer.unversioned_removals.push(path);
            } else if !self.unnamed.last().is_some_and(|above| path.starts_with(above)) {
                self.unnamed.push(path);
            }
            return Ok(());
        };
        if self.unnamed.last().is_some_and(|above| path.starts_with(above)) {
            return Ok(());
        }
        let has_kind = |side: &Option<Metadata>, kind| side.is_some_and(|side| side.kind == kind);
        if has_kind(&upper, Kind::Folder) && has_kind(&lower, Kind::Folder) {
            if let Some(upper) = upper.filter(|_| !is_changed_by_others) {
                self.layer.permissions.push((path, upper, Owner::Same));
            }
            return Ok(());
        }
        let is_link = has_kind(&upper, Kind::Symlink) && has_kind(&lower, Kind::Symlink);
        if is_link && self.side.is_same_link(&path)? {
            return Ok(());
        }
        if let Some(upper) = upper {
            self.side.left.insert(at.clone(), upper);
        }
        if let Some(lower) = lower {
            if is_changed_by_others && lower.kind != Kind::Folder {
                self.side.changed_by_others.insert(at.clone());
            }
            self.side.found.insert(at.clone(), lower);
        }
        self.diffs.push(Diff { path: at, before: lower.map(node), after: upper.map(node) });
        Ok(())
    }

    /// Handles a tree that has no versions, but for the files in it that are part of the commit.
    fn ignored(&mut self, found: &Difference, committed: &BTreeSet<PathBuf>) -> Result<()> {
        // Most commands of git change the repository, so that is no news.
        if !found.path.file_name().is_some_and(is_git) {
            self.layer.left_out.add(&found.path, LeftOutReason::Ignored);
        }
        self.side.unversioned.insert(found.path.clone());
        let inside = committed.range::<Path, _>((Bound::Included(&*found.path), Bound::Unbounded));
        let inside: BTreeSet<PathBuf> = inside.take_while(|path| path.starts_with(&found.path)).cloned().collect();
        self.layer.committed.extend(inside.iter().cloned());
        if found.upper.is_some() {
            return Ok(());
        }
        let LayerInput { disk, baseline, .. } = &self.side.input;
        if disk.root.is_changed_since(&found.path, baseline).map_err(|error| failed(&error))? {
            self.side.staying.insert(found.path.clone());
            self.layer.changed_by_others(&found.path, None, NOT_REMOVED);
            return Ok(());
        }
        self.remove_around(&found.path, &inside)
    }

    /// Removes all that is at a path, but for what the commit removes.
    fn remove_around(&mut self, path: &Path, committed: &BTreeSet<PathBuf>) -> Result<()> {
        if committed.contains(path) {
            return Ok(());
        }
        if !any_below(committed, path) {
            self.layer.unversioned_removals.push(path.to_owned());
            return Ok(());
        }
        let before = Some(Node::Folder(None));
        self.diffs.extend(path_of(path).map(|path| Diff { path, before, after: None }));
        let listing = self.side.input.disk.root.list(path, ListOptions::default()).map_err(|error| failed(&error))?;
        listing.entries.iter().try_for_each(|entry| self.remove_around(&path.join(&entry.path), committed))
    }
}

fn node(metadata: Metadata) -> Node {
    match metadata.kind {
        Kind::Folder => Node::Folder(None),
        Kind::File => Node::File(FileState { metadata, hash: None }),
        Kind::Symlink => Node::Unversioned(LeftOutReason::Link),
        Kind::Other => Node::Unversioned(LeftOutReason::Special),
    }
}

/// The upper layer and the folder below it, as the merge sees them.
struct LayerSide {
    input: LayerInput,
    /// Folders above the files that the system shows.
    virtual_folders: BTreeSet<WsPath>,
    /// What is in the upper layer, and what is in the folder.
    left: HashMap<WsPath, Metadata>,
    found: HashMap<WsPath, Metadata>,
    changed_by_others: BTreeSet<WsPath>,
    /// Paths that have no versions.
    unversioned: BTreeSet<PathBuf>,
    /// Paths without versions that the program removed and others keep.
    staying: BTreeSet<PathBuf>,
}

impl LayerSide {
    fn new(input: LayerInput, virtual_folders: BTreeSet<WsPath>) -> Self {
        Self {
            input,
            virtual_folders,
            left: HashMap::new(),
            found: HashMap::new(),
            changed_by_others: BTreeSet::new(),
            unversioned: BTreeSet::new(),
            staying: BTreeSet::new(),
        }
    }

    fn is_same_link(&self, path: &Path) -> Result<bool> {
        let target = |root: &Root| root.read_link(path).map_err(|error| failed(&error));
        Ok(target(&self.input.upper)? == target(&self.input.disk.root)?)
    }

    fn hash(root: &Root, path: &WsPath) -> Result<Option<ContentHash>> {
        match root.open_reader(below_root(path)) {
            Ok(reader) => Ok(reader.hash().ok().map(|hash| ContentHash(hash.0))),
            Err(error) if matches!(error.kind, DiskError::Denied) => Ok(None),
            Err(error) => Err(failed(&error)),
        }
    }
}

impl Side for LayerSide {
    fn now(&self, path: &WsPath) -> Result<Option<NodeNow>> {
        if self.input.virtual_files.contains(path) {
            return Ok(Some(NodeNow::Protected));
        }
        let stat = |root: &Root| root.stat_real(below_root(path)).map_err(|error| failed(&error));
        let now = match self.found.get(path) {
            Some(found) => Some(*found),
            None if self.left.contains_key(path) => None,
            // What the program left without versions takes the path too.
            None => stat(&self.input.disk.root)?.map_or_else(|| stat(&self.input.upper), |found| Ok(Some(found)))?,
        };
        Ok(match now {
            Some(now) if now.kind == Kind::Folder => Some(NodeNow::Folder),
            Some(now) => Some(NodeNow::File { is_executable: now.is_executable() }),
            None if self.virtual_folders.contains(path) => Some(NodeNow::Folder),
            None => None,
        })
    }

    fn is_changed(&self, path: &WsPath) -> Result<bool> {
        Ok(self.changed_by_others.contains(path))
    }

    fn can_move(&self, from: &WsPath, to: &WsPath) -> bool {
        !any_below(&self.unversioned, below_root(from)) && !any_below(&self.unversioned, below_root(to))
    }

    fn holds_more(&self, folder: &WsPath, _: &dyn Fn(&str) -> bool, _: &FolderMoves) -> bool {
        self.virtual_folders.contains(folder) || any_below(&self.staying, below_root(folder))
    }

    fn hash_before(&self, path: &WsPath, _: &FileState) -> Result<Result<ContentHash, LeftOutReason>> {
        Ok(Self::hash(&self.input.disk.root, path)?.ok_or(LeftOutReason::Unreadable))
    }

    fn transfers(&self) -> bool {
        true
    }

    fn read(
        &mut self,
        path: &WsPath,
        after: &FileState,
        before: Option<(&WsPath, &FileState)>,
        limit_bytes: Option<u64>,
    ) -> Result<Read> {
        let size_bytes = after.size_bytes();
        let is_comparable =
            |before: &&FileState| before.size_bytes() == size_bytes && before.is_executable() == after.is_executable();
        let before_hash = before.map(|(_, before)| before).filter(is_comparable).and_then(|before| before.hash);
        if before_hash.is_some() && Self::hash(&self.input.upper, path)? == before_hash {
            return Ok(Read::Same);
        }
        if limit_bytes.is_none_or(|limit| size_bytes > limit) {
            return Ok(Read::OverLimit { size_bytes });
        }
        match self.input.upper.read(below_root(path), size_bytes) {
            Ok(read) => Ok(Read::Written(WrittenContent {
                hash: ContentHash(read.hash.0),
                is_executable: after.is_executable(),
                bytes: read.bytes,
            })),
            Err(error) if matches!(error.kind, DiskError::Denied | DiskError::Io(_)) => {
                Ok(Read::LeftOut(LeftOutReason::Unreadable))
            }
            Err(error) => Err(failed(&error)),
        }
    }
}

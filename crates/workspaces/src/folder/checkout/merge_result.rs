//! What becomes of each thing that a program has changed.

use crate::conflict_name::conflict_path;
use crate::folder::commit::failed;
use crate::folder::disk::{Disk, below_root, path_of, shown};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Bound,
    path::{Path, PathBuf},
    sync::Arc,
};
use toolrest_core::{
    Attribution, CallId, CheckedIn, CommitId, Content, ContentHash, KeepLimits, LeftOut, LeftOutReason, ProgramChange,
    ProgramConflict, Result, WsPath,
};
use toolrest_directory::{
    Baseline, Difference, ErrorKind as DiskError, Identity, Kind, Links, ListOptions, Metadata, Owner, ReplacedDirs,
    Root,
};

const CHANGED: &str = "somebody else changed it while the program ran";
const NOT_REMOVED: &str = "somebody else changed it while the program ran, so that it was not removed";

/// What a program did, sorted by what becomes of it.
#[derive(Default)]
pub(super) struct MergeResult {
    /// Files that it took away.
    pub(super) removed: BTreeMap<WsPath, Before>,
    pub(super) removed_folders: BTreeSet<WsPath>,
    pub(super) made_folders: BTreeSet<WsPath>,
    /// Files that it wrote.
    pub(super) written: BTreeMap<WsPath, Written>,
    /// What goes without versions, together with the rest.
    pub(super) unversioned_removals: Vec<PathBuf>,
    /// What comes without versions, after the rest: from where in the program's folder, and where to.
    pub(super) transferred: Vec<(PathBuf, PathBuf)>,
    /// What of that nobody can make again.
    pub(super) durable: Vec<PathBuf>,
    /// What lies in a tree that is taken over but has been dealt with.
    pub(super) settled: Vec<PathBuf>,
    /// The folders that somebody else has put where they are.
    pub(super) replaced_dirs: ReplacedDirs,
    /// What gets the permissions that the program gave it.
    pub(super) permissions: Vec<(PathBuf, Metadata, Owner)>,
    /// The names of each file that the program gave several.
    pub(super) names: HashMap<Identity, Vec<PathBuf>>,
    pub(super) changed: Vec<ProgramChange>,
    pub(super) conflicts: Vec<ProgramConflict>,
    pub(super) left_out: Vec<LeftOut>,
}

/// A file as it is in the folder.
#[derive(Clone, Copy)]
pub(super) struct Before {
    pub(super) hash: ContentHash,
    pub(super) size_bytes: u64,
    pub(super) is_executable: bool,
}

/// A file as the program left it.
pub(super) struct Written {
    pub(super) content: Content,
    pub(super) hash: ContentHash,
    pub(super) is_executable: bool,
    /// What it takes the place of.
    pub(super) before: Option<Before>,
}

impl MergeResult {
    pub(super) fn into_checked_in(mut self, commit: Option<CommitId>, attribution: Attribution) -> CheckedIn {
        self.changed.sort_by(|one, other| one.path.cmp(&other.path));
        self.conflicts.sort_by(|one, other| one.path.cmp(&other.path));
        self.left_out.sort_by(|one, other| one.path.cmp(&other.path));
        self.left_out.dedup();
        CheckedIn { attribution, commit, changed: self.changed, conflicts: self.conflicts, left_out: self.left_out }
    }

    /// Tells that somebody else changed something that no history is kept of.
    pub(super) fn others_changed(&mut self, path: &Path, kept_as: Option<&Path>) {
        let Some(at) = path_of(path) else { return self.leave_out(path, LeftOutReason::Name) };
        let reason = match kept_as {
            _ if at.name() == ".git" => {
                "somebody else changed the repository while the program ran, so that nothing it did in there was kept; \
                 repeat the git command"
            }
            Some(_) => CHANGED,
            None => NOT_REMOVED,
        };
        let kept_as = kept_as.and_then(path_of);
        self.conflicts.push(ProgramConflict { path: at, kept_as, reason: reason.to_owned() });
    }

    pub(super) fn leave_out(&mut self, path: &Path, reason: LeftOutReason) {
        // A commit that is full is told of by the folders of what it has no room for, which may be very much.
        let path = match reason {
            LeftOutReason::TooMuch => path.parent().unwrap_or(path),
            _ => path,
        };
        let left_out = LeftOut { path: shown(path), reason };
        if self.left_out.last() != Some(&left_out) {
            self.left_out.push(left_out);
        }
    }
}

/// Decides what of a program's changes is kept, and how.
pub(super) struct MergeInput {
    pub(super) disk: Disk,
    pub(super) upper: Arc<Root>,
    pub(super) baseline: Arc<Baseline>,
    pub(super) replaced_dirs: ReplacedDirs,
    pub(super) keep: KeepLimits,
    pub(super) call: CallId,
    /// The files that the system shows, and the folders above them.
    pub(super) virtual_paths: BTreeSet<WsPath>,
}

impl MergeInput {
    pub(super) fn decide(self, mut differences: Vec<Difference>) -> Result<MergeResult> {
        differences.sort_by(|one, other| one.path.cmp(&other.path));
        let (ignored, versioned): (Vec<_>, Vec<_>) = differences.into_iter().partition(|found| found.is_ignored);
        let mut decision = Merge {
            input: &self,
            found: MergeResult::default(),
            staying: BTreeSet::new(),
            relocated: Vec::new(),
            taken_whole: None,
            bytes_left: self.keep.commit_bytes,
            files_left: self.keep.commit_files,
        };
        for found in &versioned {
            if let (None, Some(lower)) = (&found.upper, &found.lower) {
                decision.remove(&found.path, lower)?;
            }
        }
        let (gone, left): (Vec<_>, Vec<_>) = ignored.into_iter().partition(|found| found.upper.is_none());
        for found in &gone {
            decision.ignored(found, &versioned)?;
        }
        for found in &versioned {
            if let Some(upper) = &found.upper {
                decision.left(&found.path, upper, found.lower.as_ref())?;
            }
        }
        // Only now it is known which folders go elsewhere, with what is ignored in them.
        for found in &left {
            decision.ignored(found, &versioned)?;
        }
        let Merge { mut found, staying, .. } = decision;
        found
            .removed_folders
            .retain(|folder| !self.virtual_paths.contains(folder) && !any_below(&staying, below_root(folder)));
        found.replaced_dirs = self.replaced_dirs;
        Ok(found)
    }
}

/// Whether any of the paths lies in a folder.
fn any_below(paths: &BTreeSet<PathBuf>, folder: &Path) -> bool {
    paths
        .range::<Path, _>((Bound::Included(folder), Bound::Unbounded))
        .next()
        .is_some_and(|path| path.starts_with(folder))
}

struct Merge<'a> {
    input: &'a MergeInput,
    found: MergeResult,
    /// What the program took away and stays, because others have changed it.
    staying: BTreeSet<PathBuf>,
    /// Folders of the program's that go elsewhere, and where.
    relocated: Vec<(PathBuf, PathBuf)>,
    /// A folder that is taken over with all that is in it.
    taken_whole: Option<PathBuf>,
    bytes_left: u64,
    files_left: usize,
}

impl Merge<'_> {
    /// Lets a tree through that no history is kept of, but for the files in it that have one.
    fn ignored(&mut self, found: &Difference, versioned: &[Difference]) -> Result<()> {
        self.found.leave_out(&found.path, LeftOutReason::Ignored);
        let tracked: BTreeSet<PathBuf> = versioned
            .iter()
            .filter(|versioned| versioned.path.starts_with(&found.path))
            .map(|versioned| versioned.path.clone())
            .collect();
        self.found.settled.extend(tracked.iter().cloned());
        let is_there = |tracked: &PathBuf| tracked == &found.path;
        if found.upper.is_some() {
            if !tracked.iter().any(is_there) {
                let target = self.elsewhere(&found.path).unwrap_or_else(|| found.path.clone());
                self.found.transferred.push((found.path.clone(), target));
            }
            return Ok(());
        }
        let MergeInput { disk, baseline, replaced_dirs, .. } = self.input;
        let is_changed = || disk.root.is_changed_since(&found.path, baseline).map_err(|error| failed(&error));
        if replaced_dirs.covers(&found.path) || is_changed()? {
            self.staying.insert(found.path.clone());
            self.found.others_changed(&found.path, None);
            return Ok(());
        }
        self.clear_around(&found.path, &tracked)
    }

    /// Where a path of the program's goes, if a folder above it goes elsewhere.
    fn elsewhere(&self, path: &Path) -> Option<PathBuf> {
        self.relocated.iter().rev().find_map(|(from, to)| Some(to.join(path.strip_prefix(from).ok()?)))
    }

    /// Clears all that is at a path, but for what is removed with a version.
    fn clear_around(&mut self, path: &Path, tracked: &BTreeSet<PathBuf>) -> Result<()> {
        if tracked.contains(path) {
            return Ok(());
        }
        if !any_below(tracked, path) {
            self.found.unversioned_removals.push(path.to_owned());
            return Ok(());
        }
        self.found.removed_folders.extend(path_of(path));
        let listing = self.input.disk.root.list(path, ListOptions::default()).map_err(|error| failed(&error))?;
        listing.entries.iter().try_for_each(|entry| self.clear_around(&path.join(&entry.path), tracked))
    }

    fn is_changed_by_others(&self, path: &Path, lower: &Metadata) -> bool {
        self.input.replaced_dirs.covers(path) || self.input.baseline.is_file_after(lower)
    }

    /// Takes away what the program took away.
    fn remove(&mut self, path: &Path, lower: &Metadata) -> Result<()> {
        let Some(at) = path_of(path) else {
            self.clear(path, LeftOutReason::Name);
            return Ok(());
        };
        if lower.kind == Kind::Folder {
            self.files_left = self.files_left.saturating_sub(1);
            self.found.removed_folders.insert(at);
            return Ok(());
        }
        if self.is_changed_by_others(path, lower) {
            self.staying.insert(path.to_owned());
            self.note_conflict(&at, None);
            return Ok(());
        }
        match lower.kind {
            Kind::Symlink => self.clear(path, LeftOutReason::Link),
            Kind::File => match self.room_for(lower.size_bytes, 0).map(|()| self.before(path, lower)) {
                Ok(before) => match before? {
                    Some(before) => {
                        self.found.removed.insert(at, before);
                    }
                    None => self.clear(path, LeftOutReason::Unreadable),
                },
                Err(reason) => self.clear(path, reason),
            },
            Kind::Folder | Kind::Other => self.clear(path, LeftOutReason::Special),
        }
        Ok(())
    }

    fn clear(&mut self, path: &Path, reason: LeftOutReason) {
        self.found.unversioned_removals.push(path.to_owned());
        self.found.leave_out(path, reason);
    }

    /// Keeps what the program left.
    fn left(&mut self, path: &Path, upper: &Metadata, lower: Option<&Metadata>) -> Result<()> {
        if self.taken_whole.as_ref().is_some_and(|whole| path.starts_with(whole)) {
            return Ok(());
        }
        let elsewhere = self.elsewhere(path);
        let lower = lower.filter(|_| elsewhere.is_none());
        let target = elsewhere.unwrap_or_else(|| path.to_owned());
        let Some(mut at) = path_of(&target) else {
            self.transfer(path, &target, LeftOutReason::Name);
            self.taken_whole = Some(path.to_owned());
            return Ok(());
        };
        let is_in_the_way = match lower {
            None => false,
            Some(lower) if lower.kind == Kind::Folder => any_below(&self.staying, path),
            Some(lower) if lower.kind == Kind::File && upper.kind == Kind::File => false,
            Some(lower) if lower.kind == Kind::Symlink && upper.kind == Kind::Symlink => {
                if self.is_same_link(path)? {
                    return Ok(());
                }
                self.is_changed_by_others(path, lower)
            }
            Some(lower) => self.is_changed_by_others(path, lower),
        };
        let is_protected = self.input.virtual_paths.contains(&at);
        match upper.kind {
            Kind::Folder => match lower {
                Some(lower) if lower.kind == Kind::Folder => {
                    if !self.input.replaced_dirs.covers(path) {
                        self.found.permissions.push((target, *upper, Owner::Same));
                    }
                    return Ok(());
                }
                Some(_) if is_in_the_way => {
                    at = self.reserve_conflict_path(&at)?;
                    self.relocated.push((path.to_owned(), below_root(&at).to_owned()));
                }
                Some(lower) => self.remove(path, lower)?,
                None => {}
            },
            Kind::Other => {
                self.found.leave_out(&target, LeftOutReason::Special);
                if !is_in_the_way && let Some(lower) = lower {
                    self.remove(path, lower)?;
                }
                return Ok(());
            }
            Kind::File if lower.is_some_and(|lower| lower.kind == Kind::File) && !is_protected => {
                return self.write_over(path, &at, upper, lower);
            }
            Kind::File | Kind::Symlink => {
                if is_in_the_way || is_protected {
                    at = self.reserve_conflict_path(&at)?;
                } else if let Some(lower) = lower {
                    self.remove(path, lower)?;
                }
            }
        }
        match upper.kind {
            Kind::Folder => {
                self.files_left = self.files_left.saturating_sub(1);
                self.found.permissions.push((below_root(&at).to_owned(), *upper, Owner::AsLeft));
                self.found.made_folders.insert(at);
            }
            Kind::Symlink => self.transfer(path, below_root(&at), LeftOutReason::Link),
            Kind::File | Kind::Other => self.write(path, at, upper, None)?,
        }
        Ok(())
    }

    /// Keeps a file in the place of another.
    fn write_over(&mut self, path: &Path, at: &WsPath, upper: &Metadata, lower: Option<&Metadata>) -> Result<()> {
        let Some(lower) = lower else { return self.write(path, at.clone(), upper, None) };
        let is_changed_by_others = self.is_changed_by_others(path, lower);
        let is_comparable = upper.size_bytes == lower.size_bytes && upper.size_bytes <= self.input.keep.file_bytes;
        let is_same = is_comparable && {
            let before = self.before(path, lower)?.map(|before| before.hash);
            let after = self.input.upper.open_reader(path).map_err(|error| failed(&error))?.hash();
            before.is_some() && before == after.ok().map(|hash| ContentHash(hash.0))
        };
        if is_same && upper.is_executable() == lower.is_executable() {
            if upper.mode != lower.mode && !is_changed_by_others {
                self.found.permissions.push((path.to_owned(), *upper, Owner::Same));
            }
            self.note_name(path.to_owned(), upper);
            return Ok(());
        }
        if !is_same && is_changed_by_others {
            let kept_as = self.reserve_conflict_path(at)?;
            return self.write(path, kept_as, upper, None);
        }
        self.write(path, at.clone(), upper, Some(lower))
    }

    /// Keeps a file, with a version if there is room for one.
    fn write(&mut self, path: &Path, at: WsPath, upper: &Metadata, lower: Option<&Metadata>) -> Result<()> {
        let target = below_root(&at).to_owned();
        if let Err(reason) = self.room_for(upper.size_bytes, lower.map_or(0, |lower| lower.size_bytes)) {
            self.transfer(path, &target, reason);
            return Ok(());
        }
        let before = match lower.map(|lower| self.before(path, lower)).transpose()? {
            Some(None) => {
                self.transfer(path, &target, LeftOutReason::Unreadable);
                return Ok(());
            }
            before => before.flatten(),
        };
        let read = match self.input.upper.read(path, upper.size_bytes) {
            Ok(read) => read,
            Err(error) if matches!(error.kind, DiskError::Denied | DiskError::Io(_)) => {
                self.found.leave_out(&target, LeftOutReason::Unreadable);
                return Ok(());
            }
            Err(error) => return Err(failed(&error)),
        };
        let hash = ContentHash(read.hash.0);
        let content = Content::of_bytes(read.bytes);
        let owner = if before.is_some() { Owner::Same } else { Owner::AsLeft };
        self.note_name(target.clone(), upper);
        self.found.permissions.push((target, *upper, owner));
        self.found.written.insert(at, Written { content, hash, is_executable: upper.is_executable(), before });
        Ok(())
    }

    /// Notes one of the names of a file that the program gave several.
    fn note_name(&mut self, target: PathBuf, upper: &Metadata) {
        if upper.links > 1 {
            self.found.names.entry(upper.identity).or_default().push(target);
        }
    }

    fn transfer(&mut self, path: &Path, target: &Path, reason: LeftOutReason) {
        self.found.leave_out(target, reason);
        self.found.transferred.push((path.to_owned(), target.to_owned()));
        self.found.durable.push(target.to_owned());
    }

    /// Takes room in the commit for a file, of which there is so much now and was so much before.
    fn room_for(&mut self, now_bytes: u64, before_bytes: u64) -> Result<(), LeftOutReason> {
        if now_bytes.max(before_bytes) > self.input.keep.file_bytes {
            return Err(LeftOutReason::TooLarge);
        }
        let left = self.bytes_left.checked_sub(now_bytes.saturating_add(before_bytes));
        match (left, self.files_left.checked_sub(1)) {
            (Some(bytes), Some(files)) => {
                (self.bytes_left, self.files_left) = (bytes, files);
                Ok(())
            }
            _ => Err(LeftOutReason::TooMuch),
        }
    }

    /// A file as it is in the folder; none if it cannot be read.
    fn before(&self, path: &Path, lower: &Metadata) -> Result<Option<Before>> {
        let reader = match self.input.disk.root.open_reader(path) {
            Ok(reader) => reader,
            Err(error) if matches!(error.kind, DiskError::Denied) => return Ok(None),
            Err(error) => return Err(failed(&error)),
        };
        let Ok(hash) = reader.hash() else { return Ok(None) };
        let (size_bytes, is_executable) = (lower.size_bytes, lower.is_executable());
        Ok(Some(Before { hash: ContentHash(hash.0), size_bytes, is_executable }))
    }

    fn is_same_link(&self, path: &Path) -> Result<bool> {
        let upper = self.input.upper.read_link(path).map_err(|error| failed(&error))?;
        let lower = self.input.disk.root.read_link(path).map_err(|error| failed(&error))?;
        Ok(upper == lower)
    }

    /// Finds the place for the program's version of what somebody else has changed.
    fn reserve_conflict_path(&mut self, at: &WsPath) -> Result<WsPath> {
        let is_free = |path: &WsPath| {
            let on_disk = self.input.disk.root.stat(below_root(path), Links::Keep).is_ok();
            let in_view = self.input.upper.stat(below_root(path), Links::Keep).is_ok();
            !on_disk && !in_view && !self.found.written.contains_key(path) && !self.found.made_folders.contains(path)
        };
        let folder = at.parent().unwrap_or_else(WsPath::root);
        let conflict_path = conflict_path(&folder, at.name(), self.input.call, is_free);
        let conflict_path = conflict_path.ok_or_else(|| toolrest_core::ToolError::stale(at, None))?;
        self.note_conflict(at, Some(conflict_path.clone()));
        Ok(conflict_path)
    }

    fn note_conflict(&mut self, at: &WsPath, kept_as: Option<WsPath>) {
        let reason = match (&kept_as, self.input.virtual_paths.contains(at)) {
            (_, true) => "the system shows something there that programs cannot change",
            (Some(_), false) => CHANGED,
            (None, false) => NOT_REMOVED,
        };
        self.found.conflicts.push(ProgramConflict { path: at.clone(), kept_as, reason: reason.to_owned() });
    }
}

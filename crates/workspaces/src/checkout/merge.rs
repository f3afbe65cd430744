//! What a program did, laid over what others did meanwhile.
//!
//! What others did stands. Where a program changed the same file, its version goes beside.

use super::conflict_paths::{ConflictPaths, OccupiedPaths};
use super::edits::Edit;
use super::paths::Paths;
use super::renames::Renames;
use super::scan_result::ScanResult;
use super::tree::{Row, RowKind, Version};
use super::working_copy::MergeBase;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use toolrest_core::{
    CallId, Change, Changeset, Content, ContentHash, Destination, Expect, FileType, Parents, ProgramChange,
    ProgramChangeKind, ProgramConflict, Put, Removal, Result, WsPath,
};

/// How many files are followed to another path in one commit. Others are removed here and made there, if they are not too
/// large for that.
const MAX_MOVES: usize = 256;

/// What becomes of a program's changes.
#[derive(Debug, Default)]
pub(super) struct MergeOutcome {
    pub(super) changes: Changeset,
    pub(super) changed: Vec<ProgramChange>,
    pub(super) conflicts: Vec<ProgramConflict>,
}

/// Borrows only what it needs, so that names can be given meanwhile.
macro_rules! occupied {
    ($merge:ident) => {
        OccupiedNow {
            base: $merge.base,
            renames: $merge.renames,
            scan_result: $merge.scan_result,
            removed: &$merge.removed,
        }
    };
}

pub(super) struct Merge<'a> {
    base: MergeBase<'a>,
    scan_result: &'a ScanResult,
    /// Where files were that cannot be written anew.
    moved: &'a BTreeMap<WsPath, WsPath>,
    renames: &'a Renames,
    /// Contents of which programs see something else than what is stored, by their keys.
    originals: &'a HashMap<ContentHash, Content>,
    conflict_paths: ConflictPaths,
    /// What goes, by where it is in the workspace.
    removed: BTreeSet<WsPath>,
    /// Changes that come before all others.
    leading_changes: Vec<Change>,
    removed_files: BTreeMap<WsPath, Row>,
    /// Those that may have gone elsewhere, by what they held.
    move_sources: HashMap<ContentHash, Vec<WsPath>>,
    removed_folders: BTreeMap<WsPath, Row>,
    made_folders: BTreeSet<WsPath>,
    moves: Vec<(WsPath, WsPath)>,
    puts: Vec<Put>,
    expect: Vec<Expect>,
    changed: Vec<ProgramChange>,
    conflicts: Vec<ProgramConflict>,
    /// The paths of the conflicts.
    conflict_index: Paths<()>,
}

impl<'a> Merge<'a> {
    pub(super) fn new(
        base: MergeBase<'a>,
        scan_result: &'a ScanResult,
        moved: &'a BTreeMap<WsPath, WsPath>,
        renames: &'a Renames,
        originals: &'a HashMap<ContentHash, Content>,
        call: CallId,
    ) -> Self {
        Self {
            base,
            scan_result,
            moved,
            renames,
            originals,
            conflict_paths: ConflictPaths::new(call),
            removed: BTreeSet::new(),
            leading_changes: Vec::new(),
            removed_files: BTreeMap::new(),
            move_sources: HashMap::new(),
            removed_folders: BTreeMap::new(),
            made_folders: BTreeSet::new(),
            moves: Vec::new(),
            puts: Vec::new(),
            expect: Vec::new(),
            changed: Vec::new(),
            conflicts: Vec::new(),
            conflict_index: Paths::default(),
        }
    }

    /// Takes the contents of the files, so that they are held once.
    pub(super) fn merge_work(mut self, files: &mut BTreeMap<WsPath, Edit>) -> Result<MergeOutcome> {
        self.move_folders();
        self.remove_files();
        self.remove_folders();
        self.make_folders()?;
        for (path, from) in self.moved {
            self.move_large_file(path, from)?;
        }
        for (path, edit) in files {
            self.put(path, edit)?;
        }
        Ok(self.into_outcome())
    }

    fn move_folders(&mut self) {
        for rename in self.renames.iter() {
            if let Some(above) = rename.to.parent().filter(|above| !above.is_root()) {
                self.leading_changes.push(Change::MakeDir(above));
            }
            let to = Destination::Exactly(rename.to.clone());
            self.leading_changes.push(Change::Move { from: rename.from.clone(), to });
            if let Some(row) = self.base.tree.get(&rename.origin) {
                self.expect.push(Expect::At(row.id, rename.origin.clone()));
            }
            self.expect.push(Expect::Absent(rename.to.clone()));
            self.report(&rename.to, ProgramChangeKind::Moved, Some(&rename.origin));
        }
    }

    fn remove_files(&mut self) {
        for path in &self.scan_result.removed_paths {
            let Some(before) = self.base.row(path).filter(|row| row.file().is_some()) else { continue };
            let now = self.renames.destination(path);
            if now != *path && self.scan_result.files.contains_key(&now) {
                continue;
            }
            match self.base.tree.get(path) {
                None => {}
                Some(row) if row == before => {
                    self.removed.insert(path.clone());
                    self.removed_files.insert(path.clone(), *row);
                    if let Some(hash) =
                        self.base.known_hash(path).filter(|_| !self.scan_result.folders.contains_key(path))
                    {
                        self.move_sources.entry(hash).or_default().push(path.clone());
                    }
                }
                Some(_) => self.conflict(path, None, "somebody else changed it, so it was not removed"),
            }
        }
    }

    /// A folder goes only if all that is in it does.
    fn remove_folders(&mut self) {
        for path in self.scan_result.removed_paths.iter().rev() {
            let Some(before) = self.base.row(path).filter(|row| row.is_folder()) else { continue };
            let now = self.renames.destination(path);
            if now != *path && self.scan_result.folders.contains_key(&now) || self.base.tree.get(path) != Some(before) {
                continue;
            }
            if self.is_left_empty(path, &now) {
                self.removed_folders.insert(path.clone(), *before);
                self.removed.insert(path.clone());
            }
        }
    }

    /// Whether nothing stays in a folder, of which all folders in it were asked before.
    fn is_left_empty(&self, folder: &WsPath, now: &WsPath) -> bool {
        if self.renames.lead_to_or_below(now) {
            return false;
        }
        // With a folder goes all that is in it.
        let mut below = self.base.tree.below_but_within(folder, |inner| self.removed.contains(inner));
        below.all(|path| self.removed.contains(path) || !self.renames.destination(path).is_below(now))
    }

    fn make_folders(&mut self) -> Result<()> {
        for path in self.scan_result.folders.keys() {
            let occupied = occupied!(self);
            let there = occupied.at(path);
            if there == Some(RowKind::Folder) {
                continue;
            }
            let place = if there.is_some() {
                self.conflict_paths.conflict_copy(path, &occupied)?
            } else {
                self.conflict_paths.usable_path(path, &occupied)?
            };
            if place != *path && self.conflict_index.at_or_above(path).is_none() {
                self.conflict(path, Some(&place), "a file of somebody else stands there");
            }
            self.report(&place, ProgramChangeKind::Created, None);
            self.made_folders.insert(place);
        }
        Ok(())
    }

    fn put(&mut self, path: &WsPath, edit: &mut Edit) -> Result<()> {
        let origin = self.renames.origin(path);
        let there = origin.as_ref().and_then(|origin| self.base.tree.get(origin)).copied();
        if let Some((origin, before, version)) = self.tracked(path, origin.as_ref()) {
            if there == Some(before) {
                return self.change(path, origin, edit, before, version);
            }
            if let Some((row, now)) = self.shows(there, edit) {
                return self.keep_mode(path, origin, edit, version.is_executable, row, now);
            }
            let reason = if there.is_some() { "somebody else changed it" } else { "somebody else removed or moved it" };
            return self.put_conflict_copy(path, edit, reason);
        }
        let Some(origin) = origin.as_ref().filter(|origin| there.is_some() && !self.removed.contains(*origin)) else {
            return self.create(path, origin.as_ref(), edit);
        };
        if let Some((row, now)) = self.shows(there, edit) {
            return self.keep_mode(path, origin, edit, false, row, now);
        }
        self.put_conflict_copy(path, edit, "somebody else made something of that name")
    }

    /// Lets a file be run or not as the program has it, where somebody else wrote the same content.
    fn keep_mode(
        &mut self,
        path: &WsPath,
        origin: &WsPath,
        edit: &mut Edit,
        was_executable: bool,
        row: Row,
        now: Version,
    ) -> Result<()> {
        let is_executable = edit.fingerprint.is_executable();
        if is_executable == was_executable || is_executable == now.is_executable {
            return Ok(());
        }
        self.change(path, origin, edit, row, now)
    }

    /// What a file was made from, if it is one of the workspace.
    fn tracked<'o>(&self, path: &WsPath, origin: Option<&'o WsPath>) -> Option<(&'o WsPath, Row, Version)> {
        let origin = origin.filter(|origin| *origin == path || self.scan_result.removed_paths.contains(*origin))?;
        let row = self.base.row(origin).filter(|_| self.base.is_known_file(origin))?;
        row.file().map(|version| (origin, *row, *version))
    }

    fn change(&mut self, path: &WsPath, origin: &WsPath, edit: &mut Edit, row: Row, version: Version) -> Result<()> {
        let content = match self.originals.get(&version.blob).filter(|_| !version.is_plain()) {
            None => Ok(Content::of_bytes(std::mem::take(&mut edit.bytes))),
            // It is needed once more if it does not fit.
            Some(before) => Content::of_shown(edit.bytes.clone(), version.file_type, before),
        };
        // Some numbers have no canonical form.
        let content =
            content.and_then(|content| if version.is_plain() { Ok(content) } else { content.hash().map(|_| content) });
        let content = match content {
            Ok(content) => content,
            Err(error) => {
                let reason =
                    format!("it is a {} and cannot hold what was written: {}", version.file_type, error.message);
                return self.put_conflict_copy(path, edit, &reason);
            }
        };
        self.expect_unchanged(origin, row, version);
        let is_executable = edit.fingerprint.is_executable();
        let file_type = if version.is_plain() { plain_type(&content) } else { version.file_type };
        self.puts.push(Put {
            path: path.clone(),
            file_type,
            content,
            parents: Parents::Create,
            executable: (is_executable != version.is_executable).then_some(is_executable),
        });
        self.report(path, ProgramChangeKind::Changed, None);
        Ok(())
    }

    fn create(&mut self, path: &WsPath, origin: Option<&WsPath>, edit: &mut Edit) -> Result<()> {
        let place = self.usable_path(path)?;
        if place == *path
            && let Some(from) = self.moved_from(path, edit)
        {
            self.move_file(&from, place, origin);
            return Ok(());
        }
        self.expect_absent(&place, origin);
        self.put_new(place, edit);
        Ok(())
    }

    /// Moves a file that cannot be written anew.
    fn move_large_file(&mut self, path: &WsPath, from: &WsPath) -> Result<()> {
        if let Some(move_sources) = self.base.known_hash(from).and_then(|hash| self.move_sources.get_mut(&hash)) {
            move_sources.retain(|leaver| leaver != from);
        }
        let origin = self.renames.origin(path);
        let there = origin.as_ref().filter(|origin| !self.removed.contains(*origin));
        let there = there.and_then(|origin| self.base.tree.get(origin)).copied();
        let place = match (there, self.tracked(path, origin.as_ref())) {
            (Some(row), Some((origin, before, version))) if row == before => {
                self.removed.insert(origin.clone());
                self.expect_unchanged(origin, row, version);
                self.leading_changes.push(Change::Remove { path: path.clone(), removal: Removal::File });
                path.clone()
            }
            (Some(_), _) => {
                let place = self.conflict_paths.conflict_copy(path, &occupied!(self))?;
                self.conflict(path, Some(&place), "somebody else changed or made something of that name");
                place
            }
            (None, _) => self.usable_path(path)?,
        };
        self.move_file(from, place, origin.as_ref());
        Ok(())
    }

    fn move_file(&mut self, from: &WsPath, place: WsPath, origin: Option<&WsPath>) {
        let row = self.removed_files.remove(from);
        if let Some((row, version)) = row.and_then(|row| Some((row, *row.file()?))) {
            self.expect_unchanged(from, row, version);
        }
        self.expect_absent(&place, origin);
        self.make_above(&place);
        self.report(&place, ProgramChangeKind::Moved, Some(from));
        self.moves.push((self.renames.destination(from), place));
    }

    /// Where something can be made: at its path, unless a file has come to stand where a folder was.
    fn usable_path(&mut self, path: &WsPath) -> Result<WsPath> {
        let place = self.conflict_paths.usable_path(path, &occupied!(self))?;
        if place != *path {
            self.conflict(path, Some(&place), "a file of somebody else stands where a folder was");
        }
        Ok(place)
    }

    /// Makes the folder that something is moved to again, if others removed it: moves do not.
    fn make_above(&mut self, path: &WsPath) {
        let Some(above) = path.parent().filter(|above| !above.is_root()) else { return };
        let is_missing = self.renames.origin(&above).is_none_or(|origin| self.base.tree.get(&origin).is_none());
        if is_missing && self.made_folders.insert(above.clone()) {
            self.report(&above, ProgramChangeKind::Created, None);
        }
    }

    /// Takes the file that went from its path with the content that came to this one.
    fn moved_from(&mut self, path: &WsPath, edit: &Edit) -> Option<WsPath> {
        if edit.bytes.is_empty() || self.moves.len() >= MAX_MOVES || self.base.tree.get(path).is_some() {
            return None;
        }
        let move_sources = self.move_sources.get_mut(&edit.hash)?;
        let states = self.base.states;
        let is_alike = |from: &WsPath| {
            states.get(from).is_some_and(|state| state.fingerprint.is_executable() == edit.fingerprint.is_executable())
        };
        let same_name = move_sources.iter().position(|from| from.name() == path.name() && is_alike(from));
        let place = same_name.or_else(|| move_sources.iter().position(is_alike))?;
        Some(move_sources.remove(place))
    }

    fn put_conflict_copy(&mut self, path: &WsPath, edit: &mut Edit, reason: &str) -> Result<()> {
        let place = self.conflict_paths.conflict_copy(path, &occupied!(self))?;
        self.conflict(path, Some(&place), reason);
        self.expect.push(Expect::Absent(place.clone()));
        self.put_new(place, edit);
        Ok(())
    }

    fn put_new(&mut self, path: WsPath, edit: &mut Edit) {
        let content = Content::of_bytes(std::mem::take(&mut edit.bytes));
        self.report(&path, ProgramChangeKind::Created, None);
        self.puts.push(Put {
            path,
            file_type: plain_type(&content),
            content,
            parents: Parents::Create,
            executable: Some(edit.fingerprint.is_executable()),
        });
    }

    fn expect_unchanged(&mut self, origin: &WsPath, row: Row, version: Version) {
        self.expect.push(Expect::Version(row.id, version.id));
        self.expect.push(Expect::At(row.id, origin.clone()));
    }

    fn expect_absent(&mut self, path: &WsPath, origin: Option<&WsPath>) {
        for path in std::iter::once(path).chain(origin) {
            if !self.removed.contains(path) && self.base.tree.get(path).is_none() {
                self.expect.push(Expect::Absent(path.clone()));
            }
        }
    }

    /// Tells of a row in which programs see what was written.
    fn shows(&self, row: Option<Row>, edit: &Edit) -> Option<(Row, Version)> {
        let row = row?;
        let version = *row.file()?;
        let is_shown = if version.is_plain() {
            version.blob == edit.hash
        } else {
            let original = self.originals.get(&version.blob).cloned();
            original.is_some_and(|content| content.shown(version.file_type) == edit.bytes)
        };
        is_shown.then_some((row, version))
    }

    fn report(&mut self, path: &WsPath, change: ProgramChangeKind, from: Option<&WsPath>) {
        self.changed.push(ProgramChange { path: path.clone(), change, from: from.cloned() });
    }

    fn conflict(&mut self, path: &WsPath, kept_as: Option<&WsPath>, reason: &str) {
        let (path, kept_as, reason) = (path.clone(), kept_as.cloned(), reason.to_owned());
        self.conflict_index.insert(&path, ());
        self.conflicts.push(ProgramConflict { path, kept_as, reason });
    }

    /// Puts the changes in an order in which each finds what it needs: names first, then contents.
    fn into_outcome(mut self) -> MergeOutcome {
        for (path, row) in std::mem::take(&mut self.removed_files) {
            if let Some(version) = row.file() {
                self.expect_unchanged(&path, row, *version);
            }
            let path = self.renames.destination(&path);
            self.report(&path, ProgramChangeKind::Removed, None);
            self.leading_changes.push(Change::Remove { path, removal: Removal::File });
        }
        let mut changes = std::mem::take(&mut self.leading_changes);
        changes.extend(self.made_folders.iter().cloned().map(Change::MakeDir));
        let moves = self.moves.iter().cloned();
        changes.extend(moves.map(|(from, to)| Change::Move { from, to: Destination::Exactly(to) }));
        for (path, row) in std::mem::take(&mut self.removed_folders).into_iter().rev() {
            self.expect.push(Expect::At(row.id, path.clone()));
            let path = self.renames.destination(&path);
            self.report(&path, ProgramChangeKind::Removed, None);
            changes.push(Change::Remove { path, removal: Removal::Single });
        }
        changes.extend(self.puts.into_iter().map(Change::Put));
        self.changed.sort_by(|one, other| one.path.cmp(&other.path));
        self.conflicts.sort_by(|one, other| one.path.cmp(&other.path));
        let changes = Changeset { changes, expect: self.expect, undoes: None };
        MergeOutcome { changes, changed: self.changed, conflicts: self.conflicts }
    }
}

/// What stands at a path after the moves, and stays there.
struct OccupiedNow<'a> {
    base: MergeBase<'a>,
    renames: &'a Renames,
    scan_result: &'a ScanResult,
    removed: &'a BTreeSet<WsPath>,
}

impl OccupiedPaths for OccupiedNow<'_> {
    fn at(&self, path: &WsPath) -> Option<RowKind> {
        let origin = self.renames.origin(path).filter(|origin| !self.removed.contains(origin));
        let row = origin.and_then(|origin| self.base.tree.get(&origin));
        row.map(|row| row.what).or_else(|| self.scan_result.files.contains_key(path).then_some(RowKind::Unseen))
    }
}

/// The type of a file that is only text or bytes.
fn plain_type(content: &Content) -> FileType {
    content.form().plain_type()
}

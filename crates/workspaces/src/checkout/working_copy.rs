//! One folder of a workspace's files, for one program at a time.

use super::edits::{EditReader, Edits};
use super::file_state::{FileState, StatFingerprint, StateKind};
use super::merge::{Merge, MergeOutcome};
use super::renames::Renames;
use super::scan_result::ScanResult;
use super::tree::{Row, RowKind, Tree, Version};
use crate::scratch::held;
use std::{
    collections::{BTreeSet, HashMap, HashSet},
    path::Path,
    time::SystemTime,
};
use toolrest_core::{
    CallId, Content, ContentHash, FolderHandle, KeepLimits, LeftOut, LeftOutReason, Result, ToolError, WsPath,
};
use toolrest_directory::CheckoutDir;
use toolrest_store::disk_fault::storage_full;
use toolrest_store::file_list::{FilesSince, Moment};

/// How many files and folders there are in a small one.
const SMALL: usize = 64;

/// A folder, and what is known of it.
pub(super) struct WorkingCopy {
    dir: CheckoutDir,
    /// The workspace as of the moment.
    tree: Tree,
    synced_to: Option<Moment>,
    /// What the folder was made from, where the workspace has gone on.
    before: HashMap<WsPath, Option<Row>>,
    states: HashMap<WsPath, FileState>,
    /// No program ran from when the notes were taken until then.
    unchanged_since: SystemTime,
    /// When the program got the folder.
    handed_over_at: SystemTime,
    scans: u64,
    /// Whether the folder is as the notes say.
    is_clean: bool,
    /// Whether a program may still run in it.
    is_running: bool,
    /// Where a program that still runs came before a change of others: it is settled at its next look.
    skipped: HashSet<WsPath>,
    work: ProgramWork,
}

/// What a program did, from the look at the folder until it is settled.
#[derive(Default)]
struct ProgramWork {
    scan_result: ScanResult,
    edits: Edits,
    renames: Renames,
}

/// What the folder was made from, and what the workspace is now.
#[derive(Clone, Copy)]
pub(super) struct MergeBase<'a> {
    pub(super) tree: &'a Tree,
    pub(super) states: &'a HashMap<WsPath, FileState>,
    before: &'a HashMap<WsPath, Option<Row>>,
}

impl<'a> MergeBase<'a> {
    /// What the folder was made from.
    pub(super) fn row(&self, path: &WsPath) -> Option<&'a Row> {
        self.before.get(path).map_or_else(|| self.tree.get(path), Option::as_ref)
    }

    pub(super) fn is_known_folder(&self, path: &WsPath) -> bool {
        self.states.get(path).is_some_and(|state| state.what == StateKind::Folder)
    }

    pub(super) fn is_known_file(&self, path: &WsPath) -> bool {
        self.known_hash(path).is_some()
    }

    pub(super) fn known_hash(&self, path: &WsPath) -> Option<ContentHash> {
        self.states.get(path).and_then(|state| if let StateKind::File(hash) = state.what { Some(hash) } else { None })
    }
}

/// Whether a program left something to be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScanOutcome {
    Nothing,
    Something,
}

/// A file that is to be written.
#[derive(Clone, Debug)]
pub(super) struct FileToWrite {
    pub(super) path: WsPath,
    pub(super) version: Version,
}

impl WorkingCopy {
    /// Makes an empty one in a folder of its own.
    pub(super) fn make(folder: &Path) -> Result<Self> {
        Ok(Self {
            dir: CheckoutDir::make(folder).map_err(to_tool_error)?,
            tree: Tree::default(),
            synced_to: None,
            before: HashMap::new(),
            states: HashMap::new(),
            unchanged_since: SystemTime::UNIX_EPOCH,
            handed_over_at: SystemTime::UNIX_EPOCH,
            scans: 0,
            is_clean: true,
            is_running: false,
            skipped: HashSet::new(),
            work: ProgramWork::default(),
        })
    }

    /// The folder that programs work in.
    pub(super) fn folder(&self) -> FolderHandle {
        held(self.dir.top())
    }

    /// Whether a look at it takes no time worth mentioning.
    pub(super) fn is_small(&self) -> bool {
        self.states.len() <= SMALL
    }

    /// Whether it is as the workspace was when it was last asked for.
    pub(super) fn has_nothing_to_do(&self) -> bool {
        self.is_clean && self.before.is_empty()
    }

    /// The moment that the workspace is known of.
    pub(super) fn synced_to(&self) -> Option<Moment> {
        self.synced_to
    }

    /// Learns what the workspace holds now.
    pub(super) fn update_tree(&mut self, listed: FilesSince) {
        self.synced_to = Some(listed.moment);
        for (path, row) in self.tree.update(listed.listed) {
            self.before.entry(path).or_insert(row);
        }
    }

    fn base(&self) -> MergeBase<'_> {
        MergeBase { tree: &self.tree, states: &self.states, before: &self.before }
    }

    /// Begins to change the folder: until it is settled, it is not known what it holds.
    fn mark_changing(&mut self) -> bool {
        std::mem::replace(&mut self.is_clean, false)
    }

    /// Makes the folder ready for another program, and hands it over if nothing is to be written: what the last one did
    /// that was not checked in is forgotten. That is looked for where the folder was not settled since, or that is in
    /// doubt.
    pub(super) fn prepare(&mut self, is_dirty: bool) -> Result<Vec<FileToWrite>> {
        self.is_running = false;
        if self.mark_changing() && !is_dirty {
            self.work = ProgramWork::default();
        } else {
            self.scan()?;
            self.discard_changes()?;
        }
        let to_write = self.apply_tree_changes()?;
        if to_write.is_empty() {
            self.mark_clean()?;
            self.hand_to_program()?;
        }
        Ok(to_write)
    }

    /// Looks at what a program did that has ended. If there is nothing to see, that is settled.
    pub(super) fn final_scan(&mut self) -> Result<ScanOutcome> {
        // What is written to mapped memory after a look need not show in any time: all that the program ever changed is
        // read once more.
        self.unchanged_since = self.handed_over_at;
        self.scan()?;
        if !self.work.scan_result.is_empty() {
            return Ok(ScanOutcome::Something);
        }
        self.mark_clean()?;
        Ok(ScanOutcome::Nothing)
    }

    /// Looks at what a program did.
    pub(super) fn scan(&mut self) -> Result<()> {
        self.mark_changing();
        self.scans += 1;
        let quiet_until = SystemTime::now();
        let scan_result =
            ScanResult::of(&self.dir, &mut self.states, self.scans, self.unchanged_since).map_err(to_tool_error)?;
        self.unchanged_since = quiet_until;
        self.work = ProgramWork { scan_result, ..ProgramWork::default() };
        Ok(())
    }

    /// Removes what a program made, and lets the rest be written anew.
    fn discard_changes(&mut self) -> Result<()> {
        let ProgramWork { scan_result, .. } = &mut self.work;
        // What only may have changed is looked into.
        scan_result.files.retain(|path, fingerprint| {
            let known = self.states.get(path).filter(|state| state.fingerprint == *fingerprint);
            !known.is_some_and(|state| still_has_content(&self.dir, path, state))
        });
        let is_tracked = |path: &WsPath| self.states.get(path).is_some_and(|state| state.what.is_tracked());
        let new = scan_result.files.keys().chain(scan_result.folders.keys()).filter(|path| !is_tracked(path));
        let mut new: Vec<&WsPath> = new.collect();
        new.sort_unstable_by(|one, other| other.cmp(one));
        for path in new {
            let place = Path::new(path.without_slash());
            if let Some(fingerprint) = scan_result.folders.get(path) {
                if !self.dir.remove_empty_folder(place).map_err(to_tool_error)? {
                    // What is left out may stay, and so what it is in.
                    let state = FileState::new(*fingerprint, StateKind::LeftOut, self.scans);
                    self.states.insert(path.clone(), state);
                }
            } else {
                self.dir.clear(place).map_err(to_tool_error)?;
            }
        }
        for path in scan_result.files.keys().chain(&scan_result.removed_paths).chain(&scan_result.blocked) {
            self.states.remove(path);
        }
        scan_result.blocked.extend(std::mem::take(&mut scan_result.files).into_keys());
        scan_result.blocked.append(&mut scan_result.removed_paths);
        for path in scan_result.blocked.iter().filter(|path| self.tree.seen(path).is_none()) {
            // Others removed it meanwhile, and without a note nobody else does.
            self.dir.clear(Path::new(path.without_slash())).map_err(to_tool_error)?;
        }
        scan_result.folders.clear();
        scan_result.left_out.clear();
        Ok(())
    }

    /// The most bytes that [`WorkingCopy::read_changes`] reads.
    pub(super) fn work_bytes(&self, keep: KeepLimits) -> u64 {
        let sizes = self.work.scan_result.files.values().map(StatFingerprint::size_bytes);
        sizes.filter(|size| *size <= keep.file_bytes).sum::<u64>().min(keep.commit_bytes)
    }

    /// Reads what a program wrote. Tells of which contents the originals are needed to understand it.
    pub(super) fn read_changes(&mut self, keep: KeepLimits) -> Vec<Version> {
        // What was read for a commit that others came before went with it.
        self.work.edits = Edits::default();
        let base = MergeBase { tree: &self.tree, states: &self.states, before: &self.before };
        let renames = Renames::find(&self.work.scan_result, &base);
        let reader = EditReader { dir: &self.dir, base, keep, unchanged_since: self.unchanged_since };
        let edits = reader.read(&self.work.scan_result, &renames);
        let origins = edits.files.keys().filter_map(|path| renames.origin(path));
        let needed = origins.flat_map(|origin| [base.row(&origin), base.tree.get(&origin)]);
        let needed = needed.flatten().filter_map(|row| row.file().copied()).filter(|version| !version.is_plain());
        let needed = needed.collect();
        (self.work.edits, self.work.renames) = (edits, renames);
        needed
    }

    /// What becomes of what a program did.
    pub(super) fn merge_work(
        &mut self,
        originals: &HashMap<ContentHash, Content>,
        call: CallId,
    ) -> Result<MergeOutcome> {
        let base = MergeBase { tree: &self.tree, states: &self.states, before: &self.before };
        let ProgramWork { scan_result, edits: Edits { files, moved, .. }, renames } = &mut self.work;
        Merge::new(base, scan_result, moved, renames, originals, call).merge_work(files)
    }

    /// What the last program left that is not kept.
    pub(super) fn left_out(&self) -> Vec<LeftOut> {
        let mut left_out = self.work.scan_result.left_out.clone();
        let refused = self.work.edits.refused.iter();
        left_out.extend(refused.map(|(path, (_, reason))| LeftOut { path: path.to_string(), reason: *reason }));
        left_out.sort_by(|one, other| one.path.cmp(&other.path));
        left_out
    }

    /// Notes what the program left, now that it is committed, and arranges the rest.
    pub(super) fn accept_changes(&mut self) -> Result<Vec<FileToWrite>> {
        let ProgramWork { scan_result, edits, .. } = &mut self.work;
        let seen_in_scan = self.scans;
        let mut state = |path: &WsPath, fingerprint: StatFingerprint, what| {
            self.states.insert(path.clone(), FileState::new(fingerprint, what, seen_in_scan));
        };
        for (path, edit) in &edits.files {
            state(path, edit.fingerprint, StateKind::File(edit.hash));
        }
        for (path, (fingerprint, hash)) in &edits.same {
            state(path, *fingerprint, StateKind::File(*hash));
        }
        for (path, fingerprint) in &scan_result.folders {
            state(path, *fingerprint, StateKind::Folder);
        }
        for (path, (fingerprint, reason)) in &edits.refused {
            if self.tree.seen(path).is_some() {
                scan_result.blocked.insert(path.clone());
            } else if *reason == LeftOutReason::TooMuch {
                // It is new the next time, when there may be room.
                self.states.remove(path);
            } else {
                self.states.insert(path.clone(), FileState::new(*fingerprint, StateKind::LeftOut, seen_in_scan));
            }
        }
        let stands = |path: &WsPath| scan_result.files.contains_key(path) || scan_result.folders.contains_key(path);
        for path in scan_result.removed_paths.iter().filter(|path| !stands(path)).chain(&scan_result.blocked) {
            self.states.remove(path);
        }
        self.is_running = true;
        self.apply_tree_changes()
    }

    /// Removes and makes folders, and removes files, as the workspace has it. Tells what is to be written.
    pub(super) fn apply_tree_changes(&mut self) -> Result<Vec<FileToWrite>> {
        let ProgramWork { scan_result, edits, .. } = &self.work;
        let worked_on = scan_result
            .files
            .keys()
            .chain(scan_result.folders.keys())
            .chain(&scan_result.removed_paths)
            .chain(&scan_result.blocked);
        let paths: BTreeSet<WsPath> = self.before.keys().chain(worked_on).cloned().collect();
        let is_refused = |path: &WsPath| edits.refused.contains_key(path);
        for path in paths.iter().rev() {
            let to_write = self.tree.seen(path).map(Row::is_folder);
            let known = self.states.get(path).filter(|state| state.what.is_tracked());
            let Some(known) = known.filter(|_| !is_refused(path)) else { continue };
            let is_folder = known.what == StateKind::Folder;
            if to_write == Some(is_folder) {
                continue;
            }
            if is_changed(&self.dir, path, known)? {
                self.skipped.insert(path.clone());
                continue;
            }
            let place = Path::new(path.without_slash());
            if !is_folder {
                self.dir.clear(place).map_err(to_tool_error)?;
                self.states.remove(path);
            } else if self.dir.remove_empty_folder(place).map_err(to_tool_error)? {
                self.states.remove(path);
            } else if let Some(state) = self.states.get_mut(path) {
                state.what = StateKind::LeftOut;
            }
        }
        let mut to_write = Vec::new();
        for path in &paths {
            match self.tree.seen(path).map(|row| row.what) {
                Some(RowKind::Folder) => self.make_folder(path)?,
                Some(RowKind::File(version)) if !self.shows(path, &version) => {
                    to_write.push(FileToWrite { path: path.clone(), version });
                }
                _ => {}
            }
        }
        Ok(to_write)
    }

    fn make_folder(&mut self, path: &WsPath) -> Result<()> {
        if self.base().is_known_folder(path) {
            return Ok(());
        }
        let made = self.dir.make_folder(Path::new(path.without_slash())).map_err(to_tool_error)?;
        let state = FileState::new(StatFingerprint::from(&made), StateKind::Folder, self.scans);
        self.states.insert(path.clone(), state);
        Ok(())
    }

    /// Whether the folder is known to show a version.
    fn shows(&self, path: &WsPath, version: &Version) -> bool {
        let Some(state) = self.states.get(path) else { return false };
        state.fingerprint.is_executable() == version.is_executable
            && version.is_plain()
            && state.what == StateKind::File(version.blob)
    }

    /// Writes files, but not where a program that still runs came first. Contents that are missing are told by their
    /// paths.
    pub(super) fn write(
        &mut self,
        to_write: &[FileToWrite],
        stored: &HashMap<ContentHash, Vec<u8>>,
    ) -> Result<Vec<WsPath>> {
        let mut missing = Vec::new();
        for FileToWrite { path, version } in to_write {
            let Some(bytes) = stored.get(&version.blob) else {
                missing.push(path.clone());
                continue;
            };
            let place = Path::new(path.without_slash());
            let shown;
            let (bytes, hash) = if version.is_plain() {
                (bytes, version.blob)
            } else {
                shown = Content::from_stored(version.form, bytes.clone())?.shown(version.file_type);
                (&shown, ContentHash::of(&shown))
            };
            if let Some(known) = self.states.get(path).filter(|known| known.what.is_tracked()) {
                if known.what == StateKind::File(hash) && known.fingerprint.is_executable() == version.is_executable {
                    continue;
                }
                if is_changed(&self.dir, path, known)? {
                    self.skipped.insert(path.clone());
                    continue;
                }
            } else if self.is_running
                && !self.work.scan_result.blocked.contains(path)
                && self.dir.stat(place).map_err(to_tool_error)?.is_some()
            {
                self.skipped.insert(path.clone());
                continue;
            }
            let written = self.dir.write(place, bytes, version.mode()).map_err(to_tool_error)?;
            let state = FileState::new(StatFingerprint::from(&written), StateKind::File(hash), self.scans);
            self.states.insert(path.clone(), state);
        }
        Ok(missing)
    }

    /// Ends a change of the folder: it shows the workspace as it is known.
    #[allow(clippy::unnecessary_wraps, reason = "every operation on a working copy may fail")]
    pub(super) fn mark_clean(&mut self) -> Result<()> {
        let skipped = std::mem::take(&mut self.skipped);
        self.before.retain(|path, _| skipped.contains(path));
        self.work = ProgramWork::default();
        self.is_clean = true;
        Ok(())
    }

    /// Begins the work of a program: nothing happened in the folder since it was settled, and from now on anything may.
    #[allow(clippy::unnecessary_wraps, reason = "every operation on a working copy may fail")]
    pub(super) fn hand_to_program(&mut self) -> Result<()> {
        self.unchanged_since = SystemTime::now();
        self.handed_over_at = self.unchanged_since;
        self.is_clean = false;
        Ok(())
    }
}

/// Whether something happened to a file since it was noted.
fn is_changed(dir: &CheckoutDir, path: &WsPath, state: &FileState) -> Result<bool> {
    let now = dir.stat(Path::new(path.without_slash())).map_err(to_tool_error)?;
    Ok(match now {
        None => false,
        // What is in a folder may change.
        Some(now) if state.what == StateKind::Folder => now.identity != state.fingerprint.identity,
        Some(now) => StatFingerprint::from(&now) != state.fingerprint,
    })
}

/// Whether a file still has the content that was noted.
fn still_has_content(dir: &CheckoutDir, path: &WsPath, state: &FileState) -> bool {
    let StateKind::File(noted) = state.what else { return false };
    dir.hash(Path::new(path.without_slash())).is_ok_and(|(found, _)| found.0 == noted.0)
}

fn to_tool_error(error: toolrest_directory::Error) -> ToolError {
    match error.kind {
        toolrest_directory::ErrorKind::NoSpace => storage_full(),
        _ => ToolError::internal(error),
    }
}

//! A directory with the files of a workspace, for one program at a time.

use super::scan::{EntryKind, KnownEntry, ScanResult};
use super::side::{DatabaseSide, is_known_folder};
use super::tree::{Row, RowKind, Tree, Version};
use crate::checkout::diff::{Diff, Node};
use crate::checkout::merge::MergeOutcome;
use crate::checkout::net_changes::{CommitLimits, CountedContents, FindMoves, NetChanges};
use crate::scratch::held;
use std::{
    collections::{BTreeSet, HashMap, HashSet},
    path::Path,
    time::SystemTime,
};
use toolrest_core::{
    CallId, Content, ContentHash, FolderHandle, Guard, KeepLimits, LeftOut, LeftOutReason, Result, ToolError, WsPath,
};
use toolrest_directory::{CheckoutDir, Metadata};
use toolrest_store::disk_fault::storage_full;
use toolrest_store::file_list::{FilesSince, ListCursor};

/// Maximum number of entries in a working copy that is scanned on the calling thread.
const SMALL: usize = 64;

/// A directory, the workspace that it shows, and what is known of its files.
pub(super) struct WorkingCopy {
    dir: CheckoutDir,
    state: State,
    /// The workspace as it was at `synced_to`.
    tree: Tree,
    synced_to: Option<ListCursor>,
    /// The rows that the directory was made from, where the tree has other ones.
    base_rows: HashMap<WsPath, Option<Row>>,
    entries: HashMap<WsPath, KnownEntry>,
    scans: u64,
    /// Paths at which a running program was faster than an update. The next scan finds what it did.
    skipped: HashSet<WsPath>,
}

/// The states of a working copy.
enum State {
    /// No program uses the directory, and it is as `entries` says.
    Clean,
    /// A program may be changing the directory.
    InUse(ProgramTimes),
    /// The changes of the program are being checked in or discarded, or the directory is being updated. If this is
    /// interrupted, only a scan can tell what the directory holds.
    Changing { times: ProgramTimes, program: Program, changes: Box<ProgramChanges> },
}

/// When the directory can have been changed by a program.
#[derive(Clone, Copy)]
struct ProgramTimes {
    started: SystemTime,
    /// When the last scan started. Changes before it show in the metadata of files.
    scanned: SystemTime,
}

impl ProgramTimes {
    /// Times of a program of which nothing is known.
    const UNKNOWN: Self = Self { started: SystemTime::UNIX_EPOCH, scanned: SystemTime::UNIX_EPOCH };
}

/// Whether a program uses the directory while it is updated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Program {
    None,
    MayRun,
}

/// What a program changed, from the scan until the directory is updated.
#[derive(Default)]
struct ProgramChanges {
    scan: ScanResult,
    net: NetChanges,
    /// The files that were read, as they were then.
    read: HashMap<WsPath, (Metadata, ContentHash)>,
}

/// Whether a scan found changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScanOutcome {
    Unchanged,
    Changed,
}

/// A file that is to be written.
#[derive(Clone, Debug)]
pub(super) struct FileToWrite {
    pub(super) path: WsPath,
    pub(super) version: Version,
}

impl WorkingCopy {
    /// Creates an empty working copy in a folder of its own.
    pub(super) fn create(folder: &Path) -> Result<Self> {
        Ok(Self {
            dir: CheckoutDir::create(folder).map_err(to_tool_error)?,
            state: State::Clean,
            tree: Tree::default(),
            synced_to: None,
            base_rows: HashMap::new(),
            entries: HashMap::new(),
            scans: 0,
            skipped: HashSet::new(),
        })
    }

    /// Returns the folder that programs work in.
    pub(super) fn folder(&self) -> FolderHandle {
        held(self.dir.top())
    }

    /// Whether a scan is so short that it can run on the calling thread.
    pub(super) fn is_small(&self) -> bool {
        self.entries.len() <= SMALL
    }

    /// Whether the directory shows the workspace as it was at `synced_to`.
    pub(super) fn is_up_to_date(&self) -> bool {
        matches!(self.state, State::Clean) && self.base_rows.is_empty()
    }

    /// Returns the moment of the workspace that the tree shows.
    pub(super) fn synced_to(&self) -> Option<ListCursor> {
        self.synced_to
    }

    /// Brings the tree up to date. The directory follows with [`WorkingCopy::apply_tree_changes`].
    pub(super) fn update_tree(&mut self, listed: FilesSince) {
        self.synced_to = Some(listed.cursor);
        for (path, row) in self.tree.update(listed.listed) {
            self.base_rows.entry(path).or_insert(row);
        }
    }

    fn times(&self) -> ProgramTimes {
        match self.state {
            State::Clean => ProgramTimes::UNKNOWN,
            State::InUse(times) | State::Changing { times, .. } => times,
        }
    }

    /// Prepares the directory for a program: discards what the last one did after its last check-in, and applies what
    /// changed in the workspace. If nothing has to be written, the program can start.
    pub(super) fn prepare(&mut self) -> Result<Vec<FileToWrite>> {
        if matches!(self.state, State::Clean) {
            let (times, changes) = (ProgramTimes::UNKNOWN, Box::default());
            self.state = State::Changing { times, program: Program::None, changes };
        } else {
            self.scan()?;
            self.discard_changes()?;
        }
        let to_write = self.apply_tree_changes()?;
        if to_write.is_empty() {
            self.mark_updated()?;
            self.start_program()?;
        }
        Ok(to_write)
    }

    /// Scans for changes of a program that has ended. Without any, the working copy is clean.
    pub(super) fn final_scan(&mut self) -> Result<ScanOutcome> {
        let times = self.times();
        // Writes to mapped memory after a scan need not show in any time: all files that the program ever changed are
        // read again.
        self.state = State::InUse(ProgramTimes { scanned: times.started, ..times });
        self.scan()?;
        if !self.changes().scan.is_empty() {
            return Ok(ScanOutcome::Changed);
        }
        self.mark_updated()?;
        self.release()?;
        Ok(ScanOutcome::Unchanged)
    }

    /// Scans for changes of a program.
    pub(super) fn scan(&mut self) -> Result<()> {
        let times = self.times();
        let begin = |times, changes| State::Changing { times, program: Program::None, changes };
        self.state = begin(times, Box::default());
        self.scans += 1;
        let scanned = SystemTime::now();
        let scan = ScanResult::of(&self.dir, &mut self.entries, self.scans, times.scanned).map_err(to_tool_error)?;
        let changes = Box::new(ProgramChanges { scan, ..ProgramChanges::default() });
        self.state = begin(ProgramTimes { scanned, ..times }, changes);
        Ok(())
    }

    /// Returns what the last scan found; nothing if that is settled.
    fn changes(&mut self) -> &mut ProgramChanges {
        let times = self.times();
        if !matches!(self.state, State::Changing { .. }) {
            self.state = State::Changing { times, program: Program::None, changes: Box::default() };
        }
        match &mut self.state {
            State::Changing { changes, .. } => changes,
            State::Clean | State::InUse(_) => unreachable!("the state was set above"),
        }
    }

    /// Removes what a program made, and has the rest written again.
    fn discard_changes(&mut self) -> Result<()> {
        let mut scan = std::mem::take(&mut self.changes().scan);
        let (dir, entries) = (&self.dir, &mut self.entries);
        // Files that only may have changed are compared.
        scan.diffs.retain(|path, diff| {
            let known =
                entries.get(path).filter(|known| diff.file_after().is_some_and(|now| now.metadata == known.metadata));
            !known.is_some_and(|known| still_has_content(dir, path, known))
        });
        let is_new = |path: &WsPath| !entries.get(path).is_some_and(KnownEntry::is_tracked);
        let new: Vec<(&WsPath, Node)> = scan
            .diffs
            .iter()
            .rev()
            .filter_map(|(path, diff)| Some((path, diff.after?)))
            .filter(|(path, _)| is_new(path))
            .collect();
        for (path, after) in new {
            let at = Path::new(path.without_slash());
            match after {
                Node::Folder(Some(metadata)) => {
                    if !dir.remove_empty_folder(at).map_err(to_tool_error)? {
                        // Files that were left out stay, and so does their folder.
                        entries.insert(path.clone(), KnownEntry::new(metadata, EntryKind::LeftOut, self.scans));
                    }
                }
                _ => dir.clear(at).map_err(to_tool_error)?,
            }
        }
        let restored = scan.diffs.values().filter(|diff| diff.before.is_some() || diff.file_after().is_some());
        scan.blocked.extend(restored.map(|diff| diff.path.clone()));
        for path in &scan.blocked {
            entries.remove(path);
            if self.tree.seen(path).is_none() {
                // Others removed it meanwhile, and nothing else removes a path without an entry.
                dir.clear(Path::new(path.without_slash())).map_err(to_tool_error)?;
            }
        }
        let blocked = scan.blocked;
        self.changes().scan = ScanResult { blocked, ..ScanResult::default() };
        Ok(())
    }

    /// Returns the maximum number of bytes that [`WorkingCopy::read_changes`] reads.
    pub(super) fn changed_bytes(&mut self, keep: KeepLimits) -> u64 {
        let sizes = self.changes().scan.diffs.values().filter_map(|diff| Some(diff.file_after()?.size_bytes()));
        sizes.filter(|size| *size <= keep.file_bytes).sum::<u64>().min(keep.commit_bytes)
    }

    /// Reads what a program changed. Returns the versions whose stored contents the merge needs.
    pub(super) fn read_changes(&mut self, keep: KeepLimits) -> Result<Vec<Version>> {
        // Contents that were read for an earlier attempt are part of that.
        let diffs: Vec<Diff> = self.changes().scan.diffs.values().cloned().collect();
        let (mut read, originals) = (HashMap::new(), HashMap::new());
        let mut side = self.side(&originals, &mut read);
        let limits = CommitLimits { keep, counted: CountedContents::Written };
        let net = NetChanges::read(diffs, &mut side, limits, FindMoves::ByIdentity)?;
        let origins = net.written().filter_map(|(path, _)| net.origin(path));
        let rows = origins.flat_map(|origin| [side.base_row(&origin).copied(), side.tree.get(&origin).copied()]);
        let needed = rows.flatten().filter_map(|row| row.file().copied()).filter(|version| !version.is_plain());
        let needed = needed.collect();
        let changes = self.changes();
        (changes.net, changes.read) = (net, read);
        Ok(needed)
    }

    /// Merges what was read with the workspace.
    pub(super) fn merge(
        &mut self,
        originals: &HashMap<ContentHash, Content>,
        call: CallId,
        guard: &Guard,
    ) -> Result<MergeOutcome> {
        self.changes().net.judge(guard)?;
        let mut net = std::mem::take(&mut self.changes().net);
        let outcome = net.merge(&self.side(originals, &mut HashMap::new()), call);
        self.changes().net = net;
        outcome
    }

    fn side<'a>(
        &'a self,
        originals: &'a HashMap<ContentHash, Content>,
        read: &'a mut HashMap<WsPath, (Metadata, ContentHash)>,
    ) -> DatabaseSide<'a> {
        let Self { dir, tree, base_rows, entries, .. } = self;
        let unchanged_since = self.times().scanned;
        DatabaseSide { dir, tree, base_rows, entries, unchanged_since, originals, read }
    }

    /// Returns what the last scan found that is not kept.
    pub(super) fn left_out(&mut self) -> Vec<LeftOut> {
        let ProgramChanges { scan, net, .. } = self.changes();
        let mut left_out = scan.left_out.clone();
        let refused = scan.diffs.keys().filter_map(|path| Some((path, net.left_out(path)?)));
        left_out.extend(refused.map(|(path, reason)| LeftOut { path: path.to_string(), reason }));
        left_out
    }

    /// Takes over the committed changes, and applies what changed in the workspace meanwhile.
    pub(super) fn accept_changes(&mut self) -> Result<Vec<FileToWrite>> {
        let times = self.times();
        let mut changes = std::mem::take(self.changes());
        let (entries, scan) = (&mut self.entries, self.scans);
        let mut insert = |path: &WsPath, metadata, kind| {
            entries.insert(path.clone(), KnownEntry::new(metadata, kind, scan));
        };
        for (path, (metadata, hash)) in &changes.read {
            insert(path, *metadata, EntryKind::File(*hash));
        }
        for diff in changes.scan.diffs.values() {
            if let Some(Node::Folder(Some(metadata))) = diff.after {
                insert(&diff.path, metadata, EntryKind::Folder);
            }
        }
        for (path, diff) in &changes.scan.diffs {
            let Some((reason, file)) = changes.net.left_out(path).zip(diff.file_after()) else { continue };
            if self.tree.seen(path).is_some() {
                changes.scan.blocked.insert(path.clone());
            } else if reason == LeftOutReason::TooMuch {
                // It counts as new in the next check-in, which may have room for it.
                entries.remove(path);
            } else {
                entries.insert(path.clone(), KnownEntry::new(file.metadata, EntryKind::LeftOut, scan));
            }
        }
        let removed = changes.scan.diffs.values().filter(|diff| diff.after.is_none()).map(|diff| &diff.path);
        for path in removed.chain(&changes.scan.blocked) {
            entries.remove(path);
        }
        self.state = State::Changing { times, program: Program::MayRun, changes: Box::new(changes) };
        self.apply_tree_changes()
    }

    /// Removes and creates folders and removes files as the tree has it. Returns the files that are to be written.
    pub(super) fn apply_tree_changes(&mut self) -> Result<Vec<FileToWrite>> {
        let ProgramChanges { scan, net, .. } = self.changes();
        let changed = scan.diffs.keys().chain(&scan.blocked).cloned();
        let mut paths: BTreeSet<WsPath> = changed.collect();
        let left_out: HashSet<WsPath> = paths.iter().filter(|path| net.left_out(path).is_some()).cloned().collect();
        paths.extend(self.base_rows.keys().cloned());
        for path in paths.iter().rev().filter(|path| !left_out.contains(*path)) {
            let wanted = self.tree.seen(path).map(Row::is_folder);
            let Some(known) = self.entries.get(path).filter(|known| known.is_tracked()) else { continue };
            let is_folder = known.kind == EntryKind::Folder;
            if wanted == Some(is_folder) {
                continue;
            }
            if is_changed(&self.dir, path, known)? {
                self.skipped.insert(path.clone());
                continue;
            }
            let at = Path::new(path.without_slash());
            if !is_folder {
                self.dir.clear(at).map_err(to_tool_error)?;
                self.entries.remove(path);
            } else if self.dir.remove_empty_folder(at).map_err(to_tool_error)? {
                self.entries.remove(path);
            } else if let Some(known) = self.entries.get_mut(path) {
                known.kind = EntryKind::LeftOut;
            }
        }
        let mut to_write = Vec::new();
        for path in &paths {
            match self.tree.seen(path).map(|row| row.what) {
                Some(RowKind::Folder) => self.create_folder(path)?,
                Some(RowKind::File(version)) if !self.shows(path, &version) => {
                    to_write.push(FileToWrite { path: path.clone(), version });
                }
                _ => {}
            }
        }
        Ok(to_write)
    }

    fn create_folder(&mut self, path: &WsPath) -> Result<()> {
        if is_known_folder(&self.entries, path) {
            return Ok(());
        }
        let created = self.dir.make_folder(Path::new(path.without_slash())).map_err(to_tool_error)?;
        self.entries.insert(path.clone(), KnownEntry::new(created, EntryKind::Folder, self.scans));
        Ok(())
    }

    /// Whether the directory is known to hold a version.
    fn shows(&self, path: &WsPath, version: &Version) -> bool {
        version.is_plain() && self.entries.get(path).is_some_and(|known| holds(known, version.blob, version))
    }

    /// Writes files, but not over what a running program wrote first. Returns the paths of missing contents.
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
            let at = Path::new(path.without_slash());
            let shown;
            let (bytes, hash) = if version.is_plain() {
                (bytes, version.blob)
            } else {
                shown = Content::from_stored(version.form, bytes.clone())?.shown(version.file_type);
                (&shown, ContentHash::of(&shown))
            };
            let is_taken = match self.entries.get(path).filter(|known| known.is_tracked()) {
                Some(known) if holds(known, hash, version) => continue,
                Some(known) => is_changed(&self.dir, path, known)?,
                None => self.may_be_used_by_program(path) && self.dir.stat(at).map_err(to_tool_error)?.is_some(),
            };
            if is_taken {
                self.skipped.insert(path.clone());
                continue;
            }
            let written = self.dir.write(at, bytes, version.mode()).map_err(to_tool_error)?;
            self.entries.insert(path.clone(), KnownEntry::new(written, EntryKind::File(hash), self.scans));
        }
        Ok(missing)
    }

    fn may_be_used_by_program(&self, path: &WsPath) -> bool {
        match &self.state {
            State::Changing { program: Program::MayRun, changes, .. } => !changes.scan.blocked.contains(path),
            _ => false,
        }
    }

    /// Ends an update: the directory shows the tree, but for what a running program changed meanwhile.
    #[allow(clippy::unnecessary_wraps, reason = "every operation on a working copy may fail")]
    pub(super) fn mark_updated(&mut self) -> Result<()> {
        let skipped = std::mem::take(&mut self.skipped);
        self.base_rows.retain(|path, _| skipped.contains(path));
        self.state = match self.state {
            State::Changing { program: Program::None, .. } | State::Clean => State::Clean,
            State::Changing { times, .. } | State::InUse(times) => State::InUse(times),
        };
        Ok(())
    }

    /// Ends the use by a program, all of whose changes are known.
    #[allow(clippy::unnecessary_wraps, reason = "every operation on a working copy may fail")]
    pub(super) fn release(&mut self) -> Result<()> {
        if matches!(self.state, State::InUse(_)) {
            self.state = State::Clean;
        }
        Ok(())
    }

    /// Begins the use by a program.
    #[allow(clippy::unnecessary_wraps, reason = "every operation on a working copy may fail")]
    pub(super) fn start_program(&mut self) -> Result<()> {
        let now = SystemTime::now();
        self.state = State::InUse(ProgramTimes { started: now, scanned: now });
        Ok(())
    }
}

/// Whether an entry is a file with that content and the permissions of a version.
fn holds(known: &KnownEntry, hash: ContentHash, version: &Version) -> bool {
    known.kind == EntryKind::File(hash) && known.metadata.is_executable() == version.is_executable
}

/// Whether something at a path was changed since it was noted.
fn is_changed(dir: &CheckoutDir, path: &WsPath, known: &KnownEntry) -> Result<bool> {
    let now = dir.stat(Path::new(path.without_slash())).map_err(to_tool_error)?;
    Ok(now.is_some_and(|now| match known.kind {
        // The files in a folder may change.
        EntryKind::Folder => now.identity != known.metadata.identity,
        _ => now != known.metadata,
    }))
}

/// Whether a file still has the noted content.
fn still_has_content(dir: &CheckoutDir, path: &WsPath, known: &KnownEntry) -> bool {
    let EntryKind::File(noted) = known.kind else { return false };
    dir.hash(Path::new(path.without_slash())).is_ok_and(|(found, _)| found.0 == noted.0)
}

fn to_tool_error(error: toolrest_directory::Error) -> ToolError {
    match error.kind {
        toolrest_directory::ErrorKind::NoSpace => storage_full(),
        _ => ToolError::internal(error),
    }
}

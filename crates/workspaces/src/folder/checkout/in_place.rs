//! A program that works on the folder itself, together with others, and how its changes are recorded.
//!
//! Nothing is written to the folder. Differences from the snapshot are recorded as made, whoever made them. What tools
//! committed meanwhile is in the history already; the snapshot only follows it.

use super::LeftOutReport;
use super::private_dir::PrivateDir;
use super::snapshot::{KeptContent, Snapshot, SnapshotFile};
use crate::check_in_room::{CheckInRoom, NoRoom};
use crate::checkout::diff::{Diff, FileState, Node};
use crate::checkout::is_retryable;
use crate::checkout::net_changes::{
    CommitLimits, CountedContents, FindMoves, NetChanges, NodeNow, Read, Side, WrittenContent,
};
use crate::folder::FolderWorkspace;
use crate::folder::commit::{Job, failed};
use crate::folder::disk::{Disk, below_root, shown};
use crate::scratch::held;
use async_trait::async_trait;
use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};
use toolrest_core::{
    Attribution, CallCx, Changeset, CheckedIn, Checkout, CommitId, Content, ContentHash, Effect, EffectKind,
    ExecutionRoot, Expect, KeepLimits, LeftOut, LeftOutReason, Result, Timestamp, WorkspaceSettings, WsPath, now,
};
use toolrest_directory::{Kind, Links, Metadata, Repository};
use toolrest_store::Page;
use toolrest_store::plan::FileRow;

/// Number of commits that are read at a time.
const COMMITS_AT_A_TIME: u32 = 100;

/// Maximum number of repositories in a folder that programs work on.
const MAX_REPOSITORIES: usize = 1_000;

/// The folder itself, for a program.
pub(super) struct InPlaceCheckout {
    workspace: FolderWorkspace,
    settings: WorkspaceSettings,
    keep: KeepLimits,
    private_dir: PrivateDir,
    /// Shared with check-ins, which run to their end even if the caller goes away.
    snapshot: Arc<Mutex<Snapshot>>,
    /// The repositories that were there at check-out, which are read-only for the program.
    repositories: Vec<Repository>,
}

impl InPlaceCheckout {
    pub(super) fn open(workspace: FolderWorkspace, settings: WorkspaceSettings, keep: KeepLimits) -> Result<Self> {
        let private_dir = PrivateDir::new(&workspace.scratch)?;
        let repositories = find_repositories(&workspace.folder.disk)?;
        let disk = workspace.folder.disk.clone();
        let snapshot = Snapshot::take(disk, private_dir.path(), &keep, private_dir.file_time()?)?;
        Ok(Self { workspace, settings, keep, private_dir, snapshot: Arc::new(Mutex::new(snapshot)), repositories })
    }

    /// Returns the repositories that were not there at check-out; the whole folder if they cannot be listed.
    async fn new_repositories(&self) -> Vec<PathBuf> {
        let found = match self.workspace.on_disk(find_repositories).await {
            Ok(found) => found,
            Err(error) => {
                error.log_cause();
                return vec![PathBuf::new()];
            }
        };
        let is_known = |found: &Repository| self.repositories.iter().any(|known| is_same(known, found));
        found.into_iter().filter(|found| !is_known(found)).map(|found| found.path).collect()
    }
}

fn find_repositories(disk: &Disk) -> Result<Vec<Repository>> {
    disk.root.repositories(MAX_REPOSITORIES).map_err(|error| failed(&error))
}

/// Whether a repository is one that was there at check-out, whatever its path is now. A link can be replaced by another
/// with the same inode, so its ctime is compared too.
fn is_same(before: &Repository, now: &Repository) -> bool {
    let (before, now) = (before.metadata, now.metadata);
    let is_link = before.kind == Kind::Symlink;
    (before.identity, before.kind) == (now.identity, now.kind) && (!is_link || before.changed == now.changed)
}

#[async_trait]
impl Checkout for InPlaceCheckout {
    fn execution_root(&self) -> ExecutionRoot {
        let kept = self.repositories.iter().filter(|found| found.metadata.kind != Kind::Symlink);
        let mut read_only: Vec<PathBuf> = Vec::new();
        // They are sorted: a repository inside another one follows it.
        for path in kept.map(|found| &found.path) {
            if !read_only.last().is_some_and(|above| path.starts_with(above)) {
                read_only.push(path.clone());
            }
        }
        ExecutionRoot::Shared { folder: held(&self.workspace.folder.disk.root), read_only }
    }

    fn settings(&self) -> &WorkspaceSettings {
        &self.settings
    }

    async fn check_in(&mut self, cx: &CallCx) -> Result<CheckedIn> {
        self.workspace.store.authorise(self.workspace.access).await?;
        let mut room = None;
        let checked_in = loop {
            match self.try_check_in(room, cx).await? {
                RecordOutcome::Done(checked_in) => break checked_in,
                // Wait without the folder lock: the check-in that holds the room may be waiting for the lock.
                RecordOutcome::NeedsRoom(bytes) => {
                    room = Some(self.workspace.check_ins.reserve(self.workspace.access.person, bytes).await);
                }
            }
        };
        if let Some(id) = checked_in.commit {
            cx.recorded_with(id);
        }
        Ok(checked_in)
    }

    async fn finish(mut self: Box<Self>, cx: &CallCx) -> Result<CheckedIn> {
        let mut checked_in = self.check_in(cx).await?;
        let new = self.new_repositories().await;
        let left_out = new.iter().map(|path| LeftOut { path: shown(path), reason: LeftOutReason::NewRepository });
        checked_in.left_out.extend(left_out);
        checked_in.left_out.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(checked_in)
    }
}

impl InPlaceCheckout {
    /// Records the differences, with room that is held already or is free at this moment.
    async fn try_check_in(&self, held: Option<CheckInRoom>, cx: &CallCx) -> Result<RecordOutcome> {
        let (snapshot, disk, keep) = (Arc::clone(&self.snapshot), self.workspace.folder.disk.clone(), self.keep);
        let (check_ins, account) = (Arc::clone(&self.workspace.check_ins), self.workspace.access.person);
        let file_time = self.private_dir.file_time()?;
        let call = cx.id;
        let record = move |job: &Job, _: &mut toolrest_directory::FolderLock<'_>| {
            let mut snapshot = snapshot.lock().unwrap_or_else(PoisonError::into_inner);
            let has_room = held.is_some();
            let take_room = |bytes| if has_room { Ok(None) } else { check_ins.try_reserve(account, bytes) };
            let mut record = |find_moves| {
                let checkin = CheckIn { job, disk: &disk, keep, call, file_time, find_moves };
                checkin.record(&mut snapshot, &take_room)
            };
            match record(FindMoves::ByContent) {
                // Changes by tools can prevent a move. Removed and created files can be recorded all the same.
                Err(error) if is_retryable(error.kind) => record(FindMoves::No),
                recorded => recorded,
            }
        };
        self.workspace.with_folder_lock(cx, record).await
    }
}

/// The outcome of an attempt to record differences.
enum RecordOutcome {
    Done(CheckedIn),
    /// Contents of so many bytes are to be read, for which there is no room in memory at this moment.
    NeedsRoom(u64),
}

/// One check-in under the folder lock.
struct CheckIn<'a> {
    job: &'a Job,
    disk: &'a Disk,
    keep: KeepLimits,
    call: toolrest_core::CallId,
    /// The time by the clock of the file system when the check-in began.
    file_time: SystemTime,
    find_moves: FindMoves,
}

impl CheckIn<'_> {
    /// Records what differs from the snapshot, and brings the snapshot up to date.
    fn record(
        &self,
        snapshot: &mut Snapshot,
        take_room: &dyn Fn(u64) -> std::result::Result<CheckInRoom, NoRoom>,
    ) -> Result<RecordOutcome> {
        let at = now();
        let walked = snapshot.walk()?;
        let present: BTreeMap<&WsPath, &Metadata> =
            walked.files.iter().map(|(path, metadata)| (path, metadata)).collect();
        let different: Vec<(&WsPath, &Metadata)> = present
            .iter()
            .map(|(path, metadata)| (*path, *metadata))
            .filter(|(path, metadata)| !snapshot.is_unchanged(path, metadata))
            .collect();
        let gone: Vec<WsPath> = snapshot.files.keys().filter(|path| !present.contains_key(path)).cloned().collect();
        let bytes = contents_bytes(snapshot, &different, &gone, &self.keep);
        let Ok(_room) = take_room(bytes) else { return Ok(RecordOutcome::NeedsRoom(bytes)) };
        let made: Vec<&WsPath> = walked.folders.difference(&snapshot.folders).collect();
        let left: Vec<WsPath> = snapshot.folders.difference(&walked.folders).cloned().collect();
        let asked = different.iter().map(|(path, _)| *path).chain(&gone).chain(made.iter().copied()).chain(&left);
        let mut detector = Detector {
            side: SnapshotSide {
                disk: self.disk,
                snapshot,
                keep: self.keep,
                recorded: self.job.heads(asked.cloned())?,
                notes: Vec::new(),
            },
            by_tools: self.job.effects_since(snapshot.taken_at)?,
            diffs: BTreeMap::new(),
            forgotten: Vec::new(),
            left_out: LeftOutReport::default(),
        };
        for (path, metadata) in &different {
            detector.changed(path, metadata);
        }
        for path in &gone {
            detector.gone(path)?;
        }
        for path in made {
            detector.made(path);
        }
        for path in &left {
            detector.left(path)?;
        }
        let Detector { mut side, diffs, forgotten, mut left_out, .. } = detector;
        let limits = CommitLimits { keep: self.keep, counted: CountedContents::Replaced };
        let mut net = NetChanges::read(diffs.into_values().collect(), &mut side, limits, self.find_moves)?;
        let mut outcome = net.merge(&side, self.call)?;
        for left in &outcome.left_out {
            let Some(metadata) = present.get(&left.path) else { continue };
            side.note(&left.path, **metadata, KeptContent::Nowhere);
            if snapshot_metadata(side.snapshot, &left.path) != Some(**metadata) {
                left_out.add(below_root(&left.path), left.reason);
            }
        }
        let notes = side.notes;
        snapshot.forget(&forgotten);
        // The changes are on disk already, so there is nothing to expect.
        let changes = Changeset { expect: Vec::new(), ..std::mem::take(&mut outcome.changes) };
        let commit: Option<CommitId> =
            if changes.changes.is_empty() { None } else { self.job.record_made(&*snapshot, changes)? };
        snapshot.update(notes, walked, at, self.file_time);
        Ok(RecordOutcome::Done(outcome.into_checked_in(commit, Attribution::Folder, left_out.0)))
    }
}

fn snapshot_metadata(snapshot: &Snapshot, path: &WsPath) -> Option<Metadata> {
    snapshot.files.get(path).map(|noted| noted.metadata)
}

/// Returns the maximum number of bytes that are read of changed and removed files, as they are and as they were.
fn contents_bytes(snapshot: &Snapshot, different: &[(&WsPath, &Metadata)], gone: &[WsPath], keep: &KeepLimits) -> u64 {
    let before = |path: &WsPath| snapshot.files.get(path).map_or(0, |noted| noted.metadata.size_bytes);
    let is_kept = |bytes: u64| bytes <= keep.file_bytes;
    let changed = different.iter().map(|(path, metadata)| (metadata.size_bytes, before(path)));
    let changed: u64 =
        changed.filter(|(now, before)| is_kept(*now.max(before))).map(|(now, before)| now + before).sum();
    let gone: u64 = gone.iter().map(before).filter(|bytes| is_kept(*bytes)).sum();
    changed.min(keep.commit_bytes).saturating_add(gone)
}

impl Job {
    /// Returns what the history has of files.
    fn heads(&self, paths: impl Iterator<Item = WsPath>) -> Result<BTreeMap<WsPath, RecordedHead>> {
        let asked = Changeset { expect: paths.map(Expect::Absent).collect(), ..Changeset::default() };
        if asked.expect.is_empty() {
            return Ok(BTreeMap::new());
        }
        let view = self.runtime.block_on(self.store.recorded(self.access, &asked))?.0;
        let head =
            |row: FileRow| RecordedHead { hash: row.head.map(|head| head.hash), mode: row.mode, since: row.updated_at };
        Ok(view.live.into_iter().map(|(path, row)| (path, head(row))).collect())
    }

    /// Returns the effects of commits after a time.
    fn effects_since(&self, time: Timestamp) -> Result<Vec<Effect>> {
        let mut effects = Vec::new();
        let mut before = None;
        loop {
            let page = Page { before, limit: COMMITS_AT_A_TIME };
            let commits = self.runtime.block_on(self.store.commits(self.access, page))?;
            let Some(oldest) = commits.last() else { return Ok(effects) };
            let is_all = oldest.created_at < time;
            before = Some(oldest.id);
            let later = commits.into_iter().filter(|commit| commit.created_at >= time);
            effects.extend(later.flat_map(|commit| commit.changes));
            if is_all {
                return Ok(effects);
            }
        }
    }
}

/// What the history has of a file.
struct RecordedHead {
    hash: Option<ContentHash>,
    mode: Option<u32>,
    since: Timestamp,
}

/// Turns what differs from a snapshot into diffs, without what tools did.
struct Detector<'a> {
    side: SnapshotSide<'a>,
    /// Effects of commits since the snapshot.
    by_tools: Vec<Effect>,
    diffs: BTreeMap<WsPath, Diff>,
    /// Paths that the snapshot must not show as they were before.
    forgotten: Vec<WsPath>,
    left_out: LeftOutReport,
}

impl Detector<'_> {
    fn diff(&mut self, path: &WsPath) -> &mut Diff {
        let empty = || Diff { path: path.clone(), before: None, after: None };
        self.diffs.entry(path.clone()).or_insert_with(empty)
    }

    fn changed(&mut self, path: &WsPath, metadata: &Metadata) {
        if let Some(moved) = self.moved_by_tools(path, metadata) {
            self.side.note(path, *metadata, moved.content);
            return;
        }
        let before = snapshot_metadata(self.side.snapshot, path);
        let file = |metadata| Node::File(FileState { metadata, hash: None });
        let diff = self.diff(path);
        (diff.before, diff.after) = (before.map(file), Some(file(*metadata)));
    }

    fn gone(&mut self, path: &WsPath) -> Result<()> {
        let Some(noted) = self.side.snapshot.files.get(path).copied() else { return Ok(()) };
        self.side.notes.push((path.clone(), None));
        if !self.side.recorded.contains_key(path) && self.is_removed_by_tools(path) {
            self.forgotten.push(path.clone());
            return Ok(());
        }
        match self.side.hash_of(path, &noted)? {
            Ok(hash) => {
                let before = Node::File(FileState { metadata: noted.metadata, hash: Some(hash) });
                self.diff(path).before = Some(before);
            }
            Err(reason) => {
                self.left_out.add(below_root(path), reason);
                self.forgotten.push(path.clone());
            }
        }
        Ok(())
    }

    /// Adds a new folder, unless a tool made it.
    fn made(&mut self, path: &WsPath) {
        if !self.side.is_recorded_since(path) {
            self.diff(path).after = Some(Node::Folder(None));
        }
    }

    /// Adds a folder that is gone, unless a tool removed it or it is only ignored now.
    fn left(&mut self, path: &WsPath) -> Result<()> {
        if self.side.snapshot.now(path)?.is_some_and(|now| now.kind == Kind::Folder) {
            return Ok(());
        }
        if !self.side.recorded.contains_key(path) && self.is_removed_by_tools(path) {
            self.forgotten.push(path.clone());
        } else {
            self.diff(path).before = Some(Node::Folder(None));
        }
        Ok(())
    }

    /// Whether commits have removed a file, or moved it away.
    fn is_removed_by_tools(&self, path: &WsPath) -> bool {
        self.by_tools.iter().any(|effect| match effect.op {
            EffectKind::Remove => effect.path == *path,
            EffectKind::Move => effect.from.as_ref().is_some_and(|from| path == from || path.is_below(from)),
            EffectKind::Create | EffectKind::Update | EffectKind::Touch | EffectKind::Restore => false,
        })
    }

    /// Returns the file that commits have moved here, if it is the same as before but for its path.
    fn moved_by_tools(&self, path: &WsPath, metadata: &Metadata) -> Option<SnapshotFile> {
        self.by_tools.iter().filter(|effect| effect.op == EffectKind::Move).find_map(|effect| {
            let from = path.moved(&effect.path, effect.from.as_ref()?)?;
            let noted = self.side.snapshot.files.get(&from)?;
            let is_it = (noted.metadata.identity, noted.metadata.size_bytes, noted.metadata.modified)
                == (metadata.identity, metadata.size_bytes, metadata.modified);
            is_it.then_some(*noted)
        })
    }
}

/// The folder as it is, and a snapshot of how it was, as the merge sees them.
struct SnapshotSide<'a> {
    disk: &'a Disk,
    snapshot: &'a Snapshot,
    keep: KeepLimits,
    /// What the history has of paths that differ.
    recorded: BTreeMap<WsPath, RecordedHead>,
    /// What the snapshot shows after the check-in.
    notes: Vec<(WsPath, Option<SnapshotFile>)>,
}

impl SnapshotSide<'_> {
    fn note(&mut self, path: &WsPath, metadata: Metadata, content: KeptContent) {
        self.notes.push((path.clone(), Some(SnapshotFile { metadata, content })));
    }

    /// Returns the hash of a file of the snapshot, or why it is not known.
    fn hash_of(&self, path: &WsPath, noted: &SnapshotFile) -> Result<Result<ContentHash, LeftOutReason>> {
        let is_large = noted.metadata.size_bytes > self.keep.file_bytes;
        let reason = if is_large { LeftOutReason::TooLarge } else { LeftOutReason::TooMuch };
        let recorded = || self.recorded.get(path).filter(|_| self.is_recorded_since(path)).and_then(|head| head.hash);
        Ok(self.snapshot.hash(noted)?.or_else(recorded).ok_or(reason))
    }

    /// Whether the history has the content of a file and its permission to be executed.
    fn is_recorded(&self, path: &WsPath, hash: ContentHash, metadata: &Metadata) -> bool {
        let Some(head) = self.recorded.get(path).filter(|head| head.hash == Some(hash)) else { return false };
        let noted = self.snapshot.files.get(path).map(|noted| noted.metadata.mode);
        let mode = if self.is_recorded_since(path) { head.mode.or(noted) } else { noted };
        mode.is_none_or(|mode| Metadata { mode, ..*metadata }.is_executable() == metadata.is_executable())
    }

    /// Whether a commit changed a file after the snapshot.
    fn is_recorded_since(&self, path: &WsPath) -> bool {
        self.recorded.get(path).is_some_and(|head| head.since > self.snapshot.taken_at)
    }
}

impl Side for SnapshotSide<'_> {
    fn now(&self, path: &WsPath) -> Result<Option<NodeNow>> {
        let is_made_by_tools =
            || self.is_recorded_since(path) && self.recorded.get(path).is_some_and(|head| head.hash.is_none());
        if self.snapshot.folders.contains(path) || is_made_by_tools() {
            return Ok(Some(NodeNow::Folder));
        }
        let file = self.snapshot.files.get(path);
        Ok(file.map(|noted| NodeNow::File { is_executable: noted.metadata.is_executable() }))
    }

    fn hash_before(&self, path: &WsPath, _: &FileState) -> Result<Result<ContentHash, LeftOutReason>> {
        self.snapshot.files.get(path).map_or(Ok(Err(LeftOutReason::Unreadable)), |noted| self.hash_of(path, noted))
    }

    fn read(
        &mut self,
        path: &WsPath,
        after: &FileState,
        before: Option<(&WsPath, &FileState)>,
        limit_bytes: Option<u64>,
    ) -> Result<Read> {
        let size_bytes = after.size_bytes();
        if size_bytes.max(before.map_or(0, |(_, before)| before.size_bytes())) > self.keep.file_bytes {
            return Ok(Read::OverLimit { size_bytes });
        }
        // A file that changes at this moment is recorded by the next check-in.
        let Ok(read) = self.disk.root.read(below_root(path), self.keep.file_bytes) else { return Ok(Read::Gone) };
        let is_still = |after: Metadata| after == read.metadata && after.size_bytes == read.bytes.len() as u64;
        if !self.disk.root.stat(below_root(path), Links::Keep).is_ok_and(is_still) {
            return Ok(Read::Gone);
        }
        let (metadata, hash, is_executable) = (read.metadata, ContentHash(read.hash.0), read.metadata.is_executable());
        let in_history = KeptContent::InHistory(hash, Content::of_bytes(read.bytes.clone()).form());
        if self.is_recorded(path, hash, &metadata) {
            self.note(path, metadata, in_history);
            return Ok(Read::Same);
        }
        let is_same = |before: &FileState| before.hash == Some(hash) && before.is_executable() == is_executable;
        if let Some(noted) = self.snapshot.files.get(path).copied()
            && before.is_some_and(|(_, before)| is_same(before))
        {
            self.note(path, metadata, noted.content);
            return Ok(Read::Same);
        }
        if limit_bytes.is_none_or(|limit| metadata.size_bytes > limit) {
            return Ok(Read::OverLimit { size_bytes: metadata.size_bytes });
        }
        self.note(path, metadata, in_history);
        Ok(Read::Written(WrittenContent { hash, is_executable, bytes: read.bytes }))
    }
}

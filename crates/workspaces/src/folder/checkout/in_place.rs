//! A program that works on the folder itself, together with others, and how its changes are recorded.
//!
//! Nothing is written to the folder. What is different from the snapshot is recorded as made, by whoever: what tools have
//! changed meanwhile is in the history already and is only followed.

use super::isolated::is_refused;
use super::merge_result::{Before, MergeResult, Written};
use super::moves::Moves;
use super::private_dir::PrivateDir;
use super::snapshot::{KeptContent, Snapshot, SnapshotFile};
use crate::check_in_room::{CheckInRoom, NoRoom};
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

/// How many commits are asked for at a time.
const COMMITS_AT_A_TIME: u32 = 100;

/// A folder that a program works on.
pub(super) struct InPlaceCheckout {
    workspace: FolderWorkspace,
    settings: WorkspaceSettings,
    keep: KeepLimits,
    private_dir: PrivateDir,
    /// Shared with a check-in that goes on when its caller has gone.
    snapshot: Arc<Mutex<Snapshot>>,
    /// The repositories that were there at the beginning, which the program cannot change.
    repositories: Vec<Repository>,
}

impl InPlaceCheckout {
    pub(super) fn open(workspace: FolderWorkspace, settings: WorkspaceSettings, keep: KeepLimits) -> Result<Self> {
        let private_dir = PrivateDir::new(&workspace.scratch)?;
        let repositories = find_repositories(&workspace.folder.disk)?;
        let disk = workspace.folder.disk.clone();
        let snapshot = Snapshot::take(disk, private_dir.path(), &keep, private_dir.moment()?)?;
        Ok(Self { workspace, settings, keep, private_dir, snapshot: Arc::new(Mutex::new(snapshot)), repositories })
    }

    /// The repositories that are there now and were not at the beginning: the whole folder where they cannot be listed.
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

/// How many repositories in one folder can be kept from a program that works on it.
const REPOSITORIES_MOST: usize = 1_000;

fn find_repositories(disk: &Disk) -> Result<Vec<Repository>> {
    disk.root.repositories(REPOSITORIES_MOST).map_err(|error| failed(&error))
}

/// Whether a repository is the one that was there before, wherever it is by now. Links cannot be kept from being replaced,
/// and another one may get the same inode.
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
        // They are sorted, so that what lies in another one follows it.
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
                Recorded::Done(checked_in) => break checked_in,
                // It is waited for out of turn: a check-in that holds the room may be waiting for the turn.
                Recorded::NeedsRoom(bytes) => {
                    room = Some(self.workspace.check_ins.reserve(self.workspace.access.user, bytes).await);
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
    /// Records what is different, in room that is held already or is free at this moment.
    async fn try_check_in(&self, held: Option<CheckInRoom>, cx: &CallCx) -> Result<Recorded> {
        let (snapshot, disk, keep) = (Arc::clone(&self.snapshot), self.workspace.folder.disk.clone(), self.keep);
        let (check_ins, account) = (Arc::clone(&self.workspace.check_ins), self.workspace.access.user);
        let moment = self.private_dir.moment()?;
        let record = move |job: &Job, _: &mut toolrest_directory::FolderLock<'_>| {
            let mut snapshot = snapshot.lock().unwrap_or_else(PoisonError::into_inner);
            let has_room = held.is_some();
            let take_room = |bytes| if has_room { Ok(None) } else { check_ins.try_reserve(account, bytes) };
            match record(job, &disk, &mut snapshot, &keep, moment, Moves::Told, &take_room) {
                // What tools did meanwhile can be in the way of a move. What is there now can be recorded all the same.
                Err(error) if is_refused(error.kind) => {
                    record(job, &disk, &mut snapshot, &keep, moment, Moves::AsFiles, &take_room)
                }
                recorded => recorded,
            }
        };
        self.workspace.with_folder_lock(cx, record).await
    }
}

/// What came of an attempt to record what is different.
enum Recorded {
    Done(CheckedIn),
    /// Contents of so many bytes are to be read, and there is no room for them at this moment.
    NeedsRoom(u64),
}

/// Records what is different from the snapshot, and brings that up to date.
fn record(
    job: &Job,
    disk: &Disk,
    snapshot: &mut Snapshot,
    keep: &KeepLimits,
    moment: SystemTime,
    moves: Moves,
    take_room: &dyn Fn(u64) -> std::result::Result<CheckInRoom, NoRoom>,
) -> Result<Recorded> {
    let at = now();
    let walked = snapshot.walk()?;
    let present: BTreeMap<&WsPath, &Metadata> = walked.files.iter().map(|(path, metadata)| (path, metadata)).collect();
    let different: Vec<(&WsPath, &Metadata)> = present
        .iter()
        .map(|(path, metadata)| (*path, *metadata))
        .filter(|(path, metadata)| !snapshot.is_unchanged(path, metadata))
        .collect();
    let gone: Vec<WsPath> = snapshot.files.keys().filter(|path| !present.contains_key(path)).cloned().collect();
    let bytes = contents_bytes(snapshot, &different, &gone, keep);
    let Ok(_room) = take_room(bytes) else { return Ok(Recorded::NeedsRoom(bytes)) };
    let made: Vec<&WsPath> = walked.folders.difference(&snapshot.folders).collect();
    let left: Vec<WsPath> = snapshot.folders.difference(&walked.folders).cloned().collect();
    let asked = different.iter().map(|(path, _)| *path).chain(&gone).chain(made.iter().copied()).chain(&left);
    let mut difference = Difference {
        disk,
        snapshot,
        keep,
        recorded: job.heads(asked.cloned())?,
        by_tools: job.effects_since(snapshot.taken_at)?,
        found: MergeResult::default(),
        notes: Vec::new(),
        forgotten: Vec::new(),
        bytes_left: keep.commit_bytes,
        files_left: keep.commit_files,
    };
    for (path, metadata) in different {
        difference.changed(path, metadata)?;
    }
    for path in &gone {
        difference.gone(path)?;
    }
    for path in made {
        difference.made(path);
    }
    for path in &left {
        difference.left(path)?;
    }
    let Difference { mut found, notes, forgotten, .. } = difference;
    snapshot.forget(&forgotten);
    // It is done already, whatever stood there.
    let changes = Changeset { expect: Vec::new(), ..found.changeset(moves) };
    let commit: Option<CommitId> =
        if changes.changes.is_empty() { None } else { job.record_made(&*snapshot, changes)? };
    snapshot.follow(notes, walked, at, moment);
    Ok(Recorded::Done(found.into_checked_in(commit, Attribution::Folder)))
}

/// The most bytes that are read of files that are different or gone, as they are and as they were.
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
    /// What is recorded of files.
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

    /// What commits have done after a time.
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

/// What is recorded of a file.
struct RecordedHead {
    hash: Option<ContentHash>,
    mode: Option<u32>,
    since: Timestamp,
}

/// What is different from a snapshot.
struct Difference<'a> {
    disk: &'a Disk,
    snapshot: &'a Snapshot,
    keep: &'a KeepLimits,
    /// What history knows of what looks different.
    recorded: BTreeMap<WsPath, RecordedHead>,
    /// What commits have done since.
    by_tools: Vec<Effect>,
    found: MergeResult,
    /// What the snapshot is to hold from then on.
    notes: Vec<(WsPath, Option<SnapshotFile>)>,
    /// What the snapshot is not to hold even for what is recorded now.
    forgotten: Vec<WsPath>,
    bytes_left: u64,
    files_left: usize,
}

impl Difference<'_> {
    fn changed(&mut self, path: &WsPath, metadata: &Metadata) -> Result<()> {
        let noted = self.snapshot.files.get(path).copied();
        let size_before = noted.map_or(0, |noted| noted.metadata.size_bytes);
        if metadata.size_bytes.max(size_before) > self.keep.file_bytes {
            self.note(path, *metadata, KeptContent::Nowhere);
            if noted.is_none_or(|noted| noted.metadata != *metadata) {
                self.found.leave_out(below_root(path), LeftOutReason::TooLarge);
            }
            return Ok(());
        }
        // What changes at this moment is looked at the next time.
        let Ok(read) = self.disk.root.read(below_root(path), self.keep.file_bytes) else { return Ok(()) };
        let is_still = |after: Metadata| after == read.metadata && after.size_bytes == read.bytes.len() as u64;
        if !self.disk.root.stat(below_root(path), Links::Keep).is_ok_and(is_still) {
            return Ok(());
        }
        let (metadata, hash, content) = (read.metadata, ContentHash(read.hash.0), Content::of_bytes(read.bytes));
        let in_history = KeptContent::InHistory(hash, content.form());
        if self.is_recorded(path, hash, &metadata) {
            self.note(path, metadata, in_history);
            return Ok(());
        }
        if let Some(moved) = self.moved_by_tools(path, &metadata) {
            self.note(path, metadata, moved.content);
            return Ok(());
        }
        let before = noted.map(|noted| self.snapshot.hash(&noted)).transpose()?;
        match (noted, before) {
            (Some(noted), Some(Some(before)))
                if before == hash && noted.metadata.is_executable() == metadata.is_executable() =>
            {
                self.note(path, metadata, noted.content);
                return Ok(());
            }
            (Some(noted), Some(None)) if !self.is_recorded_since(path) => {
                self.note(path, metadata, KeptContent::Nowhere);
                if noted.metadata != metadata {
                    self.found.leave_out(below_root(path), LeftOutReason::TooMuch);
                }
                return Ok(());
            }
            _ => {}
        }
        let left = self.bytes_left.checked_sub(metadata.size_bytes.saturating_add(size_before));
        let (Some(bytes), Some(files)) = (left, self.files_left.checked_sub(1)) else {
            self.note(path, metadata, KeptContent::Nowhere);
            self.found.leave_out(below_root(path), LeftOutReason::TooMuch);
            return Ok(());
        };
        (self.bytes_left, self.files_left) = (bytes, files);
        self.note(path, metadata, in_history);
        let before = noted.zip(before.flatten()).map(|(noted, hash)| as_before(&noted.metadata, hash));
        let is_executable = metadata.is_executable();
        self.found.written.insert(path.clone(), Written { content, hash, is_executable, before });
        Ok(())
    }

    /// Whether history knows what a file holds now, and whether it can be run.
    fn is_recorded(&self, path: &WsPath, hash: ContentHash, metadata: &Metadata) -> bool {
        let Some(head) = self.recorded.get(path).filter(|head| head.hash == Some(hash)) else { return false };
        let noted = self.snapshot.files.get(path).map(|noted| noted.metadata.mode);
        let mode = if self.is_recorded_since(path) { head.mode.or(noted) } else { noted };
        mode.is_none_or(|mode| Metadata { mode, ..*metadata }.is_executable() == metadata.is_executable())
    }

    /// Whether history knows what a file held later than the snapshot does.
    fn is_recorded_since(&self, path: &WsPath) -> bool {
        self.recorded.get(path).is_some_and(|head| head.since > self.snapshot.taken_at)
    }

    fn note(&mut self, path: &WsPath, metadata: Metadata, content: KeptContent) {
        self.notes.push((path.clone(), Some(SnapshotFile { metadata, content })));
    }

    fn gone(&mut self, path: &WsPath) -> Result<()> {
        let Some(noted) = self.snapshot.files.get(path).copied() else { return Ok(()) };
        self.notes.push((path.clone(), None));
        if !self.recorded.contains_key(path) && self.is_taken_by_tools(path) {
            self.forgotten.push(path.clone());
            return Ok(());
        }
        let Some(hash) = self.snapshot.hash(&noted)? else {
            let is_large = noted.metadata.size_bytes > self.keep.file_bytes;
            let reason = if is_large { LeftOutReason::TooLarge } else { LeftOutReason::TooMuch };
            self.found.leave_out(below_root(path), reason);
            self.forgotten.push(path.clone());
            return Ok(());
        };
        self.found.removed.insert(path.clone(), as_before(&noted.metadata, hash));
        Ok(())
    }

    /// Notes a folder that is new, unless a tool made it.
    fn made(&mut self, path: &WsPath) {
        if !self.is_recorded_since(path) && self.has_room_for_folder() {
            self.found.made_folders.insert(path.clone());
        }
    }

    /// Notes a folder that is gone, unless a tool took it away or it is only ignored from now on.
    fn left(&mut self, path: &WsPath) -> Result<()> {
        if self.snapshot.now(path)?.is_some_and(|now| now.kind == Kind::Folder) {
            return Ok(());
        }
        if !self.recorded.contains_key(path) && self.is_taken_by_tools(path) {
            self.forgotten.push(path.clone());
        } else {
            self.found.removed_folders.insert(path.clone());
        }
        Ok(())
    }

    fn has_room_for_folder(&mut self) -> bool {
        let left = self.files_left.checked_sub(1);
        self.files_left = left.unwrap_or(0);
        left.is_some()
    }

    /// Whether commits have removed a file, or moved it away.
    fn is_taken_by_tools(&self, path: &WsPath) -> bool {
        self.by_tools.iter().any(|effect| match effect.op {
            EffectKind::Remove => effect.path == *path,
            EffectKind::Move => effect.from.as_ref().is_some_and(|from| path == from || path.is_below(from)),
            EffectKind::Create | EffectKind::Update | EffectKind::Touch | EffectKind::Restore => false,
        })
    }

    /// The file that commits have moved here, if it is the same as before but for its path.
    fn moved_by_tools(&self, path: &WsPath, metadata: &Metadata) -> Option<SnapshotFile> {
        self.by_tools.iter().filter(|effect| effect.op == EffectKind::Move).find_map(|effect| {
            let from = path.moved(&effect.path, effect.from.as_ref()?)?;
            let noted = self.snapshot.files.get(&from)?;
            let is_it = (noted.metadata.identity, noted.metadata.size_bytes, noted.metadata.modified)
                == (metadata.identity, metadata.size_bytes, metadata.modified);
            is_it.then_some(*noted)
        })
    }
}

fn as_before(metadata: &Metadata, hash: ContentHash) -> Before {
    Before { hash, size_bytes: metadata.size_bytes, is_executable: metadata.is_executable() }
}

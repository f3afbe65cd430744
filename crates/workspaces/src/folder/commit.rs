//! Commits changes to a folder.

use super::disk::{below_root, path_of, shown};
use super::errors::{Attempt, to_tool_error};
use super::history_limit::kept_bytes;
use super::reconcile::{BaseState, Reconciled, reconcile};
use super::steps::Steps;
use super::unversioned_removals::{UnversionedRemovals, WithoutCleared};
use super::{Folder, FolderWorkspace};
use crate::check_in_room::CommitRoom;
use std::{
    collections::{BTreeMap, btree_map::Entry},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::runtime::Handle;
use toolrest_core::{
    Access, CallCx, Change, Changeset, Commit, CommitId, Content, ContentHash, ErrorKind, FileType, Guard, Notice,
    Preview, Result, Timestamp, ToolError, WsPath, now,
};
use toolrest_directory::{
    CommitOptions, CommitResult, Effect, Error, ErrorKind as DiskError, FolderLock, HardLinks, Kind, Record, Recovered,
    Repositories, SymbolicLinks, TouchHandle, leads_into_repository,
};
use toolrest_store::CallInfo;
use toolrest_store::Store;
use toolrest_store::blob::{Compression, Prepared, prepare};
use toolrest_store::history::FolderCommit;
use toolrest_store::plan::{Needs, Plan, RowOp, View, plan};

/// Maximum time to wait for a database that is away right after the change. Then the journal keeps the record.
const RECORD_PATIENCE: Duration = Duration::from_secs(5);

impl FolderWorkspace {
    /// Applies a changeset. It runs to its end even if the caller goes away.
    pub(super) async fn commit_on_disk(
        &self,
        changes: Changeset,
        besides: CommitExtras,
        cx: &CallCx,
    ) -> Result<Commit> {
        let (changes, contents) = prepare(as_files(changes), Compression::WherePays).await?;
        let mut draft = self.draft(changes, contents, besides);
        loop {
            match self.with_folder_lock(cx, move |job, lock| job.run(lock, draft)).await? {
                Attempted::Made((commit, warnings)) => {
                    for warning in warnings {
                        cx.warn(warning);
                    }
                    return Ok(commit);
                }
                // Wait without the folder lock: the commit that holds the bytes may be waiting for the lock.
                Attempted::NeedsRoom { bytes, draft: mut returned } => {
                    returned.room.wait_for(bytes).await?;
                    draft = *returned;
                }
            }
        }
    }

    /// Returns what [`Self::commit_on_disk`] would do, without the folder lock. Errors of the file system, such as
    /// missing permissions, show only when the changes are applied.
    pub(super) async fn preview_on_disk(&self, changes: Changeset, cx: &CallCx) -> Result<Preview> {
        let (changes, contents) = prepare(as_files(changes), Compression::Off).await?;
        let mut draft = self.draft(changes, contents, CommitExtras::default());
        loop {
            let place = self.walk_pool.commit_place().await;
            let job = self.job(cx);
            let work = move || {
                let _held = place;
                job.preview(draft)
            };
            match tokio::task::spawn_blocking(work).await.map_err(ToolError::internal)?? {
                Attempted::Made(preview) => return Ok(preview),
                // Wait without a place: the commit that holds the bytes may be waiting for one.
                Attempted::NeedsRoom { bytes, draft: mut returned } => {
                    returned.room.wait_for(bytes).await?;
                    draft = *returned;
                }
            }
        }
    }

    fn draft(&self, changes: Changeset, contents: Vec<Option<Prepared>>, extras: CommitExtras) -> Draft {
        let room = CommitRoom::new(Arc::clone(&self.check_ins), self.access.person);
        Draft { changes, contents, extras, room }
    }

    fn job(&self, cx: &CallCx) -> Job {
        Job {
            store: Arc::clone(&self.store),
            folder: Arc::clone(&self.folder),
            access: self.access,
            call: CallInfo::of(cx),
            runtime: Handle::current(),
        }
    }

    /// Takes the folder lock and runs an operation, which runs to its end even if the caller goes away.
    pub(super) async fn with_folder_lock<T: Send + 'static>(
        &self,
        cx: &CallCx,
        work: impl FnOnce(&Job, &mut FolderLock<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let own_lock = Arc::clone(&self.folder.process_lock).lock_owned().await;
        let place = self.walk_pool.commit_place().await;
        let job = self.job(cx);
        let work = move || {
            let _held = (own_lock, place);
            let mut lock = job.folder.lock(&*job.store, &job.runtime)?;
            work(&job, &mut lock)
        };
        tokio::task::spawn_blocking(work).await.map_err(ToolError::internal)?
    }
}

impl Folder {
    /// Takes the folder lock between processes, and recovers an interrupted commit.
    fn lock(&self, store: &dyn Store, runtime: &Handle) -> Result<FolderLock<'_>> {
        let fail = |error: Error| failed(&error);
        let mut lock = self.disk.root.lock(&self.journal_dir).map_err(fail)?;
        if lock.is_unfinished().map_err(fail)? {
            recover_interrupted(&mut lock, store, runtime)?;
        }
        Ok(lock)
    }

    /// Recovers a commit that a crash interrupted.
    pub(crate) fn recover(&self, store: &dyn Store, runtime: &Handle) -> Result<()> {
        let fail = |error: Error| to_tool_error(&error, &WsPath::root(), Attempt::Write);
        let mut lock = self.disk.root.lock(&self.journal_dir).map_err(fail)?;
        recover_interrupted(&mut lock, store, runtime)
    }
}

/// Completes or rolls back an interrupted commit, if there is one.
fn recover_interrupted(lock: &mut FolderLock<'_>, store: &dyn Store, runtime: &Handle) -> Result<()> {
    let mut not_yet = None;
    let keep = |recovered: &Recovered| {
        let kept = FolderCommit::decode(&recovered.payload).and_then(|commit| runtime.block_on(store.record(commit)));
        match kept {
            Err(error) if will_pass(error.kind()) => {
                not_yet = Some(error);
                Record::Failed
            }
            Err(error) => {
                // Otherwise it would block all later commits. The files are on disk; only their history has a gap.
                tracing::error!(%error, "an interrupted commit could not be recorded");
                Record::Kept
            }
            Ok(()) => Record::Kept,
        }
    };
    let recovered = lock.recover(keep).map_err(|error| to_tool_error(&error, &WsPath::root(), Attempt::Write))?;
    if let Some(recovered) = recovered {
        tracing::info!(outcome = ?recovered.outcome, kept = ?recovered.kept, "settled an interrupted commit");
    }
    // The next commit would overwrite the journal, which is the only record of it.
    Ok(not_yet.map_or(Ok(()), Err)?)
}

/// Whether the database may accept the same record later.
fn will_pass(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Unavailable | ErrorKind::StorageFull | ErrorKind::WriteFailed | ErrorKind::Timeout)
}

/// What is applied together with a changeset but has no versions.
#[derive(Default)]
pub(super) struct CommitExtras {
    pub(super) unversioned_removals: UnversionedRemovals,
    pub(super) made_by: MadeBy,
}

/// A changeset with its contents, ready to be committed.
struct Draft {
    changes: Changeset,
    contents: Vec<Option<Prepared>>,
    extras: CommitExtras,
    /// The reservation for the contents.
    room: CommitRoom,
}

/// The outcome of an attempt to commit, or to preview a commit.
enum Attempted<T> {
    Made(T),
    /// The commit has contents of so many bytes, for which there is no room in memory at this moment. Nothing was changed.
    NeedsRoom {
        bytes: u64,
        draft: Box<Draft>,
    },
}

/// Who made the changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum MadeBy {
    #[default]
    Tool,
    /// A program, on a view of the folder.
    Program,
}

/// An operation under the folder lock.
pub(super) struct Job {
    pub(super) store: Arc<dyn Store>,
    pub(super) folder: Arc<Folder>,
    pub(super) access: Access,
    call: CallInfo,
    pub(super) runtime: Handle,
}

impl Job {
    /// Applies the changes, if there is room for their contents in memory. Returns also warnings for the caller.
    fn run(&self, lock: &mut FolderLock<'_>, mut draft: Draft) -> Result<Attempted<(Commit, Vec<Notice>)>> {
        let (disk, root) = (&self.folder.disk, &self.folder.disk.root);
        let at = now();
        let (view, needs) = self.recorded(&draft.changes)?;
        // The contents of a program's changes are part of its check-in's reservation.
        if draft.extras.made_by == MadeBy::Tool {
            let bytes = self.contents_bytes(&draft.contents, &view, &needs);
            if draft.room.try_take(bytes).is_err() {
                return Ok(Attempted::NeedsRoom { bytes, draft: Box::new(draft) });
            }
        }
        let Draft { changes, contents, extras, room: _room } = draft;
        let CommitExtras { mut unversioned_removals, made_by } = extras;
        let changes = &changes;
        let links = self.links_in_the_way(changes)?;
        let mut warnings: Vec<Notice> = links.iter().map(|path| gave_way(path)).collect();
        unversioned_removals.add(links);
        let before = WithoutCleared { disk, unversioned_removals: &unversioned_removals };
        let guard = &self.call.guard;
        let (seen, mut planned) = reconcile_and_plan(&before, changes, &contents, (view, &needs), at, guard)?;
        let Some(id) = planned.commit_id() else {
            unversioned_removals.apply(lock)?;
            return Ok(Attempted::Made((planned.into_commit(None, at), Vec::new())));
        };

        let steps = Steps::of(&planned.ops, seen.hashes)?;
        let written = self.written(changes, &steps)?;
        planned.ops = with_emptied_folders(seen.ops, planned.ops);
        let touched = steps.touched.clone();
        let only_touches = steps.is_empty();
        let mut disk_changes = unversioned_removals.changes(root)?;
        disk_changes.extend(steps.into_changes(&written)?);
        let outcomes = std::mem::take(&mut planned.outcomes);
        let mut kept = once_each(seen.contents.into_iter().chain(contents.into_iter().flatten()));
        // Contents from the history are stored again: the history may drop them at this moment.
        for (hash, bytes) in &written {
            if let Entry::Vacant(missing) = kept.entry(*hash) {
                missing.insert(Prepared::of(&Content::of_bytes(bytes.to_vec()), Compression::WherePays)?);
            }
        }
        let added_bytes = kept_bytes(kept.values());
        let mut commit = self.commit(id, at, changes, planned, kept);
        if let Some((approval, instance)) = commit.call.approval {
            // The folder lock is held, and what was changed on disk is recorded in any case.
            self.runtime.block_on(self.store.check_executing(commit.workspace, approval, instance))?;
        }
        warnings.extend(seen.too_large.iter().map(not_kept));
        let open = |path: WsPath| match root.open_for_touch(below_root(&path), self.folder.repositories) {
            Ok(file) => Ok((path, file)),
            Err(error) => Err(to_tool_error(&error, &path, Attempt::Write)),
        };
        let touched = touched.into_iter().map(open).collect::<Result<Vec<_>>>()?;
        let touch = |(path, file): &(WsPath, TouchHandle)| {
            file.touch().map_err(|error| to_tool_error(&error, path, Attempt::Write))
        };
        if only_touches {
            touched.iter().try_for_each(touch)?;
            self.runtime.block_on(self.store.record(commit))?;
            self.limit_history(added_bytes);
        } else {
            let options = match made_by {
                MadeBy::Tool => CommitOptions { repositories: self.folder.repositories, ..CommitOptions::default() },
                // The paths of a program's changes have no links. Its changes in repositories are transferred by other rules.
                MadeBy::Program => CommitOptions {
                    hard_links: HardLinks::Break,
                    symbolic_links: SymbolicLinks::Refuse,
                    repositories: Repositories::ReadOnly,
                    ..CommitOptions::default()
                },
            };
            let options = CommitOptions { id: id.0.as_bytes().to_vec(), payload: commit.encode()?, ..options };
            let mut kept = Record::Failed;
            let record = |_: &_| {
                kept = self.record(commit);
                kept
            };
            let applied = lock.commit(&disk_changes, &options, record).map_err(|error| failed(&error))?;
            if kept == Record::Kept {
                self.limit_history(added_bytes);
            }
            warnings.extend(rewritten_in_place(&applied));
            // The commit stands even if a time cannot be set.
            let failures = touched.iter().filter_map(|touched| touch(touched).err()).inspect(ToolError::log_cause);
            warnings.extend(failures.map(|error| Notice::of_error(&error, str::to_owned)));
        }
        Ok(Attempted::Made((Commit { id: Some(id), created_at: at, outcomes }, warnings)))
    }

    /// Returns the size of the contents that a commit has in memory: those that it writes, those on disk that it
    /// replaces, and those that it takes from the history.
    fn contents_bytes(&self, contents: &[Option<Prepared>], view: &View, needs: &Needs) -> u64 {
        let disk = &self.folder.disk;
        let replaced: u64 = needs.at.iter().map(|path| disk.kept_bytes(path)).sum();
        let restored = view.ids.values().filter(|row| row.deleted_at.is_some()).filter_map(|row| row.head);
        let from_history = view.versions.values().copied().chain(restored).map(|version| version.size);
        let given = contents.iter().flatten().map(|content| content.size);
        let others: i64 = given.chain(from_history).fold(0, i64::saturating_add);
        replaced.min(disk.limits.commit_bytes).saturating_add(others.max(0).unsigned_abs())
    }

    /// Returns what [`Self::run`] would do.
    fn preview(&self, mut draft: Draft) -> Result<Attempted<Preview>> {
        let at = now();
        let (view, needs) = self.recorded(&draft.changes)?;
        let bytes = self.contents_bytes(&draft.contents, &view, &needs);
        if draft.room.try_take(bytes).is_err() {
            return Ok(Attempted::NeedsRoom { bytes, draft: Box::new(draft) });
        }
        let Draft { changes, contents, .. } = &draft;
        let mut unversioned_removals = UnversionedRemovals::default();
        unversioned_removals.add(self.links_in_the_way(changes)?);
        let before = WithoutCleared { disk: &self.folder.disk, unversioned_removals: &unversioned_removals };
        let heads = view.heads();
        let (_, planned) = reconcile_and_plan(&before, changes, contents, (view, &needs), at, &self.call.guard)?;
        if self.folder.repositories == Repositories::ReadOnly {
            let paths = planned.effects.iter().flat_map(|effect| effect.from.iter().chain([&effect.path]));
            if let Some(path) = paths.into_iter().find(|path| leads_into_repository(below_root(path))) {
                let refusal = Error { path: below_root(path).to_owned(), kind: DiskError::Repository };
                return Err(to_tool_error(&refusal, path, Attempt::Write));
            }
        }
        Ok(Attempted::Made(planned.into_preview(at, &heads)))
    }

    /// Returns the symbolic links at paths that an undo restores. Programs replace files by links, which have no versions.
    fn links_in_the_way(&self, changes: &Changeset) -> Result<Vec<PathBuf>> {
        let mut links = Vec::new();
        if changes.undoes.is_none() {
            return Ok(links);
        }
        let recorded = self.runtime.block_on(self.store.recorded(self.access, changes))?.0;
        for row in recorded.ids.values().filter(|row| row.deleted_at.is_some()) {
            let path = below_root(&row.path);
            if self.folder.repositories == Repositories::ReadOnly && leads_into_repository(path) {
                continue;
            }
            let there = self.folder.disk.root.stat_real(path).map_err(|error| failed(&error))?;
            if there.is_some_and(|there| there.kind == Kind::Symlink) {
                links.push(path.to_owned());
            }
        }
        Ok(links)
    }

    /// Records changes to an earlier state that are on disk already, made by a process or by others while it ran.
    pub(super) fn record_made(&self, before: &dyn BaseState, changes: Changeset) -> Result<Option<CommitId>> {
        let (changes, contents) = self.runtime.block_on(prepare(as_files(changes), Compression::WherePays))?;
        let at = now();
        let (view, needs) = self.recorded(&changes)?;
        // The guard is not asked: the changes are on disk already.
        let (seen, mut planned) =
            reconcile_and_plan(before, &changes, &contents, (view, &needs), at, &Guard::UNRESTRICTED)?;
        let Some(id) = planned.commit_id() else { return Ok(None) };
        planned.ops = with_emptied_folders(seen.ops, planned.ops);
        let kept = once_each(seen.contents.into_iter().chain(contents.into_iter().flatten()));
        let added_bytes = kept_bytes(kept.values());
        let mut commit = self.commit(id, at, &changes, planned, kept);
        commit.call = commit.call.while_process_ran();
        self.runtime.block_on(self.store.record(commit))?;
        self.limit_history(added_bytes);
        Ok(Some(id))
    }

    /// Reads the recorded rows that the changes concern, and returns which paths they need.
    fn recorded(&self, changes: &Changeset) -> Result<(View, Needs)> {
        let view = self.runtime.block_on(self.store.recorded(self.access, changes))?.0;
        let mut needs = Needs::of(changes);
        needs.add_paths_of(&view.ids);
        Ok((view, needs))
    }

    fn commit(
        &self,
        id: CommitId,
        at: Timestamp,
        changes: &Changeset,
        plan: Plan,
        contents: BTreeMap<ContentHash, Prepared>,
    ) -> FolderCommit {
        let (workspace, call, undoes) = (self.access.workspace, self.call.clone(), changes.undoes);
        FolderCommit { workspace, id, at, call, undoes, plan, contents: contents.into_values().collect() }
    }

    /// Returns the bytes to write: those of the changeset and those that come from the history.
    fn written(&self, changes: &Changeset, steps: &Steps) -> Result<BTreeMap<ContentHash, Arc<[u8]>>> {
        let mut given: BTreeMap<ContentHash, Arc<[u8]>> = BTreeMap::new();
        for change in &changes.changes {
            match change {
                Change::Put(put) => given.insert(put.content.hash()?, put.content.stored().into()),
                Change::Touch(_) => given.insert(ContentHash::of(b""), Arc::from([])),
                _ => None,
            };
        }
        for content in steps.contents() {
            if let Entry::Vacant(missing) = given.entry(content) {
                missing.insert(self.runtime.block_on(self.store.kept(self.access.workspace, content))?.into());
            }
        }
        Ok(given)
    }

    /// Records the commit in the database. The files are changed already, so a failure leaves it to the journal.
    fn record(&self, commit: FolderCommit) -> Record {
        let work = self.store.record(commit);
        match self.runtime.block_on(async { tokio::time::timeout(RECORD_PATIENCE, work).await }) {
            Ok(Ok(())) => Record::Kept,
            Ok(Err(error)) => {
                tracing::error!(%error, "a commit is made but not recorded yet; the next one records it");
                Record::Failed
            }
            Err(_) => {
                tracing::error!("a commit is made but not recorded yet; the next one records it");
                Record::Failed
            }
        }
    }
}

/// Plans changes to a state of the folder, after the recorded rows were brought up to date with it.
fn reconcile_and_plan(
    before: &dyn BaseState,
    changes: &Changeset,
    contents: &[Option<Prepared>],
    (mut view, needs): (View, &Needs),
    at: Timestamp,
    guard: &Guard,
) -> Result<(Reconciled, Plan)> {
    let seen = reconcile(before, changes, needs, &mut view, at)?;
    let planned = plan(changes, contents, view, at, guard)?;
    Ok((seen, planned))
}

/// Converts a failure on disk to the error for its path.
pub(super) fn failed(error: &Error) -> ToolError {
    let path = path_of(&error.path).unwrap_or_else(WsPath::root);
    match &error.kind {
        // Somebody else changed the path after it was read.
        DiskError::NotFound | DiskError::Exists => ToolError::stale(&path, None),
        _ => to_tool_error(error, &path, Attempt::Write),
    }
}

/// Returns contents by hash, each of them once.
fn once_each(contents: impl Iterator<Item = Prepared>) -> BTreeMap<ContentHash, Prepared> {
    let mut kept = BTreeMap::new();
    for content in contents {
        kept.entry(content.key).or_insert(content);
    }
    kept
}

/// Converts contents to files: JSON becomes indented text.
fn as_files(mut changes: Changeset) -> Changeset {
    for change in &mut changes.changes {
        let Change::Put(put) = change else { continue };
        if let Content::Json(json) = &put.content {
            put.content = Content::of_text(json.pretty());
        }
        put.file_type = match put.file_type {
            FileType::Folder => FileType::Folder,
            _ => put.content.form().plain_type(),
        };
    }
    changes
}

/// Joins the row operations of the reconciliation and of the plan. A folder that is removed takes along the rows below it
/// that are not on disk any more.
fn with_emptied_folders(due: Vec<RowOp>, planned: Vec<RowOp>) -> Vec<RowOp> {
    let mut ops = due;
    for op in planned {
        if let RowOp::Trash { path, is_folder: true, .. } = &op {
            ops.push(RowOp::Forget { path: path.clone() });
        }
        ops.push(op);
    }
    ops
}

/// Returns warnings about files that were changed in place, because they have other names too.
fn rewritten_in_place(applied: &CommitResult) -> impl Iterator<Item = Notice> {
    let in_place = applied.changes.iter().filter(|change| change.effect == Effect::RewrittenInPlace);
    in_place.map(|change| {
        let path = path_of(&change.path).unwrap_or_else(WsPath::root);
        let text = format!(
            "{path} was changed in place, because it has several names (hard links), which all show the change, or \
             because its folder lets nobody else put another file there"
        );
        Notice::about(&path, text)
    })
}

fn gave_way(link: &Path) -> Notice {
    let path = shown(link);
    Notice { text: format!("The symbolic link at {path} gave way to what stood there before"), paths: vec![path] }
}

fn not_kept(path: &WsPath) -> Notice {
    let text = format!("What {path} held before is over the limits of the history: this change of it cannot be undone");
    Notice::about(path, text)
}

//! Changing a folder.

use super::disk::{below_root, path_of, shown};
use super::errors::{Attempt, to_tool_error};
use super::history_limit::kept_bytes;
use super::reconcile::{BaseState, Reconciled, reconcile};
use super::steps::Steps;
use super::unversioned_removals::{UnversionedRemovals, WithoutCleared};
use super::{Folder, FolderWorkspace};
use std::{
    collections::{BTreeMap, btree_map::Entry},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::runtime::Handle;
use toolrest_core::{
    Access, CallCx, Change, Changeset, Commit, CommitId, Content, ContentHash, ErrorKind, FileType, Notice, Result,
    Timestamp, ToolError, WsPath, now,
};
use toolrest_directory::{
    Applied, CommitOptions, Effect, Error, ErrorKind as DiskError, FolderLock, HardLinks, Kind, Record, Recovered,
    Repositories, SymbolicLinks, TouchHandle, leads_into_repository,
};
use toolrest_store::CallInfo;
use toolrest_store::Store;
use toolrest_store::blob::{Compression, Prepared, prepare};
use toolrest_store::history::FolderCommit;
use toolrest_store::plan::{Needs, Plan, RowOp, plan};

/// How long a database that went away right after the change is waited for. Then the journal keeps the commit for it.
const RECORD_PATIENCE: Duration = Duration::from_secs(5);

impl FolderWorkspace {
    /// Makes the changes, to the end, also if the caller goes away meanwhile.
    pub(super) async fn commit_on_disk(
        &self,
        changes: Changeset,
        besides: CommitExtras,
        cx: &CallCx,
    ) -> Result<Commit> {
        let (changes, contents) = prepare(as_files(changes), Compression::WherePays).await?;
        let (commit, warnings) =
            self.with_folder_lock(cx, move |job, turn| job.run(turn, &changes, contents, besides)).await?;
        for warning in warnings {
            cx.warn(warning);
        }
        Ok(commit)
    }

    /// Waits until nobody else changes the folder, and works on it to the end.
    pub(super) async fn with_folder_lock<T: Send + 'static>(
        &self,
        cx: &CallCx,
        work: impl FnOnce(&Job, &mut FolderLock<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let own_turn = Arc::clone(&self.folder.turn).lock_owned().await;
        let place = self.walk_pool.commit_place().await;
        let job = Job {
            store: Arc::clone(&self.store),
            folder: Arc::clone(&self.folder),
            access: self.access,
            call: CallInfo::of(cx),
            runtime: Handle::current(),
        };
        let work = move || {
            let _turn = (own_turn, place);
            let mut turn = job.folder.turn(&*job.store, &job.runtime)?;
            work(&job, &mut turn)
        };
        tokio::task::spawn_blocking(work).await.map_err(ToolError::internal)?
    }
}

impl Folder {
    /// Waits until nobody else changes the folder, in this process or another; what was interrupted is settled.
    fn turn(&self, store: &dyn Store, runtime: &Handle) -> Result<FolderLock<'_>> {
        let fail = |error: Error| failed(&error);
        let mut turn = self.disk.root.lock(&self.journal_dir).map_err(fail)?;
        if turn.is_unfinished().map_err(fail)? {
            settle(&mut turn, store, runtime)?;
        }
        Ok(turn)
    }

    /// Keeps what a crash interrupted, if its changes were made.
    pub(crate) fn recover(&self, store: &dyn Store, runtime: &Handle) -> Result<()> {
        let fail = |error: Error| to_tool_error(&error, &WsPath::root(), Attempt::Write);
        let mut turn = self.disk.root.lock(&self.journal_dir).map_err(fail)?;
        settle(&mut turn, store, runtime)
    }
}

/// Finishes or takes back the commit that was interrupted, if one was.
fn settle(turn: &mut FolderLock<'_>, store: &dyn Store, runtime: &Handle) -> Result<()> {
    let mut not_yet = None;
    let keep = |recovered: &Recovered| {
        let kept = FolderCommit::decode(&recovered.payload).and_then(|commit| runtime.block_on(store.record(commit)));
        match kept {
            Err(error) if will_pass(error.kind()) => {
                not_yet = Some(error);
                Record::Failed
            }
            Err(error) => {
                // It would stand in the way for ever. The files are as they are; only their history has a gap.
                tracing::error!(%error, "an interrupted commit could not be recorded");
                Record::Kept
            }
            Ok(()) => Record::Kept,
        }
    };
    let recovered = turn.recover(keep).map_err(|error| to_tool_error(&error, &WsPath::root(), Attempt::Write))?;
    if let Some(recovered) = recovered {
        tracing::info!(outcome = ?recovered.outcome, kept = ?recovered.kept, "settled an interrupted commit");
    }
    // The next commit would take its place in the journal, which is all that tells of it.
    Ok(not_yet.map_or(Ok(()), Err)?)
}

/// Whether a database that fails so may well keep the same commit later.
fn will_pass(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Unavailable | ErrorKind::StorageFull | ErrorKind::WriteFailed | ErrorKind::Timeout)
}

/// What goes with a changeset, but is no change that history knows.
#[derive(Default)]
pub(super) struct CommitExtras {
    pub(super) unversioned_removals: UnversionedRemovals,
    pub(super) made_by: MadeBy,
}

/// Who made the changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum MadeBy {
    #[default]
    Tool,
    /// A program, on a view of the folder.
    Program,
}

/// A commit whose turn it is.
pub(super) struct Job {
    pub(super) store: Arc<dyn Store>,
    pub(super) folder: Arc<Folder>,
    pub(super) access: Access,
    call: CallInfo,
    pub(super) runtime: Handle,
}

impl Job {
    /// Makes the changes; gives also what the caller should be told besides.
    fn run(
        &self,
        turn: &mut FolderLock<'_>,
        changes: &Changeset,
        contents: Vec<Option<Prepared>>,
        CommitExtras { mut unversioned_removals, made_by }: CommitExtras,
    ) -> Result<(Commit, Vec<Notice>)> {
        let (disk, root) = (&self.folder.disk, &self.folder.disk.root);
        let at = now();
        let links = self.links_in_the_way(changes)?;
        let mut warnings: Vec<Notice> = links.iter().map(|path| gave_way(path)).collect();
        unversioned_removals.add(links);
        let (seen, mut planned) =
            self.plan(&WithoutCleared { disk, unversioned_removals: &unversioned_removals }, changes, &contents, at)?;
        let Some(id) = planned.commit_id() else {
            unversioned_removals.clear(turn)?;
            return Ok((planned.into_commit(None, at), Vec::new()));
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
        // What comes back from the history might else be dropped from it at this moment.
        for (hash, bytes) in &written {
            if let Entry::Vacant(missing) = kept.entry(*hash) {
                missing.insert(Prepared::of(&Content::of_bytes(bytes.to_vec()), Compression::WherePays)?);
            }
        }
        let added_bytes = kept_bytes(kept.values());
        let mut commit = self.commit(id, at, changes, planned, kept);
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
                // A program's changes have real paths. What it did in repositories is judged when it is taken over.
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
            let applied = turn.commit(&disk_changes, &options, record).map_err(|error| failed(&error))?;
            if kept == Record::Kept {
                self.limit_history(added_bytes);
            }
            warnings.extend(rewritten_in_place(&applied));
            // The commit stands, whatever becomes of a time.
            let failures = touched.iter().filter_map(|touched| touch(touched).err()).inspect(ToolError::log_cause);
            warnings.extend(failures.map(|error| Notice::of_error(&error, str::to_owned)));
        }
        Ok((Commit { id: Some(id), created_at: at, outcomes }, warnings))
    }

    /// The symbolic links that stand where an undo brings something back. Programs leave them in the place of files, and
    /// no history is kept of them.
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

    /// Records changes that are on disk already, made to what stood there before by a process or by others while it ran.
    pub(super) fn record_made(&self, before: &dyn BaseState, changes: Changeset) -> Result<Option<CommitId>> {
        let (changes, contents) = self.runtime.block_on(prepare(as_files(changes), Compression::WherePays))?;
        let at = now();
        let (seen, mut planned) = self.plan(before, &changes, &contents, at)?;
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

    /// Plans changes to what stood in the folder before.
    fn plan(
        &self,
        before: &dyn BaseState,
        changes: &Changeset,
        contents: &[Option<Prepared>],
        at: Timestamp,
    ) -> Result<(Reconciled, Plan)> {
        let mut view = self.runtime.block_on(self.store.recorded(self.access, changes))?.0;
        let mut needs = Needs::of(changes);
        needs.add_paths_of(&view.ids);
        let seen = reconcile(before, changes, &needs, &mut view, at)?;
        let planned = plan(changes, contents, view, at)?;
        Ok((seen, planned))
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

    /// The bytes that are written: those that were given, and those that history brings back.
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

    /// Keeps the commit. The files are changed already, so that it is not given up at the first try.
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

/// Tells of a failure on disk by the path that it was about.
pub(super) fn failed(error: &Error) -> ToolError {
    let path = path_of(&error.path).unwrap_or_else(WsPath::root);
    match &error.kind {
        // Somebody else came between looking and doing.
        DiskError::NotFound | DiskError::Exists => ToolError::stale(&path, None),
        _ => to_tool_error(error, &path, Attempt::Write),
    }
}

/// Contents by what they are, each of them once.
fn once_each(contents: impl Iterator<Item = Prepared>) -> BTreeMap<ContentHash, Prepared> {
    let mut kept = BTreeMap::new();
    for content in contents {
        kept.entry(content.key).or_insert(content);
    }
    kept
}

/// In a folder there are texts and bytes: JSON is laid out for people.
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

/// The operations of a commit after those that were found to be due. A folder that goes takes along what the record
/// still shows below it, though it is not on disk any more.
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

/// Says which files were changed in place, because they have other names too.
fn rewritten_in_place(applied: &Applied) -> impl Iterator<Item = Notice> {
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

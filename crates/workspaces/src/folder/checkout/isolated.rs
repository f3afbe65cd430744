//! A program that works on a view of the folder, and what becomes of its changes when it has ended.
//!
//! What it changed lies in a folder of its own. Checking it in takes three steps: it is committed as any changeset, and
//! together with that goes what needs no history and is gone, or in the way; what needs no history and is new is taken
//! over; and permissions follow. If somebody changes the folder meanwhile, all of it is looked at anew.

use super::merge_result::{MergeInput, MergeResult};
use super::moves::Moves;
use super::private_dir::PrivateDir;
use crate::check_in_room::CheckInRoom;
use crate::conflict_name::conflict_path;
use crate::folder::FolderWorkspace;
use crate::folder::commit::{CommitExtras, Job, MadeBy, failed};
use crate::folder::disk::{Disk, below_root, path_of, shown};
use crate::folder::errors::{Attempt, to_tool_error};
use crate::folder::unversioned_removals::UnversionedRemovals;
use crate::scratch::held;
use async_trait::async_trait;
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};
use toolrest_core::{
    Attribution, CallCx, CheckedIn, Checkout, CommitId, Depth, ErrorKind, ExecutionRoot, FileType, KeepLimits,
    LeftOutReason, Notice, Result, ToolError, WorkspaceSettings, WsPath,
};
use toolrest_directory::{
    Baseline, Difference, Differences, FolderLock, Kind, NotTransferred, NotTransferredReason, PreserveRules, Root,
    leads_into_repository,
};
use toolrest_store::disk_fault::disk_fault;

/// How often a check-in is tried while others keep changing the same files.
const TRIES: usize = 8;

/// How many of the files that history knows are looked for in what is ignored.
const TRACKED_MOST: usize = 100_000;

/// How many of the files that could not be brought over are warned of one by one.
const MOST_WARNINGS: usize = 10;

/// A view of the folder for one program.
pub(super) struct IsolatedCheckout {
    workspace: FolderWorkspace,
    settings: WorkspaceSettings,
    keep: KeepLimits,
    private_dir: Arc<PrivateDir>,
    baseline: Arc<Baseline>,
}

impl IsolatedCheckout {
    pub(super) fn open(workspace: FolderWorkspace, settings: WorkspaceSettings, keep: KeepLimits) -> Result<Self> {
        let private_dir = Arc::new(PrivateDir::new(&workspace.scratch)?);
        let owner = workspace.folder.disk.root.metadata().map_err(|error| failed(&error))?;
        private_dir.fill(&owner).map_err(disk_fault)?;
        let baseline = Arc::new(begin(&workspace, &private_dir)?);
        Ok(Self { workspace, settings, keep, private_dir, baseline })
    }

    /// Looks at what the program has changed, and decides what becomes of it. Gives also the room for the contents.
    async fn read_state(&self, upper: &Arc<Root>, cx: &CallCx) -> Result<(MergeResult, CheckInRoom)> {
        let virtual_paths = self.workspace.store.virtual_files(self.workspace.access).await?;
        let (above, baseline) = (Arc::clone(upper), Arc::clone(&self.baseline));
        let compare = move |disk: &Disk| disk.root.differences(&above, &baseline).map_err(|error| failed(&error));
        let Differences { found: mut differences, replaced_dirs } = self.workspace.on_disk(compare).await?;
        let tracked = self.tracked(&differences).await?;
        let bytes = contents_bytes(&differences, self.keep);
        let room = self.workspace.check_ins.reserve(self.workspace.access.user, bytes).await;
        let input = MergeInput {
            disk: self.workspace.folder.disk.clone(),
            upper: Arc::clone(upper),
            baseline: Arc::clone(&self.baseline),
            replaced_dirs,
            keep: self.keep,
            call: cx.id,
            virtual_paths: with_folders(virtual_paths.into_iter().map(|listed| listed.path)),
        };
        let decide = move || {
            for path in tracked {
                let found = input.disk.root.difference_at(&input.upper, Path::new(path.without_slash()));
                let found = found.map_err(|error| to_tool_error(&error, &path, Attempt::Read))?;
                differences.extend(found.map(|found| Difference { is_ignored: false, ..found }));
            }
            input.decide(differences)
        };
        let merge_result = tokio::task::spawn_blocking(decide).await.map_err(ToolError::internal)??;
        Ok((merge_result, room))
    }

    /// The files among what is ignored that history knows all the same.
    async fn tracked(&self, differences: &[Difference]) -> Result<Vec<WsPath>> {
        let mut tracked = Vec::new();
        let (store, access) = (&self.workspace.store, self.workspace.access);
        for ignored in differences.iter().filter(|difference| difference.is_ignored) {
            let Some(path) = path_of(&ignored.path).filter(|path| path.name() != ".git") else { continue };
            match store.stat(access, &path).await? {
                Some(entry) if entry.file_type != FileType::Folder => tracked.push(path),
                Some(_) => {
                    let listing = store.list(access, &path, Depth::Descendants, TRACKED_MOST).await?;
                    let files = listing.entries.into_iter().filter(|listed| listed.file_type != FileType::Folder);
                    tracked.extend(files.map(|listed| listed.path));
                }
                None => {}
            }
        }
        // Whatever history knows of a repository, what programs do in one is judged by other rules.
        tracked.retain(|path| !leads_into_repository(below_root(path)));
        Ok(tracked)
    }

    /// Does what was decided.
    async fn apply_result(
        &self,
        upper: &Arc<Root>,
        merge_result: &mut MergeResult,
        cx: &CallCx,
    ) -> Result<Option<CommitId>> {
        let changes = merge_result.changeset(Moves::Told);
        let mut unversioned_removals = UnversionedRemovals::default();
        unversioned_removals.add(std::mem::take(&mut merge_result.unversioned_removals));
        let commit = if changes.changes.is_empty() {
            self.workspace.with_folder_lock(cx, move |_, turn| unversioned_removals.clear(turn)).await?;
            None
        } else {
            self.workspace
                .commit_on_disk(changes, CommitExtras { unversioned_removals, made_by: MadeBy::Program }, cx)
                .await?
                .id
        };
        if let Some(id) = commit {
            cx.recorded_with(id);
        }

        if !merge_result.transferred.is_empty()
            || !merge_result.permissions.is_empty()
            || !merge_result.names.is_empty()
        {
            // The commit stands, whatever becomes of the rest: it is told, and not tried anew without the commit.
            let targets: Vec<PathBuf> = merge_result.transferred.iter().map(|(_, to)| to.clone()).collect();
            match self.transfer(upper, merge_result, cx).await {
                Ok(not_transferred) => tell(merge_result, not_transferred, cx),
                Err(error) if commit.is_none() => return Err(error),
                Err(error) => {
                    let not_transferred =
                        |why: &str| format!("What has no versions may not have reached the folder: {why}");
                    error.log_cause();
                    cx.warn(Notice::of_error(&error, not_transferred));
                    for path in &targets {
                        merge_result.leave_out(path, LeftOutReason::Unreadable);
                    }
                }
            }
        }
        Ok(commit)
    }

    /// Brings what the program has changed to the folder.
    async fn check_in_changes(&self, cx: &CallCx) -> Result<CheckedIn> {
        self.workspace.store.authorise(self.workspace.access).await?;
        let upper = Arc::new(self.private_dir.open()?);
        let mut tries = 1;
        loop {
            let (mut merge_result, _room) = self.read_state(&upper, cx).await?;
            match self.apply_result(&upper, &mut merge_result, cx).await {
                Ok(commit) => return Ok(merge_result.into_checked_in(commit, Attribution::Program)),
                Err(error) if is_refused(error.kind) && tries < TRIES => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes over what needs no history, and gives permissions to what has one.
    async fn transfer(
        &self,
        upper: &Arc<Root>,
        merge_result: &mut MergeResult,
        cx: &CallCx,
    ) -> Result<Vec<NotTransferred>> {
        let transferred = std::mem::take(&mut merge_result.transferred);
        let (settled, durable) = (std::mem::take(&mut merge_result.settled), std::mem::take(&mut merge_result.durable));
        let (permissions, replaced_dirs) =
            (std::mem::take(&mut merge_result.permissions), std::mem::take(&mut merge_result.replaced_dirs));
        let names = std::mem::take(&mut merge_result.names).into_values().filter(|names| names.len() > 1);
        let names: Vec<Vec<PathBuf>> = names.collect();
        let (upper, root) = (Arc::clone(upper), Arc::clone(&self.workspace.folder.disk.root));
        let (baseline, call) = (Arc::clone(&self.baseline), cx.id);
        let take = move |_: &Job, turn: &mut FolderLock<'_>| {
            let mut not_transferred = Vec::new();
            let is_free = |path: &WsPath| matches!(root.stat_real(below_root(path)), Ok(None));
            let conflict_path = |path: &Path| {
                let path = path_of(path)?;
                Some(below_root(&conflict_path(&path.parent()?, path.name(), call, is_free)?).to_owned())
            };
            let staying = PreserveRules {
                settled: &settled,
                baseline: &baseline,
                replaced_dirs: &replaced_dirs,
                conflict_path: &conflict_path,
            };
            for (from, to) in transferred {
                not_transferred.extend(turn.transfer(&upper, &from, &to, &staying).map_err(|error| failed(&error))?);
            }
            for (path, left, owner) in permissions {
                // What became of it since is somebody else's.
                let _ = turn.apply_permissions(&path, &left, owner);
            }
            // Names that could not be linked lead to files of the same content.
            if let Err(error) = turn.link_names(&names) {
                tracing::warn!(%error, "hard links of a program could not be made");
            }
            turn.make_durable(&durable).map_err(|error| failed(&error))?;
            Ok(not_transferred)
        };
        self.workspace.with_folder_lock(cx, take).await
    }
}

#[async_trait]
impl Checkout for IsolatedCheckout {
    fn execution_root(&self) -> ExecutionRoot {
        ExecutionRoot::Overlay { lower: held(&self.workspace.folder.disk.root), private: held(self.private_dir.root()) }
    }

    fn settings(&self) -> &WorkspaceSettings {
        &self.settings
    }

    async fn check_in(&mut self, cx: &CallCx) -> Result<CheckedIn> {
        let checked_in = self.check_in_changes(cx).await?;
        let (workspace, private_dir) = (self.workspace.clone(), Arc::clone(&self.private_dir));
        let begin_anew = move || {
            private_dir.empty().map_err(ToolError::internal)?;
            begin(&workspace, &private_dir)
        };
        self.baseline = Arc::new(tokio::task::spawn_blocking(begin_anew).await.map_err(ToolError::internal)??);
        Ok(checked_in)
    }

    async fn finish(self: Box<Self>, cx: &CallCx) -> Result<CheckedIn> {
        let checked_in = self.check_in_changes(cx).await;
        // No other program comes: nothing that fails from here on may hide what was committed.
        let _ = tokio::task::spawn_blocking(move || drop(self)).await;
        checked_in
    }
}

/// The most bytes that are read of a program's changes and of what they take the place of.
fn contents_bytes(differences: &[Difference], keep: KeepLimits) -> u64 {
    let sides = differences.iter().filter(|found| !found.is_ignored).flat_map(|found| [found.upper, found.lower]);
    let files = sides.flatten().filter(|side| side.kind == Kind::File && side.size_bytes <= keep.file_bytes);
    files.map(|file| file.size_bytes).sum::<u64>().min(keep.commit_bytes)
}

/// How the folder stands now, before a program works on a view of it.
fn begin(workspace: &FolderWorkspace, private_dir: &PrivateDir) -> Result<Baseline> {
    let folders = workspace.folder.disk.root.dir_identities();
    Ok(Baseline::new(private_dir.moment()?, folders))
}

/// Whether a commit is refused because of what stands there: it may well succeed when that is looked at again.
pub(super) fn is_refused(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Stale
            | ErrorKind::NotFound
            | ErrorKind::AlreadyExists
            | ErrorKind::NotEmpty
            | ErrorKind::IsDirectory
            | ErrorKind::ThroughFile
    )
}

/// Paths with the folders that lead to them.
fn with_folders(paths: impl Iterator<Item = WsPath>) -> BTreeSet<WsPath> {
    let mut all = BTreeSet::new();
    for path in paths {
        all.extend(path.ancestors());
        all.insert(path);
    }
    all
}

/// Tells of what was not taken over.
fn tell(merge_result: &mut MergeResult, all: Vec<NotTransferred>, cx: &CallCx) {
    let mut failures = Vec::new();
    for NotTransferred { path, why } in all {
        match why {
            NotTransferredReason::Special => merge_result.leave_out(&path, LeftOutReason::Special),
            NotTransferredReason::GitConfig => merge_result.leave_out(&path, LeftOutReason::GitConfig),
            NotTransferredReason::ChangedByOthers { kept_as } => merge_result.others_changed(&path, kept_as.as_deref()),
            NotTransferredReason::RepositoryChanged => merge_result.others_changed(&path, None),
            NotTransferredReason::Failed(error) => {
                merge_result.leave_out(&path, LeftOutReason::Unreadable);
                let name = shown(&path);
                let text = format!("{name} could not be brought to the folder, or only a part of it: {error}");
                failures.push(Notice { text, paths: vec![name] });
            }
        }
    }
    for warning in the_first_of(failures) {
        tracing::warn!(warning = warning.text, "what a program left could not be taken over");
        cx.warn(warning);
    }
}

/// No more warnings than anybody reads, and how many there are beside them.
fn the_first_of(mut warnings: Vec<Notice>) -> Vec<Notice> {
    let unsaid = warnings.len().saturating_sub(MOST_WARNINGS);
    if unsaid > 0 {
        warnings.truncate(MOST_WARNINGS);
        warnings.push(format!("and {unsaid} more that could not be brought to the folder").into());
    }
    warnings
}

#[cfg(test)]
#[path = "isolated_tests.rs"]
mod isolated_tests;

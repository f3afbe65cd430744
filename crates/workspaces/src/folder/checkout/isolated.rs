//! The checkout for a program that runs on an overlay of the folder. Its changes are in a private upper layer until
//! they are checked in.
//!
//! A check-in has three steps: the changeset of the merge is committed, together with the removals of unversioned
//! files; then unversioned files are transferred to the folder; then permissions and hard links are applied. If
//! somebody changes the folder before the commit, the comparison is repeated.

use super::layer_changes::{LayerInput, LayerMerge};
use super::private_dir::PrivateDir;
use crate::check_in_room::CheckInRoom;
use crate::checkout::conflict_paths::conflict_path;
use crate::checkout::merge::{CHANGED, NOT_REMOVED};
use crate::checkout::{MAX_ATTEMPTS, is_retryable};
use crate::folder::FolderWorkspace;
use crate::folder::commit::{CommitExtras, Job, MadeBy, failed};
use crate::folder::disk::{Disk, below_root, path_of, shown};
use crate::folder::errors::{Attempt, to_tool_error};
use crate::folder::unversioned_removals::UnversionedRemovals;
use crate::scratch::held;
use async_trait::async_trait;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use toolrest_core::{
    Attribution, CallCx, CheckedIn, Checkout, CommitId, Depth, ExecutionRoot, FileType, KeepLimits, LeftOutReason,
    Notice, Result, ToolError, WorkspaceSettings, WsPath,
};
use toolrest_directory::{
    Baseline, Difference, FolderLock, Kind, NotTransferred, NotTransferredReason, Root, TransferRules,
    leads_into_repository,
};
use toolrest_store::disk_fault::disk_fault;

/// Maximum number of versioned files that are looked up in one ignored tree.
const MAX_TRACKED: usize = 100_000;

/// Maximum number of files that one response warns about.
const MAX_WARNINGS: usize = 10;

const REPOSITORY_CHANGED: &str = "somebody else changed the repository while the program ran, so that nothing it did in \
     there was kept; repeat the git command";

/// An overlay on the folder for one program.
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
        private_dir.create_layers(&owner).map_err(disk_fault)?;
        let baseline = Arc::new(take_baseline(&workspace, &private_dir)?);
        Ok(Self { workspace, settings, keep, private_dir, baseline })
    }

    /// Compares the upper layer with the folder, and merges. Also returns the memory reservation for the contents.
    async fn compare(&self, upper: &Arc<Root>, cx: &CallCx) -> Result<(LayerMerge, CheckInRoom)> {
        let virtual_files = self.workspace.store.virtual_files(self.workspace.access).await?;
        let (layer, baseline) = (Arc::clone(upper), Arc::clone(&self.baseline));
        let compare = move |disk: &Disk| disk.root.differences(&layer, &baseline).map_err(|error| failed(&error));
        let mut differences = self.workspace.on_disk(compare).await?;
        let tracked = self.tracked_in_ignored(&differences).await?;
        let bytes = contents_bytes(&differences, self.keep);
        let room = self.workspace.check_ins.reserve(self.workspace.access.person, bytes).await;
        let input = LayerInput {
            disk: self.workspace.folder.disk.clone(),
            upper: Arc::clone(upper),
            baseline: Arc::clone(&self.baseline),
            keep: self.keep,
            call: cx.id,
            guard: Arc::clone(&cx.guard),
            virtual_files: virtual_files.into_iter().map(|listed| listed.path).collect(),
        };
        let merge = move || {
            for path in tracked {
                let found = input.disk.root.difference_at(&input.upper, below_root(&path), &input.baseline);
                differences.extend(found.map_err(|error| to_tool_error(&error, &path, Attempt::Read))?);
            }
            input.merge(differences)
        };
        let merged = tokio::task::spawn_blocking(merge).await.map_err(ToolError::internal)??;
        Ok((merged, room))
    }

    /// Returns the files in ignored trees that are versioned nevertheless.
    async fn tracked_in_ignored(&self, differences: &[Difference]) -> Result<Vec<WsPath>> {
        let mut tracked = Vec::new();
        let (store, access) = (&self.workspace.store, self.workspace.access);
        for ignored in differences.iter().filter(|difference| difference.is_ignored) {
            let Some(path) = path_of(&ignored.path).filter(|path| path.name() != ".git") else { continue };
            match store.stat(access, &path).await? {
                Some(entry) if entry.file_type != FileType::Folder => tracked.push(path),
                Some(_) => {
                    let listing = store.list(access, &path, Depth::Descendants, MAX_TRACKED).await?;
                    let files = listing.entries.into_iter().filter(|listed| listed.file_type != FileType::Folder);
                    tracked.extend(files.map(|listed| listed.path));
                }
                None => {}
            }
        }
        // Files of git repositories are transferred by their own rules, even if they are versioned.
        tracked.retain(|path| !leads_into_repository(below_root(path)));
        Ok(tracked)
    }

    /// Commits the result of a merge, and transfers unversioned files.
    async fn apply(&self, upper: &Arc<Root>, merged: &mut LayerMerge, cx: &CallCx) -> Result<Option<CommitId>> {
        let changes = std::mem::take(&mut merged.outcome.changes);
        let mut unversioned_removals = UnversionedRemovals::default();
        unversioned_removals.add(std::mem::take(&mut merged.unversioned_removals));
        let commit = if changes.changes.is_empty() {
            self.workspace.with_folder_lock(cx, move |_, lock| unversioned_removals.apply(lock)).await?;
            None
        } else {
            let extras = CommitExtras { unversioned_removals, made_by: MadeBy::Program };
            self.workspace.commit_on_disk(changes, extras, cx).await?.id
        };
        if let Some(id) = commit {
            cx.recorded_with(id);
        }
        if merged.transfers.is_empty() && merged.permissions.is_empty() && merged.linked_names.is_empty() {
            return Ok(commit);
        }
        let targets: Vec<PathBuf> = merged.transfers.iter().map(|(_, to)| to.clone()).collect();
        match self.transfer(upper, merged, cx).await {
            Ok(not_transferred) => report(merged, not_transferred, cx),
            Err(error) if commit.is_none() => return Err(error),
            // The commit cannot be undone, and a retry would not return its id, so the failure is only a warning.
            Err(error) => {
                let text = |why: &str| format!("What has no versions may not have reached the folder: {why}");
                error.log_cause();
                cx.warn(Notice::of_error(&error, text));
                for path in &targets {
                    merged.left_out.add(path, LeftOutReason::Unreadable);
                }
            }
        }
        Ok(commit)
    }

    /// Applies the program's changes to the folder.
    async fn check_in_changes(&self, cx: &CallCx) -> Result<CheckedIn> {
        self.workspace.store.authorise(self.workspace.access).await?;
        let upper = Arc::new(self.private_dir.open_upper()?);
        let mut attempt = 1;
        loop {
            let (mut merged, _room) = self.compare(&upper, cx).await?;
            match self.apply(&upper, &mut merged, cx).await {
                Ok(commit) => {
                    return Ok(merged.outcome.into_checked_in(commit, Attribution::Program, merged.left_out.0));
                }
                Err(error) if is_retryable(error.kind) && attempt < MAX_ATTEMPTS => attempt += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Transfers unversioned files, and applies permissions and hard links.
    async fn transfer(&self, upper: &Arc<Root>, merged: &mut LayerMerge, cx: &CallCx) -> Result<Vec<NotTransferred>> {
        let LayerMerge { transfers, committed, durable, permissions, linked_names, .. } = merged;
        let (transfers, committed) = (std::mem::take(transfers), std::mem::take(committed));
        let (durable, permissions) = (std::mem::take(durable), std::mem::take(permissions));
        let linked_names: Vec<Vec<PathBuf>> =
            std::mem::take(linked_names).into_values().filter(|names| names.len() > 1).collect();
        let (upper, root) = (Arc::clone(upper), Arc::clone(&self.workspace.folder.disk.root));
        let (baseline, call) = (Arc::clone(&self.baseline), cx.id);
        let transfer = move |_: &Job, lock: &mut FolderLock<'_>| {
            let is_free = |path: &WsPath| Ok(matches!(root.stat_real(below_root(path)), Ok(None)));
            let conflict_path = |path: &Path| {
                let path = path_of(path)?;
                let found = conflict_path(&path.parent()?, path.name(), call, is_free).ok().flatten();
                found.map(|path| below_root(&path).to_owned())
            };
            let rules = TransferRules { committed: &committed, baseline: &baseline, conflict_path: &conflict_path };
            let mut not_transferred = Vec::new();
            for (from, to) in transfers {
                not_transferred.extend(lock.transfer(&upper, &from, &to, &rules).map_err(|error| failed(&error))?);
            }
            for (path, left, owner) in permissions {
                // A failure means that somebody else replaced the file since.
                let _ = lock.apply_permissions(&path, &left, owner);
            }
            // If linking fails, each name keeps its own file with the same content.
            if let Err(error) = lock.link_names(&linked_names) {
                tracing::warn!(%error, "hard links of a program could not be created");
            }
            lock.make_durable(&durable).map_err(|error| failed(&error))?;
            Ok(not_transferred)
        };
        self.workspace.with_folder_lock(cx, transfer).await
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
        let start_over = move || {
            private_dir.empty_upper().map_err(ToolError::internal)?;
            take_baseline(&workspace, &private_dir)
        };
        self.baseline = Arc::new(tokio::task::spawn_blocking(start_over).await.map_err(ToolError::internal)??);
        Ok(checked_in)
    }

    async fn finish(self: Box<Self>, cx: &CallCx) -> Result<CheckedIn> {
        let checked_in = self.check_in_changes(cx).await;
        // Failures to remove the private directory must not hide what was committed.
        let _ = tokio::task::spawn_blocking(move || drop(self)).await;
        checked_in
    }
}

/// Returns the maximum number of bytes that are read of a program's changes and of the files that they replace.
fn contents_bytes(differences: &[Difference], keep: KeepLimits) -> u64 {
    let sides = differences.iter().filter(|found| !found.is_ignored).flat_map(|found| [found.upper, found.lower]);
    let files = sides.flatten().filter(|side| side.kind == Kind::File && side.size_bytes <= keep.file_bytes);
    files.map(|file| file.size_bytes).sum::<u64>().min(keep.commit_bytes)
}

/// Records the state of the folder before a program works on a view of it.
fn take_baseline(workspace: &FolderWorkspace, private_dir: &PrivateDir) -> Result<Baseline> {
    let folders = workspace.folder.disk.root.dir_identities();
    Ok(Baseline::new(private_dir.file_time()?, folders))
}

/// Reports the files that were not transferred.
fn report(merged: &mut LayerMerge, not_transferred: Vec<NotTransferred>, cx: &CallCx) {
    let mut failures = Vec::new();
    for NotTransferred { path, why } in not_transferred {
        match why {
            NotTransferredReason::Special => merged.left_out.add(&path, LeftOutReason::Special),
            NotTransferredReason::GitConfig => merged.left_out.add(&path, LeftOutReason::GitConfig),
            NotTransferredReason::RepositoryChanged => merged.changed_by_others(&path, None, REPOSITORY_CHANGED),
            NotTransferredReason::ChangedByOthers { kept_as } => {
                let reason = if kept_as.is_some() { CHANGED } else { NOT_REMOVED };
                merged.changed_by_others(&path, kept_as.as_deref(), reason);
            }
            NotTransferredReason::Failed(error) => {
                merged.left_out.add(&path, LeftOutReason::Unreadable);
                let name = shown(&path);
                let text = format!("{name} could not be brought to the folder, or only a part of it: {error}");
                failures.push(Notice { text, paths: vec![name] });
            }
        }
    }
    for warning in first_warnings(failures) {
        tracing::warn!(warning = warning.text, "changes of a program could not be transferred");
        cx.warn(warning);
    }
}

/// Returns the first warnings, and one with the number of the others.
fn first_warnings(mut warnings: Vec<Notice>) -> Vec<Notice> {
    let omitted = warnings.len().saturating_sub(MAX_WARNINGS);
    if omitted > 0 {
        warnings.truncate(MAX_WARNINGS);
        warnings.push(format!("and {omitted} more that could not be brought to the folder").into());
    }
    warnings
}

#[cfg(test)]
#[path = "isolated_tests.rs"]
mod isolated_tests;

//! Checkouts of workspaces whose files are in the database.
//!
//! Each workspace has a few working copies, which are kept between programs. A check-out asks the database what changed
//! since a working copy was last updated, in the statement that checks the caller's membership, and writes only that.

mod scan;
mod side;
mod tree;
mod working_copy;
mod working_copy_pool;

pub use working_copy_pool::CheckoutRetention;
pub(crate) use working_copy_pool::WorkingCopyPool;

use super::merge::{FILE_IN_THE_WAY, MergeOutcome, PlacedKind};
use super::{MAX_ATTEMPTS, is_retryable};
use crate::check_in_room::CheckInBudget;
use async_trait::async_trait;
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};
use toolrest_core::{
    Access, Attribution, CallCx, CheckedIn, Checkout, CheckoutOptions, CommitId, Content, ContentHash, ExecutionRoot,
    FolderHandle, KeepLimits, ProgramConflict, Result, ToolError, WorkspaceSettings, WsPath,
};
use toolrest_store::file_list::FilesSince;
use toolrest_store::{CallInfo, Store, unreadable_settings};
use tree::Version;
use working_copy::{FileToWrite, ScanOutcome, WorkingCopy};
use working_copy_pool::Lease;

/// Maximum size and number of the contents that are read at a time.
const BATCH_BYTES: i64 = 4 << 20;
const BATCH_FILES: usize = 1_000;

/// Puts the files of a workspace into a working copy.
pub(crate) async fn check_out(
    store: Arc<dyn Store>,
    working_copies: &Arc<WorkingCopyPool>,
    check_ins: Arc<CheckInBudget>,
    access: Access,
    options: CheckoutOptions,
) -> Result<Box<dyn Checkout>> {
    // The membership is checked with the list of changes; before a new working copy is created, it is checked at once.
    let working_copy = if let Some(working_copy) = working_copies.lease_free(access.workspace) {
        working_copy
    } else {
        store.authorise(access).await?;
        working_copies.lease(access.workspace).await?
    };
    let mut listed = store.listed_since(access, working_copy.synced_to().await?).await?;
    let settings = listed.settings.take().ok_or_else(unreadable_settings)?;
    let (folder, keep) = (working_copy.folder()?, options.keep);
    let checkout = DatabaseCheckout { store, check_ins, working_copy, folder, access, settings, keep };
    let to_write = checkout.with_listed(listed, WorkingCopy::prepare).await?;
    if !to_write.is_empty() {
        checkout.write_all(to_write).await?;
        checkout.working_copy.with(WorkingCopy::start_program).await?;
    }
    Ok(Box::new(checkout))
}

/// A working copy that is leased for one program. If it is dropped before `finish` ends, the working copy stays in use,
/// and is scanned before the next program.
struct DatabaseCheckout {
    store: Arc<dyn Store>,
    check_ins: Arc<CheckInBudget>,
    working_copy: Lease,
    folder: FolderHandle,
    access: Access,
    settings: WorkspaceSettings,
    keep: KeepLimits,
}

#[async_trait]
impl Checkout for DatabaseCheckout {
    fn execution_root(&self) -> ExecutionRoot {
        ExecutionRoot::Folder(self.folder.clone())
    }

    fn settings(&self) -> &WorkspaceSettings {
        &self.settings
    }

    async fn check_in(&mut self, cx: &CallCx) -> Result<CheckedIn> {
        self.working_copy.with(WorkingCopy::scan).await?;
        self.commit_changes(cx).await.map(|(checked_in, _)| checked_in)
    }

    async fn finish(mut self: Box<Self>, cx: &CallCx) -> Result<CheckedIn> {
        let outcome = self.working_copy.with_inline(WorkingCopy::is_small, WorkingCopy::final_scan).await?;
        if outcome == ScanOutcome::Unchanged {
            // What others changed is applied before the next program.
            return Ok(CheckedIn::default());
        }
        let (checked_in, updated) = self.commit_changes(cx).await?;
        if updated.is_ok() {
            self.working_copy.with_inline(|_| true, WorkingCopy::release).await?;
        }
        Ok(checked_in)
    }
}

impl DatabaseCheckout {
    /// Commits what the last scan found, and updates the working copy. Returns also whether the update succeeded.
    async fn commit_changes(&mut self, cx: &CallCx) -> Result<(CheckedIn, Result<()>)> {
        let (commit, mut outcome) = self.commit(cx).await?;
        let left_out = self.working_copy.with(|working_copy| Ok(working_copy.left_out())).await?;
        let updated = self.update_working_copy(commit).await;
        if let Err(error) = &updated {
            // The commit stands. The working copy is scanned before the next program.
            tracing::warn!(%error, "a working copy could not be brought up to date");
        }
        report_relocated_files(&mut outcome);
        let checked_in = outcome.into_checked_in(commit, Attribution::Program, left_out);
        Ok((checked_in, updated))
    }

    /// Commits the changes of a program, with another attempt if others changed the workspace meanwhile.
    async fn commit(&self, cx: &CallCx) -> Result<(Option<CommitId>, MergeOutcome)> {
        let (call, keep, guard) = (cx.id, self.keep, &cx.guard);
        let mut attempt = 1;
        // What the program wrote is in memory until it is committed.
        let bytes = move |working_copy: &mut WorkingCopy| Ok(working_copy.changed_bytes(keep));
        let bytes = self.working_copy.with_inline(|_| true, bytes).await?;
        let _room = self.check_ins.reserve(self.access.person, bytes).await;
        loop {
            let needed = self.up_to_date(move |working_copy| working_copy.read_changes(keep)).await?;
            let originals = self.originals(needed).await?;
            let guard = Arc::clone(guard);
            let merge = move |working_copy: &mut WorkingCopy| working_copy.merge(&originals, call, &guard);
            let mut outcome = self.working_copy.with(merge).await?;
            if outcome.changes.changes.is_empty() {
                return Ok((None, outcome));
            }
            let changes = std::mem::take(&mut outcome.changes);
            match self.store.commit(self.access, changes, CallInfo::of(cx)).await.map_err(ToolError::from) {
                Ok(commit) => {
                    if let Some(id) = commit.id {
                        cx.recorded_with(id);
                    }
                    return Ok((commit.id, outcome));
                }
                Err(error) if is_retryable(error.kind) && attempt < MAX_ATTEMPTS => attempt += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Brings the working copy to the state of the workspace after a commit.
    async fn update_working_copy(&self, commit: Option<CommitId>) -> Result<()> {
        let to_write = match commit {
            Some(_) => self.up_to_date(WorkingCopy::accept_changes).await?,
            None => self.working_copy.with(WorkingCopy::accept_changes).await?,
        };
        self.write_all(to_write).await
    }

    /// Runs an operation on the working copy after its tree was brought up to date.
    async fn up_to_date<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut WorkingCopy) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let listed = self.store.listed_since(self.access, self.working_copy.synced_to().await?).await?;
        self.with_listed(listed, work).await
    }

    async fn with_listed<T: Send + 'static>(
        &self,
        listed: FilesSince,
        work: impl FnOnce(&mut WorkingCopy) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let has_changes = !listed.is_nothing();
        let work = move |working_copy: &mut WorkingCopy| {
            working_copy.update_tree(listed);
            work(working_copy)
        };
        let fits_inline =
            |working_copy: &WorkingCopy| !has_changes && working_copy.is_small() && working_copy.is_up_to_date();
        self.working_copy.with_inline(fits_inline, work).await
    }

    /// Writes the files that the working copy needs, which ends its update.
    async fn write_all(&self, mut to_write: Vec<FileToWrite>) -> Result<()> {
        let mut attempt = 1;
        while !to_write.is_empty() {
            let mut missing = Vec::new();
            for batch in batches(&to_write, |to_write| to_write.version.size) {
                let keys = batch.iter().map(|to_write| to_write.version.blob).collect();
                let stored = self.store.stored(self.access.workspace, keys).await?;
                let batch = batch.to_vec();
                missing.extend(self.working_copy.with(move |working_copy| working_copy.write(&batch, &stored)).await?);
            }
            if missing.is_empty() {
                break;
            }
            if attempt == MAX_ATTEMPTS {
                return Err(ToolError::internal(format!("the content of {} is missing", missing[0])));
            }
            // They were purged after the list was read; the next list does not have them.
            attempt += 1;
            to_write = self.up_to_date(WorkingCopy::apply_tree_changes).await?;
        }
        self.working_copy.with(WorkingCopy::mark_updated).await
    }

    /// Reads the contents of versions.
    async fn originals(&self, versions: Vec<Version>) -> Result<HashMap<ContentHash, Content>> {
        let mut originals = HashMap::new();
        for batch in batches(&versions, |version| version.size) {
            let keys = batch.iter().map(|version| version.blob).collect();
            let mut stored = self.store.stored(self.access.workspace, keys).await?;
            for version in batch {
                if let Some(bytes) = stored.remove(&version.blob) {
                    originals.insert(version.blob, Content::from_stored(version.form, bytes)?);
                }
            }
        }
        Ok(originals)
    }
}

/// Splits a list into parts that are read together: of one item at least, however large it is.
fn batches<T>(items: &[T], size: impl Fn(&T) -> i64) -> Vec<&[T]> {
    let (mut batches, mut rest) = (Vec::new(), items);
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = |item: &&T| {
            bytes += size(item);
            bytes <= BATCH_BYTES
        };
        let count = rest.iter().take(BATCH_FILES).take_while(fits).count().max(1);
        let (batch, after) = rest.split_at(count);
        batches.push(batch);
        rest = after;
    }
    batches
}

/// Reports each file in a folder that became a conflict copy, besides the folder.
fn report_relocated_files(outcome: &mut MergeOutcome) {
    let reported: HashSet<WsPath> = outcome.conflicts.iter().map(|conflict| conflict.path.clone()).collect();
    let files = outcome.placed.iter().filter(|placed| placed.kind != PlacedKind::CreatedFolder);
    let relocated = files.filter(|placed| placed.path != placed.to && !reported.contains(&placed.path));
    outcome.conflicts.extend(relocated.map(|placed| ProgramConflict {
        path: placed.path.clone(),
        kept_as: Some(placed.to.clone()),
        reason: FILE_IN_THE_WAY.to_owned(),
    }));
}

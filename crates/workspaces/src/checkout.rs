//! The files of a workspace in a real folder, for programs.
//!
//! Each workspace has a few folders that stay between programs, and each knows the workspace as of a moment: what
//! changed since is asked of the database in the statement that checks the caller's rights, and only that is written.
//! After a program, what differs from what was there becomes one commit, which expects every file as it was checked
//! out.

mod conflict_paths;
mod edits;
mod file_state;
mod merge;
mod paths;
mod renames;
mod scan_result;
mod tree;
mod working_copy;
mod working_copy_pool;

pub use working_copy_pool::CheckoutRetention;
pub(crate) use working_copy_pool::WorkingCopyPool;

use crate::check_in_room::CheckInBudget;
use async_trait::async_trait;
use merge::MergeOutcome;
use std::{collections::HashMap, sync::Arc};
use toolrest_core::{
    Access, Attribution, CallCx, CheckedIn, Checkout, CheckoutOptions, CommitId, Content, ContentHash, ErrorKind,
    ExecutionRoot, FolderHandle, KeepLimits, Result, ToolError, WorkspaceSettings,
};
use toolrest_store::file_list::FilesSince;
use toolrest_store::{CallInfo, Store, unreadable_settings};
use tree::Version;
use working_copy::{FileToWrite, ScanOutcome, WorkingCopy};
use working_copy_pool::LeasedCopy;

/// How many bytes of contents are read at a time, and how many contents.
const BATCH_BYTES: i64 = 4 << 20;
const BATCH: usize = 1_000;

/// How often it is tried again when others came between.
const TRIES: usize = 10;

/// Puts the files of a workspace into a folder.
pub(crate) async fn check_out(
    store: Arc<dyn Store>,
    working_copies: &Arc<WorkingCopyPool>,
    check_ins: Arc<CheckInBudget>,
    access: Access,
    options: CheckoutOptions,
) -> Result<Box<dyn Checkout>> {
    // Whoever may not have one that is free is refused by what comes next; for a stranger none is made.
    let working_copy = if let Some(working_copy) = working_copies.take_free(access.workspace) {
        working_copy
    } else {
        store.authorise(access).await?;
        working_copies.take(access.workspace).await?
    };
    let mut listed = store.listed_since(access, working_copy.synced_to().await?).await?;
    let settings = listed.settings.take().ok_or_else(unreadable_settings)?;
    let (folder, keep) = (working_copy.folder()?, options.keep);
    // From here on, whoever goes away leaves a doubt behind.
    let is_dirty = working_copy.take_dirty_flag();
    let checkout = DatabaseCheckout { store, check_ins, working_copy, folder, access, settings, keep, is_clean: false };
    let to_write = checkout.with_listed(listed, move |working_copy| working_copy.prepare(is_dirty)).await?;
    if !to_write.is_empty() {
        checkout.write_all(to_write).await?;
        checkout.working_copy.with(WorkingCopy::hand_to_program).await?;
    }
    Ok(Box::new(checkout))
}

/// A folder with the files of a workspace.
struct DatabaseCheckout {
    store: Arc<dyn Store>,
    check_ins: Arc<CheckInBudget>,
    working_copy: LeasedCopy,
    folder: FolderHandle,
    access: Access,
    settings: WorkspaceSettings,
    keep: KeepLimits,
    /// Whether nothing changes in the folder any more that is not known.
    is_clean: bool,
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
        self.commit_work(cx).await.map(|(checked_in, _)| checked_in)
    }

    async fn finish(mut self: Box<Self>, cx: &CallCx) -> Result<CheckedIn> {
        if self.working_copy.with_inline(WorkingCopy::is_small, WorkingCopy::final_scan).await? == ScanOutcome::Nothing
        {
            // What others did is brought in for the next program.
            self.is_clean = true;
            return Ok(CheckedIn::default());
        }
        let (checked_in, is_up_to_date) = self.commit_work(cx).await?;
        self.is_clean = is_up_to_date;
        Ok(checked_in)
    }
}

impl Drop for DatabaseCheckout {
    /// What a program may have gone on with, or what was never looked at, is looked at before the next one.
    fn drop(&mut self) {
        if !self.is_clean {
            self.working_copy.mark_dirty();
        }
    }
}

impl DatabaseCheckout {
    /// Commits what a program did; tells also whether the folder is what the workspace is after that.
    async fn commit_work(&mut self, cx: &CallCx) -> Result<(CheckedIn, bool)> {
        let (commit, proposal) = self.commit(cx).await?;
        let left_out = self.working_copy.with(|working_copy| Ok(working_copy.left_out())).await?;
        let brought_in = self.update_working_copy(commit).await;
        if let Err(error) = &brought_in {
            // What was committed stays so. The next program's files are made sure of before it runs.
            tracing::warn!(%error, "a checkout could not be brought up to date");
        }
        let attribution = Attribution::Program;
        let checked_in =
            CheckedIn { attribution, commit, changed: proposal.changed, conflicts: proposal.conflicts, left_out };
        Ok((checked_in, brought_in.is_ok()))
    }

    /// Commits what a program did; again, if others came between.
    async fn commit(&self, cx: &CallCx) -> Result<(Option<CommitId>, MergeOutcome)> {
        let (call, keep) = (cx.id, self.keep);
        let mut tries = 1;
        // What the program wrote is in memory until it is committed.
        let bytes =
            self.working_copy.with_inline(|_| true, move |working_copy| Ok(working_copy.work_bytes(keep))).await?;
        let _room = self.check_ins.reserve(self.access.user, bytes).await;
        loop {
            let needed = self.up_to_date(move |working_copy| Ok(working_copy.read_changes(keep))).await?;
            let originals = self.originals(needed).await?;
            let mut proposal =
                self.working_copy.with(move |working_copy| working_copy.merge_work(&originals, call)).await?;
            if proposal.changes.changes.is_empty() {
                return Ok((None, proposal));
            }
            let changes = std::mem::take(&mut proposal.changes);
            match self.store.commit(self.access, changes, CallInfo::of(cx)).await.map_err(ToolError::from) {
                Ok(commit) => {
                    if let Some(id) = commit.id {
                        cx.recorded_with(id);
                    }
                    return Ok((commit.id, proposal));
                }
                Err(error) if is_retryable(&error) && tries < TRIES => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Brings the folder to what the workspace is after a commit.
    async fn update_working_copy(&self, commit: Option<CommitId>) -> Result<()> {
        let to_write = match commit {
            Some(_) => self.up_to_date(WorkingCopy::accept_changes).await?,
            None => self.working_copy.with(WorkingCopy::accept_changes).await?,
        };
        self.write_all(to_write).await
    }

    /// Does something with the folder that knows the workspace as it is now.
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
        let is_news = !listed.is_nothing();
        let work = move |working_copy: &mut WorkingCopy| {
            working_copy.update_tree(listed);
            work(working_copy)
        };
        self.working_copy
            .with_inline(|working_copy| !is_news && working_copy.is_small() && working_copy.has_nothing_to_do(), work)
            .await
    }

    /// Writes the files that the folder needs, and settles it.
    async fn write_all(&self, mut to_write: Vec<FileToWrite>) -> Result<()> {
        let mut tries = 1;
        while !to_write.is_empty() {
            let mut missing = Vec::new();
            let mut rest = to_write.as_slice();
            while !rest.is_empty() {
                let (batch, after) = rest.split_at(batch_of(rest, |to_write| to_write.version.size));
                rest = after;
                let keys = batch.iter().map(|to_write| to_write.version.blob).collect();
                let stored = self.store.stored(self.access.workspace, keys).await?;
                let batch = batch.to_vec();
                missing.extend(self.working_copy.with(move |working_copy| working_copy.write(&batch, &stored)).await?);
            }
            if missing.is_empty() {
                break;
            }
            if tries == TRIES {
                return Err(ToolError::internal(format!("the content of {} is missing", missing[0])));
            }
            // They were removed for good after the list was read; the next list does not have them.
            tries += 1;
            to_write = self.up_to_date(WorkingCopy::apply_tree_changes).await?;
        }
        self.working_copy.with(WorkingCopy::mark_clean).await
    }

    /// Reads the contents of versions.
    async fn originals(&self, versions: Vec<Version>) -> Result<HashMap<ContentHash, Content>> {
        let mut originals = HashMap::new();
        let mut rest = versions.as_slice();
        while !rest.is_empty() {
            let (batch, after) = rest.split_at(batch_of(rest, |version| version.size));
            rest = after;
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

/// How many of the first things are read together. One at least, however large it is.
fn batch_of<T>(things: &[T], size: impl Fn(&T) -> i64) -> usize {
    let mut bytes = 0;
    let fits = |thing: &&T| {
        bytes += size(thing);
        bytes <= BATCH_BYTES
    };
    things.iter().take(BATCH).take_while(fits).count().max(1)
}

/// Whether a commit was refused because of what others did.
fn is_retryable(error: &ToolError) -> bool {
    use ErrorKind::{
        AlreadyExists, Conflict, IsDirectory, NotADirectory, NotEmpty, NotFound, Protected, Stale, ThroughFile,
        WrongType,
    };
    matches!(
        error.kind,
        AlreadyExists
            | Conflict
            | IsDirectory
            | NotADirectory
            | NotEmpty
            | NotFound
            | Protected
            | Stale
            | ThroughFile
            | WrongType
    )
}

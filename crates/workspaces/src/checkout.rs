//! The files of a workspace in a real folder, for programs.
//!
//! Each workspace has a few folders that stay between programs, and each knows the workspace as of a moment: what
//! changed since is asked of the database in the statement that checks the caller's rights, and only that is written.
//! After a program, what differs from what was there becomes one commit, which expects every file as it was checked
//! out.

mod beside;
mod desk;
mod desks;
mod edits;
mod merge;
mod notes;
mod paths;
mod renames;
mod sight;
mod tree;

pub use desks::CheckoutsKept;
pub(crate) use desks::Desks;

use crate::check_in_room::CheckInBudget;
use async_trait::async_trait;
use desk::{Desk, Seen, Wanted};
use desks::TakenDesk;
use merge::Proposal;
use std::{collections::HashMap, sync::Arc};
use toolrest_core::{
    Access, Attribution, CallCx, CheckedIn, Checkout, CheckoutOptions, CommitId, Content, ContentHash, ErrorKind,
    Ground, HeldFolder, KeepLimits, Result, ToolError, WorkspaceSettings,
};
use toolrest_store::file_list::ListedSince;
use toolrest_store::{CallInfo, Store, unreadable_settings};
use tree::Version;

/// How many bytes of contents are read at a time, and how many contents.
const BATCH_BYTES: i64 = 4 << 20;
const BATCH: usize = 1_000;

/// How often it is tried again when others came between.
const TRIES: usize = 10;

/// Puts the files of a workspace into a folder.
pub(crate) async fn check_out(
    store: Arc<dyn Store>,
    desks: &Arc<Desks>,
    check_ins: Arc<CheckInBudget>,
    access: Access,
    options: CheckoutOptions,
) -> Result<Box<dyn Checkout>> {
    // Whoever may not have one that is free is refused by what comes next; for a stranger none is made.
    let desk = if let Some(desk) = desks.take_free(access.workspace) {
        desk
    } else {
        store.authorise(access).await?;
        desks.take(access.workspace).await?
    };
    let mut listed = store.listed_since(access, desk.moment().await?).await?;
    let settings = listed.settings.take().ok_or_else(unreadable_settings)?;
    let (folder, keep) = (desk.folder()?, options.keep);
    // From here on, whoever goes away leaves a doubt behind.
    let is_doubtful = desk.take_doubt();
    let checkout = DatabaseCheckout { store, check_ins, desk, folder, access, settings, keep, is_settled: false };
    let wanted = checkout.with_listed(listed, move |desk| desk.make_ready(is_doubtful)).await?;
    if !wanted.is_empty() {
        checkout.write_all(wanted).await?;
        checkout.desk.with(Desk::hand_over).await?;
    }
    Ok(Box::new(checkout))
}

/// A folder with the files of a workspace.
struct DatabaseCheckout {
    store: Arc<dyn Store>,
    check_ins: Arc<CheckInBudget>,
    desk: TakenDesk,
    folder: HeldFolder,
    access: Access,
    settings: WorkspaceSettings,
    keep: KeepLimits,
    /// Whether nothing changes in the folder any more that is not known.
    is_settled: bool,
}

#[async_trait]
impl Checkout for DatabaseCheckout {
    fn ground(&self) -> Ground {
        Ground::Folder(self.folder.clone())
    }

    fn settings(&self) -> &WorkspaceSettings {
        &self.settings
    }

    async fn check_in(&mut self, cx: &CallCx) -> Result<CheckedIn> {
        self.desk.with(Desk::look).await?;
        self.keep_work(cx).await.map(|(checked_in, _)| checked_in)
    }

    async fn finish(mut self: Box<Self>, cx: &CallCx) -> Result<CheckedIn> {
        if self.desk.quickly(Desk::is_small, Desk::look_for_the_last_time).await? == Seen::Nothing {
            // What others did is brought in for the next program.
            self.is_settled = true;
            return Ok(CheckedIn::default());
        }
        let (checked_in, is_up_to_date) = self.keep_work(cx).await?;
        self.is_settled = is_up_to_date;
        Ok(checked_in)
    }
}

impl Drop for DatabaseCheckout {
    /// What a program may have gone on with, or what was never looked at, is looked at before the next one.
    fn drop(&mut self) {
        if !self.is_settled {
            self.desk.doubt();
        }
    }
}

impl DatabaseCheckout {
    /// Commits what a program did; tells also whether the folder is what the workspace is after that.
    async fn keep_work(&mut self, cx: &CallCx) -> Result<(CheckedIn, bool)> {
        let (commit, proposal) = self.commit(cx).await?;
        let left_out = self.desk.with(|desk| Ok(desk.left_out())).await?;
        let brought_in = self.bring_in(commit).await;
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
    async fn commit(&self, cx: &CallCx) -> Result<(Option<CommitId>, Proposal)> {
        let (call, keep) = (cx.id, self.keep);
        let mut tries = 1;
        // What the program wrote is in memory until it is committed.
        let bytes = self.desk.quickly(|_| true, move |desk| Ok(desk.work_bytes(keep))).await?;
        let _room = self.check_ins.reserve(self.access.user, bytes).await;
        loop {
            let needed = self.up_to_date(move |desk| Ok(desk.read_work(keep))).await?;
            let originals = self.originals(needed).await?;
            let mut proposal = self.desk.with(move |desk| desk.propose(&originals, call)).await?;
            if proposal.changes.changes.is_empty() {
                return Ok((None, proposal));
            }
            let changes = std::mem::take(&mut proposal.changes);
            match self.store.commit(self.access, changes, CallInfo::of(cx)).await {
                Ok(commit) => {
                    if let Some(id) = commit.id {
                        cx.recorded_with(id);
                    }
                    return Ok((commit.id, proposal));
                }
                Err(error) if is_about_others(&error) && tries < TRIES => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Brings the folder to what the workspace is after a commit.
    async fn bring_in(&self, commit: Option<CommitId>) -> Result<()> {
        let wanted = match commit {
            Some(_) => self.up_to_date(Desk::accept_work).await?,
            None => self.desk.with(Desk::accept_work).await?,
        };
        self.write_all(wanted).await
    }

    /// Does something with the folder that knows the workspace as it is now.
    async fn up_to_date<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Desk) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let listed = self.store.listed_since(self.access, self.desk.moment().await?).await?;
        self.with_listed(listed, work).await
    }

    async fn with_listed<T: Send + 'static>(
        &self,
        listed: ListedSince,
        work: impl FnOnce(&mut Desk) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let is_news = !listed.is_nothing();
        let work = move |desk: &mut Desk| {
            desk.learn(listed);
            work(desk)
        };
        self.desk.quickly(|desk| !is_news && desk.is_small() && desk.has_nothing_to_do(), work).await
    }

    /// Writes the files that the folder needs, and settles it.
    async fn write_all(&self, mut wanted: Vec<Wanted>) -> Result<()> {
        let mut tries = 1;
        while !wanted.is_empty() {
            let mut missing = Vec::new();
            let mut rest = wanted.as_slice();
            while !rest.is_empty() {
                let (batch, after) = rest.split_at(batch_of(rest, |wanted| wanted.version.size));
                rest = after;
                let keys = batch.iter().map(|wanted| wanted.version.blob).collect();
                let stored = self.store.stored(self.access.workspace, keys).await?;
                let batch = batch.to_vec();
                missing.extend(self.desk.with(move |desk| desk.write(&batch, &stored)).await?);
            }
            if missing.is_empty() {
                break;
            }
            if tries == TRIES {
                return Err(ToolError::internal(format!("the content of {} is missing", missing[0])));
            }
            // They were removed for good after the list was read; the next list does not have them.
            tries += 1;
            wanted = self.up_to_date(Desk::arrange).await?;
        }
        self.desk.with(Desk::settle).await
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
fn is_about_others(error: &ToolError) -> bool {
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

//! Commits: several changes that are applied together or not at all.
//!
//! A commit holds the root's lock, so that commits of all processes are serialised. It plans its steps and checks the
//! expectations, writes the steps to the journal, stages new contents in temporary files, applies the steps, makes the
//! folders durable, marks the journal as committed and removes the temporary files. Until the mark is durable, any
//! failure or crash rolls all steps back; after that, the commit can only be completed. A commit that writes a single
//! file is complete as soon as the file has its name.

use std::{
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;

use crate::{
    Change, CommitOptions, CommitResult, Error, ErrorKind, Result, Root,
    error::{PathContext, lock_error},
    sys,
};

mod apply;
pub(crate) mod completion;
mod journal;
mod locate;
mod paths;
mod plan;
mod stage;
mod step;
mod temporaries;

use journal::{Intent, Journal, State};
use plan::Plan;
use step::Step;

#[cfg(test)]
#[path = "commit/commit_tests.rs"]
mod commit_tests;

/// A commit that was interrupted by a crash, and its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    pub id: Vec<u8>,
    pub payload: Vec<u8>,
    pub outcome: Outcome,
    /// Paths that somebody else changed meanwhile. They were left unchanged.
    pub kept: Vec<PathBuf>,
}

/// The outcome of an interrupted commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All changes are applied.
    Finished,
    /// No change is applied.
    RolledBack,
}

/// Whether the caller could record a commit elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    Kept,
    /// The commit stays unfinished, and [`Root::recover`] returns it.
    Failed,
}

impl Root {
    /// Applies all changes or none.
    ///
    /// The changes are durable when it returns. `journal_dir` is a folder outside of the root, shared by all processes
    /// that change this root. After [`ErrorKind::Unfinished`] the caller must call [`Root::recover`], and may retry.
    pub fn commit(&self, changes: &[Change], journal_dir: &Path, options: &CommitOptions) -> Result<CommitResult> {
        self.commit_and_record(changes, journal_dir, options, |_| Record::Kept)
    }

    /// Applies all changes or none, and lets the caller record them elsewhere before the next commit.
    ///
    /// `record` is called when the changes are applied and durable. Until it returns [`Record::Kept`],
    /// [`Root::recover`] returns the commit as finished, so that a crash in between loses no record.
    pub fn commit_and_record(
        &self,
        changes: &[Change],
        journal_dir: &Path,
        options: &CommitOptions,
        record: impl FnOnce(&CommitResult) -> Record,
    ) -> Result<CommitResult> {
        let mut lock = self.lock(journal_dir)?;
        if lock.is_unfinished()? {
            return Err(lock.journal.unfinished());
        }
        lock.commit(changes, options, record)
    }

    /// Recovers the commit that a crash interrupted, if there is one. It is completed if its mark is durable, otherwise
    /// rolled back. No temporary files are left.
    ///
    /// It may be called at any time. It may return a commit that was already acknowledged and recorded, if the crash
    /// came right after that.
    pub fn recover(&self, journal_dir: &Path) -> Result<Option<Recovered>> {
        self.lock(journal_dir)?.recover(|_| Record::Kept)
    }

    /// Waits for the lock of the root. It is held until the returned value is dropped.
    pub fn lock(&self, journal_dir: &Path) -> Result<FolderLock<'_>> {
        let folder = self.open_real_folder(Path::new(""), OFlags::RDONLY).at(self.real_path())?;
        // The journal's lock comes first: only servers take it, so they wait for each other there.
        let journal = Journal::open(self, journal_dir)?;
        sys::lock_with_timeout(&folder).map_err(|errno| lock_error(errno).at(self.real_path()))?;
        Ok(FolderLock { root: self, journal, leftovers: Leftovers::None, _folder: folder })
    }

    /// Removes temporary files that the journal does not know of, because the machine was restarted.
    fn remove_temporaries_after_reboot(&self, intent: &Intent) -> Result<()> {
        if intent.boot == sys::boot_id().at(self.real_path())? { Ok(()) } else { temporaries::remove_temporaries(self) }
    }
}

/// Whether temporary files may be left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leftovers {
    None,
    Possible,
}

/// The exclusive right to change a root, over all processes.
pub struct FolderLock<'a> {
    root: &'a Root,
    journal: Journal,
    /// Of work without a commit. The journal describes only the last one.
    leftovers: Leftovers,
    /// The locked root folder, for servers that keep their journals elsewhere.
    _folder: OwnedFd,
}

impl<'a> FolderLock<'a> {
    pub(crate) fn root(&self) -> &'a Root {
        self.root
    }

    /// Changes the root without a commit. If the process dies, or the work fails or reports leftovers, the next
    /// recovery removes the temporary files.
    pub(crate) fn run_without_commit<T>(&mut self, work: impl FnOnce(&'a Root) -> Result<(T, Leftovers)>) -> Result<T> {
        let boot = sys::boot_id().at(self.root.real_path())?.to_vec();
        self.journal.write_intent(&Intent::run_without_commit(boot))?;
        let before = std::mem::replace(&mut self.leftovers, Leftovers::Possible);
        let (done, leftovers) = work(self.root)?;
        if (before, leftovers) == (Leftovers::None, Leftovers::None) {
            self.journal.mark_finished()?;
            self.leftovers = Leftovers::None;
        }
        Ok(done)
    }

    /// Whether a commit was interrupted, so that [`FolderLock::recover`] must be called first.
    pub fn is_unfinished(&mut self) -> Result<bool> {
        Ok(matches!(self.journal.read()?, State::Pending { .. }))
    }

    /// Applies all changes or none, like [`Root::commit_and_record`]. The last commit must be finished.
    pub fn commit(
        &mut self,
        changes: &[Change],
        options: &CommitOptions,
        record: impl FnOnce(&CommitResult) -> Record,
    ) -> Result<CommitResult> {
        let (root, journal) = (self.root, &mut self.journal);
        let mut plan = Plan::new(root, changes, options)?;
        let steps: Vec<Step> = plan.tasks.iter().map(|task| task.step.clone()).collect();
        let boot = sys::boot_id().at(root.real_path())?.to_vec();
        let intent = Intent { id: options.id.clone(), payload: options.payload.clone(), steps, boot };

        let done = journal
            .begin(&intent)
            .and_then(|()| stage::stage(root, &plan))
            .and_then(|()| apply::apply(root, &plan))
            .and_then(|()| completion::sync_folders(root, &intent.steps))
            .and_then(|()| journal.mark_committed(&intent));
        if let Err(error) = done {
            // The mark may be on disk although writing it failed, so it is cleared before the rollback.
            let rolled_back = journal
                .clear_committed()
                .and_then(|()| {
                    if may_be_moved(&error) {
                        temporaries::follow_moved_folders(root, &intent.steps)
                    } else {
                        Ok(intent.steps)
                    }
                })
                .and_then(|steps| completion::roll_back(root, &steps))
                .and_then(|_| journal.mark_closed());
            return Err(if rolled_back.is_ok() { error } else { ErrorKind::Unfinished.at(error.path) });
        }

        // The commit is complete. What cannot be cleaned up now is left to the next recovery.
        let cleaned_up = completion::finish_now(root, &intent.steps);
        plan.describe_written(root);
        let applied = CommitResult { changes: plan.effects };
        match record(&applied) {
            Record::Kept if cleaned_up.is_ok() => {
                let _ = journal.mark_finished();
            }
            Record::Kept => {}
            // The journal is now the only record of the commit.
            Record::Failed => journal.sync()?,
        }
        Ok(applied)
    }

    /// Recovers the interrupted commit, if there is one, like [`Root::recover`]. A completed commit is passed to
    /// `record`, and stays unfinished until that succeeds.
    pub fn recover(&mut self, record: impl FnOnce(&Recovered) -> Record) -> Result<Option<Recovered>> {
        let root = self.root;
        let (mut intent, outcome) = match self.journal.read()? {
            State::Empty => return Ok(None),
            State::Lost => return temporaries::remove_temporaries(root).map(|()| None),
            State::Closed { intent } => return root.remove_temporaries_after_reboot(&intent).map(|()| None),
            State::Pending { intent, outcome } => (intent, outcome),
        };
        if intent.is_without_commit() {
            temporaries::remove_temporaries(root)?;
            self.leftovers = Leftovers::None;
            return self.journal.mark_closed().map(|()| None);
        }
        intent.steps = temporaries::follow_moved_folders(root, &intent.steps)?;
        let taken_effect = intent.single_write().map_or(Ok(false), |step| completion::has_taken_effect(root, step))?;
        let (outcome, kept) = if outcome == Outcome::Finished || taken_effect {
            completion::finish(root, &intent.steps)?;
            completion::sync_folders(root, &intent.steps)?;
            (Outcome::Finished, Vec::new())
        } else {
            (Outcome::RolledBack, completion::roll_back(root, &intent.steps)?)
        };
        root.remove_temporaries_after_reboot(&intent)?;
        let recovered = Recovered { id: intent.id, payload: intent.payload, outcome, kept };
        if outcome == Outcome::RolledBack || record(&recovered) == Record::Kept {
            self.journal.mark_closed()?;
        }
        Ok(Some(recovered))
    }
}

/// Whether an error may come from a folder that somebody moved, so that its staged files must be searched for.
fn may_be_moved(error: &Error) -> bool {
    matches!(error.kind, ErrorKind::NotFound | ErrorKind::NotAFolder | ErrorKind::Loop | ErrorKind::Changed { .. })
}

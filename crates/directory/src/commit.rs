//! Commits: many changes, all or none of them.
//!
//! A commit holds the root's lock, so that commits of all processes take turns. It plans its steps and checks what is
//! expected, writes the steps to the journal, stages new contents in temporary files, takes the steps, makes the
//! folders durable, marks the journal as committed and removes what was set aside. Until the mark is durable any
//! failure or crash rolls all steps back; from then on it can only be finished. A commit that writes one file and does
//! nothing else counts as soon as the file has its name.

use std::{
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;

use crate::{
    Applied, Change, CommitOptions, Error, ErrorKind, Result, Root,
    error::{At, why_not_locked},
    sys,
};

mod apply;
mod journal;
mod locate;
mod paths;
mod plan;
pub(crate) mod settle;
mod stage;
mod step;
mod sweep;

use journal::{Intent, Journal, State};
use plan::Plan;
use step::Step;

#[cfg(test)]
#[path = "commit/commit_tests.rs"]
mod commit_tests;

/// A commit that a crash had interrupted, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    pub id: Vec<u8>,
    pub payload: Vec<u8>,
    pub outcome: Outcome,
    /// Paths that somebody else had changed in the meantime and that were left as they are.
    pub kept: Vec<PathBuf>,
}

/// What became of an interrupted commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All its changes are in effect.
    Finished,
    /// None of its changes is in effect.
    RolledBack,
}

/// Whether the caller could record a commit elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    Kept,
    /// The commit stays unfinished: [`Root::recover`] hands it back.
    Failed,
}

impl Root {
    /// Applies all changes or none.
    ///
    /// When it returns, the changes are durable. `journal_dir` is a folder that all processes share that change this
    /// root; it lies outside of the root. After [`ErrorKind::Unfinished`] the caller calls [`Root::recover`] and may
    /// try again.
    pub fn commit(&self, changes: &[Change], journal_dir: &Path, options: &CommitOptions) -> Result<Applied> {
        self.commit_and_record(changes, journal_dir, options, |_| Record::Kept)
    }

    /// Applies all changes or none, and lets the caller record that elsewhere before anybody else's commit.
    ///
    /// `record` is called when the changes are in effect and durable. Until it says that the record is kept,
    /// [`Root::recover`] tells of the commit as finished, so that no crash can come between the two.
    pub fn commit_and_record(
        &self,
        changes: &[Change],
        journal_dir: &Path,
        options: &CommitOptions,
        record: impl FnOnce(&Applied) -> Record,
    ) -> Result<Applied> {
        let mut turn = self.turn(journal_dir)?;
        if turn.is_unfinished()? {
            return Err(turn.journal.unfinished());
        }
        turn.commit(changes, options, record)
    }

    /// Settles the commit that a crash interrupted, if there is one: it is finished if it had passed the point from
    /// which it counts, else rolled back. No temporary file is left.
    ///
    /// It may be called at any time and any number of times. The commit may be one that was acknowledged, where the
    /// crash came right after; what the caller has recorded of it stands.
    pub fn recover(&self, journal_dir: &Path) -> Result<Option<Recovered>> {
        self.turn(journal_dir)?.recover(|_| Record::Kept)
    }

    /// Waits until nobody else changes the root, and keeps it so until the turn is dropped.
    pub fn turn(&self, journal_dir: &Path) -> Result<Turn<'_>> {
        let folder = self.open_real_folder(Path::new(""), OFlags::RDONLY).at(self.real_path())?;
        // First the lock that only servers take: they wait for each other there, each for its turn.
        let journal = Journal::open(self, journal_dir)?;
        sys::lock_in_time(&folder).map_err(|errno| why_not_locked(errno).at(self.real_path()))?;
        Ok(Turn { root: self, journal, leftovers: Leftovers::None, _folder: folder })
    }

    /// Removes temporary files that a commit has forgotten because the machine went down since.
    fn sweep_after_a_boot(&self, intent: &Intent) -> Result<()> {
        if intent.boot == sys::boot().at(self.real_path())? { Ok(()) } else { sweep::sweep(self) }
    }
}

/// Whether temporary files may be left of what was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leftovers {
    None,
    Possible,
}

/// The right to change a root, which only one has at a time, over all processes.
pub struct Turn<'a> {
    root: &'a Root,
    journal: Journal,
    /// Of what was done past commits: the journal tells only of the last of it.
    leftovers: Leftovers,
    /// Locked, for those who keep their journals elsewhere.
    _folder: OwnedFd,
}

impl<'a> Turn<'a> {
    pub(crate) fn root(&self) -> &'a Root {
        self.root
    }

    /// Works on the root past commits. If the process dies meanwhile, or the work fails or says that it could not clean up,
    /// the next recovery removes the temporary files that are left of it.
    pub(crate) fn past_commits<T>(&mut self, work: impl FnOnce(&'a Root) -> Result<(T, Leftovers)>) -> Result<T> {
        let boot = sys::boot().at(self.root.real_path())?.to_vec();
        self.journal.write_intent(&Intent::past_commits(boot))?;
        let before = std::mem::replace(&mut self.leftovers, Leftovers::Possible);
        let (done, leftovers) = work(self.root)?;
        if (before, leftovers) == (Leftovers::None, Leftovers::None) {
            self.journal.mark_finished()?;
            self.leftovers = Leftovers::None;
        }
        Ok(done)
    }

    /// Whether a commit was interrupted, so that [`Turn::recover`] must come before the next.
    pub fn is_unfinished(&mut self) -> Result<bool> {
        Ok(matches!(self.journal.read()?, State::Pending { .. }))
    }

    /// Applies all changes or none, as [`Root::commit_and_record`] does. The last commit must be finished.
    pub fn commit(
        &mut self,
        changes: &[Change],
        options: &CommitOptions,
        record: impl FnOnce(&Applied) -> Record,
    ) -> Result<Applied> {
        let (root, journal) = (self.root, &mut self.journal);
        let mut plan = Plan::new(root, changes, options)?;
        let steps: Vec<Step> = plan.tasks.iter().map(|task| task.step.clone()).collect();
        let boot = sys::boot().at(root.real_path())?.to_vec();
        let intent = Intent { id: options.id.clone(), payload: options.payload.clone(), steps, boot };

        let done = journal
            .begin(&intent)
            .and_then(|()| stage::stage(root, &plan))
            .and_then(|()| apply::apply(root, &plan))
            .and_then(|()| settle::sync_folders(root, &intent.steps))
            .and_then(|()| journal.mark_committed(&intent));
        if let Err(error) = done {
            // The mark may have reached the disk although writing it failed: it goes before anything is undone.
            let rolled_back = journal
                .clear_committed()
                .and_then(|()| if met_others(&error) { sweep::followed(root, &intent.steps) } else { Ok(intent.steps) })
                .and_then(|steps| settle::roll_back(root, &steps))
                .and_then(|_| journal.mark_settled());
            return Err(if rolled_back.is_ok() { error } else { ErrorKind::Unfinished.at(error.path) });
        }

        // The commit stands. What cannot be cleaned up now is left to the next recovery.
        let cleaned_up = settle::finish_at_once(root, &intent.steps);
        plan.describe_written(root);
        let applied = Applied { changes: plan.effects };
        match record(&applied) {
            Record::Kept if cleaned_up.is_ok() => {
                let _ = journal.mark_finished();
            }
            Record::Kept => {}
            // It is all that tells of the commit now.
            Record::Failed => journal.sync()?,
        }
        Ok(applied)
    }

    /// Settles the commit that was interrupted, if there is one, as [`Root::recover`] does. If it is finished, `record`
    /// is told of it, and as long as that fails, it stays unfinished.
    pub fn recover(&mut self, record: impl FnOnce(&Recovered) -> Record) -> Result<Option<Recovered>> {
        let root = self.root;
        let (mut intent, outcome) = match self.journal.read()? {
            State::Empty => return Ok(None),
            State::Lost => return sweep::sweep(root).map(|()| None),
            State::Settled { intent } => return root.sweep_after_a_boot(&intent).map(|()| None),
            State::Pending { intent, outcome } => (intent, outcome),
        };
        if intent.is_past_commits() {
            sweep::sweep(root)?;
            self.leftovers = Leftovers::None;
            return self.journal.mark_settled().map(|()| None);
        }
        intent.steps = sweep::followed(root, &intent.steps)?;
        let taken_effect = intent.single_write().map_or(Ok(false), |step| settle::has_taken_effect(root, step))?;
        let (outcome, kept) = if outcome == Outcome::Finished || taken_effect {
            settle::finish(root, &intent.steps)?;
            settle::sync_folders(root, &intent.steps)?;
            (Outcome::Finished, Vec::new())
        } else {
            (Outcome::RolledBack, settle::roll_back(root, &intent.steps)?)
        };
        root.sweep_after_a_boot(&intent)?;
        let recovered = Recovered { id: intent.id, payload: intent.payload, outcome, kept };
        if outcome == Outcome::RolledBack || record(&recovered) == Record::Kept {
            self.journal.mark_settled()?;
        }
        Ok(Some(recovered))
    }
}

/// Whether a failure can come from others who moved a folder, so that what was staged in it has to be looked for.
fn met_others(error: &Error) -> bool {
    matches!(error.kind, ErrorKind::NotFound | ErrorKind::NotAFolder | ErrorKind::Loop | ErrorKind::Changed { .. })
}

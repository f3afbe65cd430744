//! Jobs: commands that go on in the background, and calls that wait for a person. Each caller of a workspace has short
//! numbers for them.

use super::Kit;
use super::results::PREFIX;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use toolrest_core::{
    Approval, ApprovalId, CallCx, ErrorKind, Result, Role, SessionCommit, ToolError, UserId, WorkspaceId,
};
use toolrest_ops::exec::{CommandOutput, ProcessInfo};

/// Maximum number of callers whose numbers are remembered; then they are given anew.
const MAX_CALLERS: usize = 4_096;
/// Maximum number of jobs of a caller whose numbers are remembered.
const MAX_JOBS: usize = 256;
/// Maximum number of sessions whose last look at a job is remembered.
const MAX_SESSIONS: usize = 64;
/// Maximum number of notes that wait for the next answer of a session.
const MAX_NOTES: usize = 16;

/// A caller in a workspace.
type Key = (WorkspaceId, UserId);

/// What a job is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Job {
    /// A process, by its id.
    Process(String),
    /// A call that waits for a person.
    Call(ApprovalId),
}

/// A job with what is known of it.
#[allow(clippy::large_enum_variant, reason = "lists of jobs are short")]
pub(super) enum ListedJob {
    Process(ProcessInfo),
    Call(Box<Approval>),
}

/// The numbers of the jobs of each caller.
#[derive(Default)]
pub(super) struct Jobs(Mutex<HashMap<Key, OfCaller>>);

#[derive(Default)]
struct OfCaller {
    last: u32,
    jobs: BTreeMap<u32, Numbered>,
    /// What the next answer of a session says.
    notes: Vec<(Arc<str>, String)>,
}

struct Numbered {
    job: Job,
    /// How much of the output each session has seen.
    seen: HashMap<Arc<str>, u64>,
}

impl Jobs {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, OfCaller>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, key: Key, work: impl FnOnce(&mut OfCaller) -> T) -> T {
        let mut callers = self.lock();
        if callers.len() >= MAX_CALLERS && !callers.contains_key(&key) {
            callers.clear();
        }
        work(callers.entry(key).or_default())
    }

    /// Returns the number of a job, a new one if it has none.
    fn number(&self, key: Key, job: Job) -> u32 {
        self.with(key, |caller| {
            if let Some((number, _)) = caller.jobs.iter().find(|(_, numbered)| numbered.job == job) {
                return *number;
            }
            caller.last += 1;
            if caller.jobs.len() >= MAX_JOBS {
                caller.jobs.pop_first();
            }
            caller.jobs.insert(caller.last, Numbered { job, seen: HashMap::new() });
            caller.last
        })
    }

    fn job(&self, key: Key, number: u32) -> Option<Job> {
        self.with(key, |caller| caller.jobs.get(&number).map(|numbered| numbered.job.clone()))
    }

    /// Forgets the numbers of processes that are not there any more.
    fn keep(&self, key: Key, processes: &[ProcessInfo]) {
        let is_there = |job: &Job| match job {
            Job::Process(id) => processes.iter().any(|process| process.id == *id),
            Job::Call(_) => true,
        };
        self.with(key, |caller| caller.jobs.retain(|_, numbered| is_there(&numbered.job)));
    }

    /// Returns the number of a call that waits for a person.
    pub(super) fn waiting(&self, approval: &Approval) -> u32 {
        self.number((approval.call.workspace, approval.call.caller.member()), Job::Call(approval.id))
    }

    /// Returns how much of the output a session has seen.
    pub(super) fn seen(&self, cx: &CallCx, number: u32) -> u64 {
        self.with(key(cx), |caller| {
            let numbered = caller.jobs.get(&number);
            numbered.and_then(|numbered| numbered.seen.get(&cx.session)).copied().unwrap_or(0)
        })
    }

    pub(super) fn set_seen(&self, cx: &CallCx, number: u32, offset: u64) {
        self.with(key(cx), |caller| {
            let Some(numbered) = caller.jobs.get_mut(&number) else { return };
            if numbered.seen.len() >= MAX_SESSIONS {
                numbered.seen.clear();
            }
            numbered.seen.insert(Arc::clone(&cx.session), offset);
        });
    }

    /// Adds a note to the next answer of a session.
    fn note(&self, key: Key, session: Arc<str>, note: String) {
        self.with(key, |caller| {
            if caller.notes.len() < MAX_NOTES {
                caller.notes.push((session, note));
            }
        });
    }

    /// Takes the notes for the next answer of a session.
    pub(super) fn take_notes(&self, cx: &CallCx) -> Vec<String> {
        let mut callers = self.lock();
        let Some(caller) = callers.get_mut(&key(cx)) else { return Vec::new() };
        let is_here = |(session, _): &mut (Arc<str>, String)| *session == cx.session;
        caller.notes.extract_if(.., is_here).map(|(_, note)| note).collect()
    }
}

fn key(cx: &CallCx) -> Key {
    (cx.workspace_id, cx.caller.member())
}

/// Returns the number in the name of a job: `j3`, `3`, `out:j3`.
pub(super) fn number_of(name: &str) -> Option<u32> {
    let name = name.trim().to_lowercase();
    let name = name.strip_prefix(PREFIX).unwrap_or(&name);
    name.strip_prefix('j').unwrap_or(name).parse().ok()
}

/// Returns how commits and lists name a command.
pub(super) fn label(command: &str) -> String {
    const MAX_CHARS: usize = 60;
    let line = command.trim().lines().next().unwrap_or_default();
    let mut label: String = line.chars().take(MAX_CHARS).collect();
    if label.len() < command.trim().len() {
        label.push('…');
    }
    label
}

impl Kit {
    /// Returns the jobs of the caller with their numbers.
    pub(super) async fn jobs(&self, cx: &CallCx) -> Result<Vec<(u32, ListedJob)>> {
        let mut processes = self.processes.list(cx).await?;
        processes.retain(|process| process.starter.member() == cx.caller.member());
        self.jobs.keep(key(cx), &processes);
        let mut waiting = self.waiting_calls.waiting(cx.access(Role::Viewer)).await?;
        waiting.reverse();
        let processes = processes.into_iter().map(|process| {
            let number = self.jobs.number(key(cx), Job::Process(process.id.clone()));
            (number, ListedJob::Process(process))
        });
        let calls =
            waiting.into_iter().map(|approval| (self.jobs.waiting(&approval), ListedJob::Call(Box::new(approval))));
        let mut jobs: Vec<_> = processes.chain(calls).collect();
        jobs.sort_by_key(|(number, _)| *number);
        Ok(jobs)
    }

    /// Finds a job of the caller by its name.
    pub(super) async fn job(&self, cx: &CallCx, name: &str) -> Result<(u32, Job)> {
        let wanted = number_of(name);
        let known = |number: u32| self.jobs.job(key(cx), number).map(|job| (number, job));
        if let Some(found) = wanted.and_then(known) {
            return Ok(found);
        }
        // Those that this server has not numbered yet.
        let jobs = self.jobs(cx).await?;
        if let Some(found) = wanted.and_then(known) {
            return Ok(found);
        }
        let names: Vec<String> = jobs.iter().map(|(number, _)| format!("j{number}")).collect();
        let known =
            if names.is_empty() { "there are no jobs".to_owned() } else { format!("jobs: {}", names.join(", ")) };
        let error = ToolError::new(ErrorKind::ItemNotFound, format!("job {}", name.trim()));
        Err(error.with_hint(format!("{known} (a server restart ends jobs)")))
    }

    /// Returns what a job has printed, as far as it is kept.
    pub(super) async fn job_output(&self, cx: &CallCx, number: u32, process: &str) -> Result<CommandOutput> {
        let output = self.processes.whole_output(cx, process).await?;
        if output.dropped_bytes == 0 {
            return Ok(output);
        }
        // More of it is kept once it has ended.
        match self.kept(cx, &format!("j{number}")).await? {
            Some(bytes) if bytes.len() > output.bytes.len() => {
                let all = output.dropped_bytes + output.bytes.len() as u64;
                Ok(CommandOutput { dropped_bytes: all.saturating_sub(bytes.len() as u64), bytes })
            }
            _ => Ok(output),
        }
    }

    /// Names a process that goes on as a job. Its commits and its output are kept when it ends.
    pub(super) fn begin_job(self: &Arc<Self>, cx: &CallCx, process: &str, command: &str) -> u32 {
        let number = self.jobs.number(key(cx), Job::Process(process.to_owned()));
        let (kit, caller, workspace, session) = (Arc::clone(self), cx.caller, cx.workspace_id, Arc::clone(&cx.session));
        let label = format!("run `{}`", label(command));
        self.processes.when_ended(cx.workspace_id, process, move |ended, output| async move {
            let access = || caller.access(workspace, Role::Viewer);
            for commit in &ended.commits {
                let noted = SessionCommit { commit: *commit, session: session.to_string(), label: label.clone() };
                if let Err(error) = kit.sessions.note_session_commit(access(), noted).await {
                    error.log_cause();
                }
            }
            if !output.bytes.is_empty()
                && let Err(error) = kit.sessions.keep_result(access(), format!("j{number}"), output.bytes).await
            {
                error.log_cause();
            }
        });
        number
    }
}

/// A command that a caller waits for. If the call is dropped and the command goes on, the next answer says so.
pub(super) struct Watched<'c> {
    pub(super) kit: &'c Arc<Kit>,
    pub(super) cx: &'c CallCx,
    pub(super) command: &'c str,
    /// Whether the call has its answer.
    pub(super) is_answered: bool,
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        let Self { kit, cx, command, is_answered } = self;
        let process = cx.id.short();
        if *is_answered || !kit.processes.is_in_background(cx.workspace_id, &process) {
            return;
        }
        let number = kit.begin_job(cx, &process, command);
        let note = format!("the command whose call timed out goes on: job j{number}, `{}`", label(command));
        kit.jobs.note(key(cx), Arc::clone(&cx.session), note);
    }
}

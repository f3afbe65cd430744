//! Background processes.
//!
//! They run in the server that started them. Each workspace has a lease, which every call about its processes renews;
//! when it expires, its processes are stopped.

mod in_front;

use super::output_log::{OutputLog, OutputPiece};
use super::pipe_codes::PipeCodes;
use super::secrets::{Redaction, StreamRedaction};
use super::{Executor, Program, RequestedLimits, RunOutcome, Started, to_tool_error};
pub use in_front::{CommandOutput, FrontCommand, FrontEnd};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, MissedTickBehavior},
};
use toolrest_core::{
    Attribution, CallCx, Caller, CheckedIn, Checkout, CheckoutMode, CommitId, ErrorKind, FairQueue, Full, LimitScope,
    Notice, ProgramHome, QueueLimits, QueueSlot, Result, Timestamp, ToolError, UserId, WorkspaceId, now,
};
use toolrest_sandbox::{Input, Limit, Stdin, Stream};

/// Options of [`Processes`].
#[derive(Clone, Copy, Debug)]
pub struct ProcessOptions {
    /// Maximum numbers of concurrent processes.
    pub at_once: QueueLimits,
    /// Duration of the lease.
    pub lease: Duration,
    /// Maximum run time of a process.
    pub longest: Duration,
    /// Interval between commits of a process's changes.
    pub commit_every: Duration,
    /// Maximum size of the output that is kept for each process.
    pub output_bytes: usize,
}

impl Default for ProcessOptions {
    fn default() -> Self {
        Self {
            at_once: QueueLimits { in_all: 64, per_account: 16, per_workspace: 8 },
            lease: Duration::from_secs(30 * 60),
            longest: Duration::from_secs(24 * 60 * 60),
            commit_every: Duration::from_secs(10),
            output_bytes: 1 << 20,
        }
    }
}

/// The stop reason if the person or key that started a process may not change the workspace any more.
const RIGHTS_LOST: &str = "Who started it may not change the workspace any more";

/// A process whose changes are committed only at its end.
const NEVER: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// Maximum number of ended processes that are kept for each workspace, and for each account that started them.
const MAX_ENDED: usize = 16;
const MAX_ENDED_PER_ACCOUNT: usize = 32;

/// The background processes of this server.
pub struct Processes {
    executor: Arc<Executor>,
    options: ProcessOptions,
    slots: FairQueue,
    workspaces: Mutex<HashMap<WorkspaceId, WorkspaceProcesses>>,
}

/// The processes of one workspace, by id.
#[derive(Default)]
struct WorkspaceProcesses {
    lease: Arc<Lease>,
    processes: BTreeMap<String, Arc<Process>>,
}

/// The time at which the processes of a workspace are stopped.
struct Lease(Mutex<Instant>);

impl Default for Lease {
    fn default() -> Self {
        Self(Mutex::new(Instant::now()))
    }
}

impl Lease {
    fn until(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn renew(&self, lease: Duration) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now() + lease;
    }
}

/// A background process, or a command that a caller waits for.
struct Process {
    id: String,
    starter: Caller,
    command: String,
    /// Whether it goes on, and is listed, without a caller who waits for it.
    is_background: AtomicBool,
    /// Whether its changes are discarded at its end.
    is_discarded: AtomicBool,
    started_at: Timestamp,
    started: Instant,
    output: Mutex<OutputLog>,
    printed: watch::Sender<u64>,
    input: tokio::sync::Mutex<Option<Input>>,
    stop: Notify,
    stop_reason: OnceLock<&'static str>,
    state: watch::Sender<ProcessState>,
}

/// The state of a process.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one for each process, and those are few")]
pub enum ProcessState {
    /// It is running.
    Running,
    /// It has ended.
    Ended(Ended),
}

/// The end of a process.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its exit code; `None` if there is no report of its end.
    pub exit_code: Option<i32>,
    /// The exit codes of the commands of its last pipe, if it is a [`Program::merged_command`] that ended with one.
    pub pipe_codes: Vec<i32>,
    /// Its run time.
    pub duration: Duration,
    /// The limit that it exceeded.
    pub limit: Option<Limit>,
    /// The reason why it was stopped, or why its changes were not committed.
    pub reason: Option<Notice>,
    /// The results of its check-ins; the commit is the last one.
    pub checked_in: CheckedIn,
    /// All commits of its changes, oldest first, unless others may have made some of them.
    pub commits: Vec<CommitId>,
    /// Why it did not run.
    pub failure: Option<StartFailure>,
}

/// Why a program did not run.
#[derive(Clone, Debug)]
pub struct StartFailure {
    /// The error for the caller.
    pub error: ToolError,
    pub(super) retry: Retry,
}

/// Whether to start a program again that did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retry {
    No,
    /// Its interpreter may have been set up while the folder was inaccessible.
    Same,
    /// No overlay can be mounted.
    InPlace,
}

/// The public facts about a process.
#[derive(Clone, Debug)]
pub struct ProcessInfo {
    /// Its id.
    pub id: String,
    /// The person or key that started it.
    pub starter: Caller,
    /// The command.
    pub command: String,
    /// When it was started.
    pub started_at: Timestamp,
    /// Its run time so far.
    pub running_for: Duration,
    /// The number of bytes that it has printed.
    pub output_bytes: u64,
    /// Its state.
    pub state: ProcessState,
}

impl Processes {
    /// Creates the registry of background processes.
    pub fn new(executor: Arc<Executor>, options: ProcessOptions) -> Self {
        Self { executor, options, slots: FairQueue::new(options.at_once), workspaces: Mutex::default() }
    }

    /// Returns the number of running processes.
    pub fn running(&self) -> usize {
        self.slots.depth().taken
    }

    /// Starts a process. Its changes are committed at intervals and at its end.
    pub async fn start(
        &self,
        cx: &CallCx,
        command: String,
        program: Program,
        requested: RequestedLimits,
    ) -> Result<ProcessInfo> {
        cx.workspace.authorise().await?;
        self.executor.ready().await?;
        let slot = self.slots.try_enter(cx.caller.user, cx.workspace_id).map_err(too_many_processes)?;
        let terms = StartTerms {
            mode: CheckoutMode::InPlace,
            stdin: Stdin::Open,
            commit_every: Some(self.options.commit_every),
            output_bytes: self.options.output_bytes,
            is_background: true,
        };
        let process = self.start_with(cx, command, &program, requested, slot, terms).await?;
        Ok(process.info())
    }

    /// Starts a process on the files of the workspace.
    async fn start_with(
        &self,
        cx: &CallCx,
        command: String,
        program: &Program,
        requested: RequestedLimits,
        slot: QueueSlot,
        how: StartTerms,
    ) -> Result<Arc<Process>> {
        let ready = self.executor.ready().await?;
        let lease = self.workspace_processes(cx.workspace_id, |entry| Arc::clone(&entry.lease));
        cx.begin_outside_effects().await?;
        let secrets = self.executor.secrets_of(cx, program).await?;
        let redaction = Redaction::of(&secrets)?;
        let checkout = self.executor.check_out(cx, how.mode).await?;
        let mut terms =
            self.executor.terms(cx, &*checkout, RequestedLimits { wall: None, ..requested }, secrets).await?;
        terms.limits.wall = requested.wall.unwrap_or(self.options.longest).min(self.options.longest);
        terms.limits.cpu = self.options.longest;
        let started = ready.start(&self.executor.options, &checkout.execution_root(), program, &terms, how.stdin).await;
        let mut started = started.map_err(|error| to_tool_error(&error))?;
        let process = Arc::new(Process {
            id: cx.id.short(),
            starter: cx.caller,
            command,
            is_background: AtomicBool::new(how.is_background),
            is_discarded: AtomicBool::new(false),
            started_at: now(),
            started: Instant::now(),
            output: Mutex::new(OutputLog::new(how.output_bytes)),
            printed: watch::Sender::new(0),
            input: tokio::sync::Mutex::new(started.running.take_input()),
            stop: Notify::new(),
            stop_reason: OnceLock::new(),
            state: watch::Sender::new(ProcessState::Running),
        });
        self.workspace_processes(cx.workspace_id, |entry| {
            entry.processes.insert(process.id.clone(), Arc::clone(&process));
        });
        self.forget_oldest(cx.workspace_id, cx.caller.user);
        let task = ProcessTask {
            executor: Arc::clone(&self.executor),
            slot,
            process: Arc::clone(&process),
            started,
            checkout,
            cx: cx.background(),
            lease,
            streams: [redaction.stream(), redaction.stream()],
            _home: terms.home,
            pipe_codes: PipeCodes::default(),
            total: CheckedIn::default(),
            commits: Vec::new(),
        };
        tokio::spawn(task.run_to_completion(how.commit_every));
        // The check for lost rights may have run before this process was registered.
        if let Err(error) = cx.workspace.authorise().await {
            process.stop(RIGHTS_LOST);
            process.wait_for_end(max_wait(cx)).await;
            return Err(error);
        }
        Ok(process)
    }

    /// Returns the workspaces with running processes, each with the persons and keys that started them.
    pub fn starters(&self) -> HashSet<(WorkspaceId, Caller)> {
        let workspaces = self.workspaces();
        let all = workspaces.iter().flat_map(|(id, entry)| entry.processes.values().map(move |process| (*id, process)));
        all.filter(|(_, process)| !process.state.borrow().is_over())
            .map(|(id, process)| (id, process.starter))
            .collect()
    }

    /// Lists the processes of a workspace, in the order in which they were started.
    pub async fn list(&self, cx: &CallCx) -> Result<Vec<ProcessInfo>> {
        cx.workspace.authorise().await?;
        let processes =
            self.workspace_processes(cx.workspace_id, |entry| entry.processes.values().cloned().collect::<Vec<_>>());
        let listed = processes.iter().filter(|process| process.is_background());
        let mut infos: Vec<ProcessInfo> = listed.map(|process| process.info()).collect();
        infos.sort_by_key(|info| info.started_at);
        Ok(infos)
    }

    /// Reads the output of a process from an offset. If there is none yet, waits for it for up to `timeout`.
    pub async fn output(
        &self,
        cx: &CallCx,
        id: &str,
        offset: u64,
        max_bytes: usize,
        timeout: Duration,
    ) -> Result<(OutputPiece, ProcessInfo)> {
        let process = self.find(cx, id).await?;
        let (mut printed, mut state) = (process.printed.subscribe(), process.state.subscribe());
        let something = async {
            tokio::select! {
                _ = printed.wait_for(|total| *total > offset) => {}
                _ = state.wait_for(ProcessState::is_over) => {}
            }
        };
        // Without new output the answer is empty.
        let _ = tokio::time::timeout(timeout.min(max_wait(cx)), something).await;
        let info = process.info();
        let piece = process.log().read(offset, max_bytes, !info.state.is_over());
        Ok((piece, info))
    }

    /// Writes to the standard input of a process, and closes it if requested. Only for its starter and for owners.
    pub async fn write(&self, cx: &CallCx, id: &str, bytes: &[u8], end: EndOfInput) -> Result<ProcessInfo> {
        let process = self.find_controlled(cx, id).await?;
        let over = || {
            let message = format!("The process {id} reads no more: its input was ended, or it has ended itself");
            ToolError::new(ErrorKind::Conflict, message)
        };
        let mut input = process.input.lock().await;
        let open = input.as_mut().filter(|_| !process.info().state.is_over()).ok_or_else(over)?;
        cx.begin_outside_effects().await?;
        let written = tokio::time::timeout(max_wait(cx), open.write(bytes)).await;
        match written {
            Ok(Ok(())) => {}
            Ok(Err(_)) => {
                *input = None;
                return Err(over());
            }
            Err(_) => {
                let message = format!("The process {id} does not read; some of the input may have reached it");
                return Err(ToolError::new(ErrorKind::Timeout, message));
            }
        }
        if end == EndOfInput::Yes {
            *input = None;
        }
        Ok(process.info())
    }

    /// Stops a process and its child processes, and waits for the commit of its changes. Only for its starter and for
    /// owners.
    pub async fn stop(&self, cx: &CallCx, id: &str) -> Result<ProcessInfo> {
        let process = self.find_controlled(cx, id).await?;
        process.stop("It was stopped");
        process.wait_for_end(max_wait(cx)).await;
        Ok(process.info())
    }

    /// Waits for the end of a process, for up to `timeout`.
    pub async fn wait(&self, cx: &CallCx, id: &str, timeout: Duration) -> Result<ProcessInfo> {
        let process = self.find(cx, id).await?;
        process.wait_for_end(timeout.min(max_wait(cx))).await;
        Ok(process.info())
    }

    /// Stops all processes of a workspace, or the background processes of all workspaces, and waits for the commits of their
    /// changes. Commands that callers wait for end with their calls.
    pub async fn stop_all(&self, workspace: Option<WorkspaceId>, timeout: Duration) {
        let is_in = |id: WorkspaceId, process: &Process| match workspace {
            Some(only) => only == id,
            None => process.is_background(),
        };
        self.stop_where(is_in, "It was stopped", timeout).await;
    }

    /// Stops the processes that a member, or a key of that member, started in a workspace which the member may not change
    /// any more. The member is a person or a key. Uncommitted changes of the processes are refused.
    pub async fn stop_processes_of(&self, workspace: WorkspaceId, member: UserId, timeout: Duration) {
        let is_of = |id: WorkspaceId, process: &Process| {
            id == workspace && (process.starter.member() == member || process.starter.user == member)
        };
        self.stop_where(is_of, RIGHTS_LOST, timeout).await;
    }

    /// Stops the processes that a disabled account and its keys started, without waiting for their ends.
    pub async fn stop_processes_of_disabled(&self, account: UserId) {
        let is_of = |_: WorkspaceId, process: &Process| process.starter.user == account;
        self.stop_where(is_of, "The account that started it is disabled", Duration::ZERO).await;
    }

    async fn stop_where(
        &self,
        filter: impl Fn(WorkspaceId, &Process) -> bool,
        reason: &'static str,
        timeout: Duration,
    ) {
        let processes: Vec<Arc<Process>> = {
            let workspaces = self.workspaces();
            let all =
                workspaces.iter().flat_map(|(id, entry)| entry.processes.values().map(move |process| (*id, process)));
            all.filter(|(id, process)| filter(*id, process)).map(|(_, process)| Arc::clone(process)).collect()
        };
        for process in &processes {
            process.stop(reason);
        }
        let until = Instant::now() + timeout;
        for process in processes {
            process.wait_for_end(until.saturating_duration_since(Instant::now())).await;
        }
    }

    fn workspaces(&self) -> MutexGuard<'_, HashMap<WorkspaceId, WorkspaceProcesses>> {
        self.workspaces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accesses the processes of a workspace and renews its lease.
    fn workspace_processes<T>(&self, workspace: WorkspaceId, access: impl FnOnce(&mut WorkspaceProcesses) -> T) -> T {
        let mut workspaces = self.workspaces();
        // Workspaces without processes take no memory.
        workspaces.retain(|id, entry| *id == workspace || entry.is_used());
        let entry = workspaces.entry(workspace).or_default();
        entry.lease.renew(self.options.lease);
        access(entry)
    }

    /// Removes the processes that ended first, if a workspace or an account has more ended ones than are kept.
    fn forget_oldest(&self, workspace: WorkspaceId, account: UserId) {
        let mut workspaces = self.workspaces();
        let mut forget = |filter: &dyn Fn(WorkspaceId, &Process) -> bool, most: usize| {
            let all =
                workspaces.iter().flat_map(|(id, entry)| entry.processes.values().map(move |process| (*id, process)));
            let ended = all.filter(|(id, process)| filter(*id, process) && process.state.borrow().is_over());
            let mut ended: Vec<_> = ended.map(|(id, process)| (process.started, id, process.id.clone())).collect();
            ended.sort();
            for (_, workspace, id) in ended.iter().take(ended.len().saturating_sub(most)) {
                workspaces.get_mut(workspace).and_then(|entry| entry.processes.remove(id));
            }
        };
        forget(&|id, _| id == workspace, MAX_ENDED);
        forget(&|_, process| process.starter.user == account, MAX_ENDED_PER_ACCOUNT);
    }

    /// Returns a process that the caller may write to and stop: a process that the caller started, or any process if the
    /// caller owns the workspace. Otherwise a key could act through a shell of a person.
    async fn find_controlled(&self, cx: &CallCx, id: &str) -> Result<Arc<Process>> {
        let process = self.find(cx, id).await?;
        if process.starter.member() == cx.caller.member() || cx.workspace.is_owner().await? {
            return Ok(process);
        }
        let message = format!(
            "Only who started the process {id}, or an owner of the workspace, can write to it or stop it; everybody in the \
             workspace can read its output"
        );
        Err(ToolError::new(ErrorKind::Forbidden, message))
    }

    async fn find(&self, cx: &CallCx, id: &str) -> Result<Arc<Process>> {
        cx.workspace.authorise().await?;
        let found = self.workspace_processes(cx.workspace_id, |entry| entry.processes.get(id).cloned());
        found.filter(|process| process.is_background()).ok_or_else(|| {
            let message = format!(
                "There is no process '{id}' in this workspace; the list shows which there are. One that ended long ago \
                 is forgotten, and a process is only known to the server that started it"
            );
            ToolError::new(ErrorKind::NotFound, message).about("id")
        })
    }
}

/// Creates the error for one process too many.
fn too_many_processes(full: Full) -> ToolError {
    let limit = full.limit;
    let (who, setting) = match full.scope {
        LimitScope::Workspace => ("in this workspace", "run.background_at_once"),
        LimitScope::Account => ("for this account", "run.background_at_once_per_account"),
        LimitScope::Server => {
            let message = format!(
                "{limit} background processes run on this server already, which is its limit \
                 (run.background_at_once_in_all); try again when one has ended"
            );
            return ToolError::new(ErrorKind::Unavailable, message).detail("limit", limit).detail("used", limit);
        }
    };
    let message =
        format!("{limit} background processes run {who} already, which is the limit ({setting}); stop one first");
    ToolError::quota(limit as u64, limit as u64, setting, message)
}

/// Whether to close the input of a process after writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndOfInput {
    /// Close it.
    Yes,
    /// Keep it open.
    No,
}

/// Returns the longest time that a call can wait and still answer before its deadline.
fn max_wait(cx: &CallCx) -> Duration {
    cx.limits.call_timeout * 9 / 10
}

impl ProcessState {
    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Ended(_))
    }
}

impl WorkspaceProcesses {
    fn running(&self) -> usize {
        self.processes.values().filter(|process| !process.state.borrow().is_over()).count()
    }

    fn is_used(&self) -> bool {
        self.running() > 0 || self.lease.until() > Instant::now()
    }
}

impl Process {
    fn log(&self) -> MutexGuard<'_, OutputLog> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn info(&self) -> ProcessInfo {
        ProcessInfo {
            id: self.id.clone(),
            starter: self.starter,
            command: self.command.clone(),
            started_at: self.started_at,
            running_for: self.started.elapsed(),
            output_bytes: self.log().total(),
            state: self.state.borrow().clone(),
        }
    }

    fn is_background(&self) -> bool {
        self.is_background.load(Ordering::Acquire)
    }

    fn print(&self, bytes: &[u8]) {
        let total = {
            let mut log = self.log();
            log.push(bytes);
            log.total()
        };
        self.printed.send_replace(total);
    }

    /// Asks the process to stop. The first reason is kept.
    fn stop(&self, reason: &'static str) {
        let _ = self.stop_reason.set(reason);
        self.stop.notify_one();
    }

    /// Waits for the end, for up to `timeout`.
    async fn wait_for_end(&self, timeout: Duration) {
        let mut state = self.state.subscribe();
        let _ = tokio::time::timeout(timeout, state.wait_for(ProcessState::is_over)).await;
    }
}

/// Maximum number of changes of each kind that are kept for a process.
const MAX_REPORTED: usize = 1000;

/// How a process is started.
struct StartTerms {
    mode: CheckoutMode,
    stdin: Stdin,
    /// Interval between commits; none to commit only at the end.
    commit_every: Option<Duration>,
    /// Maximum size of the output that is kept.
    output_bytes: usize,
    is_background: bool,
}

/// Joins the reason why a process ended and the notice that its changes were not kept.
fn joined(reason: Option<Notice>, not_kept: Option<Notice>) -> Option<Notice> {
    match (reason, not_kept) {
        (Some(mut reason), Some(not_kept)) => {
            reason.text = format!("{}. {}", reason.text, not_kept.text);
            reason.paths.extend(not_kept.paths);
            Some(reason)
        }
        (reason, not_kept) => reason.or(not_kept),
    }
}

/// Adds the result of a later check-in.
fn add(total: &mut CheckedIn, later: CheckedIn) {
    fn append<T>(total: &mut Vec<T>, later: Vec<T>) {
        let left = MAX_REPORTED.saturating_sub(total.len());
        total.extend(later.into_iter().take(left));
    }
    total.attribution = later.attribution;
    total.commit = later.commit.or(total.commit);
    append(&mut total.changed, later.changed);
    append(&mut total.conflicts, later.conflicts);
    append(&mut total.left_out, later.left_out);
}

/// A running process with everything that its task needs.
struct ProcessTask {
    executor: Arc<Executor>,
    slot: QueueSlot,
    process: Arc<Process>,
    started: Started,
    checkout: Box<dyn Checkout>,
    cx: CallCx,
    lease: Arc<Lease>,
    /// Replace secrets in standard output and in standard error.
    streams: [StreamRedaction; 2],
    /// Kept as long as the process runs.
    _home: Option<ProgramHome>,
    /// Finds the exit codes of the commands of a pipe in standard error.
    pipe_codes: PipeCodes,
    /// The results of its check-ins so far.
    total: CheckedIn,
    /// The commits of its changes so far.
    commits: Vec<CommitId>,
}

impl ProcessTask {
    async fn run_to_completion(mut self, commit_every: Option<Duration>) {
        let interval = commit_every.unwrap_or(NEVER);
        let mut commits = tokio::time::interval_at(Instant::now() + interval, interval);
        commits.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut reason = None;
        loop {
            tokio::select! {
                printed = self.started.running.next() => match printed {
                    Some(chunk) => {
                        let is_stderr = chunk.stream == Stream::Stderr;
                        let bytes = if is_stderr { self.pipe_codes.take_from(chunk.bytes) } else { chunk.bytes };
                        self.process.print(&self.streams[usize::from(is_stderr)].push(&bytes));
                    }
                    None => break,
                },
                _ = commits.tick() => {
                    if let Some(why) = self.commit().await {
                        self.started.running.kill();
                        reason = Some(why);
                    }
                }
                () = self.process.stop.notified() => {
                    self.started.running.kill();
                    let why = self.process.stop_reason.get().copied().unwrap_or_default();
                    reason.get_or_insert_with(|| why.to_owned().into());
                }
                // The lease may have been renewed meanwhile.
                () = tokio::time::sleep_until(self.lease.until()), if reason.is_none() => {
                    if self.lease.until() <= Instant::now() {
                        self.started.running.kill();
                        reason = Some("Nobody asked after it for too long".to_owned().into());
                    }
                }
            }
        }
        self.end(reason).await;
    }

    /// Commits its changes so far. Returns the reason to stop the process if it may not commit any more.
    async fn commit(&mut self) -> Option<Notice> {
        match self.checkout.check_in(&self.cx).await {
            Ok(checked_in) => {
                note_commit(&mut self.commits, &checked_in);
                add(&mut self.total, checked_in);
                None
            }
            // Who started it is no member any more, or the workspace was removed.
            Err(error) if error.kind == ErrorKind::Forbidden => Some(Notice::of_error(&error, str::to_owned)),
            Err(error) => {
                tracing::warn!(%error, "the changes of a background process could not be committed; will try again");
                None
            }
        }
    }

    async fn end(self, reason: Option<Notice>) {
        let Self {
            executor,
            slot,
            process,
            started,
            checkout,
            cx,
            mut total,
            mut streams,
            pipe_codes,
            mut commits,
            ..
        } = self;
        for stream in &mut streams {
            process.print(&stream.finish());
        }
        let Started { running, proxy: _proxy } = started;
        let report = running.wait().await;
        executor.counts.add(match &report {
            _ if reason.is_some() => RunOutcome::Cancelled,
            Ok(report) => RunOutcome::of(report),
            Err(_) => RunOutcome::Error,
        });
        let (checked_in, not_kept) = if process.is_discarded.load(Ordering::Acquire) {
            // The program is dead, so its files can go.
            drop(checkout);
            (total, None)
        } else {
            match checkout.finish(&cx).await {
                Ok(checked_in) => {
                    note_commit(&mut commits, &checked_in);
                    add(&mut total, checked_in);
                    (total, None)
                }
                Err(error) => {
                    error.log_cause();
                    let not_kept = |why: &str| format!("Its last changes were not kept: {why}");
                    (total, Some(Notice::of_error(&error, not_kept)))
                }
            }
        };
        let pipe_codes = pipe_codes.codes;
        let ended = match report {
            Ok(report) => Ended {
                exit_code: Some(report.exit.code()),
                pipe_codes,
                duration: report.duration,
                limit: report.limit_hit,
                reason: joined(reason, not_kept),
                checked_in,
                commits,
                failure: None,
            },
            Err(error) => Ended {
                exit_code: None,
                pipe_codes,
                duration: process.started.elapsed(),
                limit: None,
                reason: joined(Some(error.to_string().into()), not_kept),
                checked_in,
                commits,
                failure: Some(executor.start_failure(&error)),
            },
        };
        *process.input.lock().await = None;
        process.log().shrink();
        // The slot is free before the state changes, so that a caller who sees the end can start the next process.
        drop(slot);
        process.state.send_replace(ProcessState::Ended(ended));
    }
}

/// Notes the commit of a check-in, unless others may have made the changes.
fn note_commit(commits: &mut Vec<CommitId>, checked_in: &CheckedIn) {
    if checked_in.attribution == Attribution::Program && commits.len() < MAX_REPORTED {
        commits.extend(checked_in.commit);
    }
}

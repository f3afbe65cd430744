//! Programs that go on after the call that started them.
//!
//! They live in the server that started them, for as long as somebody asks after them: each workspace has a lease, which
//! every call about its programs renews, and which takes them with it when it ends.

use super::output_log::{OutputLog, OutputPiece};
use super::{Asked, Executor, Program, Started, explain};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, MissedTickBehavior},
};
use toolrest_core::{
    CallCx, CheckedIn, Checkout, CheckoutMode, ErrorKind, FairQueue, Full, Notice, QueueLimits, QueueSlot, Result,
    Scope, Timestamp, ToolError, UserId, WorkspaceId, now,
};
use toolrest_sandbox::{Input, Limit, Stdin};

/// How programs go on after their calls.
#[derive(Clone, Copy, Debug)]
pub struct ProcessOptions {
    /// How many may run at once, in all, per account and per workspace.
    pub at_once: QueueLimits,
    /// How long they go on without anybody asking after them.
    pub lease: Duration,
    /// How long one may run.
    pub longest: Duration,
    /// How often what they change is committed.
    pub commit_every: Duration,
    /// How much of its output is kept for each.
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

/// Why the processes of an account end that may not change the workspace any more.
const WITHOUT_RIGHTS: &str = "Who started it may not change the workspace any more";

/// How many programs that have ended are remembered for each workspace, and for each account that started them.
const REMEMBERED: usize = 16;
const REMEMBERED_PER_ACCOUNT: usize = 32;

/// The programs that run in the background.
pub struct Processes {
    executor: Arc<Executor>,
    options: ProcessOptions,
    places: FairQueue,
    rooms: Mutex<HashMap<WorkspaceId, Room>>,
}

/// The programs of one workspace, by when they were started.
#[derive(Default)]
struct Room {
    lease: Arc<Lease>,
    processes: BTreeMap<String, Arc<Process>>,
}

/// Until when the programs of a workspace may go on.
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

/// A program that runs in the background.
struct Process {
    id: String,
    starter: UserId,
    command: String,
    started_at: Timestamp,
    begun: Instant,
    output: Mutex<OutputLog>,
    printed: watch::Sender<u64>,
    input: tokio::sync::Mutex<Option<Input>>,
    stop: Notify,
    stop_reason: OnceLock<&'static str>,
    state: watch::Sender<ProcessState>,
}

/// How a program is doing.
#[derive(Clone, Debug)]
pub enum ProcessState {
    /// It runs.
    Running,
    /// It has ended, or was ended.
    Ended(Ended),
}

/// How a program ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its exit code; none if it never ran.
    pub exit_code: Option<i32>,
    /// How long it ran.
    pub duration: Duration,
    /// The limit that ended it.
    pub limit: Option<Limit>,
    /// What else there is to say about its end.
    pub reason: Option<Notice>,
    /// What became of what it changed; the commit is the last one.
    pub checked_in: CheckedIn,
}

/// A program as callers see it.
#[derive(Clone, Debug)]
pub struct ProcessInfo {
    /// Its id.
    pub id: String,
    /// What was started.
    pub command: String,
    /// When.
    pub started_at: Timestamp,
    /// How much it has printed.
    pub output_bytes: u64,
    /// How it is doing.
    pub state: ProcessState,
}

impl Processes {
    /// Runs programs in the background.
    pub fn new(executor: Arc<Executor>, options: ProcessOptions) -> Self {
        Self { executor, options, places: FairQueue::new(options.at_once), rooms: Mutex::default() }
    }

    /// Starts a program. What it changes is committed at intervals and when it ends.
    pub async fn start(&self, cx: &CallCx, command: String, program: Program, asked: Asked) -> Result<ProcessInfo> {
        cx.workspace.authorise().await?;
        let ready = self.executor.ready().await?;
        let place = self.places.try_enter(cx.caller.user, cx.workspace_id).map_err(no_place)?;
        let lease = self.room(cx.workspace_id, |room| Arc::clone(&room.lease));
        let checkout = self.executor.check_out(cx, CheckoutMode::InPlace).await?;
        let mut terms = self.executor.terms(cx, &*checkout, Asked { wall: None, ..asked });
        terms.limits.wall = asked.wall.unwrap_or(self.options.longest).min(self.options.longest);
        terms.limits.cpu = self.options.longest;
        let started =
            ready.start(&self.executor.options, &checkout.execution_root(), &program, &terms, Stdin::Open).await;
        let mut started = started.map_err(|error| explain(&error))?;
        let process = Arc::new(Process {
            id: cx.id.short(),
            starter: cx.caller.user,
            command,
            started_at: now(),
            begun: Instant::now(),
            output: Mutex::new(OutputLog::new(self.options.output_bytes)),
            printed: watch::Sender::new(0),
            input: tokio::sync::Mutex::new(started.running.take_input()),
            stop: Notify::new(),
            stop_reason: OnceLock::new(),
            state: watch::Sender::new(ProcessState::Running),
        });
        self.room(cx.workspace_id, |room| {
            room.processes.insert(process.id.clone(), Arc::clone(&process));
        });
        self.forget_oldest(cx.workspace_id, cx.caller.user);
        let attended = Attended {
            place,
            process: Arc::clone(&process),
            started,
            checkout,
            cx: cx.detached(),
            lease,
            told: CheckedIn::default(),
        };
        tokio::spawn(attended.run_to_completion(self.options.commit_every));
        // Who lost the right meanwhile was not found among those whose processes are ended for that.
        if let Err(error) = cx.workspace.authorise().await {
            process.stop(WITHOUT_RIGHTS);
            process.over(longest_wait(cx)).await;
            return Err(error);
        }
        Ok(process.info())
    }

    /// The workspaces in which processes run, each with an account that started some.
    pub fn starters(&self) -> BTreeSet<(WorkspaceId, UserId)> {
        let rooms = self.rooms();
        let all = rooms.iter().flat_map(|(id, room)| room.processes.values().map(move |process| (*id, process)));
        all.filter(|(_, process)| !process.state.borrow().is_over())
            .map(|(id, process)| (id, process.starter))
            .collect()
    }

    /// The programs of a workspace, in the order of their starts.
    pub async fn list(&self, cx: &CallCx) -> Result<Vec<ProcessInfo>> {
        cx.workspace.authorise().await?;
        let processes = self.room(cx.workspace_id, |room| room.processes.values().cloned().collect::<Vec<_>>());
        let mut infos: Vec<ProcessInfo> = processes.iter().map(|process| process.info()).collect();
        infos.sort_by_key(|info| info.started_at);
        Ok(infos)
    }

    /// What a program printed from an offset on. Where there is nothing yet, that is waited for.
    pub async fn output(
        &self,
        cx: &CallCx,
        id: &str,
        offset: u64,
        most_bytes: usize,
        patience: Duration,
    ) -> Result<(OutputPiece, ProcessInfo)> {
        let process = self.find(cx, id).await?;
        let (mut printed, mut state) = (process.printed.subscribe(), process.state.subscribe());
        let something = async {
            tokio::select! {
                _ = printed.wait_for(|total| *total > offset) => {}
                _ = state.wait_for(ProcessState::is_over) => {}
            }
        };
        // Nothing new within that time is an answer too.
        let _ = tokio::time::timeout(patience.min(longest_wait(cx)), something).await;
        let info = process.info();
        let piece = process.log().read(offset, most_bytes, !info.state.is_over());
        Ok((piece, info))
    }

    /// Gives a program something to read, and ends its input if that was all.
    pub async fn write(&self, cx: &CallCx, id: &str, bytes: &[u8], end: EndOfInput) -> Result<ProcessInfo> {
        let process = self.find(cx, id).await?;
        let over = || {
            let message = format!("The process {id} reads no more: its input was ended, or it has ended itself");
            ToolError::new(ErrorKind::Conflict, message)
        };
        let mut input = process.input.lock().await;
        let open = input.as_mut().filter(|_| !process.info().state.is_over()).ok_or_else(over)?;
        let written = tokio::time::timeout(longest_wait(cx), open.write(bytes)).await;
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

    /// Ends a program, with all that it has started, and waits until what it changed is committed.
    pub async fn stop(&self, cx: &CallCx, id: &str) -> Result<ProcessInfo> {
        let process = self.find(cx, id).await?;
        process.stop("It was stopped");
        process.over(longest_wait(cx)).await;
        Ok(process.info())
    }

    /// Waits for the end of a program, for so long at most.
    pub async fn wait(&self, cx: &CallCx, id: &str, patience: Duration) -> Result<ProcessInfo> {
        let process = self.find(cx, id).await?;
        process.over(patience.min(longest_wait(cx))).await;
        Ok(process.info())
    }

    /// Ends all programs of a workspace, or of all workspaces, and waits until what they changed is committed.
    pub async fn stop_all(&self, workspace: Option<WorkspaceId>, patience: Duration) {
        let is_in = |id: WorkspaceId, _: &Process| workspace.is_none_or(|only| only == id);
        self.stop_where(is_in, "It was stopped", patience).await;
    }

    /// Ends the programs that an account started in a workspace, which it may not change any more. What they have not
    /// committed yet is refused.
    pub async fn stop_those_of(&self, workspace: WorkspaceId, starter: UserId, patience: Duration) {
        let is_of = |id: WorkspaceId, process: &Process| id == workspace && process.starter == starter;
        self.stop_where(is_of, WITHOUT_RIGHTS, patience).await;
    }

    /// Ends the programs that a disabled account started, without waiting for their ends.
    pub async fn stop_those_of_disabled(&self, starter: UserId) {
        let is_of = |_: WorkspaceId, process: &Process| process.starter == starter;
        self.stop_where(is_of, "The account that started it is disabled", Duration::ZERO).await;
    }

    async fn stop_where(
        &self,
        is_meant: impl Fn(WorkspaceId, &Process) -> bool,
        reason: &'static str,
        patience: Duration,
    ) {
        let processes: Vec<Arc<Process>> = {
            let rooms = self.rooms();
            let all = rooms.iter().flat_map(|(id, room)| room.processes.values().map(move |process| (*id, process)));
            all.filter(|(id, process)| is_meant(*id, process)).map(|(_, process)| Arc::clone(process)).collect()
        };
        for process in &processes {
            process.stop(reason);
        }
        let until = Instant::now() + patience;
        for process in processes {
            process.over(until.saturating_duration_since(Instant::now())).await;
        }
    }

    fn rooms(&self) -> MutexGuard<'_, HashMap<WorkspaceId, Room>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks into a workspace's room, which renews its lease.
    fn room<T>(&self, workspace: WorkspaceId, look: impl FnOnce(&mut Room) -> T) -> T {
        let mut rooms = self.rooms();
        // A workspace without programs takes no memory.
        rooms.retain(|id, room| *id == workspace || room.is_used());
        let room = rooms.entry(workspace).or_default();
        room.lease.renew(self.options.lease);
        look(room)
    }

    /// Forgets the programs that ended longest ago, where a workspace or an account has more than are remembered.
    fn forget_oldest(&self, workspace: WorkspaceId, starter: UserId) {
        let mut rooms = self.rooms();
        let mut forget = |is_meant: &dyn Fn(WorkspaceId, &Process) -> bool, most: usize| {
            let all = rooms.iter().flat_map(|(id, room)| room.processes.values().map(move |process| (*id, process)));
            let ended = all.filter(|(id, process)| is_meant(*id, process) && process.state.borrow().is_over());
            let mut ended: Vec<_> = ended.map(|(id, process)| (process.begun, id, process.id.clone())).collect();
            ended.sort();
            for (_, room, id) in ended.iter().take(ended.len().saturating_sub(most)) {
                rooms.get_mut(room).and_then(|room| room.processes.remove(id));
            }
        };
        forget(&|id, _| id == workspace, REMEMBERED);
        forget(&|_, process| process.starter == starter, REMEMBERED_PER_ACCOUNT);
    }

    async fn find(&self, cx: &CallCx, id: &str) -> Result<Arc<Process>> {
        cx.workspace.authorise().await?;
        let found = self.room(cx.workspace_id, |room| room.processes.get(id).cloned());
        found.ok_or_else(|| {
            let message = format!(
                "There is no process '{id}' in this workspace; the list shows which there are. One that ended long ago \
                 is forgotten, and a process is only known to the server that started it"
            );
            ToolError::new(ErrorKind::NotFound, message).about("id")
        })
    }
}

/// The refusal to start one more background process.
fn no_place(full: Full) -> ToolError {
    let limit = full.limit;
    let (who, setting) = match full.scope {
        Scope::Workspace => ("in this workspace", "run.background_at_once"),
        Scope::Account => ("for this account", "run.background_at_once_per_account"),
        Scope::Server => {
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

/// Whether the input of a program ends with what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndOfInput {
    /// It reads nothing more.
    Yes,
    /// More may come.
    No,
}

/// As long as a call may wait and still answer in time.
fn longest_wait(cx: &CallCx) -> Duration {
    cx.limits.call_timeout * 9 / 10
}

impl ProcessState {
    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Ended(_))
    }
}

impl Room {
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
            command: self.command.clone(),
            started_at: self.started_at,
            output_bytes: self.log().total(),
            state: self.state.borrow().clone(),
        }
    }

    fn print(&self, bytes: &[u8]) {
        let total = {
            let mut log = self.log();
            log.push(bytes);
            log.total()
        };
        self.printed.send_replace(total);
    }

    /// Has it ended, for this reason unless there was one before.
    fn stop(&self, reason: &'static str) {
        let _ = self.stop_reason.set(reason);
        self.stop.notify_one();
    }

    /// Waits for the end, for so long at most.
    async fn over(&self, patience: Duration) {
        let mut state = self.state.subscribe();
        let _ = tokio::time::timeout(patience, state.wait_for(ProcessState::is_over)).await;
    }
}

/// How many of each sort of changes of a background program are remembered.
const TOLD: usize = 1000;

/// Adds what became of later changes to what is told of a program.
fn add(told: &mut CheckedIn, later: CheckedIn) {
    fn append<T>(told: &mut Vec<T>, later: Vec<T>) {
        let room = TOLD.saturating_sub(told.len());
        told.extend(later.into_iter().take(room));
    }
    told.attribution = later.attribution;
    told.commit = later.commit.or(told.commit);
    append(&mut told.changed, later.changed);
    append(&mut told.conflicts, later.conflicts);
    append(&mut told.left_out, later.left_out);
}

/// A program with what is needed to see it through.
struct Attended {
    place: QueueSlot,
    process: Arc<Process>,
    started: Started,
    checkout: Box<dyn Checkout>,
    cx: CallCx,
    lease: Arc<Lease>,
    /// What became of its changes while it ran.
    told: CheckedIn,
}

impl Attended {
    async fn run_to_completion(mut self, commit_every: Duration) {
        let mut commits = tokio::time::interval_at(Instant::now() + commit_every, commit_every);
        commits.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut reason = None;
        loop {
            tokio::select! {
                printed = self.started.running.next() => match printed {
                    Some(chunk) => self.process.print(&chunk.bytes),
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
                // It may have been renewed meanwhile.
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

    /// Commits what it has changed so far; gives the reason why it cannot go on, if it cannot.
    async fn commit(&mut self) -> Option<Notice> {
        match self.checkout.check_in(&self.cx).await {
            Ok(checked_in) => {
                add(&mut self.told, checked_in);
                None
            }
            // Who started it is no member any more, or the workspace is gone.
            Err(error) if error.kind == ErrorKind::Forbidden => Some(Notice::of_error(&error, str::to_owned)),
            Err(error) => {
                tracing::warn!(%error, "what a background process changed could not be committed yet");
                None
            }
        }
    }

    async fn end(self, reason: Option<Notice>) {
        let Self { place, process, started: Started { running, proxy: _proxy }, checkout, cx, mut told, .. } = self;
        let report = running.wait().await;
        let (checked_in, not_kept) = match checkout.finish(&cx).await {
            Ok(checked_in) => {
                add(&mut told, checked_in);
                (told, None)
            }
            Err(error) => {
                error.log_cause();
                let not_kept = |why: &str| format!("What it changed last is not kept: {why}");
                (told, Some(Notice::of_error(&error, not_kept)))
            }
        };
        let ended = match report {
            Ok(report) => Ended {
                exit_code: Some(report.exit.code()),
                duration: report.duration,
                limit: report.limit_hit,
                reason: reason.or(not_kept),
                checked_in,
            },
            Err(error) => Ended {
                exit_code: None,
                duration: process.begun.elapsed(),
                limit: None,
                reason: Some(error.to_string().into()),
                checked_in,
            },
        };
        *process.input.lock().await = None;
        process.log().shrink();
        // Whoever sees that it has ended can start the next one.
        drop(place);
        process.state.send_replace(ProcessState::Ended(ended));
    }
}

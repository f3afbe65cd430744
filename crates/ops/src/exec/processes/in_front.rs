//! Commands that a caller waits for. One that takes longer than the caller waits goes on in the background.

use super::{
    CallCx, CheckoutMode, Ended, ErrorKind, Instant, Ordering, Process, ProcessInfo, ProcessState, Processes, Result,
    Retry, StartTerms, ToolError, WorkspaceId,
};
use crate::exec::run_to_completion::RunToCompletion;
use crate::exec::{Disconnected, Program, RequestedLimits};
use std::{future::Future, sync::Arc, time::Duration};
use tokio::sync::oneshot;
use toolrest_sandbox::Stdin;
use tracing::Instrument;

/// Maximum time in the queue of programs.
const MAX_QUEUED: Duration = Duration::from_secs(45);

/// A command that a caller waits for.
#[derive(Clone)]
pub struct FrontCommand {
    /// The command as it is listed.
    pub command: String,
    /// What is run.
    pub program: Program,
    /// Its limits.
    pub requested: RequestedLimits,
    /// How long the caller waits.
    pub wait: Duration,
    /// Maximum size of the output that is kept: the last part.
    pub output_bytes: usize,
}

/// What became of a command that a caller waited for.
#[allow(clippy::large_enum_variant, reason = "it is matched at once")]
pub enum FrontEnd {
    /// It has ended.
    Ended(Box<Ended>, CommandOutput),
    /// It goes on in the background.
    Background(ProcessInfo, CommandOutput),
}

/// What a command printed.
pub struct CommandOutput {
    /// The last part.
    pub bytes: Vec<u8>,
    /// Number of bytes before that part.
    pub dropped_bytes: u64,
}

impl Processes {
    /// Runs a command on private files and waits for its end. Its changes are one commit. If the caller goes away, it is
    /// ended and changes nothing, unless it was handed over to the background before.
    pub async fn run_in_front(self: &Arc<Self>, cx: &CallCx, front: FrontCommand) -> Result<FrontEnd> {
        let until = Instant::now() + front.wait;
        let (mut mode, mut is_repeated) = (CheckoutMode::Isolated, false);
        loop {
            let waiting = self.start_in_front(cx, front.clone(), mode).await?;
            let process = &waiting.process;
            process.wait_for_end(until.saturating_duration_since(Instant::now())).await;
            let state = process.state.borrow().clone();
            let ProcessState::Ended(ended) = state else {
                process.is_background.store(true, Ordering::Release);
                return Ok(FrontEnd::Background(process.info(), process.whole_output()));
            };
            match &ended.failure {
                Some(failure) if failure.retry == Retry::InPlace && mode == CheckoutMode::Isolated => {
                    mode = CheckoutMode::InPlace;
                }
                Some(failure) if failure.retry == Retry::Same && !is_repeated => is_repeated = true,
                Some(failure) => return Err(failure.error.clone()),
                None => {
                    if let Some(commit) = ended.checked_in.commit {
                        cx.recorded_with(commit);
                    }
                    return Ok(FrontEnd::Ended(Box::new(ended), process.whole_output()));
                }
            }
        }
    }

    async fn start_in_front(self: &Arc<Self>, cx: &CallCx, front: FrontCommand, mode: CheckoutMode) -> Result<Waiting> {
        // The start is finished even if the caller goes away, because the files must not be used before the program is
        // dead.
        let (_caller, gone) = oneshot::channel::<()>();
        let (processes, own) = (Arc::clone(self), cx.detached());
        let work = async move {
            let started = processes.start_isolated(&own, front, mode, gone).await;
            (started, own)
        };
        // If the caller is gone, the dropped result ends the program.
        let (started, own) = RunToCompletion::new(work.in_current_span(), drop).await;
        cx.absorb(own);
        started
    }

    async fn start_isolated(
        self: Arc<Self>,
        cx: &CallCx,
        front: FrontCommand,
        mode: CheckoutMode,
        mut gone: Disconnected,
    ) -> Result<Waiting> {
        let FrontCommand { command, program, requested, wait, output_bytes } = front;
        let ready = self.executor.ready().await?;
        let queued = wait.clamp(Duration::from_secs(1), MAX_QUEUED);
        let slot = tokio::time::timeout(queued, ready.wait_for_slot(cx, &mut gone)).await.map_err(|_| {
            let message = "Too many programs run at the moment, here or for this account; the command was not started";
            ToolError::new(ErrorKind::Unavailable, message)
        })??;
        let how = StartTerms { mode, stdin: Stdin::Empty, commit_every: None, output_bytes, is_background: false };
        let process = self.start_with(cx, command, &program, requested, slot, how).await?;
        Ok(Waiting { workspace: cx.workspace_id, processes: self, process })
    }

    /// Lets the command of a call go on in the background, if it runs and its caller waits for it. Returns whether it does.
    pub fn hand_over(&self, workspace: WorkspaceId, id: &str) -> bool {
        let found = self.workspaces().get(&workspace).and_then(|entry| entry.processes.get(id).cloned());
        let Some(process) = found.filter(|process| !process.state.borrow().is_over()) else { return false };
        process.is_background.store(true, Ordering::Release);
        true
    }

    /// Whether a process goes on, or went on, in the background.
    pub fn is_in_background(&self, workspace: WorkspaceId, id: &str) -> bool {
        let workspaces = self.workspaces();
        let process = workspaces.get(&workspace).and_then(|entry| entry.processes.get(id));
        process.is_some_and(|process| process.is_background())
    }

    /// Does something when a background process has ended, with its whole output. Less of the output is kept from then on.
    pub fn when_ended<F>(
        &self,
        workspace: WorkspaceId,
        id: &str,
        then: impl FnOnce(Ended, CommandOutput) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send,
    {
        let found = self.workspaces().get(&workspace).and_then(|entry| entry.processes.get(id).cloned());
        let (Some(process), keep_bytes) = (found, self.options.output_bytes) else { return };
        tokio::spawn(async move {
            let mut state = process.state.subscribe();
            let ended = match state.wait_for(ProcessState::is_over).await.as_deref() {
                Ok(ProcessState::Ended(ended)) => ended.clone(),
                _ => return,
            };
            let output = process.whole_output();
            then(ended, output).await;
            process.log().limit_to(keep_bytes);
        });
    }

    /// Returns the output of a process, as far as it is kept.
    pub async fn whole_output(&self, cx: &CallCx, id: &str) -> Result<CommandOutput> {
        Ok(self.find(cx, id).await?.whole_output())
    }
}

impl Process {
    fn whole_output(&self) -> CommandOutput {
        let log = self.log();
        let (bytes, dropped_bytes) = log.kept();
        CommandOutput { bytes: bytes.to_vec(), dropped_bytes }
    }
}

/// A process whose caller waits. If this is dropped while it runs in front, it is ended and its changes are discarded.
struct Waiting {
    processes: Arc<Processes>,
    workspace: WorkspaceId,
    process: Arc<Process>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.process.is_background() {
            return;
        }
        let (processes, workspace, id) = (Arc::clone(&self.processes), self.workspace, self.process.id.clone());
        let remove = move || {
            if let Some(entry) = processes.workspaces().get_mut(&workspace) {
                entry.processes.remove(&id);
            }
        };
        if self.process.state.borrow().is_over() {
            return remove();
        }
        self.process.is_discarded.store(true, Ordering::Release);
        self.process.stop("The caller stopped waiting");
        // There is no runtime only while the server shuts down.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let mut state = self.process.state.subscribe();
            runtime.spawn(async move {
                // An error means that the process is gone.
                let _ = state.wait_for(ProcessState::is_over).await;
                remove();
            });
        }
    }
}

//! Running programs on the files of a workspace.
//!
//! The files are checked out, the program runs on them in the sandbox, and its changes are checked in as one commit.

mod browser;
mod cell;
mod errors;
mod limits;
mod network;
mod output_log;
mod pipe_codes;
mod processes;
pub mod python;
mod run_counts;
mod run_to_completion;
mod secrets;
mod shell_commands;

pub(crate) use browser::RenderError;
pub use cell::{PYTHON, Toolchains, WORKSPACE};
pub use limits::{ExecLimits, RequestedLimits};
pub use network::NetworkOptions;
pub use output_log::OutputPiece;
pub use processes::{
    CommandOutput, EndOfInput, Ended, FrontCommand, FrontEnd, ProcessInfo, ProcessOptions, ProcessState, Processes,
    StartFailure,
};
pub use python::PythonEnvironment;
pub use run_counts::RunOutcome;
pub use shell_commands::simple_commands;
pub use toolrest_sandbox::{Language, Layer, Limit, LimitEnforcers, Limits as SandboxLimits};

use crate::exec::cell::{CellContents, cell_spec};
use crate::exec::errors::{lacks_overlay, to_tool_error};
use crate::exec::processes::Retry;
use crate::exec::run_counts::RunCounts;
use crate::exec::run_to_completion::RunToCompletion;
use crate::exec::secrets::{ProgramSecrets, Redaction};
use crate::outside::{AllowList, proxy::Proxy};
use std::{
    collections::BTreeSet,
    ffi::OsString,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::sync::{OnceCell, oneshot};
use toolrest_core::{
    CallCx, CheckedIn, Checkout, CheckoutMode, CheckoutOptions, ErrorKind, ExecutionRoot, FairQueue, Intent,
    KeepLimits, NoSecrets, ProgramHome, QueueDepth, QueueLimits, QueueSlot, Result, Secrets, ToolError,
};
use toolrest_sandbox::{
    Interpreter, Limits, Options, Pool, PoolOptions, PoolRefill, Report, RunningJob, Sandbox, Script, Stdin,
};
use tracing::Instrument;

/// Returns the intent to run code. The rules about commands know a command line by its commands, and other code by the
/// name of its language.
pub fn exec_intent(language: &str, code: &str) -> Intent {
    let commands = if language == "bash" { simple_commands(code) } else { Some(vec![language.to_owned()]) };
    Intent::Exec {
        language: language.to_owned(),
        command: code.to_owned(),
        commands,
        secrets: Vec::new(),
        inputs: Vec::new(),
    }
}

/// Delay before the next idle interpreter is started. Starting one takes a processor, so the answer is sent first.
const REFILL_DELAY: Duration = Duration::from_millis(1);

/// Seconds after which a caller should try again while the Python environment is being set up.
const SETUP_RETRY_SECONDS: u64 = 10;

/// Options of [`Executor`].
#[derive(Clone, Debug)]
pub struct ExecOptions {
    /// Limits of a program.
    pub limits: ExecLimits,
    /// Limits of the changes that are committed.
    pub keep: KeepLimits,
    /// Maximum numbers of concurrent programs; more wait.
    pub at_once: QueueLimits,
    /// Number of idle interpreters that are kept.
    pub waiting: usize,
    /// The hosts that programs may connect to, if their workspace allows them.
    pub network: NetworkOptions,
    /// What to do if no overlay can be mounted on a folder.
    pub without_overlay: WithoutOverlay,
    /// Layers of the sandbox that the operator accepts to be missing.
    pub accept_missing: BTreeSet<Layer>,
    /// The Python environment with the data libraries, which may be created while the server runs.
    pub python: Option<PythonEnvironment>,
    /// Compilers and interpreters outside of `/usr`.
    pub toolchains: Toolchains,
}

impl Default for ExecOptions {
    fn default() -> Self {
        Self {
            limits: ExecLimits::default(),
            keep: KeepLimits::default(),
            at_once: QueueLimits { in_all: 32, per_account: 16, per_workspace: 8 },
            waiting: 8,
            network: NetworkOptions::default(),
            without_overlay: WithoutOverlay::Refuse,
            accept_missing: BTreeSet::new(),
            python: None,
            toolchains: Toolchains::default(),
        }
    }
}

impl ExecOptions {
    /// Returns the folder of the Python environment, if it is complete by now.
    fn python_folder(&self) -> Option<&Path> {
        self.python.as_ref().and_then(PythonEnvironment::find)
    }

    /// Checks that the data libraries are installed. The error says whether to try again or to ask the operator.
    fn check_libraries(&self) -> Result<()> {
        if self.python_folder().is_some() {
            return Ok(());
        }
        if self.python.as_ref().is_some_and(PythonEnvironment::is_being_set_up) {
            let message = "This needs Python with pandas and matplotlib, which is still being set up; that takes about \
                           a minute. Try again in a few seconds";
            return Err(ToolError::new(ErrorKind::Unavailable, message).retry_after(SETUP_RETRY_SECONDS));
        }
        let message = "This needs Python with pandas and matplotlib, which is not set up: have the operator run \
                       `toolrest setup python`; the server can keep running";
        Err(ToolError::new(ErrorKind::NotConfigured, message))
    }
}

/// What to do if no overlay can be mounted on a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithoutOverlay {
    /// Refuse the program.
    Refuse,
    /// Run the program on the folder itself.
    RunInPlace,
}

/// Runs programs, or refuses them with a reason.
pub struct Executor {
    options: ExecOptions,
    ready: OnceCell<Ready>,
    refusal: Mutex<Refusal>,
    counts: RunCounts,
    secrets: Arc<dyn Secrets>,
    /// Held while the sandbox is started for the first time.
    first_start: Arc<tokio::sync::Mutex<()>>,
}

/// The reason why programs cannot be run.
#[derive(Default)]
struct Refusal {
    reason: String,
    /// When to try again to start the sandbox; never if the operator disabled programs.
    next_try: Option<Instant>,
}

/// Minimum time between attempts to start the sandbox. By then a full disk may have space, or the operator may have
/// changed the machine.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// The started sandbox and its interpreters.
struct Ready {
    pool: Pool,
    /// The system's interpreters that were found at the start.
    python: Option<Interpreter>,
    bash: Option<Interpreter>,
    runs: FairQueue,
    shared: Vec<&'static str>,
}

/// The limits and hosts of a program.
struct RunTerms {
    limits: Limits,
    /// The hosts that it may connect to, if any.
    hosts: Option<AllowList>,
    /// The secrets in its environment.
    secrets: ProgramSecrets,
    /// Its home directory, if it is one that stays.
    home: Option<ProgramHome>,
}

/// A started program.
struct Started {
    running: RunningJob,
    /// Its proxy, if it may connect to hosts.
    proxy: Option<Proxy>,
}

/// Resolves when the caller disconnects.
type Disconnected = oneshot::Receiver<()>;

/// The report of an ended program, and the refill of the interpreter pool, which runs after the answer was sent.
struct FinishedRun {
    report: Report,
    /// The hosts that it asked for and may not reach.
    refused_hosts: Vec<String>,
    after: PoolRefill,
}

/// A script to run.
#[derive(Clone)]
pub struct Program {
    /// The language.
    pub language: Language,
    /// The code.
    pub code: String,
    /// Command-line arguments.
    pub arguments: Vec<String>,
    /// Additional environment variables.
    pub env: Vec<(String, String)>,
    /// The names of secrets of the workspace that become environment variables.
    pub secrets: Vec<String>,
    /// Whether it needs the data libraries.
    pub libraries: Libraries,
}

impl Program {
    /// Creates a program that runs a command line with bash.
    pub fn command(command: String) -> Self {
        Self {
            language: Language::Bash,
            code: command,
            arguments: Vec::new(),
            env: Vec::new(),
            secrets: Vec::new(),
            libraries: Libraries::IfThere,
        }
    }

    /// Creates a program that runs a command line with bash in a folder below the working directory. Its two outputs are
    /// one stream, and the exit codes of the commands of its last pipe are reported.
    pub fn merged_command(command: &str, folder: Option<&str>) -> Self {
        Self::command(pipe_codes::merged(command, folder))
    }
}

/// Whether a program needs the data libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Libraries {
    /// They are optional.
    IfThere,
    /// They are required.
    Needed,
}

/// The result of a program.
pub struct RunResult {
    /// Its exit status and output.
    pub report: Report,
    /// The commit of its changes.
    pub checked_in: CheckedIn,
}

impl Executor {
    /// Starts the sandbox and verifies it. If this fails, every program is refused. Programs get their secrets from
    /// `secrets`.
    pub async fn start(options: ExecOptions, secrets: Arc<dyn Secrets>) -> Self {
        let executor = Self::new(options, secrets, Refusal::default());
        executor.start_first().await;
        executor
    }

    /// Creates an executor whose sandbox is started and verified beside other work. Programs wait for it.
    pub fn start_beside(options: ExecOptions, secrets: Arc<dyn Secrets>) -> Arc<Self> {
        let executor = Arc::new(Self::new(options, secrets, Refusal::default()));
        // Nobody else has it yet, so the lock is free.
        let starting = Arc::clone(&executor.first_start).try_lock_owned();
        let started = Arc::clone(&executor);
        tokio::spawn(async move {
            let _starting = starting;
            started.start_first().await;
        });
        executor
    }

    fn new(options: ExecOptions, secrets: Arc<dyn Secrets>, refusal: Refusal) -> Self {
        Self {
            options,
            ready: OnceCell::new(),
            refusal: Mutex::new(refusal),
            counts: RunCounts::default(),
            secrets,
            first_start: Arc::default(),
        }
    }

    async fn start_first(&self) {
        if let Err(reason) = self.try_start().await {
            tracing::error!(reason, "programs cannot be run");
        }
    }

    /// Starts the sandbox, unless it runs already. Stores the reason if it fails.
    async fn try_start(&self) -> std::result::Result<&Ready, String> {
        // This keeps other callers from trying at the same time.
        self.refusal().next_try = Some(Instant::now() + RETRY_INTERVAL);
        let started = self.ready.get_or_try_init(|| Ready::new(&self.options)).await;
        started.map_err(|error| {
            let reason = error.to_string();
            *self.refusal() = Refusal { reason: reason.clone(), next_try: Some(Instant::now() + RETRY_INTERVAL) };
            reason
        })
    }

    fn refusal(&self) -> MutexGuard<'_, Refusal> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates an executor that refuses every program.
    pub fn refusing(options: ExecOptions, reason: impl Into<String>) -> Self {
        Self::new(options, Arc::new(NoSecrets), Refusal { reason: reason.into(), next_try: None })
    }

    /// Returns what programs share with each other or with the server, so that they are not fully isolated. Empty if
    /// they are, or if programs are disabled.
    pub fn shared(&self) -> &[&'static str] {
        self.ready.get().map_or(&[], |ready| &ready.shared)
    }

    /// Returns how many programs run, and how many wait for a slot. Background processes are not included.
    pub fn queue(&self) -> QueueDepth {
        self.ready.get().map_or(QueueDepth::default(), |ready| ready.runs.depth())
    }

    /// Returns how many programs and background processes have ended, by outcome.
    pub fn ended_runs(&self) -> [(RunOutcome, u64); RunOutcome::ALL.len()] {
        self.counts.by_outcome()
    }

    /// Returns the maximum duration of a call that runs a program, including the time in queues.
    pub fn timeout(&self, limits: &toolrest_core::Limits) -> Duration {
        self.options.limits.ceiling.wall + limits.call_timeout
    }

    /// Runs a program and commits its changes, however it ended. If the caller disconnects while the program runs, the
    /// program is killed and nothing is committed.
    pub async fn run(self: &Arc<Self>, cx: &CallCx, program: Program, requested: RequestedLimits) -> Result<RunResult> {
        if program.libraries == Libraries::Needed {
            self.options.check_libraries()?;
        }
        self.ready().await?;
        // The run is finished even if the caller disconnects, because the files must not be used before the program is
        // dead.
        let (_caller, gone) = oneshot::channel::<()>();
        let (executor, own) = (Arc::clone(self), cx.detached());
        let work = async move {
            let ran = executor.run_to_completion(&own, &program, requested, gone).await;
            (ran, own)
        };
        let (ran, own) = RunToCompletion::new(work.in_current_span(), log_abandoned).await;
        cx.absorb(own);
        let (ran, after) = ran?;
        tokio::spawn(async move {
            tokio::time::sleep(REFILL_DELAY).await;
            drop(after);
        });
        Ok(ran)
    }

    async fn run_to_completion(
        &self,
        cx: &CallCx,
        program: &Program,
        requested: RequestedLimits,
        mut gone: Disconnected,
    ) -> Result<(RunResult, PoolRefill)> {
        let ready = self.ready().await?;
        let _slot = ready.wait_for_slot(cx, &mut gone).await?;
        cx.begin_outside_effects().await?;
        let secrets = self.secrets_of(cx, program).await?;
        let redaction = Redaction::of(&secrets)?;
        let mut checkout = self.check_out(cx, CheckoutMode::Isolated).await?;
        let terms = self.terms(cx, &*checkout, requested, secrets).await?;
        let mut ended = ready.run(&self.options, &checkout.execution_root(), program, &terms, &mut gone).await;
        if let Err(toolrest_sandbox::Error::SetUp(_)) = ended {
            // The program did not start. Its idle interpreter may have been set up while another program had made the
            // folder inaccessible; a new interpreter is set up now.
            ended = ready.run(&self.options, &checkout.execution_root(), program, &terms, &mut gone).await;
        }
        let ended = match ended {
            Err(error) if lacks_overlay(&error) && self.options.without_overlay == WithoutOverlay::RunInPlace => {
                checkout = self.check_out(cx, CheckoutMode::InPlace).await?;
                ready.run(&self.options, &checkout.execution_root(), program, &terms, &mut gone).await
            }
            ended => ended,
        };
        self.counts.add(match &ended {
            Ok(Some(finished)) => RunOutcome::of(&finished.report),
            Ok(None) => RunOutcome::Cancelled,
            Err(_) => RunOutcome::Error,
        });
        let Some(FinishedRun { mut report, refused_hosts, after }) = ended.map_err(|error| to_tool_error(&error))?
        else {
            return Err(caller_disconnected());
        };
        redaction.apply(&mut report);
        if !refused_hosts.is_empty() {
            cx.warn(format!(
                "The program may not reach {}; the owner of the workspace can allow hosts (settings.run.network)",
                refused_hosts.join(", ")
            ));
        }
        match checkout.finish(cx).await {
            Ok(checked_in) => Ok((RunResult { report, checked_in }, after)),
            // The output is reported although the changes are lost.
            Err(error) => Err(with_output(error, &report)),
        }
    }

    /// Returns the limits, hosts and home directory of a program in the workspace.
    async fn terms(
        &self,
        cx: &CallCx,
        checkout: &dyn Checkout,
        requested: RequestedLimits,
        secrets: ProgramSecrets,
    ) -> Result<RunTerms> {
        // What other programs left in the home directory must not get at secrets that were not meant for them.
        let home = if secrets.is_empty() { cx.workspace.program_home().await? } else { None };
        let settings = &checkout.settings().run;
        Ok(RunTerms {
            limits: self.options.limits.of(cx, settings, requested),
            hosts: self.options.network.hosts_of(settings),
            secrets,
            home,
        })
    }

    /// Returns the started sandbox. If it could not be started, it is tried again from time to time.
    async fn ready(&self) -> Result<&Ready> {
        if let Some(ready) = self.ready.get() {
            return Ok(ready);
        }
        let _first_start = self.first_start.lock().await;
        if let Some(ready) = self.ready.get() {
            return Ok(ready);
        }
        let is_retry_due = self.refusal().next_try.is_some_and(|next| Instant::now() >= next);
        if is_retry_due && let Ok(ready) = self.try_start().await {
            tracing::info!("programs can be run now");
            return Ok(ready);
        }
        let reason = self.refusal().reason.clone();
        let message = format!("Programs cannot be run here: {reason}");
        Err(ToolError::new(ErrorKind::SandboxUnavailable, message).detail("missing", reason))
    }

    /// Returns why a program did not run, and whether to start it again.
    fn start_failure(&self, error: &toolrest_sandbox::Error) -> StartFailure {
        let retry = match error {
            toolrest_sandbox::Error::SetUp(_) => Retry::Same,
            error if lacks_overlay(error) && self.options.without_overlay == WithoutOverlay::RunInPlace => {
                Retry::InPlace
            }
            _ => Retry::No,
        };
        StartFailure { error: to_tool_error(error), retry }
    }

    async fn check_out(&self, cx: &CallCx, mode: CheckoutMode) -> Result<Box<dyn Checkout>> {
        cx.workspace.check_out(CheckoutOptions { mode, keep: self.options.keep }).await
    }
}

impl Ready {
    async fn new(options: &ExecOptions) -> toolrest_sandbox::Result<Self> {
        let start = Options { accept_missing: options.accept_missing.clone(), ..Options::default() };
        let sandbox = Sandbox::start(start)?;
        let probe = sandbox.probe().await?;
        probe.verify()?;
        let pool = Pool::new(sandbox, PoolOptions { max_idle: options.waiting, ..PoolOptions::default() });
        let (python, bash) = (Interpreter::find(Language::Python).ok(), Interpreter::find(Language::Bash).ok());
        Ok(Self { pool, python, bash, runs: FairQueue::new(options.at_once), shared: probe.shared })
    }

    /// Waits for a slot. The files are checked out only afterwards, because a checkout takes disk and time.
    async fn wait_for_slot(&self, cx: &CallCx, gone: &mut Disconnected) -> Result<QueueSlot> {
        let (account, workspace) = (cx.caller.user, cx.workspace_id);
        if let Ok(slot) = self.runs.try_enter(account, workspace) {
            return Ok(slot);
        }
        // Only members wait, so that strangers cannot fill the queue.
        cx.workspace.authorise().await?;
        tokio::select! {
            slot = self.runs.enter(account, workspace) => Ok(slot),
            _ = gone => Err(caller_disconnected()),
        }
    }

    /// Runs a program and waits for its end. If the caller disconnects, the program is killed, and there is no result.
    async fn run(
        &self,
        options: &ExecOptions,
        root: &ExecutionRoot,
        program: &Program,
        terms: &RunTerms,
        gone: &mut Disconnected,
    ) -> toolrest_sandbox::Result<Option<FinishedRun>> {
        if gone.is_terminated() {
            return Ok(None);
        }
        let started = self.start(options, root, program, terms, Stdin::Empty).await?;
        let Started { mut running, proxy } = started;
        let after = running.take_refill();
        let mut is_connected = true;
        loop {
            tokio::select! {
                printed = running.next() => if printed.is_none() { break },
                _ = &mut *gone, if is_connected => {
                    is_connected = false;
                    running.kill();
                }
            }
        }
        let report = running.wait().await?;
        let refused_hosts = proxy.as_ref().map(Proxy::refused_hosts).unwrap_or_default();
        Ok(is_connected.then_some(FinishedRun { report, refused_hosts, after }))
    }

    /// Starts a program.
    async fn start(
        &self,
        options: &ExecOptions,
        root: &ExecutionRoot,
        program: &Program,
        terms: &RunTerms,
        stdin: Stdin,
    ) -> toolrest_sandbox::Result<Started> {
        let python = options.python_folder();
        let interpreter = match (program.language, python) {
            (Language::Python, Some(_)) => Some(Interpreter::new(Language::Python, format!("{PYTHON}/bin/python3"))),
            (Language::Python, None) => self.python.clone(),
            (Language::Bash, _) => self.bash.clone(),
        };
        let interpreter = match interpreter {
            Some(interpreter) => interpreter,
            None => Interpreter::find(program.language)?,
        };
        let secrets = terms.secrets.iter().map(|(name, secret)| (name.as_str(), secret.expose()));
        let env = program.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).chain(secrets);
        let script = Script {
            code: program.code.clone().into(),
            arguments: program.arguments.iter().map(OsString::from).collect(),
            env: env.map(|(name, value)| (name.into(), value.into())).collect(),
            stdin,
        };
        let (toolchains, home) = (&options.toolchains, terms.home.as_ref().map(|home| &home.folder));
        let spec = cell_spec(&CellContents { root, python, toolchains, home }, &terms.limits)?;
        let Some(hosts) = &terms.hosts else {
            let spec = network::without_network(spec);
            return Ok(Started { running: self.pool.run(&spec, &interpreter, script).await?, proxy: None });
        };
        let mut running = self.pool.run(&network::with_proxy(spec), &interpreter, script).await?;
        let proxy = options.network.serve(running.listener().await?, hosts.clone());
        Ok(Started { running, proxy: Some(proxy) })
    }
}

/// Creates the error for a call whose caller disconnected.
fn caller_disconnected() -> ToolError {
    ToolError::new(ErrorKind::Cancelled, "The caller disconnected; the program was ended and nothing was changed")
}

/// Logs the failure of a run whose caller does not wait for the answer any more.
fn log_abandoned<T>((ran, cx): (Result<T>, CallCx)) {
    if let Err(error) = ran {
        let span = tracing::info_span!("abandoned run", call.id = %cx.id);
        span.in_scope(|| error.log_cause());
    }
}

/// Adds the output of a program to an error.
fn with_output(error: ToolError, report: &Report) -> ToolError {
    error
        .detail("stdout", report.stdout.text())
        .detail("stderr", report.stderr.text())
        .detail("exitCode", report.exit.code())
}

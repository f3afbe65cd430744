//! Running programs on a workspace's files.
//!
//! The files are checked out, the program runs on them in the sandbox, and what it changed is checked in as one commit.

mod errors;
mod limits;
mod network;
mod output_log;
mod processes;
mod run_to_completion;

pub use limits::{Asked, ExecLimits};
pub use network::NetworkOptions;
pub use output_log::OutputPiece;
pub use processes::{EndOfInput, Ended, ProcessInfo, ProcessOptions, ProcessState, Processes};
pub use toolrest_sandbox::{Enforced, Language, Layer, Limit, Limits as SandboxLimits};

use crate::exec::errors::{explain, lacks_overlay};
use crate::exec::run_to_completion::RunToCompletion;
use crate::outside::{AllowList, proxy::Proxy};
use std::{
    collections::BTreeSet,
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::sync::{OnceCell, oneshot};
use toolrest_core::{
    CallCx, CheckedIn, Checkout, CheckoutMode, CheckoutOptions, ErrorKind, ExecutionRoot, FairQueue, FolderHandle,
    KeepLimits, QueueLimits, QueueSlot, Result, ToolError,
};
use toolrest_sandbox::{
    Access, CellSpec, Interpreter, Limits, Mount, Options, Pool, PoolOptions, PoolRefill, Report, Running, Sandbox,
    Script, Source, Stdin,
};
use tracing::Instrument;

/// Where a program finds the workspace's files, and starts.
pub const WORKSPACE: &str = toolrest_core::WORKSPACE_MOUNT;
/// Where a program finds the Python environment with the libraries for data.
pub const PYTHON: &str = "/opt/toolrest/python";

/// Enough, mostly, for the answer to be on its way. Only then the next interpreter is started, which takes a processor.
const ANSWERING: Duration = Duration::from_millis(1);

/// How programs are run.
#[derive(Clone, Debug)]
pub struct ExecOptions {
    /// What a program may use.
    pub limits: ExecLimits,
    /// How much of what it changes is kept.
    pub keep: KeepLimits,
    /// How many run at once, in all, per account and per workspace; more wait.
    pub at_once: QueueLimits,
    /// How many interpreters wait for a script.
    pub waiting: usize,
    /// What programs may reach, where their workspace allows it.
    pub network: NetworkOptions,
    /// What to do with a folder over which no overlay can be mounted.
    pub without_overlay: WithoutOverlay,
    /// Layers of the sandbox that the operator does without.
    pub accept_missing: BTreeSet<Layer>,
    /// A Python environment with libraries for data.
    pub python: Option<PathBuf>,
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
        }
    }
}

/// What to do with a folder over which no overlay can be mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithoutOverlay {
    /// Run nothing.
    Refuse,
    /// Run on the folder itself.
    RunInPlace,
}

/// Runs programs, or says why it cannot.
pub struct Executor {
    options: ExecOptions,
    ready: OnceCell<Ready>,
    refusal: Mutex<Refusal>,
}

/// Why programs cannot be run.
#[derive(Default)]
struct Refusal {
    reason: String,
    /// When it is tried again whether they can; never, if the operator wants none.
    next_try: Option<Instant>,
}

/// How long it takes at least until it is tried again whether programs can be run: a disk that was full may have room by
/// then, or the operator may have changed the machine.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(10);

/// What it takes to run programs.
struct Ready {
    pool: Pool,
    /// The interpreters that were there at the start.
    python: Option<Interpreter>,
    bash: Option<Interpreter>,
    runs: FairQueue,
    shared: Vec<&'static str>,
}

/// On which terms a program runs.
struct Terms {
    limits: Limits,
    /// What it may reach, if anything.
    hosts: Option<AllowList>,
}

/// A program that was started.
struct Started {
    running: Running,
    /// Its way out, if it has one.
    proxy: Option<Proxy>,
}

/// Told when the caller goes away.
type Gone = oneshot::Receiver<()>;

/// How a program ended, and what is to be done once its caller has been served.
struct Finished {
    report: Report,
    after: PoolRefill,
}

/// A program: a script of a language.
pub struct Program {
    /// The language.
    pub language: Language,
    /// The code.
    pub code: String,
    /// What it is called with.
    pub arguments: Vec<String>,
    /// Variables beside those that every program has.
    pub env: Vec<(String, String)>,
    /// Whether it needs the libraries for data.
    pub libraries: Libraries,
}

impl Program {
    /// A command, as bash understands it.
    pub fn command(command: String) -> Self {
        Self {
            language: Language::Bash,
            code: command,
            arguments: Vec::new(),
            env: Vec::new(),
            libraries: Libraries::IfThere,
        }
    }
}

/// Whether a program needs the libraries for data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Libraries {
    /// It can do without.
    IfThere,
    /// It is of no use without.
    Needed,
}

/// What came of a program.
pub struct Ran {
    /// How it ended and what it printed.
    pub report: Report,
    /// What became of its changes.
    pub checked_in: CheckedIn,
}

impl Executor {
    /// Starts the sandbox and proves that it holds. Where it does not, every program is refused.
    pub async fn start(options: ExecOptions) -> Self {
        let executor = Self { options, ready: OnceCell::new(), refusal: Mutex::default() };
        if let Err(reason) = executor.try_start().await {
            tracing::error!(reason, "programs cannot be run");
        }
        executor
    }

    /// Starts the sandbox, unless it runs. Remembers why it does not.
    async fn try_start(&self) -> std::result::Result<&Ready, String> {
        // Until it is known how this ends, nobody else tries.
        self.refusal().next_try = Some(Instant::now() + TRY_AGAIN_AFTER);
        let started = self.ready.get_or_try_init(|| Ready::new(&self.options)).await;
        started.map_err(|error| {
            let reason = error.to_string();
            *self.refusal() = Refusal { reason: reason.clone(), next_try: Some(Instant::now() + TRY_AGAIN_AFTER) };
            reason
        })
    }

    fn refusal(&self) -> MutexGuard<'_, Refusal> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses every program.
    pub fn refusing(options: ExecOptions, reason: impl Into<String>) -> Self {
        let refusal = Refusal { reason: reason.into(), next_try: None };
        Self { options, ready: OnceCell::new(), refusal: Mutex::new(refusal) }
    }

    /// What programs share with each other or with the server, so that tenants are not kept apart. Empty where they are, and
    /// where no program runs.
    pub fn shared(&self) -> &[&'static str] {
        self.ready.get().map_or(&[], |ready| &ready.shared)
    }

    /// How long a call may take that runs a program, waiting included.
    pub fn timeout(&self, limits: &toolrest_core::Limits) -> Duration {
        self.options.limits.ceiling.wall + limits.call_timeout
    }

    /// Runs a program to its end and commits what it changed, however it ended. A caller who goes away ends it, and then
    /// nothing is changed; unless it had ended already, when all of it is.
    pub async fn run(self: &Arc<Self>, cx: &CallCx, program: Program, asked: Asked) -> Result<Ran> {
        if program.libraries == Libraries::Needed && self.options.python.is_none() {
            let message = "This needs Python with pandas and matplotlib, which is not set up: have the operator run \
                           `toolrest setup python` and start the server again";
            return Err(ToolError::new(ErrorKind::NotConfigured, message));
        }
        self.ready().await?;
        // It is seen through whether the caller stays or not: nobody gets the files before the program is dead.
        let (_caller, gone) = oneshot::channel::<()>();
        let (executor, own) = (Arc::clone(self), cx.detached());
        let work = async move {
            let ran = executor.run_to_completion(&own, &program, asked, gone).await;
            (ran, own)
        };
        let (ran, own) = RunToCompletion::new(work.in_current_span(), log_abandoned).await;
        cx.absorb(own);
        let (ran, after) = ran?;
        tokio::spawn(async move {
            tokio::time::sleep(ANSWERING).await;
            drop(after);
        });
        Ok(ran)
    }

    async fn run_to_completion(
        &self,
        cx: &CallCx,
        program: &Program,
        asked: Asked,
        mut gone: Gone,
    ) -> Result<(Ran, PoolRefill)> {
        let ready = self.ready().await?;
        let _place = ready.place(cx, &mut gone).await?;
        let mut checkout = self.check_out(cx, CheckoutMode::Isolated).await?;
        let terms = self.terms(cx, &*checkout, asked);
        let mut ended = ready.run(&self.options, &checkout.execution_root(), program, &terms, &mut gone).await;
        if let Err(toolrest_sandbox::Error::SetUp(_)) = ended {
            // The program did not start. Its interpreter may have waited since a moment at which the program before had
            // closed the folder to itself; another one is set up now.
            ended = ready.run(&self.options, &checkout.execution_root(), program, &terms, &mut gone).await;
        }
        let ended = match ended {
            Err(error) if lacks_overlay(&error) && self.options.without_overlay == WithoutOverlay::RunInPlace => {
                checkout = self.check_out(cx, CheckoutMode::InPlace).await?;
                ready.run(&self.options, &checkout.execution_root(), program, &terms, &mut gone).await
            }
            ended => ended,
        };
        let Some(Finished { report, after }) = ended.map_err(|error| explain(&error))? else {
            return Err(nobody_waits());
        };
        match checkout.finish(cx).await {
            Ok(checked_in) => Ok((Ran { report, checked_in }, after)),
            // What it printed is not lost with its changes.
            Err(error) => Err(with_output(error, &report)),
        }
    }

    /// What a program may use in the workspace.
    fn terms(&self, cx: &CallCx, checkout: &dyn Checkout, asked: Asked) -> Terms {
        let settings = &checkout.settings().run;
        Terms { limits: self.options.limits.of(cx, settings, asked), hosts: self.options.network.hosts_of(settings) }
    }

    /// What it takes to run programs. Where that was missing it is looked for again from time to time.
    async fn ready(&self) -> Result<&Ready> {
        if let Some(ready) = self.ready.get() {
            return Ok(ready);
        }
        let is_due = self.refusal().next_try.is_some_and(|next| Instant::now() >= next);
        if is_due && let Ok(ready) = self.try_start().await {
            tracing::info!("programs can be run now");
            return Ok(ready);
        }
        let reason = self.refusal().reason.clone();
        let message = format!("Programs cannot be run here: {reason}");
        Err(ToolError::new(ErrorKind::SandboxUnavailable, message).detail("missing", reason))
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
        let python = match &options.python {
            Some(_) => Some(Interpreter::new(Language::Python, format!("{PYTHON}/bin/python3"))),
            None => Interpreter::find(Language::Python).ok(),
        };
        let (bash, runs) = (Interpreter::find(Language::Bash).ok(), FairQueue::new(options.at_once));
        Ok(Self { pool, python, bash, runs, shared: probe.shared })
    }

    /// Waits for a place among the programs that run at once. The files are checked out only then: a check-out takes
    /// disk and time, of which an account gets no more than its share either.
    async fn place(&self, cx: &CallCx, gone: &mut Gone) -> Result<QueueSlot> {
        let (account, workspace) = (cx.caller.user, cx.workspace_id);
        if let Ok(place) = self.runs.try_enter(account, workspace) {
            return Ok(place);
        }
        // Only members wait: a stranger would keep them from their turn.
        cx.workspace.authorise().await?;
        tokio::select! {
            place = self.runs.enter(account, workspace) => Ok(place),
            _ = gone => Err(nobody_waits()),
        }
    }

    /// Runs a program and waits for its end. If the caller goes away meanwhile, it is ended, and nothing is told.
    async fn run(
        &self,
        options: &ExecOptions,
        root: &ExecutionRoot,
        program: &Program,
        terms: &Terms,
        gone: &mut Gone,
    ) -> toolrest_sandbox::Result<Option<Finished>> {
        if gone.is_terminated() {
            return Ok(None);
        }
        let started = self.start(options, root, program, terms, Stdin::Empty).await?;
        let Started { mut running, proxy: _proxy } = started;
        let after = running.take_refill();
        let mut is_wanted = true;
        loop {
            tokio::select! {
                printed = running.next() => if printed.is_none() { break },
                _ = &mut *gone, if is_wanted => {
                    is_wanted = false;
                    running.kill();
                }
            }
        }
        let report = running.wait().await?;
        Ok(is_wanted.then_some(Finished { report, after }))
    }

    /// Starts a program.
    async fn start(
        &self,
        options: &ExecOptions,
        root: &ExecutionRoot,
        program: &Program,
        terms: &Terms,
        stdin: Stdin,
    ) -> toolrest_sandbox::Result<Started> {
        let python = options.python.as_deref();
        let interpreter = match program.language {
            Language::Python => self.python.as_ref(),
            Language::Bash => self.bash.as_ref(),
        };
        let interpreter = match interpreter {
            Some(interpreter) => interpreter.clone(),
            None => Interpreter::find(program.language)?,
        };
        let script = Script {
            code: program.code.clone().into(),
            arguments: program.arguments.iter().map(OsString::from).collect(),
            env: program.env.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            stdin,
        };
        let place = place(root, python, &terms.limits)?;
        let Some(hosts) = &terms.hosts else {
            return Ok(Started { running: self.pool.run(&place, &interpreter, script).await?, proxy: None });
        };
        let mut running = self.pool.run(&network::with_proxy(place), &interpreter, script).await?;
        let proxy = options.network.serve(running.listener().await?, hosts.clone());
        Ok(Started { running, proxy: Some(proxy) })
    }
}

/// Where a program runs: on the workspace's files, with the libraries for data if there are any.
fn place(root: &ExecutionRoot, python: Option<&Path>, limits: &Limits) -> toolrest_sandbox::Result<CellSpec> {
    let mut place = match root {
        ExecutionRoot::Folder(folder) => CellSpec::new(source(folder)?, WORKSPACE),
        ExecutionRoot::Shared { folder, read_only } => {
            let (folder, target) = (source(folder)?, WORKSPACE.into());
            let (source, access) = (folder.clone(), Access::ReadWrite);
            let frozen = read_only.iter().map(|path| path.clone().into_os_string()).collect();
            let mount = Mount::Folder { source, target, access, frozen };
            CellSpec { mounts: vec![mount], ..CellSpec::new(folder, WORKSPACE) }
        }
        ExecutionRoot::Overlay { lower, private } => {
            let (lower, private) = (vec![source(lower)?], source(private)?);
            let mount = Mount::Overlay { lower, private: private.clone(), target: WORKSPACE.into() };
            CellSpec { mounts: vec![mount], ..CellSpec::new(private, WORKSPACE) }
        }
    };
    if let Some(python) = python {
        let mount = Mount::Folder {
            // The operator's own path. It is opened anew each time, because the environment can be replaced.
            source: Source::open(python)?,
            target: PYTHON.into(),
            access: Access::ReadOnly,
            frozen: Vec::new(),
        };
        place = place.mount(mount);
    }
    let place = place
        // What programs keep for themselves does not belong to the workspace's files.
        .env("HOME", "/tmp")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        // A program that is ended has printed what it printed.
        .env("PYTHONUNBUFFERED", "1")
        .env("MPLBACKEND", "Agg")
        .limits(limits.clone());
    Ok(place)
}

/// A folder as the sandbox gets it. Failures name it as programs see it, because callers read them.
fn source(folder: &FolderHandle) -> toolrest_sandbox::Result<Source> {
    Source::from_descriptor(Arc::clone(&folder.descriptor), WORKSPACE)
}

/// Ends a call that nobody hears the answer of.
fn nobody_waits() -> ToolError {
    ToolError::new(ErrorKind::Cancelled, "The caller went away; the program was ended and nothing was changed")
}

/// Logs the failure of a run whose caller does not wait for the answer any more.
fn log_abandoned<T>((ran, cx): (Result<T>, CallCx)) {
    if let Err(error) = ran {
        let span = tracing::info_span!("abandoned run", call.id = %cx.id);
        span.in_scope(|| error.log_cause());
    }
}

/// Adds what a program printed to an error that came after it.
fn with_output(error: ToolError, report: &Report) -> ToolError {
    error
        .detail("stdout", report.stdout.text())
        .detail("stderr", report.stderr.text())
        .detail("exitCode", report.exit.code())
}

#[cfg(test)]
#[path = "exec_tests.rs"]
mod exec_tests;

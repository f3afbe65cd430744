//! The runtime: the store, the sandbox, the toolsets and the engine, without a port.

use crate::approvals::WaitingCallsOf;
use crate::approver::{self, Approver};
use crate::auth::{AccessTokens, AgentKeys, KeyUses, Passwords, fresh_secret};
use crate::local::{self, Local};
use crate::lock_file::LockFile;
use crate::metrics;
use crate::outside::{self, OutsideError};
use crate::policy::StoredPolicy;
use crate::programs::{self, SandboxStart};
use crate::python;
use crate::secrets::SecretVault;
use crate::settings::Settings;
use crate::sign_ins;
use crate::toolchains;
use crate::upkeep::{self, Upkeep};
use crate::webhooks::{ReportingRecorder, Webhooks};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    net::SocketAddr,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::task::JoinHandle;
use toolrest_core::{
    Approval, Call, CallId, CallOutcome, Caller, Engine, ErrorKind, FairQueue, JsonText, Key, Limits, Memories,
    Permission, QueueLimits, Recorder, Redactor, Result, Sessions, ToolError, Toolset, Toolsets, WorkspaceId,
};
use toolrest_ops::exec::{Executor, Processes};
use toolrest_store::{Instance, Postgres, PostgresOptions, Quotas, Sqlite, Store, StoreError, WriteBehind};
use toolrest_toolsets::Services;
use toolrest_workspaces::{
    AllowedRoot, CacheLimits, FolderOptions, GuardedPath, HistoryLimits, ProgramCaches, Repositories, Scratch,
    StoredWorkspaces,
};
use uuid::Uuid;

/// Everything that tool calls need, opened from the settings. [`Server`](crate::Server) serves it over HTTP.
///
/// Several processes may open the same data folder at the same time, on SQLite too. Each runs its own programs and
/// background processes; one of them does the periodic work on the database for all.
pub struct Runtime {
    pub(crate) settings: Settings,
    pub(crate) engine: Engine,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) workspaces: Arc<StoredWorkspaces>,
    pub(crate) executor: Arc<Executor>,
    /// The background processes.
    pub(crate) processes: Arc<Processes>,
    /// The calls that wait for a person, for tools.
    pub(crate) calls_for_tools: Arc<WaitingCallsOf>,
    /// The secrets of workspaces.
    pub(crate) secrets: Arc<SecretVault>,
    pub(crate) tokens: Arc<AccessTokens>,
    pub(crate) agent_keys: AgentKeys,
    /// Uses of agent keys that are not stored yet.
    pub(crate) key_uses: Arc<KeyUses>,
    /// The home directories of programs, if they are kept.
    pub(crate) caches: Option<Arc<ProgramCaches>>,
    pub(crate) passwords: Passwords,
    pub(crate) records: Arc<WriteBehind>,
    pub(crate) webhooks: Webhooks,
    /// The calls that wait for a person while their callers wait too, up to the number of calls that an account can make.
    pub(crate) waiting_calls: FairQueue,
    /// This process.
    instance: Instance,
    stopping: AtomicBool,
    /// Called whenever a call begins to wait for a person.
    asked: OnceLock<AskedCallback>,
    /// Decides about calls of this program.
    approver: Option<Arc<dyn Approver>>,
    upkeep: JoinHandle<()>,
}

/// A function that learns of a call that waits for a person.
pub(crate) type AskedCallback = Box<dyn Fn(&Approval) + Send + Sync>;

/// What a program adds to a runtime.
#[derive(Default)]
pub struct RuntimeOptions {
    toolsets: Vec<Toolset>,
    approver: Option<Arc<dyn Approver>>,
    sandbox: SandboxStart,
}

impl RuntimeOptions {
    /// Adds a toolset of the program beside those of Toolrest.
    #[must_use]
    pub fn with_toolset(mut self, toolset: Toolset) -> Self {
        self.toolsets.push(toolset);
        self
    }

    /// Returns the runtime before the sandbox was started and verified; programs wait for it.
    #[must_use]
    pub fn with_sandbox_beside(mut self) -> Self {
        self.sandbox = SandboxStart::Beside;
        self
    }

    /// Has the calls of [`Runtime::call`] judged by the rules whoever calls, and this approver asked where they ask.
    #[must_use]
    pub fn with_approver(mut self, approver: impl Approver + 'static) -> Self {
        self.approver = Some(Arc::new(approver));
        self
    }
}

/// Why a runtime or a server could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}; is another server running? Choose another address with {option}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the address was given with.
        option: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// The tool backend would let everybody in who reaches it.
    #[error(
        "--tool-backend-listen {address} can be reached from other machines, so calls need tokens: add --require-token, or \
         listen on a loopback address"
    )]
    OpenToolBackend {
        /// The address.
        address: SocketAddr,
    },
    /// The data folder cannot be created.
    #[error("cannot create the data folder {path}: {source}")]
    DataDir {
        /// The folder.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// Programs would see the data folder.
    #[error(
        "run.read_only has {folder}, which shows programs the data folder {data_dir}; choose another folder, or move the data \
         with --data-dir"
    )]
    ShowsDataDir {
        /// The folder.
        folder: String,
        /// The data folder.
        data_dir: String,
    },
    /// A folder of the settings cannot be opened.
    #[error("cannot use the folder {path}: {source}")]
    Folder {
        /// The folder.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The settings of the web or of GitHub cannot be used.
    #[error("{0}")]
    Outside(#[from] OutsideError),
    /// There is no database yet.
    #[error(
        "there is no database {path}; give the data folder of the server with --data-dir, or its database with --database-url"
    )]
    NoDatabase {
        /// The file.
        path: String,
    },
    /// The database cannot be used.
    #[error("{0}")]
    Store(#[from] ToolError),
}

impl From<StoreError> for StartError {
    fn from(error: StoreError) -> Self {
        ToolError::from(error).into()
    }
}

impl Runtime {
    /// Opens the database, migrates it, and starts the sandbox and the periodic tasks.
    pub async fn open(settings: Settings) -> Result<Self, StartError> {
        Self::open_with(settings, RuntimeOptions::default()).await
    }

    /// Opens a runtime like [`Runtime::open`], with toolsets and an approver of the program.
    pub async fn open_with(settings: Settings, options: RuntimeOptions) -> Result<Self, StartError> {
        create_data_dir(&settings)?;
        toolchains::check(&settings)?;
        let store = open_store(&settings).await?;
        let secret = match &settings.jwt.secret {
            Some(secret) => secret.clone(),
            None => store.secret("jwt", &fresh_secret()?).await?,
        };
        let tokens = Arc::new(AccessTokens::new(&secret, settings.jwt.access_token_expiration_minutes));
        let agent_keys = AgentKeys::new(&store.secret("keys", &fresh_secret()?).await?)?;
        let workspaces =
            StoredWorkspaces::new(Arc::clone(&store), folder_options(&settings)?, open_scratch(&settings)?);
        let workspaces = workspaces
            .with_read_budget(settings.limits.in_flight_bytes, settings.limits.response_bytes)
            .with_check_in_budget(settings.run.keep_bytes);
        let caches = program_caches(&settings);
        let workspaces = match &caches {
            Some(caches) => workspaces.with_caches(Arc::clone(caches)),
            None => workspaces,
        };
        let workspaces = Arc::new(workspaces);
        let passwords = Passwords::new()?;
        let redactor = Redactor::new(store.secret("records", &fresh_secret()?).await?.as_bytes());
        let instance = Instance { id: Uuid::now_v7(), node: node_name() };
        // A running call of a process that was never seen would count as abandoned.
        match store.heartbeat(&instance).await {
            // Reads still work. Running calls cannot be stored either.
            Err(StoreError::StorageFull(reason)) => tracing::warn!(reason, "could not register this process"),
            registered => registered?,
        }
        let records = Arc::new(WriteBehind::start(Arc::clone(&store), instance.id, redactor));
        let secrets = Arc::new(SecretVault::new(Arc::<dyn Store>::clone(&store), &settings));
        let memories: Arc<dyn Memories> = Arc::<dyn Store>::clone(&store);
        let sessions: Arc<dyn Sessions> = Arc::<dyn Store>::clone(&store);
        let calls_for_tools = Arc::<WaitingCallsOf>::default();
        let outside = outside::open(&settings, &store, Arc::<SecretVault>::clone(&secrets))?;
        let webhooks = Webhooks::start(&settings, outside.client.clone())?;
        let services = programs::start(
            &settings,
            memories,
            sessions,
            Arc::<WaitingCallsOf>::clone(&calls_for_tools),
            Arc::<SecretVault>::clone(&secrets),
            outside,
            options.sandbox,
        )
        .await;
        warn_of_shared_programs(&settings, services.executor.shared());
        let RuntimeOptions { toolsets, approver, sandbox: _ } = options;
        let toolsets = toolsets.into_iter().fold(toolrest_toolsets::all(&services), Toolsets::with);
        let policy = Arc::new(StoredPolicy::new(Arc::clone(&store), &settings, &toolsets)?);
        let engine = Engine::new(
            toolsets,
            Arc::<StoredWorkspaces>::clone(&workspaces),
            policy,
            Arc::new(ReportingRecorder { records: Arc::clone(&records), webhooks: webhooks.clone() }),
            limits(&settings),
        );
        let Services { executor, processes, .. } = services;
        let key_uses = Arc::<KeyUses>::default();
        let upkeep = Upkeep {
            store: Arc::clone(&store),
            key_uses: Arc::clone(&key_uses),
            instance: instance.clone(),
            tokens: Arc::clone(&tokens),
            processes: Arc::clone(&processes),
            caches: caches.clone(),
            settings: settings.clone(),
            leader: LockFile::open(&settings.server.data_dir.join("upkeep.lock")),
        };
        // Tokens that were revoked while no server ran.
        upkeep.refresh_revocations().await?;
        upkeep.renew_versions_at_start().await;
        let upkeep = tokio::spawn(upkeep::run(upkeep));
        let waiting_calls = FairQueue::new(QueueLimits {
            in_all: usize::MAX,
            per_account: settings.limits.calls_per_account,
            per_workspace: usize::MAX,
        });
        Ok(Self {
            settings,
            engine,
            store,
            workspaces,
            caches,
            executor,
            processes,
            calls_for_tools,
            secrets,
            tokens,
            agent_keys,
            key_uses,
            passwords,
            records,
            webhooks,
            waiting_calls,
            instance,
            stopping: AtomicBool::new(false),
            asked: OnceLock::new(),
            approver,
            upkeep,
        })
    }

    /// Returns the settings that the runtime was opened with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the engine, through which every tool call passes.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Opens the local user's workspace for a folder, and creates it the first time. The settings must allow the folder:
    /// by `folders.local_dir`, or by `folders.allowed_roots`.
    pub async fn open_local(&self, folder: &Path) -> Result<Local> {
        local::open(self, folder).await
    }

    /// Returns the toolsets that can be called.
    pub fn toolsets(&self) -> &Toolsets {
        self.engine.toolsets()
    }

    /// Calls a tool. The outcome can be rendered as JSON, as a text for models, or in the format of the toolset.
    ///
    /// With an [`Approver`] the call is judged by the rules, and the approver is asked where they ask. Without one, a
    /// person's call is the person's own hand, which only `deny` refuses, and a key's call fails where a rule asks.
    pub async fn call(
        &self,
        workspace: WorkspaceId,
        caller: Caller,
        toolset: &str,
        tool: &str,
        args: &(impl Serialize + Sync),
    ) -> Result<CallOutcome> {
        let id = CallId::new();
        let call = Call {
            id,
            correlation: id.to_string(),
            toolset: toolset.to_owned(),
            tool: tool.to_owned(),
            args: JsonText::of(args)?,
            caller,
            workspace,
            session: String::new(),
        };
        if let Some(approver) = &self.approver {
            return approver::call(self, call, &**approver).await;
        }
        // A person's own program is the person's own hand; a key is judged like any agent.
        let permission = if caller.key.is_some() { Permission::Ask } else { Permission::OwnHand };
        self.engine.call(&call, &permission, Ok).await
    }

    /// Has a function called whenever a call begins to wait for a person. Returns false if there is one already.
    pub(crate) fn on_asked(&self, notify: AskedCallback) -> bool {
        self.asked.set(notify).is_ok()
    }

    /// Tells of a call that waits for a person.
    pub(crate) fn tell_asked(&self, approval: &Approval) {
        if let Some(notify) = self.asked.get() {
            notify(approval);
        }
    }

    /// Returns the id of this process.
    pub(crate) fn instance_id(&self) -> Uuid {
        self.instance.id
    }

    /// Returns the name of this machine.
    pub(crate) fn node(&self) -> &str {
        &self.instance.node
    }

    /// Returns the machine that must run the calls of a workspace: the one with its folder. None for a workspace in the
    /// database, whose calls any machine can run.
    pub(crate) async fn node_of(&self, workspace: WorkspaceId) -> Result<Option<String>> {
        let location = self.store.location(workspace).await?;
        let is_folder = location.is_some_and(|(location, _)| location.root().is_some());
        Ok(is_folder.then(|| self.node().to_owned()))
    }

    /// Returns arguments as they are recorded.
    pub(crate) fn redacted(&self, args: &str) -> String {
        self.records.redact(args)
    }

    /// Returns the caller of a stored call, with the scope of its key as it is now.
    pub(crate) async fn stored_caller(&self, call: &Call) -> Result<Caller> {
        let Some(key) = call.caller.key else { return Ok(call.caller) };
        let Some(info) = self.store.key(call.workspace, key.id).await? else {
            return Err(ToolError::new(ErrorKind::Forbidden, "The agent key of this call does not exist any more"));
        };
        let toolsets = self.engine.toolsets().mask(info.toolsets.iter().map(String::as_str));
        Ok(Caller { key: Some(Key { actions: info.actions, toolsets, ..key }), ..call.caller })
    }

    /// Whether the server stops, so that nobody may wait any longer.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Has waiting calls answered, because the server stops.
    pub(crate) fn begin_stopping(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    /// Returns the metrics in the text format of Prometheus.
    pub async fn metrics(&self) -> String {
        metrics::text(self, None).await
    }

    /// Stops the background processes, and waits for the commits of their changes for `server.shutdown_grace_ms`.
    pub(crate) async fn stop_processes(&self) {
        let grace = Duration::from_millis(self.settings.server.shutdown_grace_ms);
        self.processes.stop_all(None, grace).await;
    }

    /// Stops the background processes, writes the remaining records of calls, and updates the storage counters. Calls must
    /// have ended. Other processes on the same data folder are not affected.
    pub async fn close(&self) {
        self.stop_processes().await;
        self.upkeep.abort();
        if let Err(error) = upkeep::store_key_uses(&*self.store, &self.key_uses).await {
            tracing::warn!(%error, "could not store when keys were last used");
        }
        self.records.close().await;
        if let Err(error) = self.store.end_instance(self.instance.id).await {
            tracing::warn!(%error, "could not record the end of this process");
        }
        if let Err(error) = self.store.synchronise().await {
            tracing::warn!(%error, "could not update the storage counters");
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.upkeep.abort();
    }
}

/// Returns the limits of calls of the settings.
fn limits(settings: &Settings) -> Limits {
    Limits {
        call_timeout: Duration::from_millis(settings.limits.call_timeout_ms),
        calls_per_workspace: settings.limits.calls_per_workspace,
        calls_per_account: settings.limits.calls_per_account,
        response_bytes: settings.limits.response_bytes,
        search_timeout: Duration::from_millis(settings.search.timeout_ms),
    }
}

/// Returns the name of this machine.
fn node_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "unknown".to_owned() } else { name.to_owned() }
}

/// Creates the data folder. It holds the signing secret and password hashes, so only the server's user may read it.
fn create_data_dir(settings: &Settings) -> Result<(), StartError> {
    let folder: &Path = &settings.server.data_dir;
    let failed = |source| StartError::DataDir { path: folder.display().to_string(), source };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)
}

/// Opens the database of a server, which must exist.
pub(crate) async fn open_existing_store(settings: &Settings) -> Result<Arc<dyn Store>, StartError> {
    let file = settings.database_file();
    if settings.database.url.is_none() && !file.exists() {
        return Err(StartError::NoDatabase { path: file.display().to_string() });
    }
    open_store(settings).await
}

async fn open_store(settings: &Settings) -> Result<Arc<dyn Store>, StartError> {
    if let Some(url) = &settings.database.url {
        let options = PostgresOptions {
            pool_size: settings.database.pool_size,
            statement_timeout: Duration::from_millis(settings.database.statement_timeout_ms),
            wait_timeout: Duration::from_millis(settings.limits.call_timeout_ms),
            search_cache_bytes: settings.search.cache_bytes,
        };
        return Ok(Arc::new(Postgres::connect(url, options).await?.limited(quotas(settings))));
    }
    let store = Sqlite::open(&settings.database_file(), settings.search.cache_bytes)?;
    Ok(Arc::new(store.limited(quotas(settings))))
}

/// Returns the storage and workspace limits of the settings.
fn quotas(settings: &Settings) -> Quotas {
    let limit = |value: u64| Some(value).filter(|value| *value > 0);
    Quotas {
        bytes_per_workspace: limit(settings.quotas.bytes_per_workspace),
        bytes_per_account: limit(settings.quotas.bytes_per_account),
        workspaces_per_account: limit(settings.quotas.workspaces_per_account),
    }
}

/// Opens the folder for the working copies of programs.
fn open_scratch(settings: &Settings) -> Result<Scratch, StartError> {
    let folder = settings.server.data_dir.join("checkouts");
    Scratch::open(&folder).map_err(|source| StartError::DataDir { path: folder.display().to_string(), source })
}

/// Returns the home directories that programs keep between runs, if the operator wants them.
fn program_caches(settings: &Settings) -> Option<Arc<ProgramCaches>> {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let run = &settings.run;
    let limits = CacheLimits {
        workspace_bytes: run.cache_bytes,
        account_bytes: run.cache_bytes_per_account,
        idle: DAY * run.cache_days,
    };
    let folder = settings.server.data_dir.join("caches");
    (run.cache_bytes > 0).then(|| Arc::new(ProgramCaches::new(folder, limits)))
}

/// Warns if anybody can register while programs of different accounts are not isolated from each other.
fn warn_of_shared_programs(settings: &Settings, shared: &[&str]) {
    if settings.auth.registration_open && !shared.is_empty() {
        tracing::warn!(
            "this server is for one tenant, and anybody who reaches it can register: {}; close auth.registration_open, \
             turn programs off with run.enabled, or run the server as root where it may make control groups",
            shared.join("; ")
        );
    }
}

/// Returns the folders that may be workspaces, by their real paths.
fn folder_options(settings: &Settings) -> Result<FolderOptions, StartError> {
    let folders = &settings.folders;
    let real = |path: &Path| {
        path.canonicalize().map_err(|source| StartError::Folder { path: path.display().to_string(), source })
    };
    let mut allowed_roots = Vec::new();
    for folder in &folders.allowed_roots {
        allowed_roots.push(AllowedRoot::for_all(real(folder)?));
    }
    let mut of_accounts: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
    let listed = settings.account_roots();
    let local = folders.local_dir.iter().map(|folder| (local::ACCOUNT.to_owned(), folder.clone()));
    for (account, folder) in listed.chain(local) {
        of_accounts.entry(real(&folder)?).or_default().push(account);
    }
    let of_accounts =
        of_accounts.into_iter().map(|(folder, accounts)| AllowedRoot { folder, accounts: Some(accounts) });
    allowed_roots.extend(of_accounts);
    Ok(FolderOptions {
        allowed_roots,
        journal_dir: settings.server.data_dir.join("journals"),
        guarded: guarded(settings),
        history: HistoryLimits {
            file_bytes: folders.history_file_bytes,
            commit_bytes: folders.history_commit_bytes,
            total_bytes: Some(folders.history_total_bytes).filter(|limit| *limit > 0),
        },
        repositories: if folders.git_writable { Repositories::Writable } else { Repositories::ReadOnly },
    })
}

/// Returns the server's own files and folders, which no workspace may contain.
fn guarded(settings: &Settings) -> Vec<GuardedPath> {
    let data = GuardedPath::data(settings.server.data_dir.clone());
    // Programs of all workspaces execute its files.
    let python = GuardedPath {
        path: python::folder(settings),
        what: "the Python environment of all programs",
        setting: "the setting run.python_dir",
    };
    // It may contain secrets, and changing it changes what the next start allows.
    let file = settings.file.as_ref().map(|file| GuardedPath {
        path: file.clone(),
        what: "the server's settings file",
        setting: "the option --config",
    });
    [data, python].into_iter().chain(file).chain(sign_ins::guarded()).collect()
}

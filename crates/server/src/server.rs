//! The server: its parts put together, and the loop that accepts connections.

use crate::auth::{AccessTokens, AttemptCounter, Passwords, RefusedAddresses, fresh_secret};
use crate::connection::{self, Connections, StallTimeout};
use crate::http::{self, App, Budget, host::HostRules};
use crate::local::{self, Local};
use crate::programs;
use crate::python;
use crate::settings::Settings;
use crate::upkeep;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use std::{
    collections::BTreeMap,
    future::Future,
    net::{IpAddr, SocketAddr},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use toolrest_core::{AllowAll, Engine, FairQueue, Limits, QueueLimits, Redactor, ToolError};
use toolrest_store::{Instance, Postgres, PostgresOptions, Quotas, Sqlite, Store, StoreError, WriteBehind};
use toolrest_workspaces::{
    AllowedRoot, FolderOptions, Guarded, HistoryLimits, Repositories, Scratch, StoredWorkspaces,
};
use uuid::Uuid;

/// Maximum time for receiving the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// A server that is bound to its address and ready to run.
pub struct Server {
    pub(crate) app: Arc<App>,
    records: Arc<WriteBehind>,
    listener: TcpListener,
    address: SocketAddr,
    grace: Duration,
    upkeep: JoinHandle<()>,
    local: Option<Local>,
}

/// Why a server could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}; is another server running? Choose another address with --listen")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The data folder cannot be created.
    #[error("cannot create the data folder {path}: {source}")]
    DataDir {
        /// The folder.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A folder of the settings cannot be opened.
    #[error("cannot use the folder {path}: {source}")]
    Folder {
        /// The folder.
        path: String,
        /// Why.
        source: std::io::Error,
    },
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

impl Server {
    /// Opens the database, brings it up to date and binds the address.
    pub async fn start(settings: Settings) -> Result<Self, StartError> {
        let store = open_store(&settings).await?;
        let secret = match &settings.jwt.secret {
            Some(secret) => secret.clone(),
            None => store.secret("jwt", &fresh_secret()?).await?,
        };
        let limits = Limits {
            call_timeout: Duration::from_millis(settings.limits.call_timeout_ms),
            calls_per_workspace: settings.limits.calls_per_workspace,
            calls_per_account: settings.limits.calls_per_account,
            response_bytes: settings.limits.response_bytes,
            search_timeout: Duration::from_millis(settings.search.timeout_ms),
        };
        let workspaces =
            StoredWorkspaces::new(Arc::clone(&store), folder_options(&settings)?, open_scratch(&settings)?);
        let workspaces = workspaces
            .reading_at_most(settings.limits.in_flight_bytes, settings.limits.response_bytes)
            .checking_in_at_most(settings.run.keep_bytes);
        let workspaces = Arc::new(workspaces);
        let redactor = Redactor::new(store.secret("records", &fresh_secret()?).await?.as_bytes());
        let instance = Instance { id: Uuid::now_v7(), node: node_name() };
        // A running call of a process that was never seen would count as abandoned.
        store.heartbeat(&instance).await?;
        let records = Arc::new(WriteBehind::start(Arc::clone(&store), instance.id, redactor));
        let services = programs::start(&settings).await;
        warn_of_shared_programs(&settings, services.executor.shared());
        let engine = Engine::new(
            toolrest_toolsets::all(&services),
            Arc::<StoredWorkspaces>::clone(&workspaces),
            Arc::new(AllowAll),
            Arc::<WriteBehind>::clone(&records),
            limits,
        );
        let address = settings.server.listen;
        let listen = |source| StartError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let grace = Duration::from_millis(settings.server.shutdown_grace_ms);
        let event_streams = FairQueue::new(QueueLimits {
            in_all: usize::MAX,
            per_account: settings.quotas.event_streams_per_account,
            per_workspace: usize::MAX,
        });
        let app = Arc::new(App {
            engine,
            store,
            workspaces,
            tokens: AccessTokens::new(&secret, settings.jwt.access_token_expiration_minutes),
            passwords: Passwords::new()?,
            refused_sign_ins: RefusedAddresses::default(),
            refused_registrations: RefusedAddresses::default(),
            attempts: AttemptCounter::default(),
            budget: Budget::new(
                settings.limits.in_flight_bytes,
                settings.limits.body_bytes.max(settings.limits.response_bytes),
            ),
            host_rules: HostRules::new(&settings),
            // The settings were checked when they were read.
            proxies: settings.server.trusted_proxies.iter().filter_map(|range| range.parse().ok()).collect(),
            settings,
            instance,
            processes: services.processes,
            stopping: tokio::sync::watch::Sender::new(false),
            event_streams,
        });
        // Tokens that were revoked while no server ran.
        upkeep::refresh_revocations(&app).await?;
        upkeep::renew_versions_at_start(&*app.store).await;
        let upkeep = tokio::spawn(upkeep::run(Arc::clone(&app)));
        warn_of_open_folders(&app.settings);
        let local = match &app.settings.folders.local_dir {
            Some(folder) => Some(local::open(&app, folder).await?),
            None => None,
        };
        Ok(Self { app, records, listener, address, grace, upkeep, local })
    }

    /// Returns the workspace of `serve --dir`, if the server was started so.
    pub fn local(&self) -> Option<&Local> {
        self.local.as_ref()
    }

    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` resolves, then waits for running calls and writes the remaining records.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let connections = GracefulShutdown::new();
        // Half of the descriptors are kept for files and the database.
        let limit = connection::open_files_limit().map_or(usize::MAX, |files| files / 2);
        let open = Connections::new(self.app.settings.limits.connections.min(limit));
        let router = http::router(Arc::clone(&self.app));
        tokio::pin!(stop);
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, peer)) => self.serve(stream, peer.ip(), &router, &connections, &open),
                    Err(error) => {
                        // No descriptors are left, or the connection ended before it was accepted.
                        tracing::warn!(%error, "could not accept a connection");
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                },
                () = &mut stop => break,
            }
        }
        drop(self.listener);
        self.app.stopping.send_replace(true);
        tracing::info!("stopping: waiting for running calls");
        let background = self.app.processes.stop_all(None, self.grace);
        let (finished, ()) = tokio::join!(tokio::time::timeout(self.grace, connections.shutdown()), background);
        if finished.is_err() {
            tracing::warn!("some calls did not finish within server.shutdown_grace_ms and were aborted");
        }
        self.upkeep.abort();
        self.records.close().await;
        if let Err(error) = self.app.store.end_instance(self.app.instance.id).await {
            tracing::warn!(%error, "could not record the end of this server process");
        }
        // Adds the storage used since the last run to the counters.
        if let Err(error) = self.app.store.maintain().await {
            tracing::warn!(%error, "could not update the storage counters");
        }
    }

    fn serve(
        &self,
        stream: TcpStream,
        peer: IpAddr,
        router: &axum::Router,
        connections: &GracefulShutdown,
        open: &Arc<Connections>,
    ) {
        let is_proxy = self.app.proxies.iter().any(|range| range.contains(peer.to_canonical()));
        let Some(slot) = open.enter(peer.to_canonical(), is_proxy) else {
            tracing::debug!(%peer, "refused a connection: too many are open (limits.connections)");
            return;
        };
        // Answers are written completely at once, so delaying packets gains nothing.
        let _ = stream.set_nodelay(true);
        let (app, router) = (Arc::clone(&self.app), router.clone());
        let service = hyper::service::service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
            let (app, router) = (Arc::clone(&app), router.clone());
            let request = request.map(axum::body::Body::new);
            async move { Ok::<_, std::convert::Infallible>(http::answer(&app, router, request, peer).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .serve_connection(TokioIo::new(StallTimeout::new(stream)), service);
        let connection = connections.watch(connection);
        tokio::spawn(async move {
            let _slot = slot;
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended early");
            }
        });
    }
}

/// Returns the name of this machine.
fn node_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "unknown".to_owned() } else { name.to_owned() }
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
    let folder: &Path = &settings.server.data_dir;
    let data_dir = |source| StartError::DataDir { path: folder.display().to_string(), source };
    // It holds the signing secret and password hashes, so only the server's user may read it.
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(data_dir)?;
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

/// Warns if anybody who reaches the server can register and open folders.
fn warn_of_open_folders(settings: &Settings) {
    let is_reachable = !settings.server.listen.ip().to_canonical().is_loopback();
    if is_reachable && settings.auth.registration_open && !settings.folders.allowed_roots.is_empty() {
        tracing::warn!(
            "anybody who reaches this server can register and open the folders of folders.allowed_roots; close \
             auth.registration_open, or give the folders to accounts with folders.account_roots"
        );
    }
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
fn guarded(settings: &Settings) -> Vec<Guarded> {
    let data = Guarded::data(settings.server.data_dir.clone());
    // Programs of all workspaces execute its files.
    let python = Guarded {
        path: python::folder(settings),
        what: "the Python environment of all programs",
        setting: "the setting run.python_dir",
    };
    // It may contain secrets, and changing it changes what the next start allows.
    let file = settings.file.as_ref().map(|file| Guarded {
        path: file.clone(),
        what: "the server's settings file",
        setting: "the option --config",
    });
    [data, python].into_iter().chain(file).collect()
}

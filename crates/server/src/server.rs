//! The server: a runtime, and the loop that accepts connections.

use crate::approvals;
use crate::connection::StallTimeout;
use crate::http::{self, App, Site};
use crate::metrics;
use crate::runtime::{Runtime, StartError};
use crate::served_folder::ServedFolder;
use crate::settings::Settings;
use crate::tool_backend;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use std::{
    future::Future,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use toolrest_core::Approval;

/// Maximum time for receiving the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// A server that is bound to its address and ready to run.
pub struct Server {
    pub(crate) app: Arc<App>,
    listener: TcpListener,
    address: SocketAddr,
    /// The listener for metrics.
    metrics: Option<(SocketAddr, AbortOnDrop)>,
    /// The listener of specification 003.
    tool_backend: Option<(TcpListener, SocketAddr)>,
    served_folder: Option<ServedFolder>,
    /// Runs approved calls that nobody waits for.
    _approvals: AbortOnDrop,
}

impl Server {
    /// Opens the runtime and binds the address.
    pub async fn start(settings: Settings) -> Result<Self, StartError> {
        let runtime = Arc::new(Runtime::open(settings).await?);
        let settings = &runtime.settings;
        warn_of_open_folders(settings);
        let (listener, address) = bind(settings.server.listen, "--listen").await?;
        let metrics = match settings.metrics.listen {
            Some(address) => Some(bind(address, "the setting metrics.listen").await?),
            None => None,
        };
        let tool_backend = tool_backend::listen(settings).await?;
        let app = Arc::new(App::new(runtime));
        let served_folder = match &app.settings.folders.local_dir {
            Some(folder) => Some(ServedFolder::open(&app, folder).await?),
            None => None,
        };
        let metrics = metrics.map(|(listener, address)| {
            (address, AbortOnDrop(tokio::spawn(metrics::serve(Arc::clone(&app), listener))))
        });
        app.runtime.calls_for_tools.attach(&app.runtime);
        let approvals = AbortOnDrop(tokio::spawn(approvals::sweep(Arc::downgrade(&app.runtime))));
        Ok(Self { app, listener, address, metrics, tool_backend, served_folder, _approvals: approvals })
    }

    /// Has a function called whenever a call begins to wait for a person on this server. Returns false if there is one
    /// already.
    pub fn on_asked(&self, notify: impl Fn(&Approval) + Send + Sync + 'static) -> bool {
        self.app.on_asked(Box::new(notify))
    }

    /// Returns the folder of `serve --dir`, if the server was started so.
    pub fn served_folder(&self) -> Option<&ServedFolder> {
        self.served_folder.as_ref()
    }

    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address that serves specification 003, if there is one.
    pub fn tool_backend_address(&self) -> Option<SocketAddr> {
        self.tool_backend.as_ref().map(|(_, address)| *address)
    }

    /// Returns the address that serves the metrics, if there is one.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().map(|(address, _)| *address)
    }

    /// Serves until `stop` resolves, then waits for running calls and writes the remaining records.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let connections = GracefulShutdown::new();
        let main = Site::main(&self.app, self.address);
        let backend = self.tool_backend.as_ref().map(|(_, address)| Site::tool_backend(&self.app, *address));
        tokio::pin!(stop);
        loop {
            tokio::select! {
                (accepted, site) = self.accept(&main, backend.as_ref()) => match accepted {
                    Ok((stream, peer)) => self.serve(stream, peer.ip(), site, &connections),
                    Err(error) => {
                        // No descriptors are left, or the connection ended before it was accepted.
                        tracing::warn!(%error, "could not accept a connection");
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                },
                () = &mut stop => break,
            }
        }
        drop((self.listener, self.tool_backend));
        self.app.stopping.send_replace(true);
        self.app.begin_stopping();
        tracing::info!("stopping: waiting for running calls");
        let grace = Duration::from_millis(self.app.settings.server.shutdown_grace_ms);
        let calls = tokio::time::timeout(grace, connections.shutdown());
        let (finished, ()) = tokio::join!(calls, self.app.stop_processes());
        if finished.is_err() {
            tracing::warn!("some calls did not finish within server.shutdown_grace_ms and were aborted");
        }
        if let Some(served) = &self.served_folder {
            served.end(&self.app).await;
        }
        self.app.runtime.close().await;
    }

    /// Waits for the next connection; returns it with what is served at its address.
    async fn accept<'s>(
        &self,
        main: &'s Arc<Site>,
        backend: Option<&'s Arc<Site>>,
    ) -> (std::io::Result<(TcpStream, SocketAddr)>, &'s Arc<Site>) {
        match (&self.tool_backend, backend) {
            (Some((listener, _)), Some(backend)) => tokio::select! {
                accepted = self.listener.accept() => (accepted, main),
                accepted = listener.accept() => (accepted, backend),
            },
            _ => (self.listener.accept().await, main),
        }
    }

    fn serve(&self, stream: TcpStream, peer: IpAddr, site: &Arc<Site>, connections: &GracefulShutdown) {
        let is_proxy = self.app.proxies.iter().any(|range| range.contains(peer.to_canonical()));
        let Some(slot) = self.app.connections.enter(peer.to_canonical(), is_proxy) else {
            tracing::debug!(%peer, "refused a connection: too many are open (limits.connections)");
            return;
        };
        // Answers are written completely at once, so delaying packets gains nothing.
        let _ = stream.set_nodelay(true);
        let (app, site) = (Arc::clone(&self.app), Arc::clone(site));
        let service = hyper::service::service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
            let (app, site) = (Arc::clone(&app), Arc::clone(&site));
            let request = request.map(axum::body::Body::new);
            async move { Ok::<_, std::convert::Infallible>(http::answer(&app, &site, request, peer).await) }
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

/// A task that ends when this is dropped.
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Listens on an address; returns also the address with the port that the system chose.
pub(crate) async fn bind(address: SocketAddr, option: &'static str) -> Result<(TcpListener, SocketAddr), StartError> {
    let failed = |source| StartError::Listen { address, option, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
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

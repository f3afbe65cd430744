//! The protocol on standard input and output, for programs that start Toolrest as a child.

use super::catalogue::{Offer, OfferError, OfferedTools, Schemas};
use super::folder::{self, Folder, FolderSender};
use super::{Connection, McpServer, Target};
use crate::agent;
use crate::approvals;
use crate::runtime::{Runtime, RuntimeOptions, StartError};
use crate::settings::Settings;
use rmcp::RoleServer;
use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use std::{
    future::Future,
    io,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::io::{AsyncRead, ReadBuf, Stdin};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;
use toolrest_core::ToolError;
use toolrest_toolsets::Services;
use uuid::Uuid;

/// Time that running calls have after the client has closed standard input.
const GRACE: Duration = Duration::from_secs(1);

/// Serves one client on standard input and output.
pub struct Stdio {
    settings: Settings,
    folder: Folder,
    tools: OfferedTools,
}

/// Why a client could not be served.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// A toolset does not exist.
    #[error(transparent)]
    Offer(#[from] OfferError),
    /// There is no folder to work in.
    #[error("this was started in the folder `/`, and the agent told no root; name the folder to work in with --dir")]
    NoFolder,
    /// The runtime could not be opened.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The folder could not be opened.
    #[error("{0}")]
    Tool(#[from] ToolError),
    /// The client did not begin the protocol.
    #[error("the client did not begin the Model Context Protocol: {0}")]
    Protocol(Box<ServerInitializeError>),
}

impl Stdio {
    /// Prepares to serve a folder with some of the tools.
    pub fn new(settings: Settings, folder: Folder, offer: &Offer) -> Result<Self, StdioError> {
        let services = Services { agent: agent::options(&settings), ..Services::none() };
        let toolsets = toolrest_toolsets::all(&services);
        Ok(Self { settings, folder, tools: OfferedTools::new(&toolsets, &Schemas::new(&toolsets), offer, None)? })
    }

    /// Serves until the client closes standard input, or `stop` resolves. The runtime is opened meanwhile, so that the client
    /// gets the list of tools at once; calls wait for it.
    pub async fn serve(self, stop: impl Future<Output = ()>) -> Result<(), StdioError> {
        let Self { settings, folder, tools } = self;
        let max_line_bytes = settings.limits.body_bytes;
        let (closing, ended) = (CancellationToken::new(), CancellationToken::new());
        let (sender, target) = watch::channel(None);
        let session = Uuid::new_v4().to_string();
        let (folder_sender, told) = FolderSender::new();
        let cancellations = Arc::default();
        let server =
            McpServer::new(tools, target, Connection::Stdio, session, closing.clone(), cancellations, folder_sender);
        let mut opening = tokio::spawn(open(settings, folder, told));
        let input = Input { stdin: tokio::io::stdin(), ended: ended.clone() };
        let transport = AsyncRwTransport::<RoleServer, _, _>::new(input, tokio::io::stdout());
        let mut serving =
            tokio::spawn(protocol(server, transport.with_max_line_length(max_line_bytes), closing.clone()));

        let out_of_grace = async {
            ended.cancelled().await;
            tokio::time::sleep(GRACE).await;
        };
        tokio::pin!(stop, out_of_grace);
        let mut opened = None;
        let end = loop {
            tokio::select! {
                result = &mut opening, if opened.is_none() => match result.map_err(ToolError::internal)? {
                    Ok(target) => {
                        opened = Some(target.clone());
                        sender.send_replace(Some(target));
                    }
                    Err(error) => {
                        closing.cancel();
                        return Err(error);
                    }
                },
                result = &mut serving => break result,
                () = &mut stop, if !closing.is_cancelled() => closing.cancel(),
                () = &mut out_of_grace, if !closing.is_cancelled() => closing.cancel(),
            }
        };
        closing.cancel();
        let opened = match opened {
            Some(target) => target,
            None => opening.await.map_err(ToolError::internal)??,
        };
        opened.runtime.close().await;
        end.map_err(ToolError::internal)?
    }
}

/// Speaks the protocol until the client goes away.
async fn protocol(
    server: McpServer,
    transport: impl Transport<RoleServer> + 'static,
    closing: CancellationToken,
) -> Result<(), StdioError> {
    match serve_server_with_ct(server, transport, closing).await {
        Ok(running) => {
            running.waiting().await.map_err(ToolError::internal)?;
            Ok(())
        }
        // It went away, or Toolrest was stopped, before the first request.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
        Err(error) => Err(StdioError::Protocol(Box::new(error))),
    }
}

/// Opens the runtime and the workspace of the folder.
async fn open(
    mut settings: Settings,
    folder: Folder,
    told: oneshot::Receiver<Option<PathBuf>>,
) -> Result<Target, StdioError> {
    let folder = folder::resolve(folder, told).await;
    if folder == Path::new("/") {
        return Err(StdioError::NoFolder);
    }
    settings.folders.local_dir = Some(folder.clone());
    let runtime = Arc::new(Runtime::open_with(settings, RuntimeOptions::default().with_sandbox_beside()).await?);
    let local = match runtime.open_local(&folder).await {
        Ok(local) => local,
        Err(error) => {
            runtime.close().await;
            return Err(error.into());
        }
    };
    runtime.calls_for_tools.attach(&runtime);
    tokio::spawn(approvals::sweep(Arc::downgrade(&runtime)));
    Ok(Target { runtime, workspace: local.workspace, caller: local.caller })
}

/// Standard input, which tells when it has ended.
struct Input {
    stdin: Stdin,
    ended: CancellationToken,
}

impl AsyncRead for Input {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stdin).poll_read(cx, buffer))?;
        if buffer.filled().len() == before {
            self.ended.cancel();
        }
        Poll::Ready(Ok(()))
    }
}

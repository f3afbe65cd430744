//! The HTTP proxy of a program, which connects to the hosts on its list and to nothing else.
//!
//! It listens in the network namespace of the program, which has no other connection. It supports `CONNECT`, after
//! which it copies bytes, and requests for `http://…`, of which it forwards exactly one per connection: no second
//! request can follow unchecked.

mod head;
mod limited_copy;

use std::{
    collections::BTreeSet,
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::{JoinHandle, JoinSet},
    time::{sleep, timeout},
};

use super::{AllowList, ConnectError, OutboundConnector};
use head::{RequestHead, Target};
use limited_copy::{ByteAllowance, copy};

pub(crate) use super::allow_list::Host;

/// Timeout for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Limits of a program's network access.
#[derive(Debug, Clone)]
pub struct ProxyLimits {
    /// Maximum number of concurrent connections; more wait.
    pub connections: usize,
    /// Maximum number of bytes in total, in both directions together.
    pub total_bytes: u64,
}

impl Default for ProxyLimits {
    fn default() -> Self {
        Self { connections: 64, total_bytes: 1 << 30 }
    }
}

/// Maximum number of refused hosts that are remembered for one program.
const MAX_REFUSED: usize = 10;

/// A running proxy. Dropping it ends it and all of its connections.
#[derive(Debug)]
pub struct Proxy {
    accepting: JoinHandle<()>,
    refused: Arc<RefusedHosts>,
}

/// The hosts, with ports, that a program asked for and that are not on its list.
#[derive(Debug, Default)]
struct RefusedHosts(Mutex<BTreeSet<String>>);

impl RefusedHosts {
    fn add(&self, host: String) {
        let mut hosts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if hosts.len() < MAX_REFUSED {
            hosts.insert(host);
        }
    }
}

impl Proxy {
    /// Returns the first hosts, with ports, that the program asked for and that are not on its list.
    pub fn refused_hosts(&self) -> Vec<String> {
        self.refused.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Decides which hosts a program reaches, and connects to them.
#[async_trait]
pub(crate) trait Gateway: Send + Sync + 'static {
    /// Connects to a host.
    async fn connect(&self, host: &Host, port: u16) -> Result<TcpStream, Refusal>;
}

/// Why a host was not reached.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The program may not reach it.
    NotAllowed(String),
    /// It did not answer.
    Unreachable(String),
    /// It did not answer in time.
    TimedOut(String),
}

impl From<ConnectError> for Refusal {
    fn from(error: ConnectError) -> Self {
        let reason = error.to_string();
        match error {
            ConnectError::Refused { .. } => Self::NotAllowed(reason),
            ConnectError::Unresolved { .. } | ConnectError::Unreachable { .. } => Self::Unreachable(reason),
            ConnectError::TimedOut { .. } => Self::TimedOut(reason),
        }
    }
}

/// The hosts of a list.
struct ListedHosts {
    allow: AllowList,
    outside: OutboundConnector,
}

#[async_trait]
impl Gateway for ListedHosts {
    async fn connect(&self, host: &Host, port: u16) -> Result<TcpStream, Refusal> {
        if !self.allow.allows(host, port) {
            let reason = format!(
                "{host}:{port} is not on the list of hosts that programs of this workspace may reach; its owner can add it \
                 (settings.run.network)"
            );
            return Err(Refusal::NotAllowed(reason));
        }
        Ok(self.outside.connect(&host.to_string(), port).await?)
    }
}

/// Starts the proxy of a program on a socket that listens in its network namespace.
pub fn serve(listener: TcpListener, allow: AllowList, outside: OutboundConnector, limits: &ProxyLimits) -> Proxy {
    serve_through(listener, ListedHosts { allow, outside }, limits)
}

/// Starts the proxy of a program whose hosts a gateway decides about.
pub(crate) fn serve_through(listener: TcpListener, gateway: impl Gateway, limits: &ProxyLimits) -> Proxy {
    let turns = Arc::new(Semaphore::new(limits.connections));
    let (refused, budget) = (Arc::<RefusedHosts>::default(), ByteAllowance::new(limits.total_bytes));
    let gate = Arc::new(Gate { gateway: Box::new(gateway), budget, refused: Arc::clone(&refused) });
    Proxy { accepting: tokio::spawn(accept(listener, turns, gate)), refused }
}

/// Returns the environment variables with the proxy's address. Local servers of the program are reached without it.
pub fn environment(port: u16) -> Vec<(&'static str, String)> {
    let proxy = format!("http://127.0.0.1:{port}");
    let proxies = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"].map(|name| (name, proxy.clone()));
    let without = ["NO_PROXY", "no_proxy"].map(|name| (name, "localhost,127.0.0.1,::1".to_owned()));
    proxies.into_iter().chain(without).collect()
}

/// The allowed hosts and the remaining bytes.
struct Gate {
    gateway: Box<dyn Gateway>,
    budget: ByteAllowance,
    refused: Arc<RefusedHosts>,
}

async fn accept(listener: TcpListener, turns: Arc<Semaphore>, gate: Arc<Gate>) {
    // The connections end when this task is dropped.
    let mut connections = JoinSet::new();
    while let Ok(turn) = Arc::clone(&turns).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let gate = Arc::clone(&gate);
                connections.spawn(async move {
                    // It is no fault of the server if the program or the host closes the connection.
                    let _ = gate.attend(stream).await;
                    drop(turn);
                });
            }
            // There are no free descriptors, or the connection ended before it was accepted.
            Err(_) => sleep(Duration::from_millis(20)).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

/// An answer of the proxy itself. Many programs show only its first line, so the reason is there.
struct Answer {
    status: u16,
    reason: String,
}

impl Answer {
    fn new(status: u16, reason: impl Into<String>) -> Self {
        Self { status, reason: reason.into() }
    }

    fn text(&self) -> String {
        // The text of an error may contain any characters.
        let reason: String = self.reason.chars().filter(|character| !character.is_control()).collect();
        let length = reason.len() + 1;
        format!(
            "HTTP/1.1 {} {reason}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n{reason}\n",
            self.status
        )
    }
}

impl Gate {
    async fn attend(&self, mut client: TcpStream) -> io::Result<()> {
        // Small messages must not be delayed.
        client.set_nodelay(true)?;
        let answer = match self.open(&mut client).await? {
            Ok((head, rest, server)) => {
                server.set_nodelay(true)?;
                return match head.target {
                    Target::Tunnel => self.tunnel(client, server, &rest).await,
                    Target::Resource { .. } => self.forward(client, server, &head, &rest).await,
                };
            }
            Err(answer) => answer,
        };
        client.write_all(answer.text().as_bytes()).await?;
        client.shutdown().await?;
        // Closing a socket with unread data would discard the answer.
        drain(&mut client).await
    }

    /// Reads the head of a request and connects to its host. Returns the bytes after the head too.
    async fn open(&self, client: &mut TcpStream) -> io::Result<Result<(RequestHead, Vec<u8>, TcpStream), Answer>> {
        let (head, rest) = match timeout(HEAD_TIMEOUT, head::read(client)).await {
            Ok(Ok(Ok(read))) => read,
            Ok(Ok(Err(answer))) => return Ok(Err(answer)),
            Ok(Err(error)) => return Err(error),
            Err(_) => return Ok(Err(Answer::new(408, "the request did not come to its end in time"))),
        };
        Ok(self.connect(&head.host, head.port).await.map(|server| (head, rest, server)))
    }

    async fn connect(&self, host: &Host, port: u16) -> Result<TcpStream, Answer> {
        if self.budget.is_spent() {
            return Err(Answer::new(403, "the program has sent and received as much as it may"));
        }
        self.gateway.connect(host, port).await.map_err(|refusal| match refusal {
            Refusal::NotAllowed(reason) => {
                self.refused.add(format!("{host}:{port}"));
                Answer::new(403, reason)
            }
            Refusal::Unreachable(reason) => Answer::new(502, reason),
            Refusal::TimedOut(reason) => Answer::new(504, reason),
        })
    }

    /// Copies bytes in both directions until both sides have ended.
    async fn tunnel(&self, mut client: TcpStream, mut server: TcpStream, rest: &[u8]) -> io::Result<()> {
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
        self.budget.spend(rest.len())?;
        server.write_all(rest).await?;
        let ((mut from_client, mut to_client), (mut from_server, mut to_server)) = (client.split(), server.split());
        let there = async {
            copy(&mut from_client, &mut to_server, u64::MAX, &self.budget).await?;
            to_server.shutdown().await
        };
        let back = async {
            copy(&mut from_server, &mut to_client, u64::MAX, &self.budget).await?;
            to_client.shutdown().await
        };
        tokio::try_join!(there, back).map(drop)
    }

    /// Forwards one request, up to its last byte, and the answer.
    async fn forward(
        &self,
        mut client: TcpStream,
        mut server: TcpStream,
        head: &RequestHead,
        rest: &[u8],
    ) -> io::Result<()> {
        let text = head.to_origin();
        let body = &rest[..rest.len().min(usize::try_from(head.body_bytes).unwrap_or(usize::MAX))];
        self.budget.spend(text.len() + body.len())?;
        server.write_all(text.as_bytes()).await?;
        server.write_all(body).await?;
        let left = head.body_bytes - body.len() as u64;
        let ((mut from_client, mut to_client), (mut from_server, mut to_server)) = (client.split(), server.split());
        let there = async {
            match copy(&mut from_client, &mut to_server, left, &self.budget).await {
                Err(error) if error.kind() == io::ErrorKind::QuotaExceeded => return Err(error),
                // A host may answer before it has read the whole request.
                _ => {}
            }
            // From now on the program can only close the connection.
            let mut unheeded = [0; 4096];
            while from_client.read(&mut unheeded).await? > 0 {}
            Err(io::ErrorKind::ConnectionAborted.into())
        };
        let back = async {
            copy(&mut from_server, &mut to_client, u64::MAX, &self.budget).await?;
            to_client.shutdown().await
        };
        tokio::select! {
            result = there => result,
            result = back => result,
        }
    }
}

/// Reads and discards further input of the program, for as long as it may take to read the answer.
async fn drain(client: &mut TcpStream) -> io::Result<()> {
    let all = async {
        let mut unheeded = [0; 4096];
        while client.read(&mut unheeded).await? > 0 {}
        Ok(())
    };
    timeout(Duration::from_secs(1), all).await.unwrap_or(Ok(()))
}

#[cfg(test)]
#[path = "proxy_tests.rs"]
mod proxy_tests;

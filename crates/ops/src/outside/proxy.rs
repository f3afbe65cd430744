//! The proxy through which a job reaches the hosts on its list, and nothing else.
//!
//! It listens in the network of the job, which has no other way out. It speaks as much of HTTP as a proxy must:
//! `CONNECT`, after which it passes bytes on, and requests for `http://…`, of which it takes one for each connection and
//! passes on exactly that one: nothing can follow it unseen.

mod head;
mod pour;

use std::{io, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::{JoinHandle, JoinSet},
    time::{sleep, timeout},
};

use super::{AllowList, Outside, OutsideError, allow_list::Host};
use head::{Head, Target};
use pour::{Budget, pour};

/// How long a connection may take to say what it wants.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// What a job may use of the network.
#[derive(Debug, Clone)]
pub struct ProxyLimits {
    /// Connections at once; more wait.
    pub connections: usize,
    /// What may go through in all, in both directions together.
    pub total_bytes: u64,
}

impl Default for ProxyLimits {
    fn default() -> Self {
        Self { connections: 64, total_bytes: 1 << 30 }
    }
}

/// A proxy that is running. It ends, and all of its connections, when this is dropped.
#[derive(Debug)]
pub struct Proxy {
    accepting: JoinHandle<()>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Serves a job on the socket that listens in its network.
pub fn serve(listener: TcpListener, allow: AllowList, outside: Outside, limits: &ProxyLimits) -> Proxy {
    let turns = Arc::new(Semaphore::new(limits.connections));
    let gate = Arc::new(Gate { allow, outside, budget: Budget::new(limits.total_bytes) });
    Proxy { accepting: tokio::spawn(accept(listener, turns, gate)) }
}

/// The variables by which programs find the proxy. What they serve themselves they reach without it.
pub fn environment(port: u16) -> Vec<(&'static str, String)> {
    let proxy = format!("http://127.0.0.1:{port}");
    let proxies = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"].map(|name| (name, proxy.clone()));
    let without = ["NO_PROXY", "no_proxy"].map(|name| (name, "localhost,127.0.0.1,::1".to_owned()));
    proxies.into_iter().chain(without).collect()
}

/// Who may pass, and how much.
struct Gate {
    allow: AllowList,
    outside: Outside,
    budget: Budget,
}

async fn accept(listener: TcpListener, turns: Arc<Semaphore>, gate: Arc<Gate>) {
    // Dropped with this task, and all connections with it.
    let mut connections = JoinSet::new();
    while let Ok(turn) = Arc::clone(&turns).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let gate = Arc::clone(&gate);
                connections.spawn(async move {
                    // A program that hangs up, or a host that does, is nobody's fault here.
                    let _ = gate.attend(stream).await;
                    drop(turn);
                });
            }
            // Out of descriptors, or a connection that ended before it was accepted.
            Err(_) => sleep(Duration::from_millis(20)).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

/// An answer of the proxy itself. Many programs show its first line only, so that is where it says why.
struct Answer {
    status: u16,
    reason: String,
}

impl Answer {
    fn new(status: u16, reason: impl Into<String>) -> Self {
        Self { status, reason: reason.into() }
    }

    fn text(&self) -> String {
        // What is told of a failure may hold anything.
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
        // Much of what goes through is small, and somebody waits for it.
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
        // Closing with something unread would take the answer back.
        drain(&mut client).await
    }

    /// Reads what is wanted and connects to it. What came after the head is given too.
    async fn open(&self, client: &mut TcpStream) -> io::Result<Result<(Head, Vec<u8>, TcpStream), Answer>> {
        let (head, rest) = match timeout(HEAD_TIMEOUT, head::read(client)).await {
            Ok(Ok(Ok(read))) => read,
            Ok(Ok(Err(answer))) => return Ok(Err(answer)),
            Ok(Err(error)) => return Err(error),
            Err(_) => return Ok(Err(Answer::new(408, "the request did not come to its end in time"))),
        };
        Ok(self.connect(&head.host, head.port).await.map(|server| (head, rest, server)))
    }

    async fn connect(&self, host: &Host, port: u16) -> Result<TcpStream, Answer> {
        if !self.allow.allows(host, port) {
            return Err(Answer::new(403, format!("{host}:{port} is not on the list of hosts that may be reached")));
        }
        if self.budget.is_spent() {
            return Err(Answer::new(403, "the program has sent and received as much as it may"));
        }
        self.outside.connect(&host.to_string(), port).await.map_err(|error| match error {
            OutsideError::Refused { .. } => Answer::new(403, error.to_string()),
            OutsideError::Unresolved { .. } | OutsideError::Unreachable { .. } => Answer::new(502, error.to_string()),
            OutsideError::TimedOut { .. } => Answer::new(504, error.to_string()),
        })
    }

    /// Passes on whatever comes, until both sides have ended.
    async fn tunnel(&self, mut client: TcpStream, mut server: TcpStream, rest: &[u8]) -> io::Result<()> {
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
        self.budget.spend(rest.len())?;
        server.write_all(rest).await?;
        let ((mut from_client, mut to_client), (mut from_server, mut to_server)) = (client.split(), server.split());
        let there = async {
            pour(&mut from_client, &mut to_server, u64::MAX, &self.budget).await?;
            to_server.shutdown().await
        };
        let back = async {
            pour(&mut from_server, &mut to_client, u64::MAX, &self.budget).await?;
            to_client.shutdown().await
        };
        tokio::try_join!(there, back).map(drop)
    }

    /// Passes on one request, to its last byte and no further, and what is answered.
    async fn forward(&self, mut client: TcpStream, mut server: TcpStream, head: &Head, rest: &[u8]) -> io::Result<()> {
        let text = head.to_origin();
        let body = &rest[..rest.len().min(usize::try_from(head.body_bytes).unwrap_or(usize::MAX))];
        self.budget.spend(text.len() + body.len())?;
        server.write_all(text.as_bytes()).await?;
        server.write_all(body).await?;
        let left = head.body_bytes - body.len() as u64;
        let ((mut from_client, mut to_client), (mut from_server, mut to_server)) = (client.split(), server.split());
        let there = async {
            match pour(&mut from_client, &mut to_server, left, &self.budget).await {
                Err(error) if error.kind() == io::ErrorKind::QuotaExceeded => return Err(error),
                // A host may well answer before it has heard everything.
                _ => {}
            }
            // From here on the program has nothing to say but that it is gone.
            let mut unheeded = [0; 4096];
            while from_client.read(&mut unheeded).await? > 0 {}
            Err(io::ErrorKind::ConnectionAborted.into())
        };
        let back = async {
            pour(&mut from_server, &mut to_client, u64::MAX, &self.budget).await?;
            to_client.shutdown().await
        };
        tokio::select! {
            result = there => result,
            result = back => result,
        }
    }
}

/// Reads what a program still sends that has got its answer, for as long as it takes to read that.
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

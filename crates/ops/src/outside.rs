//! The one place for connections that leave the server.
//!
//! What a caller names must not lead into the networks that the server stands in. A name is resolved once, each of its
//! addresses is judged, and only one that was judged is connected to: whoever runs the name has no second chance to
//! answer otherwise.

mod address;
mod allow_list;
pub mod proxy;
mod range;

use std::{io, net::SocketAddr, time::Duration};

use tokio::{
    net::TcpStream,
    sync::Semaphore,
    time::{Instant, timeout_at},
};

pub use allow_list::{AllowList, BadEntry};
pub use range::{AddressRange, BadRange};

/// How many addresses of a name are tried.
const ADDRESSES: usize = 8;

/// Names that are resolved at once. Each holds a thread until it is, and who runs a name can take their time; the threads
/// are those that read and write files.
static RESOLVING: Semaphore = Semaphore::const_new(32);

/// The way out.
#[derive(Debug, Clone)]
pub struct Outside {
    /// Ranges that are reached although they are not public: an operator's own services.
    pub allow_private: Vec<AddressRange>,
    /// How long it may take to connect, resolving included.
    pub timeout: Duration,
}

impl Default for Outside {
    fn default() -> Self {
        Self { allow_private: Vec::new(), timeout: Duration::from_secs(10) }
    }
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum OutsideError {
    #[error("the name {host} cannot be resolved: {source}")]
    Unresolved { host: String, source: io::Error },
    /// No address is told: a name can be a question about a network that is none of the caller's.
    #[error("{host} leads to {kind}, which is not reached from here")]
    Refused { host: String, kind: &'static str },
    #[error("cannot connect to {host}:{port}: {source}")]
    Unreachable { host: String, port: u16, source: io::Error },
    #[error("{host}:{port} did not answer within {} ms", timeout.as_millis())]
    TimedOut { host: String, port: u16, timeout: Duration },
}

impl Outside {
    /// Connects to a port of a host, which is a name or an address without brackets.
    pub async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, OutsideError> {
        let deadline = Instant::now() + self.timeout;
        let resolved = timeout_at(deadline, resolve(host, port)).await;
        let unresolved = |source| OutsideError::Unresolved { host: host.to_owned(), source };
        let addresses = resolved.map_err(|_| self.timed_out(host, port))?.map_err(unresolved)?;
        self.connect_to_any(host, port, &addresses, deadline).await
    }

    async fn connect_to_any(
        &self,
        host: &str,
        port: u16,
        addresses: &[SocketAddr],
        deadline: Instant,
    ) -> Result<TcpStream, OutsideError> {
        let allowed: Vec<&SocketAddr> = addresses.iter().filter(|address| self.judge(address).is_ok()).collect();
        if let (true, Some(Err(kind))) = (allowed.is_empty(), addresses.first().map(|address| self.judge(address))) {
            return Err(OutsideError::Refused { host: host.to_owned(), kind });
        }
        let mut last = self.timed_out(host, port);
        for (tried, address) in allowed.iter().enumerate() {
            // One that does not answer leaves the others their share of the time.
            let now = Instant::now();
            let left = u32::try_from(allowed.len() - tried).unwrap_or(1);
            let share = now + deadline.saturating_duration_since(now) / left;
            match timeout_at(share, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(source)) => last = OutsideError::Unreachable { host: host.to_owned(), port, source },
                Err(_) => last = self.timed_out(host, port),
            }
        }
        Err(last)
    }

    /// Says what an address is that must not be reached.
    fn judge(&self, address: &SocketAddr) -> Result<(), &'static str> {
        match address::kind(address.ip()) {
            Some(kind) if !self.allow_private.iter().any(|range| range.contains(address.ip())) => Err(kind),
            _ => Ok(()),
        }
    }

    fn timed_out(&self, host: &str, port: u16) -> OutsideError {
        OutsideError::TimedOut { host: host.to_owned(), port, timeout: self.timeout }
    }
}

async fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let turn = RESOLVING.acquire().await.map_err(io::Error::other)?;
    let host = host.to_owned();
    // The turn lasts as long as the thread is held, also where nobody waits any more.
    let resolving = tokio::spawn(async move {
        let addresses = tokio::net::lookup_host((host, port)).await.map(|found| found.take(ADDRESSES).collect());
        drop(turn);
        addresses
    });
    let addresses: Vec<SocketAddr> = resolving.await.map_err(io::Error::other)??;
    if addresses.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(addresses) }
}

#[cfg(test)]
#[path = "outside_tests.rs"]
mod outside_tests;

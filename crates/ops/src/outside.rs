//! Outgoing connections. All connections of the server on behalf of callers are made here.
//!
//! A host of a caller must not lead into the networks of the server. A name is resolved once, each address is checked,
//! and only a checked address is connected to. So whoever controls the name cannot answer differently a second time.

mod address;
mod allow_list;
pub mod http_client;
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

/// Maximum number of addresses of a name that are tried.
const ADDRESSES: usize = 8;

/// Maximum number of names that are resolved at once. Each resolution blocks a thread for as long as the name server
/// takes; these threads also read and write files.
static RESOLVING: Semaphore = Semaphore::const_new(32);

/// The outgoing connector.
#[derive(Debug, Clone)]
pub struct OutboundConnector {
    /// Ranges that are allowed although they are not public, for services of the operator.
    pub allow_private: Vec<AddressRange>,
    /// Timeout of connecting, including name resolution.
    pub timeout: Duration,
}

impl Default for OutboundConnector {
    fn default() -> Self {
        Self { allow_private: Vec::new(), timeout: Duration::from_secs(10) }
    }
}

/// Why a connection failed.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("the name {host} cannot be resolved: {source}")]
    Unresolved { host: String, source: io::Error },
    /// The address is left out: otherwise a caller could explore networks by names.
    #[error("{host} leads to {kind}, which is not reached from here")]
    Refused { host: String, kind: &'static str },
    #[error("cannot connect to {host}:{port}: {source}")]
    Unreachable { host: String, port: u16, source: io::Error },
    #[error("{host}:{port} did not answer within {} ms", timeout.as_millis())]
    TimedOut { host: String, port: u16, timeout: Duration },
}

impl OutboundConnector {
    /// Connects to a port of a host, which is a name or an address without brackets.
    pub async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, ConnectError> {
        let deadline = Instant::now() + self.timeout;
        let resolved = timeout_at(deadline, resolve(host, port)).await;
        let unresolved = |source| ConnectError::Unresolved { host: host.to_owned(), source };
        let addresses = resolved.map_err(|_| self.timed_out(host, port))?.map_err(unresolved)?;
        self.connect_to_any(host, port, &addresses, deadline).await
    }

    /// Connects to an address that the operator has set, which may be in any network.
    pub(crate) async fn connect_anywhere(&self, host: &str, port: u16) -> Result<TcpStream, ConnectError> {
        let connector = Self { allow_private: vec![AddressRange::all()], timeout: self.timeout };
        connector.connect(host, port).await
    }

    /// Refuses a host that leads to an address that must not be connected to. A name that cannot be resolved is not
    /// refused.
    pub(crate) async fn check(&self, host: &str, port: u16) -> Result<(), ConnectError> {
        let resolved = timeout_at(Instant::now() + self.timeout, resolve(host, port)).await;
        let Ok(Ok(addresses)) = resolved else { return Ok(()) };
        for address in addresses {
            self.check_address(&address).map_err(|kind| ConnectError::Refused { host: host.to_owned(), kind })?;
        }
        Ok(())
    }

    async fn connect_to_any(
        &self,
        host: &str,
        port: u16,
        addresses: &[SocketAddr],
        deadline: Instant,
    ) -> Result<TcpStream, ConnectError> {
        let allowed: Vec<&SocketAddr> =
            addresses.iter().filter(|address| self.check_address(address).is_ok()).collect();
        if let (true, Some(Err(kind))) =
            (allowed.is_empty(), addresses.first().map(|address| self.check_address(address)))
        {
            return Err(ConnectError::Refused { host: host.to_owned(), kind });
        }
        let mut last = self.timed_out(host, port);
        for (tried, address) in allowed.iter().enumerate() {
            // An address that does not answer leaves time for the others.
            let now = Instant::now();
            let left = u32::try_from(allowed.len() - tried).unwrap_or(1);
            let share = now + deadline.saturating_duration_since(now) / left;
            match timeout_at(share, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(source)) => last = ConnectError::Unreachable { host: host.to_owned(), port, source },
                Err(_) => last = self.timed_out(host, port),
            }
        }
        Err(last)
    }

    /// Returns the kind of an address that must not be connected to.
    fn check_address(&self, address: &SocketAddr) -> Result<(), &'static str> {
        match address::kind(address.ip()) {
            Some(kind) if !self.allow_private.iter().any(|range| range.contains(address.ip())) => Err(kind),
            _ => Ok(()),
        }
    }

    fn timed_out(&self, host: &str, port: u16) -> ConnectError {
        ConnectError::TimedOut { host: host.to_owned(), port, timeout: self.timeout }
    }
}

async fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let turn = RESOLVING.acquire().await.map_err(io::Error::other)?;
    let host = host.to_owned();
    // The permit is held as long as the thread, also if the caller stops waiting.
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

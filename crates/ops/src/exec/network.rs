//! Network access of programs: to listed hosts, through a proxy of their own, if both the workspace and the operator
//! allow them.

use crate::outside::{
    AllowList, OutboundConnector,
    proxy::{self, Proxy, ProxyLimits},
};
use tokio::net::TcpListener;
use toolrest_core::RunSettings;
use toolrest_sandbox::{CellSpec, Network};

/// The port of the proxy on the loopback interface of the program.
const PORT: u16 = 3128;

/// Options of network access.
#[derive(Clone, Debug, Default)]
pub struct NetworkOptions {
    /// The hosts that workspaces may allow.
    pub hosts: AllowList,
    /// The outgoing connector.
    pub outside: OutboundConnector,
}

impl NetworkOptions {
    /// Returns the hosts that a program may connect to with these settings, if any.
    pub(super) fn hosts_of(&self, settings: &RunSettings) -> Option<AllowList> {
        let listed = AllowList::new(settings.network.iter().map(String::as_str));
        // The list was checked when it was set; an invalid list allows nothing.
        let hosts = listed.unwrap_or_default().within(self.hosts.clone());
        (!hosts.is_empty()).then_some(hosts)
    }

    pub(super) fn serve(&self, listener: TcpListener, hosts: AllowList) -> Proxy {
        proxy::serve(listener, hosts, self.outside.clone(), &ProxyLimits::default())
    }
}

/// Variables by which package managers do not repeat requests.
const NO_RETRIES: [(&str, &str); 3] =
    [("PIP_RETRIES", "0"), ("CARGO_NET_RETRY", "0"), ("npm_config_fetch_retries", "0")];

/// Prepares a cell without network: what cannot be reached now cannot be reached later, so repetitions only delay the error.
pub(super) fn without_network(spec: CellSpec) -> CellSpec {
    NO_RETRIES.into_iter().fold(spec, |spec, (name, value)| spec.env(name, value))
}

/// Adds the proxy to the network of a cell, and the environment variables with its address.
pub(super) fn with_proxy(spec: CellSpec) -> CellSpec {
    let spec = CellSpec { network: Network::Listener { port: PORT }, ..spec };
    proxy::environment(PORT).into_iter().fold(spec, |spec, (name, value)| spec.env(name, value))
}

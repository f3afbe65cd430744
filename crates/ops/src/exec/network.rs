//! What programs reach beyond their own machine: listed hosts, through a proxy of their own, where both the workspace and
//! the operator allow it.

use crate::outside::{
    AllowList, Outside,
    proxy::{self, Proxy, ProxyLimits},
};
use tokio::net::TcpListener;
use toolrest_core::RunSettings;
use toolrest_sandbox::{CellSpec, Network};

/// The port of a program's own loopback interface on which its proxy listens.
const PORT: u16 = 3128;

/// What programs may reach, where their workspace allows it.
#[derive(Clone, Debug, Default)]
pub struct NetworkOptions {
    /// The hosts that a workspace may allow.
    pub hosts: AllowList,
    /// How hosts are reached.
    pub outside: Outside,
}

impl NetworkOptions {
    /// What a program in a workspace with these settings may reach, if anything.
    pub(super) fn hosts_of(&self, settings: &RunSettings) -> Option<AllowList> {
        let listed = AllowList::new(settings.network.iter().map(String::as_str));
        // They were checked when they were set; a list that cannot be read allows nothing.
        let hosts = listed.unwrap_or_default().within(self.hosts.clone());
        (!hosts.is_empty()).then_some(hosts)
    }

    pub(super) fn serve(&self, listener: TcpListener, hosts: AllowList) -> Proxy {
        proxy::serve(listener, hosts, self.outside.clone(), &ProxyLimits::default())
    }
}

/// The place with a proxy in its network, and the variables by which programs find it.
pub(super) fn with_proxy(place: CellSpec) -> CellSpec {
    let place = CellSpec { network: Network::Listener { port: PORT }, ..place };
    proxy::environment(PORT).into_iter().fold(place, |place, (name, value)| place.env(name, value))
}

//! The listener of specification 003: its address, and the workspace that it serves.

use crate::http::App;
use crate::local;
use crate::runtime::StartError;
use crate::server::bind;
use crate::settings::Settings;
use serde::{Deserialize, Serialize};
use std::{
    fmt,
    net::{Ipv4Addr, SocketAddr},
    str::FromStr,
    time::Duration,
};
use tokio::net::TcpListener;
use tokio::sync::OnceCell;
use toolrest_core::{ActionSet, Caller, Key, Result, Role, ToolError, Toolset, WorkspaceId, now};
use toolrest_store::{KeyInfo, Location, NewKey, StoreError};

/// The address that specification 003 names.
const DEFAULT_ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 3001);

/// The option that sets the address.
const OPTION: &str = "--tool-backend-listen";

/// The name of the database workspace, and of the agent key that stands for calls without a token.
const NAME: &str = "tool-backend";

/// Lifetime of the agent key for calls without a token. Its secret is never issued, so it can only be used from here.
const KEY_LIFETIME: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// The setting `tool_backend.listen`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ToolBackendListen {
    /// The usual address, unless it is taken.
    #[default]
    Auto,
    /// Nowhere.
    Off,
    /// This address.
    At(SocketAddr),
}

impl FromStr for ToolBackendListen {
    type Err = std::net::AddrParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::Auto),
            "none" => Ok(Self::Off),
            address => address.parse().map(Self::At),
        }
    }
}

impl TryFrom<String> for ToolBackendListen {
    type Error = std::net::AddrParseError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl fmt::Display for ToolBackendListen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Off => f.write_str("none"),
            Self::At(address) => address.fmt(f),
        }
    }
}

impl From<ToolBackendListen> for String {
    fn from(listen: ToolBackendListen) -> Self {
        listen.to_string()
    }
}

/// Binds the address, if there is one. That the usual address is taken is no error, unless it was asked for.
pub(crate) async fn listen(settings: &Settings) -> Result<Option<(TcpListener, SocketAddr)>, StartError> {
    let address = match settings.tool_backend.listen {
        ToolBackendListen::Off => return Ok(None),
        ToolBackendListen::Auto => DEFAULT_ADDRESS,
        ToolBackendListen::At(address) => address,
    };
    if !settings.tool_backend.require_token && !address.ip().to_canonical().is_loopback() {
        return Err(StartError::OpenToolBackend { address });
    }
    match bind(address, OPTION).await {
        Ok(bound) => Ok(Some(bound)),
        Err(error) if settings.tool_backend.listen == ToolBackendListen::Auto => {
            tracing::warn!(%error, "specification 003 is not served by this process");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The workspace that the listener serves, opened with the first call.
#[derive(Default)]
pub(crate) struct ServedWorkspace {
    workspace: OnceCell<WorkspaceId>,
    agent: OnceCell<Caller>,
}

impl ServedWorkspace {
    /// Returns the workspace.
    pub(crate) async fn id(&self, app: &App) -> Result<WorkspaceId> {
        let open = async || match &app.settings.folders.local_dir {
            Some(folder) => Ok(app.open_local(folder).await?.workspace),
            None => Ok(local::open_at(app, Location::Database, NAME).await?.workspace),
        };
        self.workspace.get_or_try_init(open).await.copied()
    }

    /// Returns the caller of calls without a token: an agent key of the local user, so that they are judged like those of
    /// any agent. Its owner can list, suspend and revoke it.
    pub(crate) async fn agent(&self, app: &App) -> Result<Caller> {
        let workspace = self.id(app).await?;
        let find = async || {
            let owner = local::owner(app).await?;
            let info = agent_key(app, owner, workspace).await?;
            let toolsets = app.engine.toolsets().mask(info.toolsets.iter().map(String::as_str));
            let key = Key { id: info.id, workspace, actions: info.actions, toolsets };
            Ok(Caller { key: Some(key), ..owner })
        };
        self.agent.get_or_try_init(find).await.copied()
    }
}

/// Returns the agent key for calls without a token, and creates it the first time.
async fn agent_key(app: &App, owner: Caller, workspace: WorkspaceId) -> Result<KeyInfo> {
    let access = owner.access(workspace, Role::Editor);
    let _lock = local::lock(app).await?;
    let toolsets: Vec<String> = app.engine.toolsets().iter().map(|it| Toolset::name(it).to_owned()).collect();
    let is_usable = |key: &KeyInfo| {
        key.name == NAME
            && key.user_id == owner.user
            && key.revoked_at.is_none()
            && key.expires_at > now()
            && key.actions == ActionSet::all()
            && key.toolsets == toolsets
    };
    if let Some(known) = app.store.keys(access).await?.into_iter().find(is_usable) {
        return Ok(known);
    }
    let expires_at = now().checked_add(KEY_LIFETIME).map_err(ToolError::internal)?;
    let new = NewKey { name: NAME.to_owned(), toolsets, actions: ActionSet::all(), expires_at };
    app.store.create_key(access, new).await.map_err(|error: StoreError| error.into())
}

#[cfg(test)]
#[path = "tool_backend_tests.rs"]
mod tests;

//! Creating, listing, changing and removing workspaces.

use super::App;
use super::reply::{Answer, Done, Reply, ok};
use super::request::{Json, SignedIn, Unread, WorkspaceRequest, single_line};
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{path::Path, sync::Arc, time::Duration};
use toolrest_core::{Result, Role, ToolError, WorkspaceSettingsPatch};
use toolrest_ops::outside::AllowList;
use toolrest_store::{Location, WorkspaceChange, WorkspaceInfo, no_such_account};
use toolrest_workspaces::{Emptied, cache_in_use};

const NAME_CHARS: usize = 100;
const MAX_HOSTS: usize = 100;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeBody {
    /// The new name; 1 to 100 characters.
    name: Option<String>,
    /// Settings to change; null removes a setting.
    settings: Option<WorkspaceSettingsPatch>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewWorkspace {
    /// Its name; 1 to 100 characters.
    name: String,
    /// Where its files are.
    #[serde(default)]
    kind: Kind,
    /// For `directory`: the absolute path of the folder on the server's machine.
    root: Option<String>,
}

#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    #[default]
    Database,
    Directory,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct WorkspaceAnswer {
    workspace: WorkspaceInfo,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct WorkspaceWithHistory {
    workspace: WorkspaceInfo,
    /// For a folder: the size of its history in the database.
    #[serde(skip_serializing_if = "Option::is_none")]
    history_bytes: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct WorkspaceList {
    count: usize,
    workspaces: Vec<WorkspaceInfo>,
}

pub(crate) async fn create(
    State(app): State<Arc<App>>,
    SignedIn(caller): SignedIn,
    Json(body): Json<NewWorkspace>,
) -> Answer<Reply<WorkspaceAnswer>> {
    let name = single_line("name", &body.name, NAME_CHARS)?;
    let place = match (body.kind, &body.root) {
        (Kind::Database, None) => Location::Database,
        (Kind::Database, Some(_)) => {
            let message = "A root is for workspaces of the kind 'directory'; name that kind or leave the root out";
            return Err(ToolError::argument("root", message).into());
        }
        (Kind::Directory, None) => {
            let message = "A workspace of the kind 'directory' needs the absolute path of its folder as 'root'";
            return Err(ToolError::argument("root", message).into());
        }
        (Kind::Directory, Some(root)) => {
            let account = app.store.user(caller.user).await?.ok_or_else(no_such_account)?.email;
            let root = app.workspaces.allowed_root(Path::new(root), &account).await;
            Location::Directory { root: root.map_err(|error| error.about("root"))? }
        }
    };
    ok(&WorkspaceAnswer { workspace: app.store.create_workspace(caller.user, name, place).await? })
}

pub(crate) async fn list(State(app): State<Arc<App>>, SignedIn(caller): SignedIn) -> Answer<Reply<WorkspaceList>> {
    // A revoked or suspended key is refused, as everywhere.
    if let Some(key) = caller.key {
        app.engine.authorise(key.workspace, caller).await?;
    }
    let workspaces = app.store.workspaces_of(caller.member()).await?;
    ok(&WorkspaceList { count: workspaces.len(), workspaces })
}

pub(crate) async fn show(State(app): State<Arc<App>>, target: WorkspaceRequest) -> Answer<Reply<WorkspaceWithHistory>> {
    let workspace = app.store.workspace(target.access(Role::Viewer)).await?;
    let history_bytes = match workspace.location {
        Location::Database => None,
        Location::Directory { .. } => Some(app.store.history_bytes(target.access(Role::Viewer)).await?),
    };
    ok(&WorkspaceWithHistory { workspace, history_bytes })
}

pub(crate) async fn change(
    State(app): State<Arc<App>>,
    target: WorkspaceRequest,
    body: Unread<ChangeBody>,
) -> Answer<Reply<WorkspaceAnswer>> {
    let ChangeBody { name, settings } = target.json(&app, body).await?;
    let name = name.map(|name| single_line("name", &name, NAME_CHARS)).transpose()?;
    let run = settings.as_ref().and_then(|settings| settings.run.as_ref()?.as_ref());
    if let Some(hosts) = run.and_then(|run| run.network.as_ref()?.as_ref()) {
        check_hosts(&app, hosts)?;
    }
    if name.is_none() && settings.is_none() {
        return Err(ToolError::argument("name", "Give a new name, new settings, or both").into());
    }
    let change = WorkspaceChange { name, settings };
    ok(&WorkspaceAnswer { workspace: app.store.change_workspace(target.access(Role::Owner), change).await? })
}

/// Refuses hosts that `run.network_hosts` does not allow.
fn check_hosts(app: &App, hosts: &[String]) -> Result<()> {
    let refuse = |message: String| Err(ToolError::argument("settings", message));
    if hosts.len() > MAX_HOSTS {
        return refuse(format!("A workspace can list {MAX_HOSTS} hosts at most"));
    }
    let listed = &app.settings.run.network_hosts;
    // The settings were checked when they were read.
    let allowed = AllowList::new(listed.iter().map(String::as_str)).unwrap_or_default();
    for host in hosts {
        match allowed.covers(host) {
            Err(error) => return refuse(error.to_string()),
            Ok(true) => {}
            Ok(false) if listed.is_empty() => {
                return refuse(format!("'{host}' cannot be reached: the operator allows no hosts (run.network_hosts)"));
            }
            Ok(false) => {
                let listed = listed.join(", ");
                return refuse(format!("'{host}' is not among the hosts that the operator allows: {listed}"));
            }
        }
    }
    Ok(())
}

pub(crate) async fn empty_cache(State(app): State<Arc<App>>, target: WorkspaceRequest) -> Answer<Reply<Done>> {
    app.store.authorise(target.access(Role::Editor)).await?;
    if let Some(caches) = &app.caches
        && caches.empty(target.workspace).await? == Emptied::InUse
    {
        return Err(cache_in_use().into());
    }
    ok(&Done { message: "The home directory of the workspace's programs is empty" })
}

pub(crate) async fn remove(State(app): State<Arc<App>>, target: WorkspaceRequest) -> Answer<Reply<Done>> {
    app.store.delete_workspace(target.access(Role::Owner)).await?;
    // Stop running processes, because their changes can no longer be committed.
    app.processes.stop_all(Some(target.workspace), Duration::ZERO).await;
    ok(&Done { message: "Workspace deleted successfully" })
}

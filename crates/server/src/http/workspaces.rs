//! Creating, listing, changing and removing workspaces.

use super::App;
use super::reply::{Answer, ok};
use super::request::{Json, SignedIn, WorkspaceRequest, single_line};
use axum::extract::{Request, State};
use serde::Deserialize;
use serde_json::json;
use std::{path::Path, sync::Arc, time::Duration};
use toolrest_core::{Result, Role, ToolError, WorkspaceSettingsPatch};
use toolrest_ops::outside::AllowList;
use toolrest_store::{Location, WorkspaceChange, no_such_account};

const NAME_CHARS: usize = 100;
const MAX_HOSTS: usize = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeBody {
    name: Option<String>,
    settings: Option<WorkspaceSettingsPatch>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewWorkspace {
    name: String,
    #[serde(default)]
    kind: Kind,
    root: Option<String>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    #[default]
    Database,
    Directory,
}

pub(crate) async fn create(
    State(app): State<Arc<App>>,
    SignedIn(caller): SignedIn,
    Json(body): Json<NewWorkspace>,
) -> Answer {
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
    ok(&json!({ "workspace": app.store.create_workspace(caller.user, name, place).await? }))
}

pub(crate) async fn list(State(app): State<Arc<App>>, SignedIn(caller): SignedIn) -> Answer {
    // A revoked or suspended key is refused, as everywhere.
    if let Some(key) = caller.key {
        app.engine.authorise(key.workspace, caller).await?;
    }
    let workspaces = app.store.workspaces_of(caller.member()).await?;
    ok(&json!({ "count": workspaces.len(), "workspaces": workspaces }))
}

pub(crate) async fn show(State(app): State<Arc<App>>, target: WorkspaceRequest) -> Answer {
    let workspace = app.store.workspace(target.access(Role::Viewer)).await?;
    if workspace.location == Location::Database {
        return ok(&json!({ "workspace": workspace }));
    }
    let history_bytes = app.store.history_bytes(target.access(Role::Viewer)).await?;
    ok(&json!({ "workspace": workspace, "history_bytes": history_bytes }))
}

pub(crate) async fn change(State(app): State<Arc<App>>, target: WorkspaceRequest, request: Request) -> Answer {
    let ChangeBody { name, settings } = target.json(&app, request).await?;
    let name = name.map(|name| single_line("name", &name, NAME_CHARS)).transpose()?;
    let run = settings.as_ref().and_then(|settings| settings.run.as_ref()?.as_ref());
    if let Some(hosts) = run.and_then(|run| run.network.as_ref()?.as_ref()) {
        check_hosts(&app, hosts)?;
    }
    if name.is_none() && settings.is_none() {
        return Err(ToolError::argument("name", "Give a new name, new settings, or both").into());
    }
    let change = WorkspaceChange { name, settings };
    ok(&json!({ "workspace": app.store.change_workspace(target.access(Role::Owner), change).await? }))
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

pub(crate) async fn remove(State(app): State<Arc<App>>, target: WorkspaceRequest) -> Answer {
    app.store.delete_workspace(target.access(Role::Owner)).await?;
    // Stop running processes, because their changes can no longer be committed.
    app.processes.stop_all(Some(target.workspace), Duration::ZERO).await;
    ok(&json!({ "message": "Workspace deleted successfully" }))
}

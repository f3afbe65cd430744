//! Workspaces.

use super::App;
use super::reply::{Answer, ok};
use super::request::{At, Json, Signed, line};
use axum::extract::{Request, State};
use serde::Deserialize;
use serde_json::json;
use std::{path::Path, sync::Arc, time::Duration};
use toolrest_core::{Role, ToolError, WorkspaceSettings};
use toolrest_ops::outside::AllowList;
use toolrest_store::{Place, WorkspaceChange, no_such_account};

const NAME_CHARS: usize = 100;
const MOST_HOSTS: usize = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Changed {
    name: Option<String>,
    settings: Option<WorkspaceSettings>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct New {
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

pub(crate) async fn create(State(app): State<Arc<App>>, Signed(caller): Signed, Json(body): Json<New>) -> Answer {
    let name = line("name", &body.name, NAME_CHARS)?;
    let place = match (body.kind, &body.root) {
        (Kind::Database, None) => Place::Database,
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
            Place::Directory { root: root.map_err(|error| error.about("root"))? }
        }
    };
    ok(&json!({ "workspace": app.store.create_workspace(caller.user, name, place).await? }))
}

pub(crate) async fn list(State(app): State<Arc<App>>, Signed(caller): Signed) -> Answer {
    let workspaces = app.store.workspaces_of(caller.user).await?;
    ok(&json!({ "count": workspaces.len(), "workspaces": workspaces }))
}

pub(crate) async fn show(State(app): State<Arc<App>>, at: At) -> Answer {
    let workspace = app.store.workspace(at.access(Role::Viewer)).await?;
    if workspace.place == Place::Database {
        return ok(&json!({ "workspace": workspace }));
    }
    let history_bytes = app.store.history_bytes(at.access(Role::Viewer)).await?;
    ok(&json!({ "workspace": workspace, "history_bytes": history_bytes }))
}

pub(crate) async fn change(State(app): State<Arc<App>>, at: At, request: Request) -> Answer {
    let Changed { name, settings } = at.json(&app, request).await?;
    let name = match name.map(|name| line("name", &name, NAME_CHARS)).transpose() {
        Ok(name) => name,
        Err(error) => at.refuse(&app, error).await?,
    };
    let hosts = settings.iter().flat_map(|settings| settings.run.network.iter().map(String::as_str));
    if hosts.clone().count() > MOST_HOSTS {
        let message = format!("A workspace can list {MOST_HOSTS} hosts at most");
        at.refuse::<()>(&app, ToolError::argument("settings", message)).await?;
    }
    if let Err(error) = AllowList::new(hosts) {
        at.refuse::<()>(&app, ToolError::argument("settings", error.to_string())).await?;
    }
    if name.is_none() && settings.is_none() {
        at.refuse::<()>(&app, ToolError::argument("name", "Give a new name, new settings, or both")).await?;
    }
    let change = WorkspaceChange { name, settings };
    ok(&json!({ "workspace": app.store.change_workspace(at.access(Role::Owner), change).await? }))
}

pub(crate) async fn remove(State(app): State<Arc<App>>, at: At) -> Answer {
    app.store.delete_workspace(at.access(Role::Owner)).await?;
    // What they change can be committed nowhere any more.
    app.processes.stop_all(Some(at.workspace), Duration::ZERO).await;
    ok(&json!({ "message": "Workspace deleted successfully" }))
}

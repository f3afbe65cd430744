//! Agent keys of a workspace.

use super::App;
use super::members::STOP_TIMEOUT;
use super::reply::{Answer, Reply, ok};
use super::request::{Unread, WorkspaceRequest, single_line};
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use toolrest_core::{Action, ActionSet, KeyId, Result, Role, ToolError, Toolset, UserId, now};
use toolrest_store::{KeyInfo, KeyState, NewKey};

const NAME_CHARS: usize = 100;
const DEFAULT_HOURS: u32 = 90 * 24;
/// Ten years.
const MOST_HOURS: u32 = 3650 * 24;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewKeyBody {
    /// Name of the key, such as the agent's; 1 to 100 characters.
    name: String,
    /// The toolsets that it may call; without it all.
    toolsets: Option<Vec<String>>,
    /// What it may do; without it everything.
    #[schemars(with = "Option<Vec<Action>>")]
    actions: Option<Vec<String>>,
    /// Hours until it expires; without it 90 days.
    #[schemars(range(min = 1, max = 87_600))]
    expires_in_hours: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyStateBody {
    /// Whether the key is suspended.
    suspended: bool,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct CreatedKey {
    /// What the agent sends as its token. It is shown only now.
    secret: String,
    key: KeyInfo,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct KeyList {
    count: usize,
    keys: Vec<KeyInfo>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct KeyAnswer {
    key: KeyInfo,
}

pub(crate) async fn create(
    State(app): State<Arc<App>>,
    target: WorkspaceRequest,
    body: Unread<NewKeyBody>,
) -> Answer<Reply<CreatedKey>> {
    let body = target.json(&app, body).await?;
    let new = match new_key(&app, &body) {
        Ok(new) => new,
        Err(error) => target.refuse(&app, error).await?,
    };
    let key = app.store.create_key(target.access(Role::Editor), new).await?;
    ok(&CreatedKey { secret: app.agent_keys.issue(target.workspace, &key), key })
}

pub(crate) async fn list(State(app): State<Arc<App>>, target: WorkspaceRequest) -> Answer<Reply<KeyList>> {
    let keys = app.store.keys(target.access(Role::Viewer)).await?;
    ok(&KeyList { count: keys.len(), keys })
}

pub(crate) async fn change(
    State(app): State<Arc<App>>,
    target: WorkspaceRequest,
    body: Unread<KeyStateBody>,
) -> Answer<Reply<KeyAnswer>> {
    let id: KeyId = target.id(&app, "key").await?;
    let KeyStateBody { suspended } = target.json(&app, body).await?;
    let state = if suspended { KeyState::Suspended } else { KeyState::Active };
    let key = app.store.set_key_state(target.access(Role::Viewer), id, state).await?;
    if suspended {
        stop_processes(&app, &target, id).await;
    }
    ok(&KeyAnswer { key })
}

pub(crate) async fn revoke(State(app): State<Arc<App>>, target: WorkspaceRequest) -> Answer<Reply<KeyAnswer>> {
    let id: KeyId = target.id(&app, "key").await?;
    let key = app.store.revoke_key(target.access(Role::Viewer), id).await?;
    stop_processes(&app, &target, id).await;
    ok(&KeyAnswer { key })
}

/// Stops the programs of a key on this server. Other replicas stop theirs within seconds.
async fn stop_processes(app: &App, target: &WorkspaceRequest, key: KeyId) {
    app.processes.stop_processes_of(target.workspace, UserId(key.0), STOP_TIMEOUT).await;
}

fn new_key(app: &App, body: &NewKeyBody) -> Result<NewKey> {
    let hours = body.expires_in_hours.unwrap_or(DEFAULT_HOURS);
    if !(1..=MOST_HOURS).contains(&hours) {
        let message = format!("`expires_in_hours` must be 1 to {MOST_HOURS}, not {hours}");
        return Err(ToolError::argument("expires_in_hours", message));
    }
    let lifetime = Duration::from_secs(u64::from(hours) * 60 * 60);
    Ok(NewKey {
        name: single_line("name", &body.name, NAME_CHARS)?,
        toolsets: toolsets(app, body.toolsets.as_deref())?,
        actions: actions(body.actions.as_deref())?,
        expires_at: now().checked_add(lifetime).map_err(ToolError::internal)?,
    })
}

/// Returns the toolsets of a key; without a choice, all that there are.
fn toolsets(app: &App, chosen: Option<&[String]>) -> Result<Vec<String>> {
    let known: Vec<&str> = app.engine.toolsets().iter().map(Toolset::name).collect();
    let chosen = chosen.map(|names| names.iter().map(String::as_str).collect());
    let chosen: Vec<&str> = chosen.unwrap_or_else(|| known.clone());
    check_names("toolsets", &chosen, &known)?;
    Ok(known.into_iter().filter(|name| chosen.contains(name)).map(str::to_owned).collect())
}

/// Returns the actions of a key; without a choice, all that there are.
fn actions(chosen: Option<&[String]>) -> Result<ActionSet> {
    let Some(chosen) = chosen else { return Ok(ActionSet::all()) };
    let chosen: Vec<&str> = chosen.iter().map(String::as_str).collect();
    check_names("actions", &chosen, &Action::ALL.map(Action::name))?;
    Ok(chosen.into_iter().filter_map(Action::from_name).collect())
}

/// Refuses an empty choice, and names that are not known.
fn check_names(field: &str, chosen: &[&str], known: &[&str]) -> Result<()> {
    if chosen.is_empty() {
        let message = format!("`{field}` must name at least one of {}", known.join(", "));
        return Err(ToolError::argument(field, message));
    }
    match chosen.iter().find(|name| !known.contains(name)) {
        None => Ok(()),
        Some(unknown) => {
            let message = format!("'{unknown}' is not one of the {field}, which are {}", known.join(", "));
            Err(ToolError::argument(field, message))
        }
    }
}

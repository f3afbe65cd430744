//! The records of calls.

use super::App;
use super::page::{cut, more};
use super::reply::{Answer, Reply, ok};
use super::request::WorkspaceRequest;
use axum::extract::{Query, State};
use schemars::JsonSchema;
use serde::Serialize;
use std::{collections::HashMap, str::FromStr, sync::Arc};
use toolrest_core::{CallId, CallRecord, REST_TOOLSET, Result, Role, ToolError, WsPath, is_outcome};
use toolrest_store::{CallFilter, CallState, Page};

/// The query parameters of the list.
pub(crate) const PARAMETERS: [&str; 11] =
    ["before", "limit", "state", "tool", "toolset", "outcome", "principal", "path", "commit", "since", "until"];

/// Maximum length of the name of a tool in a record.
const NAME_CHARS: usize = 100;

#[derive(Serialize, JsonSchema)]
pub(crate) struct CallList {
    calls: Vec<CallRecord>,
    /// Whether there are more.
    truncated: bool,
    /// If there are more: the value of `before` for the next page.
    next: Option<CallId>,
}

pub(crate) async fn list(
    State(app): State<Arc<App>>,
    target: WorkspaceRequest,
    Query(query): Query<HashMap<String, String>>,
) -> Answer<Reply<CallList>> {
    let page: Page<CallId> = target.page(&app, &query).await?;
    let filter = match filter(&app, &query) {
        Ok(filter) => filter,
        Err(error) => target.refuse(&app, error).await?,
    };
    // A key sees only its own calls.
    let filter = match target.caller.key_id() {
        Some(key) => CallFilter { principal: Some(key.0), ..filter },
        None => filter,
    };
    let found = app.store.calls(target.access(Role::Viewer), filter, more(page)).await?;
    let (calls, truncated) = cut(page.limit, found);
    let next = calls.last().filter(|_| truncated).map(|call| call.id);
    ok(&CallList { calls, truncated, next })
}

/// Parses the filter of a query.
fn filter(app: &App, query: &HashMap<String, String>) -> Result<CallFilter> {
    let get = |name: &str| query.get(name).map(String::as_str);
    let state = match get("state") {
        None | Some("ended") => CallState::Ended,
        Some("running") => CallState::Running,
        Some(other) => return Err(bad("state", other, "use `running` or `ended`")),
    };
    for name in ["outcome", "commit"] {
        if state == CallState::Running && query.contains_key(name) {
            let message = format!("`{name}` cannot be given with `state=running`: a running call has none yet");
            return Err(ToolError::argument(name, message));
        }
    }
    let is_toolset = |name: &str| name == REST_TOOLSET || app.engine.toolsets().find(name).is_some();
    let is_tool =
        |name: &str| !name.is_empty() && name.chars().count() <= NAME_CHARS && !name.chars().any(char::is_control);
    Ok(CallFilter {
        state,
        toolset: checked(query, "toolset", is_toolset, "it is not a toolset of this server")?,
        tool: checked(query, "tool", is_tool, "it must be the name of a tool")?,
        outcome: checked(query, "outcome", is_outcome, "use `ok`, `interrupted` or the name of an error kind")?,
        principal: parsed(query, "principal", "it must be the id of a person or a key")?,
        path: get("path").map(WsPath::within).transpose().map_err(|error| error.about("path"))?,
        commit: parsed(query, "commit", "it must be the id of a commit")?,
        since: parsed(query, "since", "it must be a time such as 2026-01-31T12:00:00Z")?,
        until: parsed(query, "until", "it must be a time such as 2026-01-31T12:00:00Z")?,
    })
}

fn checked(
    query: &HashMap<String, String>,
    name: &str,
    is_valid: impl Fn(&str) -> bool,
    hint: &str,
) -> Result<Option<String>> {
    match query.get(name) {
        Some(text) if !is_valid(text) => Err(bad(name, text, hint)),
        found => Ok(found.cloned()),
    }
}

fn parsed<T: FromStr>(query: &HashMap<String, String>, name: &str, hint: &str) -> Result<Option<T>> {
    query.get(name).map(|text| text.parse().map_err(|_| bad(name, text, hint))).transpose()
}

fn bad(name: &str, text: &str, hint: &str) -> ToolError {
    ToolError::argument(name, format!("'{text}' is not a valid `{name}`; {hint}"))
}

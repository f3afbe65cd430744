//! The contents of a folder, for people who look around. Unlike the calls of tools, looking is not recorded.

use super::App;
use super::reply::{Answer, Reply, ok_within};
use super::request::WorkspaceRequest;
use axum::extract::{Query, State};
use schemars::JsonSchema;
use serde::Serialize;
use std::{collections::HashMap, sync::Arc};
use toolrest_core::{Depth, FileType, Listed, Role, Timestamp, WsPath};

#[derive(Serialize, JsonSchema)]
pub(crate) struct FolderListing {
    path: WsPath,
    /// What the folder contains, sorted by path.
    entries: Vec<EntryShown>,
}

#[derive(Serialize, JsonSchema)]
struct EntryShown {
    name: String,
    path: WsPath,
    file_type: FileType,
    /// Whether it is a symbolic link, which only folders on disk have.
    is_link: bool,
    /// Size in bytes; 0 for a folder.
    size: i64,
    #[schemars(with = "String")]
    updated_at: Timestamp,
}

impl From<Listed> for EntryShown {
    fn from(entry: Listed) -> Self {
        Self {
            name: entry.path.name().to_owned(),
            file_type: entry.file_type,
            is_link: entry.is_link,
            size: entry.size,
            updated_at: entry.updated_at,
            path: entry.path,
        }
    }
}

pub(crate) async fn show(
    State(app): State<Arc<App>>,
    target: WorkspaceRequest,
    Query(query): Query<HashMap<String, String>>,
) -> Answer<Reply<FolderListing>> {
    let path = match WsPath::within(query.get("path").map_or("/", String::as_str)) {
        Ok(path) => path,
        Err(error) => target.refuse(&app, error.about("path")).await?,
    };
    let _slot = app.engine.enter(target.workspace, target.caller).await?;
    let cx = app.engine.rest_context("list", target.workspace, target.caller, Role::Viewer).await?;
    let listing = toolrest_ops::list(&cx, &path, Depth::Children).await?;
    let entries = listing.entries.into_iter().map(EntryShown::from).collect();
    ok_within(&FolderListing { path, entries }, app.settings.limits.response_bytes)
}

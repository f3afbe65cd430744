//! Files by id, versions, the trash and commits.

use super::App;
use super::page::{cut, more};
use super::reply::{Answer, Reply, ok, ok_within};
use super::request::{Unread, WorkspaceRequest};
use axum::extract::{Query, State};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{collections::HashMap, sync::Arc};
use toolrest_core::{
    Action, CallCx, Change, Changeset, Commit, CommitId, CommitInfo, Content, ContentHash, Entry, ErrorKind, FileId,
    FileType, JsonText, Page, QueueSlot, Result, Role, Timestamp, ToolError, Version, VersionId, Workspace, WsPath,
};
use toolrest_ops::{Force, SMALL_BYTES, UndoOptions, make_room};

type Params = Query<HashMap<String, String>>;

/// Number of commits per query.
const COMMITS_PER_QUERY: u32 = 32;

/// A file as this interface shows it.
#[derive(Serialize, JsonSchema)]
struct FileInfo {
    id: FileId,
    name: String,
    display_name: String,
    path: WsPath,
    file_type: FileType,
    is_virtual: bool,
    size: i64,
    hash: Option<ContentHash>,
    version_id: Option<VersionId>,
    created_at: Timestamp,
    updated_at: Timestamp,
    deleted_at: Option<Timestamp>,
}

impl From<Entry> for FileInfo {
    fn from(entry: Entry) -> Self {
        Self {
            id: entry.id,
            name: entry.path.name().to_owned(),
            display_name: entry.display_name().to_owned(),
            file_type: entry.file_type,
            is_virtual: entry.is_virtual,
            size: entry.size,
            hash: entry.hash,
            version_id: entry.version,
            created_at: entry.created_at,
            updated_at: entry.updated_at,
            deleted_at: entry.deleted_at,
            path: entry.path,
        }
    }
}

/// A content: text as a string, JSON as it is, bytes as base64 with `encoding`.
#[derive(Serialize, JsonSchema)]
struct ShownContent {
    /// Text, a JSON value, or bytes as base64; null for a folder.
    content: Option<JsonText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<&'static str>,
}

impl ShownContent {
    fn of(content: Option<Content>) -> Result<Self> {
        Ok(match content {
            None => Self { content: None, encoding: None },
            Some(Content::Text(text)) => Self { content: Some(JsonText::of(&text)?), encoding: None },
            Some(Content::Encoded(text)) => Self { content: Some(JsonText::of(&text.text())?), encoding: None },
            Some(Content::Json(json)) => Self { content: Some(json), encoding: None },
            Some(Content::Bytes(bytes)) => {
                Self { content: Some(JsonText::of(&STANDARD.encode(bytes))?), encoding: Some("base64") }
            }
        })
    }
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct FileAnswer {
    file: FileInfo,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct FileWithContent {
    file: FileInfo,
    #[serde(flatten)]
    shown: ShownContent,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct VersionWithContent {
    version: Version,
    #[serde(flatten)]
    shown: ShownContent,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct VersionList {
    versions: Vec<Version>,
    /// Whether there are more.
    truncated: bool,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct HistoryAnswer {
    file: FileInfo,
    versions: Vec<Version>,
    /// Whether there are more.
    truncated: bool,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct TrashList {
    count: usize,
    files: Vec<FileInfo>,
    /// Whether there are more.
    truncated: bool,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct CommitAnswer {
    commit: CommitInfo,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct CommitList {
    #[schemars(with = "Vec<CommitInfo>")]
    commits: Vec<JsonText>,
    /// Whether there are more.
    truncated: bool,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct DiffAnswer {
    /// A unified diff.
    diff: String,
}

pub(crate) async fn show(State(app): State<Arc<App>>, target: WorkspaceRequest) -> Answer<Reply<FileWithContent>> {
    let id = target.id(&app, "file").await?;
    let reading = Reading::begin(&app, &target).await?;
    let mut file = reading.cx.workspace.file_by_id(id, SMALL_BYTES).await?;
    if file.content.is_none() && file.entry.size > SMALL_BYTES {
        let max_bytes = make_room(&reading.cx, &[file.entry.size]).await?;
        file = reading.cx.workspace.file_by_id(id, max_bytes).await?;
    }
    let limit = app.settings.limits.response_bytes;
    ok_within(&FileWithContent { shown: ShownContent::of(file.content)?, file: file.entry.into() }, limit)
}

/// A REST request that reads contents. It takes a call slot, and memory for what it reads.
struct Reading {
    cx: CallCx,
    _slot: QueueSlot,
}

impl Reading {
    async fn begin(app: &App, target: &WorkspaceRequest) -> Result<Self> {
        let slot = app.engine.enter(target.workspace, target.caller).await?;
        let cx = app.engine.rest_context("read", target.workspace, target.caller, Role::Viewer).await?;
        Ok(Self { cx, _slot: slot })
    }
}

pub(crate) async fn versions(
    State(app): State<Arc<App>>,
    target: WorkspaceRequest,
    query: Params,
) -> Answer<Reply<VersionList>> {
    let file = target.id(&app, "file").await?;
    let page: Page<i64> = target.page(&app, &query).await?;
    let workspace = open(&app, &target, Role::Viewer).await?;
    let (versions, truncated) = cut(page.limit, workspace.versions(file, more(page)).await?);
    ok(&VersionList { versions, truncated })
}

/// Lists the versions of the file at a path; if there is none, those of the file that was removed from there last.
pub(crate) async fn history(
    State(app): State<Arc<App>>,
    target: WorkspaceRequest,
    query: Params,
) -> Answer<Reply<HistoryAnswer>> {
    let path = target.file_path(&app).await?;
    let page: Page<i64> = target.page(&app, &query).await?;
    let workspace = open(&app, &target, Role::Viewer).await?;
    let found = match workspace.stat(&path).await? {
        Some(entry) => Some(entry),
        None => removed_from(&*workspace, &path).await?,
    };
    let entry = found.ok_or_else(|| ToolError::file_not_found(&path))?;
    let (versions, truncated) = match workspace.versions(entry.id, more(page)).await {
        Ok(found) => cut(page.limit, found),
        // A file in a folder that no tool has changed has no recorded versions.
        Err(error) if error.kind == ErrorKind::NotFound && workspace.is_in_file_system() => (Vec::new(), false),
        Err(error) => return Err(error.into()),
    };
    ok(&HistoryAnswer { file: entry.into(), versions, truncated })
}

/// Returns the file that was removed last from a path, if it is in the trash.
async fn removed_from(workspace: &dyn Workspace, path: &WsPath) -> Result<Option<Entry>> {
    const PAGE: u32 = 1_000;
    let mut before = None;
    loop {
        let files = workspace.trash(Page { before, limit: PAGE }).await?;
        before = files.last().map(|entry| entry.id);
        let is_last = files.len() < PAGE as usize;
        match files.into_iter().find(|entry| entry.path == *path) {
            None if !is_last => {}
            found => return Ok(found),
        }
    }
}

pub(crate) async fn version(
    State(app): State<Arc<App>>,
    target: WorkspaceRequest,
) -> Answer<Reply<VersionWithContent>> {
    let (file, version) = (target.id(&app, "file").await?, target.id(&app, "version").await?);
    let reading = Reading::begin(&app, &target).await?;
    let (mut version, mut content) = reading.cx.workspace.version(file, version, SMALL_BYTES).await?;
    if content.is_none() {
        let max_bytes = make_room(&reading.cx, &[version.size]).await?;
        (version, content) = reading.cx.workspace.version(file, version.id, max_bytes).await?;
    }
    let body = VersionWithContent { version, shown: ShownContent::of(content)? };
    ok_within(&body, app.settings.limits.response_bytes)
}

pub(crate) async fn trash(
    State(app): State<Arc<App>>,
    target: WorkspaceRequest,
    query: Params,
) -> Answer<Reply<TrashList>> {
    let page: Page<FileId> = target.page(&app, &query).await?;
    let workspace = open(&app, &target, Role::Viewer).await?;
    let (files, truncated) = cut(page.limit, workspace.trash(more(page)).await?);
    let files: Vec<FileInfo> = files.into_iter().map(FileInfo::from).collect();
    ok(&TrashList { count: files.len(), files, truncated })
}

pub(crate) async fn restore(State(app): State<Arc<App>>, target: WorkspaceRequest) -> Answer<Reply<FileAnswer>> {
    let file: FileId = target.id(&app, "file").await?;
    // The answer shows the file.
    if let Err(error) = target.caller.guard().require(Action::Read) {
        target.refuse::<()>(&app, error).await?;
    }
    commit(&app, &target, "restore", Changeset::one(Change::Restore(file))).await?;
    // The answer has no content.
    let restored = open(&app, &target, Role::Viewer).await?.file_by_id(file, 0).await?;
    ok(&FileAnswer { file: restored.entry.into() })
}

pub(crate) async fn commits(
    State(app): State<Arc<App>>,
    target: WorkspaceRequest,
    query: Params,
) -> Answer<Reply<CommitList>> {
    let Page { mut before, limit }: Page<CommitId> = target.page(&app, &query).await?;
    let workspace = open(&app, &target, Role::Viewer).await?;
    let mut body = CommitList { commits: Vec::new(), truncated: false };
    let mut room = app.settings.limits.response_bytes;
    // A commit can name thousands of files, so commits are read a few at a time, until the answer is full.
    'batches: loop {
        let batch = workspace.commits(Page { before, limit: COMMITS_PER_QUERY }).await?;
        let is_last = batch.len() < COMMITS_PER_QUERY as usize;
        for commit in batch {
            before = Some(commit.id);
            let commit = JsonText::of(&commit)?;
            let size = commit.as_str().len();
            if body.commits.len() == limit as usize || (size > room && !body.commits.is_empty()) {
                body.truncated = true;
                break 'batches;
            }
            room = room.saturating_sub(size);
            body.commits.push(commit);
        }
        if is_last {
            break;
        }
    }
    ok(&body)
}

pub(crate) async fn commit_info(State(app): State<Arc<App>>, target: WorkspaceRequest) -> Answer<Reply<CommitAnswer>> {
    let id: CommitId = target.id(&app, "commit").await?;
    let commit = open(&app, &target, Role::Viewer).await?.commit_info(id).await?;
    ok_within(&CommitAnswer { commit }, app.settings.limits.response_bytes)
}

pub(crate) async fn diff(State(app): State<Arc<App>>, target: WorkspaceRequest) -> Answer<Reply<DiffAnswer>> {
    let id: CommitId = target.id(&app, "commit").await?;
    let reading = Reading::begin(&app, &target).await?;
    let commit = reading.cx.workspace.commit_info(id).await?;
    let limit = app.settings.limits.response_bytes;
    ok_within(&DiffAnswer { diff: toolrest_ops::commit_diff(&reading.cx, commit.changes, limit).await? }, limit)
}

/// The body of an undo.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UndoBody {
    /// Whether to undo changes that others may have made.
    #[serde(default)]
    force: bool,
}

pub(crate) async fn undo(
    State(app): State<Arc<App>>,
    target: WorkspaceRequest,
    body: Unread<UndoBody>,
) -> Answer<Reply<CommitAnswer>> {
    let id: CommitId = target.id(&app, "commit").await?;
    let workspace = open(&app, &target, Role::Editor).await?;
    let undone = workspace.commit_info(id).await?;
    let UndoBody { force } = target.json_if_any(&app, body).await?;
    let force = if force { Force::Yes } else { Force::No };
    let _slot = app.engine.enter(target.workspace, target.caller).await?;
    let cx = target.change_context(&app, "undo", Role::Editor).await?;
    let options = UndoOptions { paths: &[], force };
    let done = toolrest_ops::undo(&cx, &[undone], &options).await.map_err(ToolError::from)?;
    let id = done.commit.and_then(|commit| commit.id).ok_or_else(|| ToolError::internal("an undo changed nothing"))?;
    ok(&CommitAnswer { commit: workspace.commit_info(id).await? })
}

/// Opens the workspace for a request.
async fn open(app: &App, target: &WorkspaceRequest, need: Role) -> Result<Arc<dyn Workspace>> {
    Ok(app.engine.rest_context("read", target.workspace, target.caller, need).await?.workspace)
}

async fn commit(app: &App, target: &WorkspaceRequest, name: &'static str, changes: Changeset) -> Result<Commit> {
    let _slot = app.engine.enter(target.workspace, target.caller).await?;
    let cx = target.change_context(app, name, Role::Editor).await?;
    cx.workspace.commit(changes, &cx).await
}

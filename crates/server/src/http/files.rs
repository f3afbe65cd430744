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
    Action, CallCx, Change, Changeset, Commit, CommitId, CommitInfo, Content, ContentHash, Effect, EffectKind, Entry,
    ErrorKind, Expect, FileId, FileType, JsonText, Page, QueueSlot, Result, Role, Timestamp, ToolError, Version,
    VersionId, Workspace, WsPath,
};
use toolrest_ops::Force;
use toolrest_toolsets::errors;

type Params = Query<HashMap<String, String>>;

/// Contents up to this size are read without reserving memory.
const SMALL_BYTES: i64 = 256 << 10;

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
        let max_bytes = reading.make_room(&[file.entry.size]).await?;
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

    /// Reserves memory for contents of these sizes; fails if one is larger than an answer. Returns the largest size.
    async fn make_room(&self, sizes: &[i64]) -> Result<i64> {
        let largest = sizes.iter().copied().max().unwrap_or(0);
        check_size(largest, self.cx.limits.response_bytes)?;
        let all = sizes.iter().map(|size| u64::try_from(*size).unwrap_or(0)).sum();
        self.cx.workspace.make_room(all).await?;
        Ok(largest)
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
        let max_bytes = reading.make_room(&[version.size]).await?;
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
    let mut text = String::new();
    for effect in toolrest_ops::merge_moves(commit.changes) {
        let path = effect.path.clone();
        match contents(&reading, &effect).await {
            Ok((before, after)) => text += &toolrest_ops::effect_diff(&reading.cx, effect, before, after).await?,
            // The other files are still shown, with a line for this one.
            Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::ResponseTooLarge) => {
                text.extend(["# ", path.as_str(), ": ", &error.message, "\n"]);
            }
            Err(error) => return Err(error.into()),
        }
        check_size(i64::try_from(text.len()).unwrap_or(i64::MAX), limit)?;
    }
    ok_within(&DiffAnswer { diff: text }, limit)
}

/// Returns the contents of a file before and after an effect.
async fn contents(reading: &Reading, effect: &Effect) -> Result<(Option<Content>, Option<Content>)> {
    let workspace = &reading.cx.workspace;
    let (EffectKind::Create | EffectKind::Update | EffectKind::Remove | EffectKind::Restore, Some(version)) =
        (effect.op, effect.version_id)
    else {
        return Ok((None, None));
    };
    let (before, after) = match effect.op {
        EffectKind::Remove => (Some(version), None),
        EffectKind::Update => {
            let page = Page { before: effect.after, limit: 1 };
            let earlier = workspace.versions(effect.file_id, page).await?;
            let before = earlier.first().map(|version| version.id);
            (Some(before.ok_or_else(|| ToolError::file_not_found(&effect.path))?), Some(version))
        }
        _ => (None, Some(version)),
    };
    // Small contents are read at once; for large ones, memory is reserved first.
    let read = async |version: Option<VersionId>, max_bytes: i64| -> Result<_> {
        let Some(version) = version else { return Ok((0, None)) };
        let (version, content) = workspace.version(effect.file_id, version, max_bytes).await?;
        Ok((version.size, content))
    };
    let (mut old, mut new) = (read(before, SMALL_BYTES).await?, read(after, SMALL_BYTES).await?);
    if old.0.max(new.0) > SMALL_BYTES {
        let max_bytes = reading.make_room(&[old.0, new.0]).await?;
        (old, new) = (read(before, max_bytes).await?, read(after, max_bytes).await?);
    }
    Ok((old.1, new.1))
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
    let inverse = toolrest_ops::undo(&undone, force)?;
    let mut done = commit(&app, &target, "undo", inverse.clone()).await;
    if done.as_ref().is_err_and(|error| error.kind == ErrorKind::Stale)
        && let Some(inverse) = with_later_changes_undone(&*workspace, inverse).await?
    {
        done = commit(&app, &target, "undo", inverse).await;
    }
    let done = match done {
        Ok(done) => done,
        Err(error) => return Err(or_undone_already(&*workspace, id, error).await?.into()),
    };
    let id = done.id.ok_or_else(|| ToolError::internal("an undo changed nothing"))?;
    ok(&CommitAnswer { commit: workspace.commit_info(id).await? })
}

/// Returns a changeset that expects the current versions of files instead of earlier ones with the same content, where all
/// commits in between were undone. So one commit after the other can be undone. Returns none if a file has changed.
async fn with_later_changes_undone(workspace: &dyn Workspace, mut changes: Changeset) -> Result<Option<Changeset>> {
    /// Maximum number of versions of a file that are looked at.
    const MAX_VERSIONS: u32 = 100;
    for expect in &mut changes.expect {
        let Expect::Version(file, expected) = expect else { continue };
        let versions = workspace.versions(*file, Page { before: None, limit: MAX_VERSIONS }).await?;
        let Some(at) = versions.iter().position(|version| version.id == *expected) else { return Ok(None) };
        if versions[0].hash != versions[at].hash {
            return Ok(None);
        }
        for later in &versions[..at] {
            let commit = later.commit_id;
            let is_undo = workspace.commit_info(commit).await?.undoes.is_some();
            if !is_undo && workspace.undone_by(commit).await?.is_none() {
                return Ok(None);
            }
        }
        *expected = versions[0].id;
    }
    Ok(Some(changes))
}

/// Replaces the error of a failed undo if the commit was undone already.
async fn or_undone_already(workspace: &dyn Workspace, id: CommitId, error: ToolError) -> Result<ToolError> {
    if !matches!(errors::row(error.kind).status, 404 | 409) {
        return Ok(error);
    }
    Ok(match workspace.undone_by(id).await? {
        Some(by) => {
            let message = format!("Commit {id} was undone already, by commit {by}; undo that one to bring it back");
            ToolError::new(ErrorKind::Conflict, message)
        }
        None => error,
    })
}

/// Refuses a content that is larger than an answer.
fn check_size(size: i64, limit: usize) -> Result<()> {
    if usize::try_from(size).is_ok_and(|size| size <= limit) {
        return Ok(());
    }
    let message = format!("The content is {size} bytes, over the limit of {limit}");
    Err(ToolError::new(ErrorKind::ResponseTooLarge, message))
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

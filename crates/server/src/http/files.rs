//! Files by their ids, their history, the trash, commits and the records of calls.

use super::App;
use super::reply::{Answer, ok};
use super::request::At;
use axum::extract::{Query, Request, State};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{collections::HashMap, sync::Arc};
use toolrest_core::{
    CallCx, CallId, Change, Changeset, Commit, CommitId, Content, ContentHash, Effect, EffectKind, Entry, ErrorKind,
    FileId, FileType, JsonText, Result, Role, Timestamp, ToolError, Version, VersionId, WsPath,
};
use toolrest_ops::Force;
use toolrest_store::Page;
use toolrest_toolsets::errors;

type Params = Query<HashMap<String, String>>;

/// How many commits are read at a time.
const COMMITS_AT_ONCE: u32 = 32;

/// A file as this interface shows it.
#[derive(Serialize)]
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

/// A content: text as a string, JSON as it is, bytes as base64 and marked so.
#[derive(Serialize)]
struct Shown {
    content: Option<JsonText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<&'static str>,
}

impl Shown {
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

pub(crate) async fn show(State(app): State<Arc<App>>, at: At) -> Answer {
    #[derive(Serialize)]
    struct Body {
        file: FileInfo,
        #[serde(flatten)]
        shown: Shown,
    }
    let file = app.store.file(at.access(Role::Viewer), at.id(&app, "file").await?).await?;
    within_limit(&app, file.entry.size)?;
    ok(&Body { file: file.entry.into(), shown: Shown::of(file.content)? })
}

pub(crate) async fn versions(State(app): State<Arc<App>>, at: At, query: Params) -> Answer {
    let file = at.id(&app, "file").await?;
    let page: Page<i64> = at.page(&app, &query).await?;
    let (versions, truncated) = cut(page.limit, app.store.versions(at.access(Role::Viewer), file, more(page)).await?);
    ok(&json!({ "versions": versions, "truncated": truncated }))
}

pub(crate) async fn version(State(app): State<Arc<App>>, at: At) -> Answer {
    #[derive(Serialize)]
    struct Body {
        version: Version,
        #[serde(flatten)]
        shown: Shown,
    }
    let (file, version) = (at.id(&app, "file").await?, at.id(&app, "version").await?);
    let (version, content) = app.store.version(at.access(Role::Viewer), file, version).await?;
    within_limit(&app, version.size)?;
    ok(&Body { version, shown: Shown::of(Some(content))? })
}

pub(crate) async fn trash(State(app): State<Arc<App>>, at: At, query: Params) -> Answer {
    let page: Page<FileId> = at.page(&app, &query).await?;
    let (files, truncated) = cut(page.limit, app.store.trash(at.access(Role::Viewer), more(page)).await?);
    let files: Vec<FileInfo> = files.into_iter().map(FileInfo::from).collect();
    ok(&json!({ "count": files.len(), "files": files, "truncated": truncated }))
}

pub(crate) async fn restore(State(app): State<Arc<App>>, at: At) -> Answer {
    let file: FileId = at.id(&app, "file").await?;
    commit(&app, &at, "restore", Changeset::one(Change::Restore(file))).await?;
    let restored = app.store.file(at.access(Role::Viewer), file).await?;
    ok(&json!({ "file": FileInfo::from(restored.entry) }))
}

pub(crate) async fn commits(State(app): State<Arc<App>>, at: At, query: Params) -> Answer {
    #[derive(Serialize)]
    struct Body {
        commits: Vec<JsonText>,
        truncated: bool,
    }
    let Page { mut before, limit }: Page<CommitId> = at.page(&app, &query).await?;
    let mut body = Body { commits: Vec::new(), truncated: false };
    let mut room = app.settings.limits.response_bytes;
    // One commit can name thousands of files, so they are read a few at a time, and only as many as fit.
    'batches: loop {
        let batch = app.store.commits(at.access(Role::Viewer), Page { before, limit: COMMITS_AT_ONCE }).await?;
        let is_last = batch.len() < COMMITS_AT_ONCE as usize;
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

pub(crate) async fn diff(State(app): State<Arc<App>>, at: At) -> Answer {
    let id: CommitId = at.id(&app, "commit").await?;
    let commit = app.store.commit_info(at.access(Role::Viewer), id).await?;
    let limit = app.settings.limits.response_bytes;
    let mut text = String::new();
    for effect in toolrest_ops::without_detours(commit.changes) {
        let path = effect.path.clone();
        match contents(&app, &at, &effect).await {
            Ok((before, after)) => text += &toolrest_ops::effect_diff(effect, before, after, limit).await?,
            // The rest is worth showing, but not as if this were all.
            Err(error) if error.kind == ErrorKind::NotFound => {
                text.extend(["# ", path.as_str(), ": ", &error.message, "\n"]);
            }
            Err(error) => return Err(error.into()),
        }
        within_limit(&app, i64::try_from(text.len()).unwrap_or(i64::MAX))?;
    }
    ok(&json!({ "diff": text }))
}

/// What a file held before an effect and after it.
async fn contents(app: &App, at: &At, effect: &Effect) -> Result<(Option<Content>, Option<Content>)> {
    let access = at.access(Role::Viewer);
    let read = async |version: VersionId| Ok(app.store.version(access, effect.file_id, version).await?.1);
    let told = match (effect.op, effect.version_id) {
        (EffectKind::Touch | EffectKind::Move, _) | (_, None) => return Ok((None, None)),
        (_, Some(version)) => Some(read(version).await?),
    };
    Ok(match effect.op {
        EffectKind::Remove => (told, None),
        EffectKind::Update => {
            let page = Page { before: effect.after, limit: 1 };
            let earlier = app.store.versions(access, effect.file_id, page).await?;
            let before = earlier.first().map(|version| version.id);
            (Some(read(before.ok_or_else(|| ToolError::file_not_found(&effect.path))?).await?), told)
        }
        _ => (None, told),
    })
}

/// What an undo is told.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Undo {
    /// Whether to undo what others may have made.
    #[serde(default)]
    force: bool,
}

pub(crate) async fn undo(State(app): State<Arc<App>>, at: At, request: Request) -> Answer {
    let id: CommitId = at.id(&app, "commit").await?;
    let undone = app.store.commit_info(at.access(Role::Editor), id).await?;
    let Undo { force } = at.json_if_any(&app, request).await?;
    let force = if force { Force::Yes } else { Force::No };
    let done = match commit(&app, &at, "undo", toolrest_ops::undo(&undone, force)?).await {
        Ok(done) => done,
        Err(error) => return Err(or_undone_already(&app, &at, id, error).await?.into()),
    };
    let id = done.id.ok_or_else(|| ToolError::internal("an undo changed nothing"))?;
    ok(&json!({ "commit": app.store.commit_info(at.access(Role::Viewer), id).await? }))
}

/// Says of a commit that cannot be undone that this was done already, if that is why.
async fn or_undone_already(app: &App, at: &At, id: CommitId, error: ToolError) -> Result<ToolError> {
    if !matches!(errors::row(error.kind).status, 404 | 409) {
        return Ok(error);
    }
    Ok(match app.store.undone_by(at.access(Role::Viewer), id).await? {
        Some(by) => {
            let message = format!("Commit {id} was undone already, by commit {by}; undo that one to bring it back");
            ToolError::new(ErrorKind::Conflict, message)
        }
        None => error,
    })
}

pub(crate) async fn calls(State(app): State<Arc<App>>, at: At, query: Params) -> Answer {
    let page: Page<CallId> = at.page(&app, &query).await?;
    let (calls, truncated) = cut(page.limit, app.store.calls(at.access(Role::Viewer), more(page)).await?);
    ok(&json!({ "calls": calls, "truncated": truncated }))
}

fn within_limit(app: &App, size: i64) -> Result<()> {
    let limit = app.settings.limits.response_bytes;
    if usize::try_from(size).is_ok_and(|size| size <= limit) {
        return Ok(());
    }
    let message = format!("The content is {size} bytes, over the limit of {limit}");
    Err(ToolError::new(ErrorKind::ResponseTooLarge, message))
}

/// The page and one entry more, which tells whether there is more.
fn more<T>(page: Page<T>) -> Page<T> {
    Page { limit: page.limit + 1, ..page }
}

/// Cuts a list down to its limit and tells whether it was longer.
fn cut<T>(limit: u32, mut entries: Vec<T>) -> (Vec<T>, bool) {
    let limit = limit as usize;
    let truncated = entries.len() > limit;
    entries.truncate(limit);
    (entries, truncated)
}

async fn commit(app: &App, at: &At, name: &'static str, changes: Changeset) -> Result<Commit> {
    let cx: CallCx = app.engine.outside_tools(name, at.workspace, at.caller, Role::Editor).await?;
    cx.workspace.commit(changes, &cx).await
}

use super::answer::{Answer, ago, append, count, head, push, short_commit, size};
use super::arguments::compact;
use super::commits::files_of;
use super::{Kit, READER};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use toolrest_core::{
    Action, Annotations, CallCx, CommitId, CommitInfo, Effect, ErrorKind, Page, Result, Timestamp, Tool, ToolError,
    WsPath,
};
use toolrest_ops::{DiffSide, NetDiff, commit_diff, file_diff, net_changes, net_diff};

/// Number of commits that are listed.
const LISTED: usize = 15;
/// One more is read, to know whether there are older ones.
const LISTED_PAGE: u32 = 16;
/// Maximum number of commits that are looked through for those of a path.
const MAX_SEARCHED: usize = 1_000;
const PAGE: u32 = 100;
/// Room for the notes around a diff.
const NOTES_BYTES: usize = 600;
/// Number of other commits that are named.
const MAX_OTHERS: usize = 5;

pub(super) struct Changes(pub(super) Arc<Kit>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Show this one's diff.
    commit: Option<String>,
    /// One diff of all that this session changed after a commit, or since `start`.
    since: Option<String>,
    /// Only this file or folder.
    #[serde(alias = "file", alias = "file_path", alias = "filePath")]
    path: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Data {
    /// The commits, newest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    commits: Option<Vec<Listed>>,
    /// The diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
}

/// A commit.
#[derive(Serialize, JsonSchema)]
struct Listed {
    /// Its id.
    id: CommitId,
    /// When it was made.
    at: Timestamp,
    /// The tool that made it.
    tool: String,
    /// Who made it: the words for the call, or the address of another person.
    by: String,
    /// What it changed.
    changes: Vec<Effect>,
}

#[async_trait]
impl Tool for Changes {
    const NAME: &'static str = "changes";
    const DESCRIPTION: &'static str = "Show what was changed, by which call and by whom: the latest commits, the diff of one, or all since one as a single diff.";
    const ACTION: Action = Action::Read;
    const ANNOTATIONS: Option<Annotations> = Some(READER);
    type Args = Args;
    type Output = Answer<Data>;

    fn shape_schema(schema: &mut Value) {
        compact(schema);
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Answer<Data>> {
        let path = match args.path.as_deref().map(str::trim).filter(|path| !path.is_empty()) {
            Some(path) => Some(self.0.locate(cx, path).await?.path).filter(|path| !path.is_root()),
            None => None,
        };
        let named = |name: &Option<String>| name.clone().filter(|name| !name.trim().is_empty());
        let answer = match (named(&args.commit), named(&args.since)) {
            (Some(_), Some(_)) => {
                return Err(ToolError::argument("since", "give `commit` or `since`, not both"));
            }
            (Some(commit), None) => self.of_commit(cx, &commit, path.as_ref()).await?,
            (None, Some(since)) => self.of_session(cx, &since, path.as_ref()).await?,
            (None, None) => self.list(cx, path.as_ref()).await?,
        };
        Ok(self.0.finish(cx, answer))
    }

    fn text(&self, output: &Answer<Data>) -> Option<String> {
        Some(output.text.clone())
    }
}

impl Changes {
    async fn list(&self, cx: &CallCx, path: Option<&WsPath>) -> Result<Answer<Data>> {
        let (commits, has_more) = latest(cx, path).await?;
        let place = path.map_or_else(String::new, |path| format!(" of {}", path.without_slash()));
        let mut text = match commits.len() {
            0 => format!("== no commits{place}"),
            number => format!("== {}{place}, newest first", count(number, "commit")),
        };
        for line in self.0.lines_of(cx, &commits).await? {
            push(&mut text, line);
        }
        if has_more {
            push(&mut text, ".. there are older ones; name a path to see its commits");
        }
        let makers = self.0.makers(cx, &commits).await;
        let listed = |(commit, by): (CommitInfo, String)| Listed {
            id: commit.id,
            at: commit.created_at,
            tool: commit.tool,
            by,
            changes: commit.changes,
        };
        let listed = commits.into_iter().zip(makers).map(listed).collect();
        let text = head(&text, self.0.options.changes_bytes).to_owned();
        Ok(Answer::new(text, Data { commits: Some(listed), diff: None }))
    }

    async fn of_commit(&self, cx: &CallCx, named: &str, path: Option<&WsPath>) -> Result<Answer<Data>> {
        let commit = self.0.commit(cx, named).await?;
        let effects: Vec<Effect> = match path {
            Some(path) => commit.changes.iter().filter(|effect| concerns(effect, path)).cloned().collect(),
            None => commit.changes.clone(),
        };
        let by = self.0.made_by(cx, &commit).await;
        let mut header = format!("== {} {by}, {}: ", short_commit(commit.id), ago(commit.created_at));
        append(&mut header, files_of(&effects));
        if let Some(by) = cx.workspace.undone_by(commit.id).await? {
            append(&mut header, format!(" (undone by {})", short_commit(by)));
        }
        let diff = commit_diff(cx, effects, cx.limits.response_bytes / 2).await?;
        self.diff(cx, header, diff, Vec::new()).await
    }

    /// Returns the net effect of the session, for each file from before its first commit to now.
    async fn of_session(&self, cx: &CallCx, since: &str, path: Option<&WsPath>) -> Result<Answer<Data>> {
        let since = self.0.since(cx, since).await?;
        let (commits, has_more) = self.0.session_commits(cx, &since).await?;
        let own: BTreeSet<CommitId> = commits.iter().map(|commit| commit.id).collect();
        let (mut files, mut others, mut failures) = (Vec::new(), BTreeSet::new(), Vec::new());
        for change in net_changes(&commits) {
            let is_named =
                |named: &Option<WsPath>| named.as_ref().is_some_and(|found| path.is_none_or(|path| is_in(found, path)));
            if !is_named(&change.path_before) && !is_named(&change.path_after) {
                continue;
            }
            match net_diff(cx, &change, &own).await {
                Ok(net) => {
                    others.extend(net.by_others.iter().copied());
                    files.push(net);
                }
                Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::ResponseTooLarge) => {
                    let path = change.path_after.or(change.path_before).unwrap_or_else(WsPath::root);
                    failures.push(format!("# {}: {}\n", path.without_slash(), error.message));
                }
                Err(error) => return Err(error),
            }
        }
        let mut diff = String::new();
        let mut changed = 0;
        for NetDiff { before, now, .. } in joined(files) {
            let text = file_diff(cx, before, now).await?;
            changed += usize::from(!text.is_empty());
            diff += &text;
        }
        changed += failures.len();
        diff.extend(failures);
        let name = since.name();
        if changed == 0 {
            let text = format!("== no changes since {name}");
            return Ok(Answer::new(text, Data { commits: None, diff: Some(String::new()) }));
        }
        let header = format!(
            "== {} changed since {name}, by {} of this session",
            count(changed, "file"),
            count(commits.len(), "commit")
        );
        let mut notes = Vec::new();
        if !others.is_empty() {
            let mut named = Vec::new();
            for id in others.iter().rev().take(MAX_OTHERS) {
                if let Some(commit) = self.0.commit_if_kept(cx, *id).await? {
                    named.push(self.0.named_commit(cx, &commit).await);
                }
            }
            let more = others.len().saturating_sub(MAX_OTHERS);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            notes.push(format!(".. others changed these files too: {}{more}", named.join(", ")));
        }
        if has_more {
            notes.push(format!(".. only the last {} are looked at", count(commits.len(), "commit")));
        }
        self.diff(cx, header, diff, notes).await
    }

    /// Returns a diff within the budget. The rest is kept.
    async fn diff(&self, cx: &CallCx, mut text: String, diff: String, notes: Vec<String>) -> Result<Answer<Data>> {
        let room = self.0.options.changes_bytes.saturating_sub(text.len() + NOTES_BYTES);
        let shown = head(&diff, room);
        push(&mut text, shown.trim_end_matches('\n'));
        if shown.len() < diff.len() {
            let kept = self.0.keep(cx, &diff).await?;
            let line = shown.lines().count() + 1;
            let sizes = (size(shown.len() as u64), size(diff.len() as u64));
            push(&mut text, format!(".. {} of {}: read \"{kept}:{line}-\", or name a path", sizes.0, sizes.1));
        }
        for note in notes {
            push(&mut text, note);
        }
        Ok(Answer::new(text, Data { commits: None, diff: Some(diff) }))
    }
}

/// Returns the last commits, and whether there are older ones.
async fn latest(cx: &CallCx, path: Option<&WsPath>) -> Result<(Vec<CommitInfo>, bool)> {
    let (mut found, mut before, mut searched) = (Vec::new(), None, 0);
    let limit = if path.is_some() { PAGE } else { LISTED_PAGE };
    loop {
        let page = cx.workspace.commits(Page { before, limit }).await?;
        before = page.last().map(|commit| commit.id);
        searched += page.len();
        let is_last = page.len() < limit as usize;
        let concerned = |commit: &CommitInfo| path.is_none_or(|path| commit.changes.iter().any(|e| concerns(e, path)));
        found.extend(page.into_iter().filter(concerned));
        let is_full = found.len() > LISTED;
        found.truncate(LISTED);
        if is_full || is_last || searched >= MAX_SEARCHED {
            return Ok((found, is_full || !is_last));
        }
    }
}

fn concerns(effect: &Effect, path: &WsPath) -> bool {
    is_in(&effect.path, path) || effect.from.as_ref().is_some_and(|from| is_in(from, path))
}

fn is_in(path: &WsPath, folder: &WsPath) -> bool {
    path == folder || path.is_below(folder)
}

/// Joins a file that was removed and another that was made at its path. Leaves out folders.
fn joined(files: Vec<NetDiff>) -> Vec<NetDiff> {
    let is_folder = |side: &DiffSide| side.content.is_none();
    let mut joined: Vec<NetDiff> = Vec::new();
    for mut file in files {
        if is_folder(&file.before) && is_folder(&file.now) {
            continue;
        }
        let removed = joined.iter().position(|other| {
            other.now.path.is_none() && file.before.path.is_none() && other.before.path == file.now.path
        });
        if let Some(at) = removed {
            file.before = joined.remove(at).before;
        }
        joined.push(file);
    }
    joined
}

use super::answer::{Answer, append, count, head, push, short_commit, short_hash};
use super::arguments::{compact, list_if_any};
use super::commits::{Since, named, undo_call};
use super::edit::{Data, File};
use super::{EDITOR, Kit};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use toolrest_core::{Action, Annotations, CallCx, CommitInfo, Effect, ErrorKind, Result, Tool, ToolError, WsPath};
use toolrest_ops::{ChangedSince, Force, UndoError, UndoOptions, Undone, merge_moves, undo};

/// Number of commits that are listed if none is named.
const LISTED: usize = 5;
/// Number of lines in the way that are shown.
const SHOWN_LINES: usize = 12;
/// Maximum number of paths in a call.
const MAX_PATHS: usize = 1_000;
/// Number of paths that the next call names.
const MAX_NAMED_PATHS: usize = 20;
/// Tools that run programs, whose changes are not all in the history.
const PROGRAM_TOOLS: [&str; 3] = ["run", "run_code", "start_process"];

pub(super) struct Undo(pub(super) Arc<Kit>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Undo this one.
    commit: Option<String>,
    /// Undo all that this session made after a commit, or since `start`.
    since: Option<String>,
    /// Only these files and folders.
    #[serde(
        default,
        alias = "path",
        alias = "file",
        alias = "file_path",
        alias = "filePath",
        alias = "files",
        deserialize_with = "list_if_any"
    )]
    paths: Option<Vec<String>>,
}

#[async_trait]
impl Tool for Undo {
    const NAME: &'static str = "undo";
    const DESCRIPTION: &'static str = "Take back commits as they are named in answers. An undo is a commit too and can be undone. Refused if later changes are in the way.";
    const ACTION: Action = Action::Write;
    const ANNOTATIONS: Option<Annotations> = Some(EDITOR);
    type Args = Args;
    type Output = Answer<Data>;

    fn shape_schema(schema: &mut Value) {
        compact(schema);
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Answer<Data>> {
        let named = |name: Option<String>| name.filter(|name| !name.trim().is_empty());
        let paths = self.located(cx, args.paths.unwrap_or_default()).await?;
        // Whoever names the files of a commit of unknown authors means them.
        let force = if paths.is_empty() { Force::No } else { Force::Yes };
        let options = UndoOptions { paths: &paths, force };
        let (commits, of) = match (named(args.commit), named(args.since)) {
            (Some(_), Some(_)) => return Err(ToolError::argument("since", "give `commit` or `since`, not both")),
            (Some(commit), None) => {
                let commit = self.0.commit(cx, &commit).await?;
                let by = self.0.made_by(cx, &commit).await;
                let of = format!("{} ({by})", short_commit(commit.id));
                (vec![commit], of)
            }
            (None, Some(since)) => {
                let since = self.0.since(cx, &since).await?;
                let commits = self.of_session(cx, &since).await?;
                if commits.is_empty() {
                    let text = format!("== nothing to undo: this session changed nothing since {}", since.name());
                    return Ok(self.0.finish(cx, nothing(text)));
                }
                let of = format!("{} of this session", count(commits.len(), "commit"));
                (commits, of)
            }
            (None, None) => return self.list(cx).await,
        };
        let ran_programs = commits.iter().any(|commit| PROGRAM_TOOLS.contains(&commit.tool.as_str()));
        let done = match undo(cx, &commits, &options).await {
            Ok(done) => done,
            Err(error) => return Err(self.explained(cx, &commits, error).await),
        };
        self.answer(cx, of, done, ran_programs).await
    }

    fn text(&self, output: &Answer<Data>) -> Option<String> {
        Some(output.text.clone())
    }
}

fn nothing(text: String) -> Answer<Data> {
    Answer::new(text, Data { commit: None, files: Vec::new() })
}

impl Undo {
    async fn located(&self, cx: &CallCx, named: Vec<String>) -> Result<Vec<WsPath>> {
        if named.len() > MAX_PATHS {
            let message = format!("`paths` may have {MAX_PATHS} paths, not {}", named.len());
            return Err(ToolError::argument("paths", message));
        }
        let mut paths = Vec::with_capacity(named.len());
        for path in named {
            paths.push(self.0.locate(cx, &path).await?.path);
        }
        Ok(paths)
    }

    async fn of_session(&self, cx: &CallCx, since: &Since) -> Result<Vec<CommitInfo>> {
        let (commits, has_more) = self.0.session_commits(cx, since).await?;
        if has_more {
            let message =
                format!("this session made more than {} since {}", count(commits.len(), "commit"), since.name());
            let oldest = commits.last().map_or_else(String::new, |commit| short_commit(commit.id));
            let hint = format!("undo {{\"since\":\"{oldest}\"}} takes back the later ones");
            return Err(ToolError::new(ErrorKind::PayloadTooLarge, message).with_hint(hint));
        }
        Ok(commits)
    }

    /// Lists what could be meant: the latest commit is mostly that of a test run, not the edit that was meant.
    async fn list(&self, cx: &CallCx) -> Result<Answer<Data>> {
        let (mut commits, _) = self.0.session_commits(cx, &Since::Start).await?;
        let number = commits.len();
        commits.truncate(LISTED);
        let mut text = match number {
            0 => "== this session has no commits; changes {} lists those of others".to_owned(),
            _ => format!("== nothing undone: name a commit. The last of {} of this session", count(number, "commit")),
        };
        for line in self.0.lines_of(cx, &commits).await? {
            push(&mut text, line);
        }
        Ok(self.0.finish(cx, nothing(text)))
    }

    async fn answer(&self, cx: &CallCx, of: String, done: Undone, ran_programs: bool) -> Result<Answer<Data>> {
        let Some((id, outcomes)) = done.commit.and_then(|commit| Some((commit.id?, commit.outcomes))) else {
            return Ok(self.0.finish(cx, nothing("== nothing to undo: the files are as they were".to_owned())));
        };
        self.0.note_commit(cx, Some(id), &format!("undo of {of}")).await;
        let commit = cx.workspace.commit_info(id).await?;
        let mut text = format!("== undid {of}, commit {}", short_commit(id));
        let mut files = Vec::new();
        for effect in merge_moves(commit.changes) {
            let outcome = outcomes.iter().rfind(|outcome| outcome.file == effect.file_id);
            let hash = outcome.and_then(|outcome| outcome.hash);
            push(&mut text, named(&effect));
            if let Some(hash) = hash.filter(|_| super::commits::letter(effect.op) != 'D') {
                append(&mut text, format!(" #{}", short_hash(hash)));
            }
            let Effect { op, path, from, .. } = effect;
            files.push(File {
                path: path.without_slash().to_owned(),
                action: Some(super::commits::letter(op)),
                from: from.as_ref().map(|from| from.without_slash().to_owned()),
                hash,
                diff: None,
                matched_with: Vec::new(),
            });
        }
        let room = self.0.options.edit_bytes.saturating_sub(400);
        if text.len() > room {
            text.truncate(head(&text, room).len());
            push(
                &mut text,
                format!(".. {} in all: changes {{\"commit\":\"{}\"}}", count(files.len(), "file"), short_commit(id)),
            );
        }
        for path in done.merged.iter().take(LISTED) {
            push(&mut text, format!(".. {} had changed since in other lines, which stay", path.without_slash()));
        }
        if ran_programs {
            push(&mut text, ".. what .gitignore excludes has no history and stays as it is");
        }
        Ok(self.0.finish(cx, Answer::new(text, Data { commit: Some(id), files })))
    }

    /// Returns the error with the call that helps.
    async fn explained(&self, cx: &CallCx, commits: &[CommitInfo], error: UndoError) -> ToolError {
        let commit = commits.first().map(|commit| commit.id);
        match error {
            UndoError::Undone { commit, by } => {
                let by = short_commit(by);
                let message = format!("{} was undone already, by {by}", short_commit(commit));
                let error = ToolError::new(ErrorKind::Conflict, message);
                error.with_hint(format!("undo {{\"commit\":\"{by}\"}} brings it back"))
            }
            UndoError::Changed(changed) => {
                self.changed(cx, *changed, (commits.len() == 1).then_some(commit).flatten()).await
            }
            UndoError::Failed(error) if commits.iter().any(CommitInfo::is_of_folder) => {
                let name = commit.map_or_else(String::new, short_commit);
                let message =
                    format!("{name} has all changes to the folder while a job ran on it, also those of others");
                let paths: Vec<WsPath> =
                    commits.iter().flat_map(|commit| &commit.changes).map(|effect| effect.path.clone()).collect();
                match commit {
                    Some(commit) if error.kind == ErrorKind::Conflict => ToolError::new(ErrorKind::Conflict, message)
                        .with_hint(undo_call(commit, &paths[..paths.len().min(MAX_NAMED_PATHS)])),
                    _ => error,
                }
            }
            UndoError::Failed(error) => error,
        }
    }

    async fn changed(&self, cx: &CallCx, changed: ChangedSince, commit: Option<toolrest_core::CommitId>) -> ToolError {
        let ChangedSince { path, since, by, region, others } = changed;
        let name = path.without_slash();
        let mut message = format!("{name} was changed after {}", short_commit(since));
        match &by {
            Some(by) => append(&mut message, format!(" by {}", self.0.named_commit(cx, by).await)),
            None => append(&mut message, ", not by a tool"),
        }
        append(&mut message, ". Nothing was undone");
        let mut place = name.to_owned();
        if let Some(region) = region {
            place = format!("{name}:{}", region.line);
            let lines = count(region.ours.len(), "line");
            push(&mut message, format!("in the way, {lines} from line {}:", region.line));
            for (at, line) in region.ours.iter().take(SHOWN_LINES).enumerate() {
                push(&mut message, format!("{}\t{line}", region.line + at));
            }
        }
        let edit = format!("edit \"{place}\"");
        let error = ToolError::new(ErrorKind::Conflict, message);
        match commit {
            Some(commit) if !others.is_empty() => {
                let call = undo_call(commit, &others[..others.len().min(MAX_NAMED_PATHS)]);
                error.with_hint(format!("{call}, or {edit}"))
            }
            _ => error.with_hint(edit),
        }
    }
}

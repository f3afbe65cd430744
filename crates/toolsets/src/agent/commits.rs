//! The commits that a call names, and those of the caller's session.

use super::Kit;
use super::answer::{ago, short_commit};
use serde_json::json;
use toolrest_core::{
    CallCx, CommitId, CommitInfo, Effect, EffectKind, ErrorKind, Result, Role, Timestamp, ToolError, WsPath, now,
};

/// Maximum number of commits of a session that are looked at.
pub(super) const MAX_SESSION_COMMITS: u32 = 300;
/// A caller without a session has the commits of this time.
const SESSION_HOURS: i64 = 8;
/// Number of files that the line of a commit names.
const MAX_NAMED_FILES: usize = 5;
/// The name of the beginning of a session.
const START: &str = "start";

/// From where on the commits of a session are meant.
pub(super) enum Since {
    Start,
    /// After this commit.
    Commit(Box<CommitInfo>),
}

impl Since {
    /// Returns the name in answers.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Start => START.to_owned(),
            Self::Commit(commit) => short_commit(commit.id),
        }
    }
}

impl Kit {
    /// Finds a commit by the last digits of its id, at least eight, or by its whole id.
    pub(super) async fn commit(&self, cx: &CallCx, named: &str) -> Result<CommitInfo> {
        let digits: String = named.trim().trim_start_matches('#').replace('-', "").to_lowercase();
        let unknown = |what: &str| {
            let error = ToolError::new(ErrorKind::NotFound, format!("commit {named}{what}"));
            error.with_hint("changes {} lists the last commits")
        };
        if digits.len() < 8 || digits.len() > 32 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            let message = format!("'{named}' is no commit: it is named by 8 hex digits, such as 0e75922c");
            return Err(ToolError::argument("commit", message).with_hint("changes {} lists the last commits"));
        }
        let found = self.sessions.commits_ending_in(cx.access(Role::Viewer), digits).await?;
        match &found[..] {
            [] => Err(unknown("")),
            [only] => cx.workspace.commit_info(*only).await,
            several => {
                let ids: Vec<String> = several.iter().map(ToString::to_string).collect();
                Err(unknown(&format!(" is several: {}", ids.join(", "))))
            }
        }
    }

    /// Reads what `since` names.
    pub(super) async fn since(&self, cx: &CallCx, named: &str) -> Result<Since> {
        if named.trim() == START {
            return Ok(Since::Start);
        }
        Ok(Since::Commit(Box::new(self.commit(cx, named).await?)))
    }

    /// Returns the commits of the caller's session, newest first, and whether there are more.
    pub(super) async fn session_commits(&self, cx: &CallCx, since: &Since) -> Result<(Vec<CommitInfo>, bool)> {
        let begin = if cx.session.is_empty() {
            let seconds = now().as_second() - SESSION_HOURS * 3_600;
            Timestamp::from_second(seconds).map_err(ToolError::internal)?
        } else {
            Timestamp::UNIX_EPOCH
        };
        let access = cx.access(Role::Viewer);
        let session = cx.session.to_string();
        let ids = self.sessions.session_commits(access, session, begin, MAX_SESSION_COMMITS + 1).await?;
        let has_more = ids.len() > MAX_SESSION_COMMITS as usize;
        let after = match since {
            Since::Start => None,
            Since::Commit(commit) => Some(commit.id),
        };
        let mut commits = Vec::new();
        for id in ids.into_iter().take(MAX_SESSION_COMMITS as usize).filter(|id| after.is_none_or(|after| *id > after))
        {
            commits.extend(self.commit_if_kept(cx, id).await?);
        }
        let has_more = has_more && commits.len() == MAX_SESSION_COMMITS as usize;
        Ok((commits, has_more))
    }

    /// Returns a commit; none if it is not kept any more.
    pub(super) async fn commit_if_kept(&self, cx: &CallCx, id: CommitId) -> Result<Option<CommitInfo>> {
        match cx.workspace.commit_info(id).await {
            Ok(commit) => Ok(Some(commit)),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns commits, one on each line: ``45c35b13 1 min ago, run `make test`: A test/test_default``.
    pub(super) async fn lines_of(&self, cx: &CallCx, commits: &[CommitInfo]) -> Result<Vec<String>> {
        let makers = self.makers(cx, commits).await;
        let mut lines = Vec::with_capacity(commits.len());
        for (commit, by) in commits.iter().zip(makers) {
            let undone = match cx.workspace.undone_by(commit.id).await? {
                Some(by) => format!(" (undone by {})", short_commit(by)),
                None => String::new(),
            };
            let files = files_of(&commit.changes);
            let (id, ago) = (short_commit(commit.id), ago(commit.created_at));
            lines.push(format!("{id} {ago}, {by}: {files}{undone}"));
        }
        Ok(lines)
    }
}

/// Returns what a commit did to files in words: `M jsmn.h, A src/a.rs, 3 more`.
pub(super) fn files_of(effects: &[Effect]) -> String {
    let merged = toolrest_ops::merge_moves(effects.to_vec());
    let mut files: Vec<String> = Vec::new();
    for effect in merged.iter().filter(|effect| effect.op != EffectKind::Touch) {
        let name = named(effect);
        if !files.contains(&name) {
            files.push(name);
        }
    }
    let more = files.len().saturating_sub(MAX_NAMED_FILES);
    files.truncate(MAX_NAMED_FILES);
    if more > 0 {
        files.push(format!("{more} more"));
    }
    files.join(", ")
}

/// Returns an effect as a letter and the path: `M jsmn.h`, `R a.rs -> b.rs`.
pub(super) fn named(effect: &Effect) -> String {
    let name = |path: &WsPath| path.without_slash().to_owned();
    match (effect.op, &effect.from) {
        (EffectKind::Move, Some(from)) => format!("R {} -> {}", name(from), name(&effect.path)),
        _ => format!("{} {}", letter(effect.op), name(&effect.path)),
    }
}

pub(super) fn letter(op: EffectKind) -> char {
    match op {
        EffectKind::Create | EffectKind::Restore => 'A',
        EffectKind::Update | EffectKind::Touch => 'M',
        EffectKind::Move => 'R',
        EffectKind::Remove => 'D',
    }
}

/// Returns the call that undoes a part of a commit.
pub(super) fn undo_call(commit: CommitId, paths: &[WsPath]) -> String {
    let paths: Vec<&str> = paths.iter().map(WsPath::without_slash).collect();
    format!("undo {}", json!({ "commit": short_commit(commit), "paths": paths }))
}

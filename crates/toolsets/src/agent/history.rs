//! Who changed what, and when, in words.

use super::Kit;
use super::answer::{ago, short_commit};
use std::{collections::HashMap, slice};
use toolrest_core::{CallCx, CommitInfo, EffectKind, ErrorKind, Page, REST_TOOLSET, Role, ToolError, UserId, WsPath};

/// Number of recent commits that are looked through for a file that is gone.
const RECENT_COMMITS: u32 = 64;

impl Kit {
    /// Returns a commit with who made it and when: `0e75922c (edit, 20 s ago)`.
    pub(super) async fn named_commit(&self, cx: &CallCx, commit: &CommitInfo) -> String {
        let id = short_commit(commit.id);
        format!("{id} ({}, {})", self.made_by(cx, commit).await, ago(commit.created_at))
    }

    /// Returns who made a commit: the tool, if it was the caller, else the address of the person.
    pub(super) async fn made_by(&self, cx: &CallCx, commit: &CommitInfo) -> String {
        self.makers(cx, slice::from_ref(commit)).await.pop().unwrap_or_default()
    }

    /// Returns who made each of these commits.
    pub(super) async fn makers(&self, cx: &CallCx, commits: &[CommitInfo]) -> Vec<String> {
        let ids = commits.iter().map(|commit| commit.id).collect();
        let labels = self.sessions.commit_labels(cx.access(Role::Viewer), ids).await.unwrap_or_default();
        let mut others: Vec<UserId> = commits.iter().map(|commit| commit.author).collect();
        others.retain(|author| *author != cx.caller.user);
        others.dedup();
        let addresses =
            if others.is_empty() { HashMap::new() } else { self.sessions.addresses(others).await.unwrap_or_default() };
        let made_by = |commit: &CommitInfo| {
            let label = labels.get(&commit.id).cloned().unwrap_or_else(|| tool_of(commit));
            match addresses.get(&commit.author) {
                Some(address) if commit.toolset == REST_TOOLSET => format!("{address} in the console"),
                Some(address) => address.clone(),
                None => label,
            }
        };
        commits.iter().map(made_by).collect()
    }

    /// Returns the last commit that removed or moved away what was at a path.
    async fn removal_of(&self, cx: &CallCx, path: &WsPath) -> Option<CommitInfo> {
        let commits = cx.workspace.commits(Page { before: None, limit: RECENT_COMMITS }).await.ok()?;
        let removes = |commit: &CommitInfo| {
            commit.changes.iter().any(|effect| match effect.op {
                EffectKind::Remove => effect.path == *path,
                EffectKind::Move => effect.from.as_ref() == Some(path),
                _ => false,
            })
        };
        commits.into_iter().find(removes)
    }

    /// Creates the error for a path at which nothing is: with the commit that removed it, and with similar paths.
    pub(super) async fn not_found(&self, cx: &CallCx, path: &WsPath) -> ToolError {
        let error = ToolError::new(ErrorKind::NotFound, path.without_slash());
        let mut help = Vec::new();
        if let Some(commit) = self.removal_of(cx, path).await {
            help.push(format!(
                "it was deleted by commit {}, undo brings it back",
                self.named_commit(cx, &commit).await
            ));
        }
        let mut similar = cx.similar_paths(path).await;
        if similar.is_empty() && !path.name().is_empty() {
            // The same name in another folder.
            let name = globbed(path.name());
            let found = toolrest_ops::tree_files(cx, &WsPath::root(), Some(&name), 3).await;
            similar = found.map(|found| found.files.into_iter().map(|file| file.path).collect()).unwrap_or_default();
        }
        if !similar.is_empty() {
            let similar: Vec<&str> = similar.iter().map(WsPath::without_slash).collect();
            help.push(format!("similar: {}", similar.join(", ")));
        }
        if help.is_empty() {
            let name = serde_json::json!({ "glob": format!("*{}*", globbed(path.name())) });
            help.push(format!("ls {name}"));
        }
        error.with_hint(help.join("; "))
    }
}

/// Returns a pattern that matches a name as it is.
fn globbed(name: &str) -> String {
    let special = |c: char| matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\' | '!');
    name.chars().map(|c| if special(c) { '?' } else { c }).collect()
}

/// Returns the tool that made a commit, in words.
fn tool_of(commit: &CommitInfo) -> String {
    match commit.toolset.as_str() {
        REST_TOOLSET => format!("{} in the console", commit.tool),
        _ => commit.tool.clone(),
    }
}

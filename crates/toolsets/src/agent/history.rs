//! Who changed what, and when, in words.

use super::Kit;
use super::answer::{ago, short_commit};
use toolrest_core::{CallCx, CommitInfo, EffectKind, ErrorKind, Page, Role, ToolError, WsPath};

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
        let labels = self.sessions.commit_labels(cx.access(Role::Viewer), vec![commit.id]).await;
        let label = labels.ok().and_then(|mut labels| labels.remove(&commit.id)).unwrap_or_else(|| tool_of(commit));
        if commit.author == cx.caller.user {
            return label;
        }
        let addresses = self.sessions.addresses(vec![commit.author]).await.unwrap_or_default();
        addresses.get(&commit.author).cloned().unwrap_or(label)
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
                "it was deleted by commit {}, which the user can undo",
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
        "api" => format!("{} in the console", commit.tool),
        _ => commit.tool.clone(),
    }
}

//! Why an undo was refused.

use toolrest_core::{CallCx, CommitId, CommitInfo, ErrorKind, ToolError, WsPath};
use toolrest_edit::merge::MergeConflict;

/// Why an undo was refused. Nothing was changed.
#[derive(Debug)]
pub enum UndoError {
    /// Any error.
    Failed(ToolError),
    /// A file has changed since.
    Changed(Box<ChangedSince>),
    /// The commit was undone already.
    Undone {
        /// The commit.
        commit: CommitId,
        /// The commit that undid it.
        by: CommitId,
    },
}

/// A file that has changed since a commit, so that the commit cannot be undone.
#[derive(Debug)]
pub struct ChangedSince {
    /// The file.
    pub path: WsPath,
    /// The last of the commits to undo that changed it.
    pub since: CommitId,
    /// The first commit that changed it afterwards; none if that is not recorded.
    pub by: Option<CommitInfo>,
    /// The lines in the way, if both are texts.
    pub region: Option<MergeConflict>,
    /// The other files of the undo, which are not in the way.
    pub others: Vec<WsPath>,
}

impl From<ToolError> for UndoError {
    fn from(error: ToolError) -> Self {
        Self::Failed(error)
    }
}

impl From<UndoError> for ToolError {
    fn from(error: UndoError) -> Self {
        match error {
            UndoError::Failed(error) => error,
            UndoError::Undone { commit, by } => {
                let message =
                    format!("Commit {commit} was undone already, by commit {by}; undo that one to bring it back");
                Self::new(ErrorKind::Conflict, message)
            }
            UndoError::Changed(changed) => {
                let ChangedSince { path, since, by, region, .. } = *changed;
                let by = by.map_or_else(String::new, |by| format!(", by commit {}", by.id));
                let place = region.as_ref().map_or_else(String::new, |region| format!(" in line {}", region.line));
                let message =
                    format!("{path} has changed since commit {since}{by}{place}, where the undo would change it too");
                let error = Self::new(ErrorKind::Conflict, message);
                match region {
                    Some(region) => error.detail("line", region.line).detail("current", region.ours),
                    None => error,
                }
            }
        }
    }
}

/// Replaces the error of an undo of one commit if that was undone already.
pub(super) async fn explained(cx: &CallCx, commit: Option<CommitId>, error: UndoError) -> UndoError {
    let may_be_undone = match &error {
        UndoError::Failed(error) => matches!(
            error.kind,
            ErrorKind::NotFound
                | ErrorKind::ThroughFile
                | ErrorKind::NotEmpty
                | ErrorKind::AlreadyExists
                | ErrorKind::Stale
                | ErrorKind::Conflict
        ),
        UndoError::Changed(_) => true,
        UndoError::Undone { .. } => false,
    };
    let Some(commit) = commit.filter(|_| may_be_undone) else { return error };
    match cx.workspace.undone_by(commit).await {
        Ok(Some(by)) => UndoError::Undone { commit, by },
        Ok(None) => error,
        Err(failed) => failed.into(),
    }
}

//! The result of a program, as answers show it.

use crate::text::push_line;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;
use toolrest_core::{
    Attribution, CheckedIn, CommitId, ErrorKind, LeftOut, LeftOutReason, ProgramChange, ProgramChangeKind,
    ProgramConflict, Result, ToolError, WsPath,
};
use toolrest_ops::exec::{Limit, RunResult};

/// The maximum number of changes that an answer lists. The commit has all of them.
const MAX_LISTED: usize = 100;

/// Facts about a run in addition to its output: the limits, and the program's changes.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunFacts {
    /// The limit that was exceeded and ended the program: `time`, `memory`, `output`, `processes` or `disk`.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<String>,
    /// Mechanism that enforced each limit.
    enforced_by: Value,
    /// Its changes.
    #[serde(flatten)]
    changes: Changes,
}

/// The changes of a program.
#[derive(Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Changes {
    /// Identifier of the commit with the program's changes. The commit can be shown and undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit_id: Option<CommitId>,
    /// Who made the changes: `program`, or `folder` if the program ran on a folder that others use too, so that some
    /// changes may be theirs. A commit of `folder` is undone only with `force`.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes_by: Option<Attribution>,
    /// The files and folders that the program changed, at most 100 of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changes: Vec<Change>,
    /// Number of all files and folders that the program changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes_total: Option<usize>,
    /// Files that somebody else changed while the program ran. Their version was kept; the program's version was saved
    /// as a conflict copy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    conflicts: Vec<Conflict>,
    /// Changes that are not part of the commit, with the reason, at most 100 of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<LeftOutPath>,
    /// Number of all changes that are not part of the commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out_total: Option<usize>,
}

impl Changes {
    pub(crate) fn of(checked_in: CheckedIn) -> Self {
        let CheckedIn { attribution, commit, mut changed, conflicts, mut left_out } = checked_in;
        let total = |count| if count > 0 { Some(count) } else { None };
        let (changes_total, left_out_total) = (total(changed.len()), total(left_out.len()));
        changed.truncate(MAX_LISTED);
        left_out.truncate(MAX_LISTED);
        let changes_by = commit.is_some().then_some(attribution);
        Self {
            commit_id: commit,
            changes_by,
            changes: changed.into_iter().map(Change::from).collect(),
            changes_total,
            conflicts: conflicts.into_iter().map(Conflict::from).collect(),
            left_out: left_out.into_iter().map(LeftOutPath::from).collect(),
            left_out_total,
        }
    }
}

impl RunFacts {
    /// Adds the facts to the output of the program as a text.
    pub(crate) fn push_to(&self, text: &mut String) {
        if let Some(limit) = &self.limit {
            push_line(text, &format!("[ended by its limit: {limit}]"));
        }
        self.changes.push_to(text);
    }
}

impl Changes {
    /// Adds the changes to a text, one on each line.
    pub(crate) fn push_to(&self, text: &mut String) {
        for Change { path, change, from } in &self.changes {
            let from = from.as_ref().map_or_else(String::new, |from| format!(" from {from}"));
            push_line(text, &format!("[{} {path}{from}]", name_of(change)));
        }
        let more = |total: Option<usize>, listed: usize| total.unwrap_or(0).saturating_sub(listed);
        let unlisted = more(self.changes_total, self.changes.len());
        if unlisted > 0 {
            push_line(text, &format!("[{unlisted} more changes]"));
        }
        for Conflict { path, kept_as, reason } in &self.conflicts {
            let kept = kept_as.as_ref().map_or_else(String::new, |copy| format!("; the program's version is {copy}"));
            push_line(text, &format!("[conflict at {path}: {reason}{kept}]"));
        }
        for LeftOutPath { path, reason } in &self.left_out {
            push_line(text, &format!("[not recorded: {path}, {}]", name_of(reason)));
        }
        let unlisted = more(self.left_out_total, self.left_out.len());
        if unlisted > 0 {
            push_line(text, &format!("[{unlisted} more not recorded]"));
        }
        if let Some(commit) = self.commit_id {
            push_line(text, &format!("[commit {commit}]"));
        }
    }
}

/// Returns the name of an enum's value as answers have it.
fn name_of(value: &impl Serialize) -> String {
    let name = serde_json::to_value(value).ok();
    name.as_ref().and_then(Value::as_str).unwrap_or_default().replace('_', " ")
}

/// A change of a program to a file or folder.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Change {
    /// Path relative to the workspace root. For a removed file: its old path.
    path: String,
    /// What the program did.
    change: ProgramChangeKind,
    /// The old path, if it was moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
}

impl From<ProgramChange> for Change {
    fn from(done: ProgramChange) -> Self {
        Self { path: relative(&done.path), change: done.change, from: done.from.as_ref().map(relative) }
    }
}

/// A file that both the program and somebody else changed. The other's version is kept at its path.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Conflict {
    /// Path relative to the workspace root.
    path: String,
    /// Path of the conflict copy with the program's version. None if the program removed the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept_as: Option<String>,
    /// Why this is a conflict.
    reason: String,
}

impl From<ProgramConflict> for Conflict {
    fn from(conflict: ProgramConflict) -> Self {
        let ProgramConflict { path, kept_as, reason } = conflict;
        Self { path: relative(&path), kept_as: kept_as.as_ref().map(relative), reason }
    }
}

/// A change of a program that is not part of the commit.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct LeftOutPath {
    /// Path of the file or folder, relative to the workspace root. Bytes of the name that are not UTF-8 are replaced.
    path: String,
    /// Why.
    reason: LeftOutReason,
}

impl From<LeftOut> for LeftOutPath {
    fn from(left: LeftOut) -> Self {
        Self { path: left.path.trim_start_matches('/').to_owned(), reason: left.reason }
    }
}

fn relative(path: &WsPath) -> String {
    path.without_slash().to_owned()
}

/// The output of a program and how it ended.
pub(crate) struct Printed {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) exit_code: i32,
    pub(crate) duration: Duration,
    pub(crate) facts: RunFacts,
}

/// Converts the result of a program. Exceeding the time limit is an error, which carries the output so far.
pub(crate) fn printed(ran: RunResult) -> Result<Printed> {
    let RunResult { report, checked_in } = ran;
    let printed = Printed {
        stdout: report.stdout.text(),
        stderr: report.stderr.text(),
        exit_code: report.exit.code(),
        duration: report.duration,
        facts: RunFacts {
            limit: report.limit_hit.map(|limit| limit.to_string()),
            enforced_by: serde_json::to_value(report.enforced_by).map_err(ToolError::internal)?,
            changes: Changes::of(checked_in),
        },
    };
    if report.limit_hit == Some(Limit::Time) {
        let message = format!(
            "The program was ended after {} ms, its time limit; pass a larger `timeout` (in seconds), as far as the \
             server allows",
            report.duration.as_millis()
        );
        return Err(printed.failed(ErrorKind::Timeout, message));
    }
    Ok(printed)
}

impl Printed {
    /// Creates the error for a program that failed. It carries the output and the facts of the run.
    pub(crate) fn failed(self, kind: ErrorKind, message: String) -> ToolError {
        let mut error = ToolError::new(kind, message)
            .detail("stdout", self.stdout)
            .detail("stderr", self.stderr)
            .detail("exitCode", self.exit_code);
        // The facts consist of strings, numbers and lists, which always serialise to an object.
        if let Ok(Value::Object(facts)) = serde_json::to_value(self.facts) {
            error.details.extend(facts);
        }
        error
    }
}

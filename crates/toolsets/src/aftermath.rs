//! What is told of a program beyond what it printed.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;
use toolrest_core::{
    Attribution, CheckedIn, CommitId, ErrorKind, LeftOut, LeftOutReason, ProgramChange, ProgramChangeKind,
    ProgramConflict, Result, ToolError, WsPath,
};
use toolrest_ops::exec::{Limit, Ran};

/// How many changes of each sort are told; the commit has them all.
const TOLD: usize = 100;

/// What became of a program's changes, and which limit ended it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Aftermath {
    /// The limit that ended the program: `time`, `memory`, `output`, `processes` or `disk`.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<String>,
    /// What kept the program to its limits, by limit.
    enforced_by: Value,
    /// What became of its changes.
    #[serde(flatten)]
    changes: Changes,
}

/// What became of a program's changes.
#[derive(Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Changes {
    /// The commit that holds what the program changed; it can be shown and undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit_id: Option<CommitId>,
    /// Who made the changes, if there are any: `program`; or `folder`, where the program worked on a folder together with
    /// others and the changes may be theirs. Such a commit is undone only with `force`.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes_by: Option<Attribution>,
    /// What the program changed; the first hundred.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changes: Vec<Change>,
    /// How many files and folders the program changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes_total: Option<usize>,
    /// Files that somebody else changed meanwhile: theirs stand, the program's are kept beside them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    conflicts: Vec<Conflict>,
    /// What is not part of the commit, and why; the first hundred.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<NotKept>,
    /// How much is not part of the commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out_total: Option<usize>,
}

impl Changes {
    pub(crate) fn of(checked_in: CheckedIn) -> Self {
        let CheckedIn { attribution, commit, mut changed, conflicts, mut left_out } = checked_in;
        let total = |count| if count > 0 { Some(count) } else { None };
        let (changes_total, left_out_total) = (total(changed.len()), total(left_out.len()));
        changed.truncate(TOLD);
        left_out.truncate(TOLD);
        let changes_by = commit.is_some().then_some(attribution);
        Self {
            commit_id: commit,
            changes_by,
            changes: changed.into_iter().map(Change::from).collect(),
            changes_total,
            conflicts: conflicts.into_iter().map(Conflict::from).collect(),
            left_out: left_out.into_iter().map(NotKept::from).collect(),
            left_out_total,
        }
    }
}

/// Something that a program did to a file or folder.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Change {
    /// Where it is, or was, relative to the workspace root.
    path: String,
    /// What was done.
    change: ProgramChangeKind,
    /// Where it was before, if it was moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
}

impl From<ProgramChange> for Change {
    fn from(done: ProgramChange) -> Self {
        Self { path: relative(&done.path), change: done.change, from: done.from.as_ref().map(relative) }
    }
}

/// A file that a program changed and somebody else too. What the other did stands; what the program did is beside it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Conflict {
    /// The file, relative to the workspace root.
    path: String,
    /// Where the program's version of it is, if it had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept_as: Option<String>,
    /// What stood in the way.
    reason: String,
}

impl From<ProgramConflict> for Conflict {
    fn from(conflict: ProgramConflict) -> Self {
        let ProgramConflict { path, kept_as, reason } = conflict;
        Self { path: relative(&path), kept_as: kept_as.as_ref().map(relative), reason }
    }
}

/// Something that a program changed and that is not part of the commit.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct NotKept {
    /// The file, or the folder with all that is in it, relative to the workspace root. Names that are not text are made
    /// readable.
    path: String,
    /// Why.
    reason: LeftOutReason,
}

impl From<LeftOut> for NotKept {
    fn from(left: LeftOut) -> Self {
        Self { path: left.path.trim_start_matches('/').to_owned(), reason: left.reason }
    }
}

fn relative(path: &WsPath) -> String {
    path.without_slash().to_owned()
}

/// What a program printed and how it ended.
pub(crate) struct Printed {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) exit_code: i32,
    pub(crate) duration: Duration,
    pub(crate) aftermath: Aftermath,
}

/// Takes apart what came of a program. One that ran out of time is an error, with what it had printed.
pub(crate) fn printed(ran: Ran) -> Result<Printed> {
    let Ran { report, checked_in } = ran;
    let printed = Printed {
        stdout: report.stdout.text(),
        stderr: report.stderr.text(),
        exit_code: report.exit.code(),
        duration: report.duration,
        aftermath: Aftermath {
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
    /// The error of a program that did not do what it had to, with what it printed and what became of its changes.
    pub(crate) fn failed(self, kind: ErrorKind, message: String) -> ToolError {
        let mut error = ToolError::new(kind, message)
            .detail("stdout", self.stdout)
            .detail("stderr", self.stderr)
            .detail("exitCode", self.exit_code);
        // It is made of texts, numbers and lists of them.
        if let Ok(Value::Object(aftermath)) = serde_json::to_value(self.aftermath) {
            error.details.extend(aftermath);
        }
        error
    }
}

//! A background process as the tools about them show it.

use crate::aftermath::Changes;
use crate::arguments;
use crate::error_text::relative_notice;
use schemars::JsonSchema;
use serde::Serialize;
use toolrest_ops::exec::{ProcessInfo, ProcessState};

/// A background process.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub(super) struct Process {
    /// Its id.
    id: String,
    /// The command that was started.
    command: String,
    /// `running` or `ended`.
    state: &'static str,
    /// When it was started.
    started_at: String,
    /// How many bytes it has printed.
    output_bytes: u64,
    /// The exit code, once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// How long it ran, in milliseconds, once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<u64>,
    /// The limit that ended it: `time`, `memory`, `output`, `processes` or `disk`.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<String>,
    /// Why it was ended, where it did not end by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// What became of what it changed last.
    #[serde(flatten)]
    changes: Changes,
}

impl From<ProcessInfo> for Process {
    fn from(info: ProcessInfo) -> Self {
        let mut process = Self {
            id: info.id,
            command: info.command,
            state: "running",
            started_at: info.started_at.to_string(),
            output_bytes: info.output_bytes,
            exit_code: None,
            duration: None,
            limit: None,
            reason: None,
            changes: Changes::default(),
        };
        if let ProcessState::Ended(ended) = info.state {
            process.state = "ended";
            process.exit_code = ended.exit_code;
            process.duration = Some(arguments::milliseconds(ended.duration));
            process.limit = ended.limit.map(|limit| limit.to_string());
            process.reason = ended.reason.as_ref().map(relative_notice);
            process.changes = Changes::of(ended.checked_in);
        }
        process
    }
}

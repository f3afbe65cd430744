//! A background process, in the form of the tools for processes.

use crate::arguments;
use crate::error_text::relative_notice;
use crate::program_result::Changes;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;
use toolrest_ops::exec::{ProcessInfo, ProcessState};

/// A background process.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub(super) struct Process {
    /// Identifier of the process.
    id: String,
    /// The command that was started.
    command: String,
    /// `running` or `ended`.
    state: &'static str,
    /// Time of the start.
    started_at: String,
    /// Number of bytes that it has printed.
    output_bytes: u64,
    /// The exit code. Only if the process has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// Run time in milliseconds. Only if the process has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<u64>,
    /// The limit that was exceeded and ended it: `time`, `memory`, `output`, `processes` or `disk`.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<String>,
    /// Why the server ended it, or why its last changes were not saved.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Its changes, once it has ended.
    #[serde(flatten)]
    changes: Changes,
}

impl Process {
    /// Returns the process as a text: one line, and its changes once it has ended.
    pub(super) fn text(&self) -> String {
        // Writing to a string cannot fail.
        let mut text = format!("{} {}", self.id, self.state);
        if let Some(code) = self.exit_code {
            let _ = write!(text, ", exit code {code}");
        }
        for note in [&self.limit, &self.reason].into_iter().flatten() {
            let _ = write!(text, ", {note}");
        }
        let _ = write!(text, ": {}", self.command);
        self.changes.push_to(&mut text);
        text
    }
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

//! The `system` toolset: specification 002.

mod delete_file;
mod list_directory;
mod list_processes;
mod move_file;
mod process;
mod read_file;
mod read_output;
mod run_code;
mod start_process;
mod stop_process;
mod wait_process;
mod web_fetch;
mod web_search;
mod write_file;
mod write_input;

use crate::error_text::{PathForm, describe_error, relative_notice};
use crate::{Services, errors};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use toolrest_core::{Dialect, Notice, Success, ToolError, Toolset};

/// Returns the toolset with its tools.
pub fn toolset(services: &Services) -> Toolset {
    let processes = || Arc::clone(&services.processes);
    Toolset::new("system", Arc::new(SystemDialect))
        .with(list_directory::ListDirectory)
        .with(read_file::ReadFile)
        .with(write_file::WriteFile)
        .with(delete_file::DeleteFile)
        .with(move_file::MoveFile)
        .with(run_code::RunCode(Arc::clone(&services.executor)))
        .with(web_fetch::WebFetch(Arc::clone(&services.web)))
        .with(web_search::WebSearch(Arc::clone(&services.web)))
        .with(start_process::StartProcess(processes()))
        .with(list_processes::ListProcesses(processes()))
        .with(read_output::ReadOutput(processes()))
        .with(write_input::WriteInput(processes()))
        .with(wait_process::WaitProcess(processes()))
        .with(stop_process::StopProcess(processes()))
}

/// The answer format of specification 002: `{"ok": true, "value"}` or `{"ok": false, "error": {code, message,
/// details?}}`.
struct SystemDialect;

impl Dialect for SystemDialect {
    fn success(&self, success: &Success<'_>) -> Vec<u8> {
        format!(r#"{{"ok":true,"value":{}{}}}"#, success.result, success.warnings_member()).into_bytes()
    }

    fn answer_schema(&self, result: Value) -> Value {
        json!({
            "type": "object",
            "properties": { "ok": { "const": true }, "value": result },
            "required": ["ok", "value"],
        })
    }

    fn failure(&self, error: &ToolError, _: &str) -> Vec<u8> {
        #[derive(Serialize)]
        struct Failure<'a> {
            ok: bool,
            error: Inside<'a>,
        }
        #[derive(Serialize)]
        struct Inside<'a> {
            code: &'a str,
            message: String,
            #[serde(skip_serializing_if = "Map::is_empty")]
            details: &'a Map<String, Value>,
        }
        let code = errors::system_code(error.kind);
        let error_text = describe_error(error, PathForm::Relative, "Call read_file with \"encoding\": \"base64\"");
        let inside = Inside { code, message: error_text.message_with_hint(), details: &error_text.details };
        // Strings and maps of JSON values always serialise.
        serde_json::to_vec(&Failure { ok: false, error: inside }).unwrap_or_default()
    }

    fn notice(&self, notice: &Notice) -> String {
        relative_notice(notice)
    }

    fn status(&self, error: &ToolError) -> u16 {
        errors::row(error.kind).status
    }
}

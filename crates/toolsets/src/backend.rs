//! The `backend` toolset: specification 003.

mod data_analyze;
mod data_visualize;
mod execute_shell_command;

use crate::error_text::{DOWNLOAD, PathForm, describe_error, relative_notice};
use crate::program_result::Printed;
use crate::{Services, errors};
use serde::Serialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use toolrest_core::{Dialect, ErrorKind, Notice, Result, Success, ToolError, Toolset, push_json_string};

/// Returns the toolset with its tools.
pub fn toolset(services: &Services) -> Toolset {
    let executor = || Arc::clone(&services.executor);
    Toolset::new("backend", Arc::new(BackendDialect))
        .with(execute_shell_command::ExecuteShellCommand(executor()))
        .with(data_analyze::DataAnalyze(executor()))
        .with(data_visualize::DataVisualize(executor()))
}

/// The answer format of specification 003: `{"result", "correlationId"}` or `{"error": {code, message, retryable,
/// remediation, details?}, "correlationId"}`.
struct BackendDialect;

impl Dialect for BackendDialect {
    fn success(&self, success: &Success<'_>) -> Vec<u8> {
        let mut body = format!(r#"{{"result":{}{},"correlationId":"#, success.result, success.warnings_member());
        push_json_string(&mut body, success.correlation);
        body.push('}');
        body.into_bytes()
    }

    fn failure(&self, error: &ToolError, correlation: &str) -> Vec<u8> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Failure<'a> {
            error: Inside<'a>,
            correlation_id: &'a str,
        }
        #[derive(Serialize)]
        struct Inside<'a> {
            code: &'a str,
            message: String,
            retryable: bool,
            remediation: &'a str,
            #[serde(skip_serializing_if = "Map::is_empty")]
            details: &'a Map<String, Value>,
        }
        let row = errors::row(error.kind);
        let error_text = describe_error(error, PathForm::Relative, DOWNLOAD);
        let inside = Inside {
            code: errors::backend_code(error.kind),
            message: error_text.message_with_hint(),
            retryable: row.retryable,
            remediation: row.remediation,
            details: &error_text.details,
        };
        // Strings and maps of JSON values always serialise.
        serde_json::to_vec(&Failure { error: inside, correlation_id: correlation }).unwrap_or_default()
    }

    fn notice(&self, notice: &Notice) -> String {
        relative_notice(notice)
    }

    fn status(&self, error: &ToolError) -> u16 {
        errors::row(error.kind).status
    }

    fn needs_correlation(&self) -> bool {
        true
    }
}

/// Returns the output of a script that succeeded, and an error for one that failed.
fn succeeded(printed: Printed) -> Result<Printed> {
    if printed.exit_code == 0 {
        return Ok(printed);
    }
    let last_line = printed.stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it printed no error");
    let message = format!("The script ended with exit code {}: {last_line}", printed.exit_code);
    Err(printed.failed(ErrorKind::ExecutionFailed, message))
}

#[cfg(test)]
#[path = "backend_tests.rs"]
mod tests;

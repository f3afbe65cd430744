//! The `backend` toolset: specification 003.

mod browse_web;
mod data_analyze;
mod data_visualize;
mod execute_shell_command;
mod github_create_file_in_repo;
mod github_create_repo;
mod github_get_pr_details;
mod github_merge_pr;
mod github_post_pr_comment;
mod list_files;
mod memory_delete;
mod memory_list;
mod memory_retrieve;
mod memory_save;
mod memory_search;
mod read_file;
mod write_file;

use crate::error_text::{DOWNLOAD, PathForm, describe_error, relative_notice};
use crate::program_result::Printed;
use crate::{Services, errors};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::{borrow::Cow, sync::Arc};
use toolrest_core::{Dialect, ErrorKind, Notice, Result, Success, ToolError, Toolset, push_json_string};

/// Returns the toolset with its tools.
pub fn toolset(services: &Services) -> Toolset {
    let executor = || Arc::clone(&services.executor);
    let memories = || Arc::clone(&services.memories);
    let github = || Arc::clone(&services.github);
    Toolset::new("backend", Arc::new(BackendDialect))
        .with(read_file::ReadFile)
        .with(write_file::WriteFile)
        .with(list_files::ListFiles)
        .with(execute_shell_command::ExecuteShellCommand(executor()))
        .with(browse_web::BrowseWeb { web: Arc::clone(&services.web), executor: Arc::clone(&services.executor) })
        .with(github_create_repo::GitHubCreateRepo(github()))
        .with(github_get_pr_details::GitHubGetPrDetails(github()))
        .with(github_post_pr_comment::GitHubPostPrComment(github()))
        .with(github_merge_pr::GitHubMergePr(github()))
        .with(github_create_file_in_repo::GitHubCreateFileInRepo(github()))
        .with(data_analyze::DataAnalyze(executor()))
        .with(data_visualize::DataVisualize(executor()))
        .with(memory_save::MemorySave(memories()))
        .with(memory_retrieve::MemoryRetrieve(memories()))
        .with(memory_delete::MemoryDelete(memories()))
        .with(memory_search::MemorySearch(memories()))
        .with(memory_list::MemoryList(memories()))
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

    fn answer_schema(&self, result: Value) -> Value {
        json!({
            "type": "object",
            "properties": { "result": result, "correlationId": { "type": "string" } },
            "required": ["result", "correlationId"],
        })
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
            remediation: Cow<'a, str>,
            #[serde(skip_serializing_if = "Map::is_empty")]
            details: &'a Map<String, Value>,
        }
        let row = errors::row(error.kind);
        let error_text = describe_error(error, PathForm::Relative, DOWNLOAD);
        let inside = Inside {
            code: errors::backend_code(error.kind),
            message: match error.missing_argument_name() {
                Some(name) => format!("Missing required field: {name}"),
                None => error_text.message_with_hint(),
            },
            retryable: row.retryable,
            remediation: remediation(error),
            details: &with_camel_case(error_text.details),
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

/// Returns what the caller of a failed call can do.
fn remediation(error: &ToolError) -> Cow<'static, str> {
    match (error.missing_argument_name(), error.retry_after_seconds()) {
        (Some(name), _) => format!("Provide a valid {name} and retry").into(),
        (None, Some(seconds)) => format!("Retry after {seconds} seconds").into(),
        (None, None) => errors::row(error.kind).remediation.into(),
    }
}

/// Spells the time to wait as specification 003 does.
fn with_camel_case(mut details: Map<String, Value>) -> Map<String, Value> {
    if let Some(seconds) = details.remove("retry_after_seconds") {
        details.insert("retryAfterSeconds".to_owned(), seconds);
    }
    details
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

//! The `workspace` toolset: the file tools of specification 000, with POSIX paths.

mod edit;
mod edit_many;
mod grep;
mod ls;
mod mkdir;
mod mv;
mod read;
mod rm;
mod touch;
mod write;

use crate::error_text::{DOWNLOAD, PathForm, describe_error};
use crate::errors;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use toolrest_core::{
    CallCx, ContentHash, Dialect, ErrorKind, Result, Success, ToolError, Toolset, WaitingCall, WsPath,
};

/// Returns the toolset with its tools.
pub fn toolset() -> Toolset {
    Toolset::new("workspace", Arc::new(WorkspaceDialect))
        .with(ls::Ls)
        .with(read::Read)
        .with(write::Write)
        .with(rm::Rm)
        .with(mv::Mv)
        .with(touch::Touch)
        .with(mkdir::Mkdir)
        .with(edit::Edit)
        .with(edit_many::EditMany)
        .with(grep::Grep)
}

/// The response format of specification 000. The REST interface uses it for errors.
pub struct WorkspaceDialect;

impl Dialect for WorkspaceDialect {
    fn success(&self, success: &Success<'_>) -> Vec<u8> {
        let mut body = Vec::with_capacity(success.result.len() + 40);
        body.extend_from_slice(br#"{"success":true,"result":"#);
        body.extend_from_slice(success.result.as_bytes());
        body.extend_from_slice(br#","error":null"#);
        body.extend_from_slice(success.warnings_member().as_bytes());
        body.push(b'}');
        body
    }

    fn failure(&self, error: &ToolError, _: &str) -> Vec<u8> {
        failure(error)
    }

    fn answer_schema(&self, result: Value) -> Value {
        json!({
            "type": "object",
            "properties": { "success": { "const": true }, "result": result, "error": { "type": "null" } },
            "required": ["success", "result", "error"],
        })
    }

    fn add_pending_fields(&self, body: &mut Map<String, Value>, _: &WaitingCall<'_>) {
        body.insert("success".to_owned(), Value::Bool(false));
        body.insert("result".to_owned(), Value::Null);
    }

    fn status(&self, error: &ToolError) -> u16 {
        errors::row(error.kind).status
    }
}

/// Writes the body of an error: `{"error", "code"}`, and `fields` if an argument is at fault.
pub fn failure(error: &ToolError) -> Vec<u8> {
    #[derive(Serialize)]
    struct Failure<'a> {
        error: &'a str,
        code: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        fields: Option<Map<String, Value>>,
    }
    // The specification fixes the text of `error`, so hints are put into `fields`.
    let error_text = describe_error(error, PathForm::FromRoot, DOWNLOAD);
    let at_fault = error.argument_at_fault().or_else(|| error_text.hint.as_ref().map(|_| "path"));
    let fields =
        at_fault.map(|name| Map::from_iter([(name.to_owned(), Value::String(error_text.message_with_hint()))]));
    let body = Failure { error: &error.message, code: errors::workspace_code(error.kind), fields };
    // Strings and maps of JSON values always serialise.
    serde_json::to_vec(&body).unwrap_or_default()
}

/// Adds the name of the path argument to an error about the file or folder at that path, unless the error names an
/// argument already.
fn about_path(argument: &'static str) -> impl FnOnce(ToolError) -> ToolError {
    move |error| match error.kind {
        ErrorKind::NotFound
        | ErrorKind::IsDirectory
        | ErrorKind::NotADirectory
        | ErrorKind::ThroughFile
        | ErrorKind::AlreadyExists
        | ErrorKind::NotEmpty
        | ErrorKind::Binary
        | ErrorKind::Protected
        | ErrorKind::WrongType
        | ErrorKind::InvalidPath
        | ErrorKind::OutsideWorkspace
            if error.argument_at_fault().is_none() =>
        {
            error.about(argument)
        }
        _ => error,
    }
}

/// Adds the name of the hash argument to the error for a changed file, if the caller passed a hash.
fn about_hash(given: Option<ContentHash>) -> impl FnOnce(ToolError) -> ToolError {
    move |error| match error.kind {
        ErrorKind::Stale if given.is_some() => error.about("last_read_hash"),
        _ => error,
    }
}

/// Parses a POSIX path argument. An error names the argument.
async fn path(cx: &CallCx, argument: &str, text: &str) -> Result<WsPath> {
    toolrest_ops::locate_posix(cx, text).await.map_err(|error| error.about(argument))
}

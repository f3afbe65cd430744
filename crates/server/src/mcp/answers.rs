//! Answers of calls as the contents of messages.

use crate::approvals::with_notices;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};
use std::fmt::Write;
use toolrest_core::{Approval, CallOutcome, Dialect, ErrorKind, Result, ToolError, WaitingCall};

/// What a model gets for the outcome of a call: a text, and on request also the JSON.
pub(super) fn of_outcome(
    outcome: &CallOutcome,
    dialect: &dyn Dialect,
    structured: bool,
    wants_data: bool,
) -> Result<CallToolResult> {
    if dialect.is_text() {
        return Ok(of_text(&outcome.within_limit(outcome.json()?)?, wants_data));
    }
    let text = outcome.within_limit(with_notices(outcome.text()?, outcome, dialect))?;
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    if structured {
        let mut answer: Value = serde_json::from_str(&outcome.json()?).map_err(ToolError::internal)?;
        let warnings: Vec<String> = outcome.warnings.iter().map(|warning| dialect.notice(warning)).collect();
        if let (Some(answer), false) = (answer.as_object_mut(), warnings.is_empty()) {
            answer.insert("warnings".to_owned(), json!(warnings));
        }
        result.structured_content = Some(answer);
    }
    Ok(result)
}

/// The member of `_meta` with which a client asks for the data of an answer, and which has them.
pub(super) const DATA: &str = "toolrest/data";

/// What a model gets for an answer that is a text: the text and the pictures. The data are only for clients that ask for them,
/// because some give the model the data instead of the text.
fn of_text(answer: &str, wants_data: bool) -> CallToolResult {
    let mut answer: Value = serde_json::from_str(answer).unwrap_or_default();
    let mut contents = vec![ContentBlock::text(answer["text"].as_str().unwrap_or_default())];
    for block in answer["blocks"].as_array().into_iter().flatten() {
        let part = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
        contents.push(ContentBlock::image(part("data"), part("mimeType")));
    }
    let mut result = CallToolResult::success(contents);
    if wants_data {
        let data = serde_json::Map::from_iter([(DATA.to_owned(), answer["data"].take())]);
        result.meta = serde_json::from_value(Value::Object(data)).ok();
    }
    result
}

/// What a model gets for an error: the message in the words of the toolset.
pub(super) fn of_error(error: &ToolError, dialect: &dyn Dialect) -> CallToolResult {
    let body = serde_json::from_slice(&dialect.failure(error, "")).unwrap_or_default();
    let text = message_of(&body).map_or_else(|| error.message.clone(), str::to_owned);
    CallToolResult::error(vec![ContentBlock::text(with_output(text, error))])
}

/// What a model gets for an answer that was stored with its approval.
pub(super) fn of_stored(status: u16, body: &[u8], text: Option<String>, dialect: &dyn Dialect) -> CallToolResult {
    if dialect.is_text() && status < 400 {
        return of_text(&String::from_utf8_lossy(body), false);
    }
    let parsed: Value = serde_json::from_slice(body).unwrap_or_default();
    if status >= 400 {
        let text = message_of(&parsed).map_or_else(|| parsed.to_string(), str::to_owned);
        return CallToolResult::error(vec![ContentBlock::text(text)]);
    }
    let text = text.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
    CallToolResult::success(vec![ContentBlock::text(text)])
}

/// What a model gets for a call that waits for a person.
pub(super) fn of_pending(approval: &Approval, dialect: &dyn Dialect) -> CallToolResult {
    if dialect.is_text() {
        let error = ToolError::new(ErrorKind::ApprovalRequired, "A person must approve this call");
        let body = dialect.pending(&error, &WaitingCall { approval, url: "" }, "");
        return of_text(&String::from_utf8_lossy(&body), false);
    }
    let because = approval.asks.first().map_or("a rule asks", |ask| ask.because.as_str());
    let (workspace, id) = (approval.call.workspace, approval.id);
    let text = format!(
        "Waiting for approval {id}: a person must approve this call, because {because}. Nothing was done yet.\n\
         The user can approve it with `toolrest approvals approve {id}`, or with POST \
         /api/v1/workspaces/{workspace}/approvals/{id}/decision and {{\"decision\": \"approve\"}}.\n\
         Go on with other work. The same call again waits for the decision, and returns the result once it is approved; it \
         never runs twice."
    );
    CallToolResult::success(vec![ContentBlock::text(text)])
}

/// Returns the message in an answer of any toolset for an error.
fn message_of(body: &Value) -> Option<&str> {
    let places = ["/text", "/error/message", "/message", "/fields", "/error"];
    places.into_iter().find_map(|place| match body.pointer(place)? {
        Value::String(text) => Some(text.as_str()),
        // The toolset `workspace` says more about an argument there.
        Value::Object(fields) if place == "/fields" => fields.values().next()?.as_str(),
        _ => None,
    })
}

/// Adds what a program printed before it failed.
fn with_output(mut text: String, error: &ToolError) -> String {
    for stream in ["stdout", "stderr"] {
        let printed = error.details.get(stream).and_then(Value::as_str).unwrap_or_default();
        if !printed.is_empty() {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n{stream}:\n{printed}");
        }
    }
    text
}

#[cfg(test)]
#[path = "answers_tests.rs"]
mod tests;

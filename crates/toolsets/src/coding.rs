//! The `coding` toolset: specification 004.

mod apply_patch;
mod edit;
mod glob;
mod ls;
mod multiedit;
mod read;
mod write;

use crate::error_text::relative;
use crate::errors;
use crate::plain::PlainDialect;
use schemars::JsonSchema;
use serde::de::{self, Visitor};
use serde::{Deserializer, Serialize};
use serde_json::{Map, Value, json};
use std::fmt;
use std::sync::Arc;
use toolrest_core::{
    Approval, CallCx, ContentHash, ErrorKind, FailedOperation, Result, ToolError, Toolset, WaitingCall, WsPath,
};
use toolrest_ops::{EditOptions, Edited, Replacement};

/// Returns the toolset with its tools.
pub fn toolset() -> Toolset {
    Toolset::new(
        "coding",
        Arc::new(PlainDialect { code: errors::coding_code, message: sentence, pending: permission_request }),
    )
    .with(read::Read)
    .with(write::Write)
    .with(edit::Edit)
    .with(multiedit::MultiEdit)
    .with(apply_patch::ApplyPatch)
    .with(ls::Ls)
    .with(glob::Glob)
}

/// Adds the permission request of the specification to the answer for a call that waits for a person.
fn permission_request(body: &mut Map<String, Value>, waiting: &WaitingCall<'_>) {
    let Approval { id, asks, preview, .. } = waiting.approval;
    let patterns: Vec<&str> = asks.iter().map(|ask| relative(&ask.subject)).collect();
    let request = json!({ "id": id, "permission": "edit", "patterns": patterns, "diff": preview.diff });
    body.insert("permission".to_owned(), request);
}

/// Adds to an error the operation that failed and the file as the caller named it, for the error message.
fn cannot(operation: &'static str, file: &str) -> impl FnOnce(ToolError) -> ToolError {
    let operation = FailedOperation { name: operation, file: Some(file.to_owned()) };
    move |error| error.in_operation(operation)
}

/// Like [`cannot`], for an operation on no particular file.
fn cannot_at_all(operation: &'static str) -> impl FnOnce(ToolError) -> ToolError {
    move |error| error.in_operation(FailedOperation { name: operation, file: None })
}

/// Returns the message that the specification prescribes for an error, or else the error's own message.
fn sentence(error: &ToolError) -> String {
    let operation = error.failed_operation();
    let named = operation.and_then(|operation| operation.file.as_deref());
    let file = named.or_else(|| error.path().map(relative));
    // The lines after the first one describe further failures.
    let others = error.message.find('\n').map_or("", |at| &error.message[at..]);
    match (error.kind, file) {
        (ErrorKind::NotFound, Some(file)) => format!("File not found: {file}{others}"),
        (ErrorKind::Binary, Some(file)) => format!("Cannot read binary file: {file}{others}"),
        (ErrorKind::Forbidden | ErrorKind::Protected, file) => {
            match (operation.map(|operation| operation.name), file) {
                (Some(operation), Some(file)) => {
                    format!("Permission denied: Cannot {operation} {file}\n{}", error.message)
                }
                (Some(operation), None) => format!("Permission denied: Cannot {operation}\n{}", error.message),
                (None, _) => format!("Permission denied: {}", error.message),
            }
        }
        _ => error.message.clone(),
    }
}

/// Parses a path argument. In a workspace that is a folder on disk, an absolute path is a path of the host's file
/// system; in others it starts at the workspace's root. In both it may begin with `/workspace`, as programs see it. The
/// path must stay below the root.
async fn path(cx: &CallCx, argument: &str, text: &str) -> Result<WsPath> {
    toolrest_ops::locate_absolute(cx, text).await.map_err(|error| error.about(argument))
}

/// Fields of the answer to an edit that are not in the specification of the `coding` toolset.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct EditDetails {
    /// SHA-256 hash of the new content.
    hash: Option<ContentHash>,
    /// The change as a unified diff.
    diff: String,
    /// With `fuzzy`, if a text was not found exactly: the loosest difference that was accepted (`trailing_whitespace`,
    /// `punctuation` or `indentation`).
    #[serde(skip_serializing_if = "Option::is_none")]
    matched_with: Option<&'static str>,
}

impl EditDetails {
    fn of(edited: Edited) -> Self {
        Self { matched_with: edited.matched_loosely(), hash: edited.hash, diff: edited.diff }
    }
}

/// Edits a file for `edit` and `multiedit`, and returns its path too.
async fn edit_file(cx: &CallCx, named: &str, options: &EditOptions) -> Result<(WsPath, Edited)> {
    let path = path(cx, "filePath", named).await?;
    let edited = toolrest_ops::edit(cx, &path, options).await;
    let edited = edited.map_err(|error| cannot("edit", named)(string_not_found(error, &options.edits)))?;
    Ok((path, edited))
}

/// Puts the message that the specification prescribes before the explanation why a text was not found.
fn string_not_found(mut error: ToolError, edits: &[Replacement]) -> ToolError {
    const MAX_CHARS: usize = 50;
    let edit = error.failed_edit().unwrap_or(1).checked_sub(1).and_then(|index| edits.get(index));
    if let (ErrorKind::FindNotFound, Some(edit)) = (error.kind, edit) {
        let shown: String = edit.old.chars().take(MAX_CHARS).collect();
        error.message = format!("String not found in file: \"{shown}...\"\n{}", error.message);
    }
    error
}

/// Deserialises a number that may be passed as a string, like `coerce` in the specification.
fn coerced<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    deserializer.deserialize_any(Coerced)
}

struct Coerced;

impl Coerced {
    /// Accepts a non-negative whole number that a JSON float represents exactly.
    fn whole<E: de::Error>(self, number: f64, given: de::Unexpected<'_>) -> Result<Option<usize>, E> {
        const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
        if !(0.0..=MAX_EXACT).contains(&number) || number.fract() != 0.0 {
            return Err(E::invalid_value(given, &self));
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "just checked")]
        Ok(Some(number as usize))
    }
}

impl Visitor<'_> for Coerced {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number from 0 on")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Option<usize>, E> {
        #[allow(clippy::cast_precision_loss, reason = "inexact numbers are refused")]
        self.whole(number as f64, de::Unexpected::Unsigned(number))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Option<usize>, E> {
        #[allow(clippy::cast_precision_loss, reason = "inexact numbers are refused")]
        self.whole(number as f64, de::Unexpected::Signed(number))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Option<usize>, E> {
        self.whole(number, de::Unexpected::Float(number))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Option<usize>, E> {
        self.whole(text.trim().parse().unwrap_or(f64::NAN), de::Unexpected::Str(text))
    }

    fn visit_unit<E>(self) -> Result<Option<usize>, E> {
        Ok(None)
    }
}

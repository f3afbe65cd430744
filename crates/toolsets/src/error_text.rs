//! Errors as a toolset tells them: paths in the form that it takes, and what else may help.

use serde_json::{Map, Value};
use toolrest_core::{ErrorKind, Notice, PATH_DETAILS, ToolError, WsPath};

/// How a toolset writes paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathForm {
    /// From the root: `/src/main.rs`.
    FromRoot,
    /// Relative to the root: `src/main.rs`.
    Relative,
}

/// An error in the words of a toolset.
pub(crate) struct ErrorText {
    pub(crate) message: String,
    pub(crate) details: Map<String, Value>,
    /// What else may help.
    pub(crate) hint: Option<String>,
}

impl ErrorText {
    /// The message and what else may help.
    pub(crate) fn message_with_hint(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}\n{hint}", self.message),
            None => self.message.clone(),
        }
    }
}

/// Where the bytes of a file are to be had, whatever the toolset.
pub(crate) const DOWNLOAD: &str = "Download its bytes with GET /api/v1/workspaces/{id}/content/{path}";

/// Tells an error. `binary` says how this toolset reads bytes that are not text.
pub(crate) fn describe_error(error: &ToolError, form: PathForm, binary: &str) -> ErrorText {
    let mut details = error.details.clone();
    let mut message = error.message.clone();
    if form == PathForm::Relative {
        message = with_relative_paths(message, error.message_paths());
        for name in PATH_DETAILS {
            if let Some(value) = details.get_mut(name) {
                make_relative(value);
            }
        }
    }
    let shown = |path: &WsPath| match form {
        PathForm::FromRoot => path.to_string(),
        PathForm::Relative => relative(path.as_str()).to_owned(),
    };
    let similar: Vec<String> = error.similar_paths().iter().map(shown).collect();
    let hint = match error.kind {
        ErrorKind::Binary => Some(binary.to_owned()),
        _ => error.hint().map(str::to_owned),
    };
    let question = (!similar.is_empty()).then(|| format!("Did you mean {}?", similar.join(" or ")));
    let hint = match (question, hint) {
        (Some(question), Some(hint)) => Some(format!("{question}\n{hint}")),
        (question, hint) => question.or(hint),
    };
    ErrorText { message, details, hint }
}

/// What a notice says, with its paths relative to the root.
pub(crate) fn relative_notice(notice: &Notice) -> String {
    with_relative_paths(notice.text.clone(), notice.paths.clone())
}

/// The text with the paths that it names relative to the root.
fn with_relative_paths(mut text: String, mut paths: Vec<String>) -> String {
    // What stands in another one is looked for after it.
    paths.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    paths.dedup();
    for path in &paths {
        text = with_relative(&text, path);
    }
    text
}

fn make_relative(value: &mut Value) {
    match value {
        Value::String(text) => *text = relative(text).to_owned(),
        Value::Array(values) => values.iter_mut().for_each(make_relative),
        _ => {}
    }
}

pub(crate) fn relative(path: &str) -> &str {
    if path == "/" { "." } else { path.strip_prefix('/').unwrap_or(path) }
}

/// The message with the first place that names a path in the relative form. Further places may be part of what a file
/// holds.
fn with_relative(message: &str, path: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '/' | '_' | '-' | '.');
    let is_whole = |(start, _): &(usize, &str)| {
        let (before, after) = (&message[..*start], &message[start + path.len()..]);
        let goes_on = match after.strip_prefix('.') {
            // The end of a sentence.
            Some(rest) => rest.starts_with(is_part),
            None => after.starts_with(is_part),
        };
        !before.ends_with(is_part) && !goes_on
    };
    match message.match_indices(path).find(is_whole) {
        Some((start, _)) => format!("{}{}{}", &message[..start], relative(path), &message[start + path.len()..]),
        None => message.to_owned(),
    }
}

#[cfg(test)]
#[path = "error_text_tests.rs"]
mod tests;

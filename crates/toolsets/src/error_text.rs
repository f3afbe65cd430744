//! Messages of errors in the form of a toolset: its form of paths, and hints.

use serde_json::{Map, Value};
use toolrest_core::{ErrorKind, Notice, PATH_DETAILS, ToolError, WsPath};

/// The form of paths in a toolset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathForm {
    /// From the root: `/src/main.rs`.
    FromRoot,
    /// Relative to the root: `src/main.rs`.
    Relative,
}

/// The text of an error for a toolset.
pub(crate) struct ErrorText {
    pub(crate) message: String,
    pub(crate) details: Map<String, Value>,
    pub(crate) hint: Option<String>,
}

impl ErrorText {
    /// Returns the message, followed by the hint if there is one.
    pub(crate) fn message_with_hint(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}\n{hint}", self.message),
            None => self.message.clone(),
        }
    }
}

/// How to get the bytes of a binary file with any toolset.
pub(crate) const DOWNLOAD: &str = "Download its bytes with GET /api/v1/workspaces/{id}/content/{path}";

/// Returns the text of an error. `binary` says how to get the bytes of a binary file with this toolset.
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

/// Returns the text of a notice with relative paths.
pub(crate) fn relative_notice(notice: &Notice) -> String {
    with_relative_paths(notice.text.clone(), notice.paths.clone())
}

/// Replaces the given paths in a text by their relative forms.
fn with_relative_paths(mut text: String, mut paths: Vec<String>) -> String {
    // Longer paths first: a shorter one may be a part of them.
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

/// Replaces the first occurrence of a path by its relative form. Later occurrences may belong to the content of a file
/// that the message quotes.
fn with_relative(message: &str, path: &str) -> String {
    let is_path_char = |c: char| c.is_alphanumeric() || matches!(c, '/' | '_' | '-' | '.');
    let is_whole = |(start, _): &(usize, &str)| {
        let (before, after) = (&message[..*start], &message[start + path.len()..]);
        let continues = match after.strip_prefix('.') {
            // A full stop ends the sentence.
            Some(rest) => rest.starts_with(is_path_char),
            None => after.starts_with(is_path_char),
        };
        !before.ends_with(is_path_char) && !continues
    };
    match message.match_indices(path).find(is_whole) {
        Some((start, _)) => format!("{}{}{}", &message[..start], relative(path), &message[start + path.len()..]),
        None => message.to_owned(),
    }
}

#[cfg(test)]
#[path = "error_text_tests.rs"]
mod tests;

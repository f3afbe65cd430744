//! Notices: texts for callers in addition to an answer.

use crate::{ToolError, WsPath};

/// A text in addition to an answer: a warning, or the reason why a process was stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notice {
    /// The text.
    pub text: String,
    /// The paths in the text, from the root. Each toolset shows them in its own form.
    pub paths: Vec<String>,
}

impl Notice {
    /// Creates a notice about a path.
    pub fn about(path: &WsPath, text: impl Into<String>) -> Self {
        Self { text: text.into(), paths: vec![path.to_string()] }
    }

    /// Creates a notice about an error. `text` gets the message of the error and returns the text.
    pub fn of_error(error: &ToolError, text: impl FnOnce(&str) -> String) -> Self {
        Self { text: text(&error.message), paths: error.message_paths() }
    }
}

impl From<String> for Notice {
    fn from(text: String) -> Self {
        Self { text, paths: Vec::new() }
    }
}

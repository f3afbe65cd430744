//! What callers are told beside an answer.

use crate::{ToolError, WsPath};

/// A text that is told beside an answer: a warning, or why a process was ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notice {
    /// What it says.
    pub text: String,
    /// The paths that it names, from the root. Each toolset shows them in the form that it takes.
    pub paths: Vec<String>,
}

impl Notice {
    /// A notice about what is at a path.
    pub fn about(path: &WsPath, text: impl Into<String>) -> Self {
        Self { text: text.into(), paths: vec![path.to_string()] }
    }

    /// A notice that tells of an error, in words around its message.
    pub fn of_error(error: &ToolError, text: impl FnOnce(&str) -> String) -> Self {
        Self { text: text(&error.message), paths: error.message_paths() }
    }
}

impl From<String> for Notice {
    fn from(text: String) -> Self {
        Self { text, paths: Vec::new() }
    }
}

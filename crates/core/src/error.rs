//! The one error that reaches a caller.

use crate::{ContentHash, WsPath};
use serde_json::{Map, Value};
use std::fmt;

/// The result of anything a tool or workspace does.
pub type Result<T, E = ToolError> = std::result::Result<T, E>;

/// What went wrong, in no dialect. Each toolset's own code for it stands in the table of the `toolsets` crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// An argument is missing, unknown, of the wrong type or out of range.
    InvalidArgument,
    /// A path that no workspace could hold: control characters, or too long.
    InvalidPath,
    /// A path that would leave the workspace.
    OutsideWorkspace,
    /// A search pattern that cannot be understood.
    InvalidPattern,
    /// A patch that cannot be understood.
    PatchSyntax,
    /// A media type other than JSON.
    UnsupportedMediaType,
    /// A request larger than the limit.
    PayloadTooLarge,
    /// An answer larger than the limit.
    ResponseTooLarge,
    /// No such file, folder, version, commit, member or chat.
    NotFound,
    /// No such tool or toolset.
    UnknownTool,
    /// A folder where a file is needed.
    IsDirectory,
    /// A file where a folder is needed.
    NotADirectory,
    /// A path that leads through a file.
    ThroughFile,
    /// A folder that still holds something.
    NotEmpty,
    /// Content that is not text where text is needed.
    Binary,
    /// Content that does not fit the file's type.
    WrongType,
    /// A file kept by the system, which the file tools cannot change.
    Protected,
    /// The text to replace does not occur.
    FindNotFound,
    /// The text to replace occurs more than once.
    FindNotUnique,
    /// The change that a patch makes is there already.
    AlreadyApplied,
    /// Something already stands at the path.
    AlreadyExists,
    /// The file changed since the caller read it.
    Stale,
    /// Something else in the way: lost a race, or undo of what has changed since.
    Conflict,
    /// No valid proof of who calls.
    Unauthenticated,
    /// Known caller, not allowed.
    Forbidden,
    /// A person must approve the call first.
    ApprovalRequired,
    /// A person or rule refused the call.
    ApprovalDenied,
    /// Too many attempts.
    RateLimited,
    /// A limit of the account or the workspace is reached: storage, workspaces, background processes.
    QuotaExceeded,
    /// The deadline passed.
    Timeout,
    /// The caller went away before the end.
    Cancelled,
    /// A program that could not be started, or did not do what it had to.
    ExecutionFailed,
    /// No program can be run here, because it could not be isolated.
    SandboxUnavailable,
    /// A part that the operator has not set up.
    NotConfigured,
    /// The disk, or the server's quota on it, is full: nothing can be written until the operator makes room.
    StorageFull,
    /// The storage failed to write, or may only be read.
    WriteFailed,
    /// A part that is needed is away for the moment.
    Unavailable,
    /// A fault of ours.
    Internal,
}

impl ErrorKind {
    /// Every kind, for the reference.
    pub const ALL: [Self; 38] = [
        Self::InvalidArgument,
        Self::InvalidPath,
        Self::OutsideWorkspace,
        Self::InvalidPattern,
        Self::PatchSyntax,
        Self::UnsupportedMediaType,
        Self::PayloadTooLarge,
        Self::ResponseTooLarge,
        Self::NotFound,
        Self::UnknownTool,
        Self::IsDirectory,
        Self::NotADirectory,
        Self::ThroughFile,
        Self::NotEmpty,
        Self::Binary,
        Self::WrongType,
        Self::Protected,
        Self::FindNotFound,
        Self::FindNotUnique,
        Self::AlreadyApplied,
        Self::AlreadyExists,
        Self::Stale,
        Self::Conflict,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::ApprovalRequired,
        Self::ApprovalDenied,
        Self::RateLimited,
        Self::QuotaExceeded,
        Self::Timeout,
        Self::Cancelled,
        Self::ExecutionFailed,
        Self::SandboxUnavailable,
        Self::NotConfigured,
        Self::StorageFull,
        Self::WriteFailed,
        Self::Unavailable,
        Self::Internal,
    ];
}

/// An error as a caller will read it: a model that acts on it, or a person.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolError {
    /// What went wrong.
    pub kind: ErrorKind,
    /// What was wrong, with the value, and what to do next.
    pub message: String,
    /// Facts for programs, by name.
    pub details: Map<String, Value>,
    /// What toolsets need to tell it well. Boxed, because errors are returned everywhere.
    context: Option<Box<ErrorContext>>,
}

/// What toolsets need to tell an error well.
#[derive(Clone, Debug, Default, PartialEq)]
struct ErrorContext {
    hint: Option<String>,
    paths: Vec<WsPath>,
    missing: Option<WsPath>,
}

impl ToolError {
    /// Makes an error without details.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), details: Map::new(), context: None }
    }

    /// Makes an error about one argument, named in the details as the one at fault.
    pub fn argument(name: &str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message).about(name)
    }

    /// The one sentence of every toolset for a missing file.
    pub fn file_not_found(path: &WsPath) -> Self {
        Self::not_found(path, format!("File not found: {path}"))
    }

    /// The refusal of a change that needs a folder which is missing.
    pub fn folder_not_found(path: &WsPath) -> Self {
        Self::not_found(path, format!("Folder not found: {path}; create it first"))
    }

    fn not_found(path: &WsPath, message: String) -> Self {
        let mut error = Self::new(ErrorKind::NotFound, message).detail("path", path.as_str());
        error.context.get_or_insert_default().missing = Some(path.clone());
        error
    }

    /// The refusal of a change that was made against another content than the current one.
    pub fn stale(path: impl fmt::Display, current: Option<ContentHash>) -> Self {
        let now = current.map_or("it has no content".to_owned(), |hash| format!("its hash is now {hash}"));
        let message =
            format!("{path} has changed since it was read ({now}); read it again and repeat. Nothing was written");
        let error = Self::new(ErrorKind::Stale, message).detail("path", path.to_string());
        match current {
            Some(hash) => error.detail("current_hash", hash.to_string()),
            None => error,
        }
    }

    /// The refusal of what would exceed a limit of the account or the workspace. The message says what to do.
    pub fn quota(limit: u64, used: u64, setting: &str, message: impl Into<String>) -> Self {
        let error = Self::new(ErrorKind::QuotaExceeded, message);
        error.detail("limit", limit).detail("used", used).detail("setting", setting)
    }

    /// A fault of ours. The cause goes to the log; the caller learns only that it was not at fault.
    pub fn internal(cause: impl fmt::Display) -> Self {
        tracing::error!(%cause, "internal error");
        Self::new(
            ErrorKind::Internal,
            "Internal error; the server's log has the cause under the id of this request (X-Request-Id)",
        )
    }

    /// The same error as one of another kind.
    #[must_use]
    pub fn of_kind(self, kind: ErrorKind) -> Self {
        Self { kind, ..self }
    }

    /// Names the argument at fault.
    #[must_use]
    pub fn about(self, argument: &str) -> Self {
        self.detail("argument", argument)
    }

    /// Adds a fact for programs.
    #[must_use]
    pub fn detail(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// Says what else may help, for toolsets whose messages have fixed words.
    #[must_use]
    pub fn hinting(mut self, hint: impl Into<String>) -> Self {
        self.context.get_or_insert_default().hint = Some(hint.into());
        self
    }

    /// Names paths of the call, which the message may name too. Each toolset shows them in the form that it takes.
    #[must_use]
    pub fn naming(mut self, mut paths: Vec<WsPath>) -> Self {
        if !paths.is_empty() {
            self.context.get_or_insert_default().paths.append(&mut paths);
        }
        self
    }

    /// What else may help.
    pub fn hint(&self) -> Option<&str> {
        self.context.as_ref().and_then(|context| context.hint.as_deref())
    }

    /// The file or folder that is missing, if that is what went wrong.
    pub fn missing(&self) -> Option<&WsPath> {
        self.context.as_ref().and_then(|context| context.missing.as_ref())
    }

    /// The paths that the message may name, from the root: those of the call, the folders above them, and those in the
    /// details.
    pub fn named_paths(&self) -> Vec<String> {
        let in_details = PATH_DETAILS.iter().filter_map(|name| self.details.get(*name)).flat_map(texts);
        let mut paths: Vec<String> = in_details.filter(|path| path.starts_with('/')).map(str::to_owned).collect();
        for path in self.context.iter().flat_map(|context| &context.paths) {
            paths.push(path.to_string());
            paths.extend(path.ancestors().iter().map(WsPath::to_string));
        }
        paths
    }

    /// The argument at fault, where one is.
    pub fn argument_at_fault(&self) -> Option<&str> {
        self.details.get("argument").and_then(Value::as_str)
    }
}

/// The details that hold paths.
pub const PATH_DETAILS: [&str; 4] = ["path", "from", "to", "near"];

fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ToolError {}

//! The error that callers receive.

use crate::{Ask, ContentHash, WsPath};
use serde_json::{Map, Value};
use std::fmt;

/// The result of tools and of operations on workspaces.
pub type Result<T, E = ToolError> = std::result::Result<T, E>;

/// What went wrong, independent of any toolset. `errors.rs` of the crate `toolsets` has the code of each toolset for
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// An argument is missing, unknown, of the wrong type or out of range.
    InvalidArgument,
    /// A path that is not valid in any workspace: it has control characters, or is too long.
    InvalidPath,
    /// A path that would leave the workspace.
    OutsideWorkspace,
    /// A search pattern with invalid syntax.
    InvalidPattern,
    /// A patch with invalid syntax.
    PatchSyntax,
    /// A media type other than JSON.
    UnsupportedMediaType,
    /// A request larger than the limit.
    PayloadTooLarge,
    /// An answer larger than the limit.
    ResponseTooLarge,
    /// No such file, folder, version, commit, member or chat.
    NotFound,
    /// No such thing other than a file: a memory, a secret, a pull request.
    ItemNotFound,
    /// A result that is not kept any more.
    Expired,
    /// No such tool or toolset.
    UnknownTool,
    /// A folder where a file is needed.
    IsDirectory,
    /// A file where a folder is needed.
    NotADirectory,
    /// A path that uses a file as a folder.
    ThroughFile,
    /// A folder that is not empty.
    NotEmpty,
    /// Content that is not text where text is needed.
    Binary,
    /// Content that does not fit the file's type.
    WrongType,
    /// A file that the system generates, which the file tools cannot change.
    Protected,
    /// The text to replace does not occur.
    FindNotFound,
    /// The text to replace occurs more than once.
    FindNotUnique,
    /// The file already contains the change of the patch.
    AlreadyApplied,
    /// A file or folder already exists at the path.
    AlreadyExists,
    /// The file changed since the caller read it.
    Stale,
    /// Another conflict: a lost race, or the undo of a change that was changed again since.
    Conflict,
    /// The caller is not authenticated.
    Unauthenticated,
    /// The caller is known, but has no right to do this.
    Forbidden,
    /// A person must approve the call first.
    ApprovalRequired,
    /// A person or a rule refused the call.
    ApprovalDenied,
    /// Too many attempts.
    RateLimited,
    /// A limit of the account or the workspace is reached: storage, workspaces, background processes.
    QuotaExceeded,
    /// The deadline passed.
    Timeout,
    /// The caller disconnected before the end.
    Cancelled,
    /// A program could not be started, or failed.
    ExecutionFailed,
    /// Programs cannot be run on this server, because they could not be isolated.
    SandboxUnavailable,
    /// A part of the server that the operator has not set up.
    NotConfigured,
    /// A host of the network could not be reached, or did not answer as it should.
    NetworkError,
    /// The disk, or the server's quota on it, is full: nothing can be written until the operator makes room.
    StorageFull,
    /// The storage failed to write, or is read-only.
    WriteFailed,
    /// A part of the server is not available at the moment.
    Unavailable,
    /// A fault of the server.
    Internal,
}

impl ErrorKind {
    /// Whether an error of this kind may be found before the workspace has checked the caller's membership.
    pub(crate) fn precedes_membership_check(self) -> bool {
        matches!(
            self,
            Self::InvalidArgument
                | Self::InvalidPath
                | Self::OutsideWorkspace
                | Self::InvalidPattern
                | Self::PatchSyntax
                | Self::WrongType
                | Self::UnknownTool
                | Self::SandboxUnavailable
                | Self::NotConfigured
        )
    }

    /// Returns the name of the kind in records of calls, such as `not_found`.
    pub fn name(self) -> String {
        let mut name = String::new();
        for c in format!("{self:?}").chars() {
            if c.is_ascii_uppercase() && !name.is_empty() {
                name.push('_');
            }
            name.push(c.to_ascii_lowercase());
        }
        name
    }

    /// All kinds, for the documentation.
    pub const ALL: [Self; 41] = [
        Self::InvalidArgument,
        Self::InvalidPath,
        Self::OutsideWorkspace,
        Self::InvalidPattern,
        Self::PatchSyntax,
        Self::UnsupportedMediaType,
        Self::PayloadTooLarge,
        Self::ResponseTooLarge,
        Self::NotFound,
        Self::ItemNotFound,
        Self::Expired,
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
        Self::NetworkError,
        Self::StorageFull,
        Self::WriteFailed,
        Self::Unavailable,
        Self::Internal,
    ];
}

/// An error as a caller reads it: a model that acts on it, or a person.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolError {
    /// What went wrong.
    pub kind: ErrorKind,
    /// What was wrong, with the value, and what to do next.
    pub message: String,
    /// Facts for programs, by name. They are only sent: code that decides reads the typed accessors.
    pub details: Map<String, Value>,
    /// Boxed, because every function that can fail returns an error by value.
    context: Option<Box<ErrorContext>>,
}

/// Typed facts about an error. Some of them are also sent as details; none is sent from here.
#[derive(Clone, Debug, Default, PartialEq)]
struct ErrorContext {
    cause: Option<String>,
    argument: Option<String>,
    is_missing_argument: bool,
    hint: Option<String>,
    path: Option<String>,
    call_paths: Vec<WsPath>,
    missing_path: Option<WsPath>,
    similar_paths: Vec<WsPath>,
    failed_edit: Option<usize>,
    retry_after_seconds: Option<u64>,
    operation: Option<FailedOperation>,
    asks: Vec<Ask>,
    rules_changed: bool,
}

/// The operation of a tool that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedOperation {
    /// The operation, as it follows "cannot": `read`, `apply the patch`.
    pub name: &'static str,
    /// The file or folder, as the caller named it.
    pub file: Option<String>,
}

impl ToolError {
    /// Creates an error without details.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), details: Map::new(), context: None }
    }

    /// Creates an error about one argument, which the details name.
    pub fn argument(name: &str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message).about(name)
    }

    /// Creates the error for an argument that must be given.
    pub fn missing_argument(name: &str, message: impl Into<String>) -> Self {
        let mut error = Self::argument(name, message);
        error.context_mut().is_missing_argument = true;
        error
    }

    /// Creates the error for a missing file. All toolsets use the same sentence.
    pub fn file_not_found(path: &WsPath) -> Self {
        Self::not_found(path, format!("File not found: {path}"))
    }

    /// Creates the error for a change that needs a folder which is missing.
    pub fn folder_not_found(path: &WsPath) -> Self {
        Self::not_found(path, format!("Folder not found: {path}; create it first"))
    }

    fn not_found(path: &WsPath, message: String) -> Self {
        let mut error = Self::new(ErrorKind::NotFound, message).at_path(path);
        error.context_mut().missing_path = Some(path.clone());
        error
    }

    /// Creates the error for a change that was based on another content than the current one.
    pub fn stale(path: impl fmt::Display, current: Option<ContentHash>) -> Self {
        let now = current.map_or("it has no content".to_owned(), |hash| format!("its hash is now {hash}"));
        let message =
            format!("{path} has changed since it was read ({now}); read it again and repeat. Nothing was written");
        let error = Self::new(ErrorKind::Stale, message).at_path(&path);
        match current {
            Some(hash) => error.detail("current_hash", hash.to_string()),
            None => error,
        }
    }

    /// Creates the error for exceeding a limit of the account or the workspace. The message says what to do.
    pub fn quota(limit: u64, used: u64, setting: &str, message: impl Into<String>) -> Self {
        let error = Self::new(ErrorKind::QuotaExceeded, message);
        error.detail("limit", limit).detail("used", used).detail("setting", setting)
    }

    /// Creates the error for a call that must wait for a person. It is never retried by the code that it passes.
    pub fn needs_approval(asks: Vec<Ask>) -> Self {
        let what = asks
            .first()
            .map_or(String::new(), |ask| format!(": {} {}, because {}", ask.action.name(), ask.subject, ask.because));
        let mut error = Self::new(ErrorKind::ApprovalRequired, format!("A person must approve this call{what}"));
        error.context_mut().asks = asks;
        error
    }

    /// Creates the error for a fault of the server. The caller does not see the cause; [`Self::log_cause`] logs it.
    pub fn internal(cause: impl fmt::Display) -> Self {
        let mut error = Self::new(
            ErrorKind::Internal,
            "Internal error; the server's log has the cause under the id of this request (X-Request-Id)",
        );
        error.context_mut().cause = Some(cause.to_string());
        error
    }

    fn context_mut(&mut self) -> &mut ErrorContext {
        self.context.get_or_insert_default()
    }

    fn context(&self) -> Option<&ErrorContext> {
        self.context.as_deref()
    }

    /// Returns the same error with another kind.
    #[must_use]
    pub fn with_kind(self, kind: ErrorKind) -> Self {
        Self { kind, ..self }
    }

    /// Names the argument at fault.
    #[must_use]
    pub fn about(mut self, argument: &str) -> Self {
        self.context_mut().argument = Some(argument.to_owned());
        self.detail("argument", argument)
    }

    /// Names the file or folder that the error is about.
    #[must_use]
    pub fn at_path(mut self, path: &impl fmt::Display) -> Self {
        let path = path.to_string();
        self.context_mut().path = Some(path.clone());
        self.detail("path", path)
    }

    /// Adds a fact for programs.
    #[must_use]
    pub fn detail(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a hint. Toolsets whose messages have fixed words show it separately.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.context_mut().hint = Some(hint.into());
        self
    }

    /// Adds the paths of the call, which the message may contain. Each toolset shows them in its own form.
    #[must_use]
    pub fn with_call_paths(mut self, mut paths: Vec<WsPath>) -> Self {
        if !paths.is_empty() {
            self.context_mut().call_paths.append(&mut paths);
        }
        self
    }

    /// Adds the paths that exist and are similar to the missing one.
    #[must_use]
    pub fn with_similar_paths(mut self, paths: Vec<WsPath>) -> Self {
        let near: Vec<&str> = paths.iter().map(WsPath::as_str).collect();
        self.details.insert("near".to_owned(), near.into());
        self.context_mut().similar_paths = paths;
        self
    }

    /// Names the edit that failed, counted from 1.
    #[must_use]
    pub fn in_edit(mut self, number: usize) -> Self {
        self.context_mut().failed_edit = Some(number);
        self.detail("edit", number)
    }

    /// Says after how many seconds the caller may try again.
    #[must_use]
    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.context_mut().retry_after_seconds = Some(seconds);
        self.detail("retry_after_seconds", seconds)
    }

    /// Names the operation that failed.
    #[must_use]
    pub fn in_operation(mut self, operation: FailedOperation) -> Self {
        self.context_mut().operation = Some(operation);
        self
    }

    /// Says that the rules changed after the call was judged, so that it must be judged again.
    #[must_use]
    pub fn with_rules_changed(mut self) -> Self {
        self.context_mut().rules_changed = true;
        self
    }

    /// Returns the cause of an internal error. It is for the log, never for the caller.
    pub fn cause(&self) -> Option<&str> {
        self.context().and_then(|context| context.cause.as_deref())
    }

    /// Logs the cause of an internal error, if there is one.
    ///
    /// Call it once for each failure, where the error is answered or dropped: `Engine::call` does it for tools, the
    /// HTTP reply for REST routes. A background job that logs the error itself does not need it.
    pub fn log_cause(&self) {
        if let Some(cause) = self.cause() {
            tracing::error!(%cause, "internal error");
        }
    }

    /// Returns the argument at fault.
    pub fn argument_at_fault(&self) -> Option<&str> {
        self.context().and_then(|context| context.argument.as_deref())
    }

    /// Returns the name of the argument that must be given and was not, if that is the error.
    pub fn missing_argument_name(&self) -> Option<&str> {
        self.context().filter(|context| context.is_missing_argument).and_then(|context| context.argument.as_deref())
    }

    /// Returns the hint for the caller.
    pub fn hint(&self) -> Option<&str> {
        self.context().and_then(|context| context.hint.as_deref())
    }

    /// Returns the file or folder that the error is about.
    pub fn path(&self) -> Option<&str> {
        self.context().and_then(|context| context.path.as_deref())
    }

    /// Returns the file or folder that is missing, if that is the error.
    pub fn missing_path(&self) -> Option<&WsPath> {
        self.context().and_then(|context| context.missing_path.as_ref())
    }

    /// Returns the paths that exist and are similar to the missing one.
    pub fn similar_paths(&self) -> &[WsPath] {
        self.context().map_or(&[], |context| &context.similar_paths)
    }

    /// Returns the number of the edit that failed, counted from 1.
    pub fn failed_edit(&self) -> Option<usize> {
        self.context().and_then(|context| context.failed_edit)
    }

    /// Returns after how many seconds the caller may try again.
    pub fn retry_after_seconds(&self) -> Option<u64> {
        self.context().and_then(|context| context.retry_after_seconds)
    }

    /// Returns what a person must allow before the call can run.
    pub fn asks(&self) -> &[Ask] {
        self.context().map_or(&[], |context| &context.asks)
    }

    /// Returns the operation that failed.
    pub fn failed_operation(&self) -> Option<&FailedOperation> {
        self.context().and_then(|context| context.operation.as_ref())
    }

    /// Whether the rules changed after the call was judged. Nothing was done; the call can start over.
    pub fn is_rules_changed(&self) -> bool {
        self.context().is_some_and(|context| context.rules_changed)
    }

    /// Returns the paths that the message may contain, from the root: those of the error, those of the call, and the
    /// folders above the latter.
    pub fn message_paths(&self) -> Vec<String> {
        let Some(context) = self.context() else { return Vec::new() };
        let similar = context.similar_paths.iter().map(WsPath::to_string);
        let mut paths: Vec<String> = context.path.iter().cloned().chain(similar).collect();
        for path in &context.call_paths {
            paths.push(path.to_string());
            paths.extend(path.ancestors().iter().map(WsPath::to_string));
        }
        paths
    }
}

/// The names of the details that hold paths. Each toolset shows them in its own form.
pub const PATH_DETAILS: [&str; 4] = ["path", "from", "to", "near"];

/// Writes the error for logs and for operators: the cause of an internal error, else the message. Callers get
/// [`ToolError::message`], which has no cause.
impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cause() {
            Some(cause) => write!(f, "internal error: {cause}"),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for ToolError {}

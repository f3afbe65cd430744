//! The errors of all toolsets: HTTP status and advice for each kind, and the code of each kind in each toolset. Every
//! match is exhaustive, so a kind without a code does not compile.

use crate::error_text::DOWNLOAD;
use std::fmt::Write;
use toolrest_core::ErrorKind;

/// What callers of all toolsets get for one kind of error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorRow {
    /// The HTTP status.
    pub status: u16,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// What the caller can do.
    pub remediation: &'static str,
}

/// The error codes of one toolset.
pub struct ErrorCodes {
    /// The name of the toolset.
    pub toolset: &'static str,
    /// The number of its specification.
    pub specification: &'static str,
    /// Returns the code of a kind.
    pub code: fn(ErrorKind) -> &'static str,
}

/// The codes of every toolset. A new toolset adds a function below and a line here.
pub const ERROR_CODES: [ErrorCodes; 6] = [
    ErrorCodes { toolset: "workspace", specification: "000", code: workspace_code },
    ErrorCodes { toolset: "file", specification: "001", code: file_code },
    ErrorCodes { toolset: "system", specification: "002", code: system_code },
    ErrorCodes { toolset: "backend", specification: "003", code: backend_code },
    ErrorCodes { toolset: "coding", specification: "004", code: coding_code },
    ErrorCodes { toolset: "agent", specification: "our own", code: agent_code },
];

/// Returns the status and the advice for a kind.
#[rustfmt::skip]
pub fn row(kind: ErrorKind) -> ErrorRow {
    use ErrorKind as E;
    let (status, retryable, remediation) = match kind {
        E::InvalidArgument      => (400, false, "Correct the argument that is named and call again"),
        E::InvalidPath          => (400, false, "Use a path without control characters, with names of at most 255 bytes"),
        E::OutsideWorkspace     => (400, false, "Use a path relative to the workspace's root, without leaving it"),
        E::InvalidPattern       => (400, false, "Correct the pattern at the place that is named"),
        E::PatchSyntax          => (400, false, "Correct the patch at the line that is named"),
        E::UnsupportedMediaType => (415, false, "Send the header Content-Type: application/json"),
        E::PayloadTooLarge      => (413, false, "Send less at once, or have limits.body_bytes raised"),
        E::ResponseTooLarge     => (413, false, "Ask for less: one folder, one file, a narrower pattern"),
        E::NotFound             => (404, false, "List the folder to see what is there"),
        E::ItemNotFound         => (404, false, "List what there is, and use one of the names"),
        E::Expired              => (410, false, "Make the call again that gave the result"),
        E::UnknownTool          => (404, false, "Fetch the catalogue to see which tools there are"),
        E::IsDirectory          => (400, false, "Name a file, or list the folder"),
        E::NotADirectory        => (400, false, "Name a folder, or read the file"),
        E::ThroughFile          => (409, false, "Choose a path that does not lead through a file"),
        E::NotEmpty             => (409, false, "Remove what is in the folder first"),
        E::Binary               => (400, false, DOWNLOAD),
        E::WrongType            => (400, false, "Give content that fits the file's type"),
        E::Protected            => (400, false, "Use the API that manages this file"),
        E::FindNotFound         => (400, false, "Read the file and copy the text exactly"),
        E::FindNotUnique        => (400, false, "Add surrounding text until it is unique, or replace all"),
        E::AlreadyApplied       => (409, false, "Nothing is left to do; read the file to make sure"),
        E::AlreadyExists        => (409, false, "Choose another path, or remove what is there"),
        E::Stale                => (409, false, "Read the file again and repeat the change"),
        E::Conflict             => (409, false, "Look at the current state and decide anew"),
        E::Unauthenticated      => (401, false, "Sign in, or refresh the access token"),
        E::Forbidden            => (403, false, "Ask an owner of the workspace for the role that is needed"),
        E::ApprovalRequired     => (403, true, "Wait for a person to approve the call, then repeat it: it never runs twice"),
        E::ApprovalDenied       => (403, false, "Do not repeat the call; ask the person why"),
        E::RateLimited          => (429, true, "Wait as long as Retry-After says, then repeat the call"),
        E::QuotaExceeded        => (429, false, "Remove or stop what is not needed any more, or have the operator raise the setting that is named"),
        E::Timeout              => (504, true, "Repeat the call, or ask for less at once"),
        E::Cancelled            => (499, true, "Repeat the call if its effect is still wanted"),
        E::ExecutionFailed      => (422, false, "Read what the program printed, correct the program and call again"),
        E::SandboxUnavailable   => (503, false, "Have the operator run `toolrest doctor`, which says what is missing and how to get it"),
        E::NotConfigured        => (501, false, "Have the operator set up what is named"),
        E::NetworkError         => (502, true, "Make sure that the address is right, then repeat the call in a moment"),
        E::StorageFull          => (507, true, "Have the operator make room on the server's disk, then repeat the call"),
        E::WriteFailed          => (503, true, "Have the operator look at the server's disk, then repeat the call"),
        E::Unavailable          => (503, true, "Repeat the call in a moment"),
        E::Internal             => (500, true, "Report the request's id to the operator"),
    };
    ErrorRow { status, retryable, remediation }
}

/// Returns the code of a kind in specification 000.
pub(crate) fn workspace_code(kind: ErrorKind) -> &'static str {
    use ErrorKind as E;
    match kind {
        E::InvalidArgument
        | E::InvalidPath
        | E::OutsideWorkspace
        | E::InvalidPattern
        | E::PatchSyntax
        | E::UnsupportedMediaType
        | E::IsDirectory
        | E::NotADirectory
        | E::Binary
        | E::WrongType
        | E::Protected
        | E::FindNotFound
        | E::FindNotUnique
        | E::ExecutionFailed => "VALIDATION_ERROR",
        E::PayloadTooLarge | E::ResponseTooLarge => "PAYLOAD_TOO_LARGE",
        E::NotFound | E::ItemNotFound | E::Expired | E::UnknownTool => "NOT_FOUND",
        E::ThroughFile | E::NotEmpty | E::AlreadyApplied | E::AlreadyExists | E::Stale | E::Conflict => "CONFLICT",
        E::Unauthenticated => "INVALID_TOKEN",
        E::Forbidden => "FORBIDDEN",
        E::ApprovalRequired => "APPROVAL_REQUIRED",
        E::ApprovalDenied => "APPROVAL_DENIED",
        E::RateLimited => "RATE_LIMITED",
        E::QuotaExceeded => "QUOTA_EXCEEDED",
        E::Timeout | E::Cancelled => "TIMEOUT",
        E::SandboxUnavailable | E::NotConfigured | E::NetworkError | E::WriteFailed | E::Unavailable => "UNAVAILABLE",
        E::StorageFull => "STORAGE_FULL",
        E::Internal => "INTERNAL_ERROR",
    }
}

/// Returns the code of a kind in specification 001.
pub(crate) fn file_code(kind: ErrorKind) -> &'static str {
    use ErrorKind as E;
    match kind {
        E::InvalidArgument
        | E::InvalidPath
        | E::PatchSyntax
        | E::UnsupportedMediaType
        | E::PayloadTooLarge
        | E::ResponseTooLarge
        | E::UnknownTool
        | E::WrongType
        | E::Protected => "invalid_argument",
        E::OutsideWorkspace => "path_outside_workspace",
        E::InvalidPattern => "invalid_pattern",
        E::NotFound => "file_not_found",
        E::ItemNotFound | E::Expired => "not_found",
        E::IsDirectory => "is_directory",
        E::NotADirectory | E::ThroughFile => "not_a_directory",
        E::NotEmpty | E::AlreadyApplied | E::AlreadyExists | E::Stale | E::Conflict => "conflict",
        E::Binary => "binary_file",
        E::FindNotFound => "find_not_found",
        E::FindNotUnique => "find_not_unique",
        E::Unauthenticated => "unauthenticated",
        E::Forbidden => "forbidden",
        E::ApprovalRequired => "approval_required",
        E::ApprovalDenied => "approval_denied",
        E::RateLimited | E::NetworkError | E::Unavailable | E::Internal => "unavailable",
        E::QuotaExceeded => "quota_exceeded",
        E::Timeout | E::Cancelled => "timeout",
        E::ExecutionFailed => "execution_failed",
        E::SandboxUnavailable => "sandbox_unavailable",
        E::NotConfigured => "not_configured",
        E::StorageFull | E::WriteFailed => "write_failed",
    }
}

/// Returns the code of a kind in specification 002.
pub(crate) fn system_code(kind: ErrorKind) -> &'static str {
    use ErrorKind as E;
    match kind {
        E::InvalidArgument
        | E::InvalidPattern
        | E::PatchSyntax
        | E::UnsupportedMediaType
        | E::PayloadTooLarge
        | E::ResponseTooLarge
        | E::UnknownTool
        | E::WrongType
        | E::FindNotFound
        | E::FindNotUnique => "INVALID_ARGUMENT",
        E::InvalidPath | E::OutsideWorkspace | E::IsDirectory | E::NotADirectory | E::ThroughFile => "INVALID_PATH",
        E::NotFound | E::ItemNotFound | E::Expired => "FILE_NOT_FOUND",
        E::NotEmpty => "NOT_EMPTY",
        E::Binary => "BINARY_FILE",
        E::Protected | E::Unauthenticated | E::Forbidden => "PERMISSION_DENIED",
        E::AlreadyApplied | E::AlreadyExists | E::Stale | E::Conflict => "CONFLICT",
        E::ApprovalRequired => "APPROVAL_REQUIRED",
        E::ApprovalDenied => "APPROVAL_DENIED",
        E::RateLimited => "RATE_LIMITED",
        E::QuotaExceeded => "QUOTA_EXCEEDED",
        E::Timeout | E::Cancelled => "TIMEOUT",
        E::ExecutionFailed | E::Internal => "EXECUTION_ERROR",
        E::SandboxUnavailable => "SANDBOX_UNAVAILABLE",
        E::NotConfigured => "NOT_CONFIGURED",
        E::NetworkError => "NETWORK_ERROR",
        E::StorageFull => "STORAGE_FULL",
        E::WriteFailed | E::Unavailable => "UNAVAILABLE",
    }
}

/// Returns the code of a kind in specification 003.
pub(crate) fn backend_code(kind: ErrorKind) -> &'static str {
    use ErrorKind as E;
    match kind {
        E::InvalidArgument
        | E::InvalidPath
        | E::OutsideWorkspace
        | E::InvalidPattern
        | E::PatchSyntax
        | E::UnsupportedMediaType
        | E::PayloadTooLarge
        | E::ResponseTooLarge
        | E::IsDirectory
        | E::NotADirectory
        | E::Binary
        | E::WrongType
        | E::FindNotFound
        | E::FindNotUnique => "INVALID_ARGUMENT",
        E::NotFound => "FILE_NOT_FOUND",
        E::ItemNotFound | E::Expired => "NOT_FOUND",
        E::UnknownTool => "UNKNOWN_TOOL",
        E::ThroughFile | E::NotEmpty | E::AlreadyApplied | E::AlreadyExists | E::Stale | E::Conflict => "CONFLICT",
        E::Protected | E::Forbidden => "FORBIDDEN",
        E::Unauthenticated => "AUTH_REQUIRED",
        E::ApprovalRequired => "APPROVAL_REQUIRED",
        E::ApprovalDenied => "APPROVAL_DENIED",
        E::RateLimited => "RATE_LIMITED",
        E::QuotaExceeded => "QUOTA_EXCEEDED",
        E::Timeout | E::Cancelled => "TIMEOUT",
        E::ExecutionFailed => "COMMAND_FAILED",
        E::SandboxUnavailable => "SANDBOX_UNAVAILABLE",
        E::NotConfigured => "NOT_CONFIGURED",
        E::NetworkError => "NETWORK_ERROR",
        E::StorageFull => "STORAGE_FULL",
        E::WriteFailed | E::Unavailable | E::Internal => "INTERNAL",
    }
}

/// Returns the code of a kind in specification 004.
pub(crate) fn coding_code(kind: ErrorKind) -> &'static str {
    use ErrorKind as E;
    match kind {
        E::InvalidArgument
        | E::InvalidPath
        | E::UnsupportedMediaType
        | E::PayloadTooLarge
        | E::ResponseTooLarge
        | E::WrongType => "INVALID_ARGUMENT",
        E::OutsideWorkspace => "PATH_OUTSIDE_WORKSPACE",
        E::InvalidPattern => "INVALID_PATTERN",
        E::PatchSyntax => "INVALID_PATCH",
        E::NotFound => "FILE_NOT_FOUND",
        E::ItemNotFound | E::Expired => "NOT_FOUND",
        E::UnknownTool => "UNKNOWN_TOOL",
        E::IsDirectory => "IS_DIRECTORY",
        E::NotADirectory | E::ThroughFile => "NOT_A_DIRECTORY",
        E::NotEmpty => "NOT_EMPTY",
        E::Binary => "BINARY_FILE",
        E::Protected | E::Forbidden => "PERMISSION_DENIED",
        E::FindNotFound => "STRING_NOT_FOUND",
        E::FindNotUnique => "STRING_NOT_UNIQUE",
        E::AlreadyApplied => "ALREADY_APPLIED",
        E::AlreadyExists | E::Stale | E::Conflict => "CONFLICT",
        E::Unauthenticated => "UNAUTHENTICATED",
        E::ApprovalRequired => "APPROVAL_REQUIRED",
        E::ApprovalDenied => "APPROVAL_DENIED",
        E::RateLimited | E::NetworkError | E::WriteFailed | E::Unavailable => "UNAVAILABLE",
        E::QuotaExceeded => "QUOTA_EXCEEDED",
        E::Timeout | E::Cancelled => "TIMEOUT",
        E::ExecutionFailed => "EXECUTION_FAILED",
        E::SandboxUnavailable => "SANDBOX_UNAVAILABLE",
        E::NotConfigured => "NOT_CONFIGURED",
        E::StorageFull => "STORAGE_FULL",
        E::Internal => "INTERNAL",
    }
}

/// Returns the code of a kind in the toolset `agent`.
pub(crate) fn agent_code(kind: ErrorKind) -> &'static str {
    use ErrorKind as E;
    match kind {
        E::InvalidArgument | E::InvalidPath | E::UnsupportedMediaType | E::UnknownTool | E::WrongType => "bad_args",
        E::OutsideWorkspace => "outside",
        E::InvalidPattern => "bad_pattern",
        E::PatchSyntax => "bad_patch",
        E::PayloadTooLarge | E::ResponseTooLarge | E::QuotaExceeded | E::StorageFull => "too_large",
        E::NotFound | E::ItemNotFound => "not_found",
        E::Expired => "expired",
        E::IsDirectory => "is_folder",
        E::NotADirectory | E::ThroughFile | E::NotEmpty | E::AlreadyApplied | E::Conflict => "conflict",
        E::Binary => "binary",
        E::FindNotFound => "no_match",
        E::FindNotUnique => "not_unique",
        E::AlreadyExists => "exists",
        E::Stale => "stale",
        E::Protected | E::Unauthenticated | E::Forbidden => "forbidden",
        E::ApprovalRequired | E::ApprovalDenied => "denied",
        E::RateLimited | E::WriteFailed | E::Unavailable => "busy",
        E::Timeout | E::Cancelled => "timeout",
        E::ExecutionFailed | E::SandboxUnavailable | E::NotConfigured => "sandbox",
        E::NetworkError => "network",
        E::Internal => "internal",
    }
}

/// Writes the tables as a page of documentation.
pub fn reference() -> String {
    let toolsets = ERROR_CODES.map(|codes| format!("{} ({})", codes.toolset, codes.specification)).join(" | ");
    let mut page =
        format!("| kind | HTTP | retry | {toolsets} | what to do |\n|{}\n", "---|".repeat(4 + ERROR_CODES.len()));
    for kind in ErrorKind::ALL {
        let ErrorRow { status, retryable, remediation } = row(kind);
        let retry = if retryable { "yes" } else { "no" };
        let codes = ERROR_CODES.map(|codes| format!("`{}`", (codes.code)(kind))).join(" | ");
        // Writing to a string does not fail.
        let _ = writeln!(page, "| {kind:?} | {status} | {retry} | {codes} | {remediation} |");
    }
    page
}

#[cfg(test)]
#[path = "errors_tests.rs"]
mod tests;

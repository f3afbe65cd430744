//! The one table of errors: what each kind is called in each dialect. A missing cell does not compile.

use crate::error_text::DOWNLOAD;
use std::fmt::Write;
use toolrest_core::ErrorKind;

/// What the world is told about one kind of error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorRow {
    /// The HTTP status.
    pub status: u16,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// What to do about it.
    pub remediation: &'static str,
    /// The code in specification 000.
    pub workspace: &'static str,
    /// The code in specification 001.
    pub file: &'static str,
    /// The code in specification 002.
    pub system: &'static str,
    /// The code in specification 003.
    pub backend: &'static str,
    /// The code in specification 004.
    pub coding: &'static str,
}

/// Looks a kind up in the table.
#[rustfmt::skip]
pub fn row(kind: ErrorKind) -> ErrorRow {
    use ErrorKind as E;
    match kind {
        //                                  HTTP  retry  000                   001                       002                     003                    004                       what to do
        E::InvalidArgument      => cells((400, false), ["VALIDATION_ERROR",    "invalid_argument",       "INVALID_ARGUMENT",     "INVALID_ARGUMENT",    "INVALID_ARGUMENT"],      "Correct the argument that is named and call again"),
        E::InvalidPath          => cells((400, false), ["VALIDATION_ERROR",    "invalid_argument",       "INVALID_PATH",         "INVALID_ARGUMENT",    "INVALID_ARGUMENT"],      "Use a path without control characters, with names of at most 255 bytes"),
        E::OutsideWorkspace     => cells((400, false), ["VALIDATION_ERROR",    "path_outside_workspace", "INVALID_PATH",         "INVALID_ARGUMENT",    "PATH_OUTSIDE_WORKSPACE"], "Use a path relative to the workspace's root, without leaving it"),
        E::InvalidPattern       => cells((400, false), ["VALIDATION_ERROR",    "invalid_pattern",        "INVALID_ARGUMENT",     "INVALID_ARGUMENT",    "INVALID_PATTERN"],       "Correct the pattern at the place that is named"),
        E::PatchSyntax          => cells((400, false), ["VALIDATION_ERROR",    "invalid_argument",       "INVALID_ARGUMENT",     "INVALID_ARGUMENT",    "INVALID_PATCH"],         "Correct the patch at the line that is named"),
        E::UnsupportedMediaType => cells((415, false), ["VALIDATION_ERROR",    "invalid_argument",       "INVALID_ARGUMENT",     "INVALID_ARGUMENT",    "INVALID_ARGUMENT"],      "Send the header Content-Type: application/json"),
        E::PayloadTooLarge      => cells((413, false), ["PAYLOAD_TOO_LARGE",   "invalid_argument",       "INVALID_ARGUMENT",     "INVALID_ARGUMENT",    "INVALID_ARGUMENT"],      "Send less at once, or have limits.body_bytes raised"),
        E::ResponseTooLarge     => cells((413, false), ["PAYLOAD_TOO_LARGE",   "invalid_argument",       "INVALID_ARGUMENT",     "INVALID_ARGUMENT",    "INVALID_ARGUMENT"],      "Ask for less: one folder, one file, a narrower pattern"),
        E::NotFound             => cells((404, false), ["NOT_FOUND",           "file_not_found",         "FILE_NOT_FOUND",       "FILE_NOT_FOUND",      "FILE_NOT_FOUND"],        "List the folder to see what is there"),
        E::UnknownTool          => cells((404, false), ["NOT_FOUND",           "invalid_argument",       "INVALID_ARGUMENT",     "UNKNOWN_TOOL",        "UNKNOWN_TOOL"],          "Fetch the catalogue to see which tools there are"),
        E::IsDirectory          => cells((400, false), ["VALIDATION_ERROR",    "is_directory",           "INVALID_PATH",         "INVALID_ARGUMENT",    "IS_DIRECTORY"],          "Name a file, or list the folder"),
        E::NotADirectory        => cells((400, false), ["VALIDATION_ERROR",    "not_a_directory",        "INVALID_PATH",         "INVALID_ARGUMENT",    "NOT_A_DIRECTORY"],       "Name a folder, or read the file"),
        E::ThroughFile          => cells((409, false), ["CONFLICT",            "not_a_directory",        "INVALID_PATH",         "CONFLICT",            "NOT_A_DIRECTORY"],       "Choose a path that does not lead through a file"),
        E::NotEmpty             => cells((409, false), ["CONFLICT",            "conflict",               "NOT_EMPTY",            "CONFLICT",            "NOT_EMPTY"],             "Remove what is in the folder first"),
        E::Binary               => cells((400, false), ["VALIDATION_ERROR",    "binary_file",            "BINARY_FILE",          "INVALID_ARGUMENT",    "BINARY_FILE"],           DOWNLOAD),
        E::WrongType            => cells((400, false), ["VALIDATION_ERROR",    "invalid_argument",       "INVALID_ARGUMENT",     "INVALID_ARGUMENT",    "INVALID_ARGUMENT"],      "Give content that fits the file's type"),
        E::Protected            => cells((400, false), ["VALIDATION_ERROR",    "invalid_argument",       "PERMISSION_DENIED",    "FORBIDDEN",           "PERMISSION_DENIED"],     "Use the API that manages this file"),
        E::FindNotFound         => cells((400, false), ["VALIDATION_ERROR",    "find_not_found",         "INVALID_ARGUMENT",     "INVALID_ARGUMENT",    "STRING_NOT_FOUND"],      "Read the file and copy the text exactly"),
        E::FindNotUnique        => cells((400, false), ["VALIDATION_ERROR",    "find_not_unique",        "INVALID_ARGUMENT",     "INVALID_ARGUMENT",    "STRING_NOT_UNIQUE"],     "Add surrounding text until it is unique, or replace all"),
        E::AlreadyApplied       => cells((409, false), ["CONFLICT",            "conflict",               "CONFLICT",             "CONFLICT",            "ALREADY_APPLIED"],       "Nothing is left to do; read the file to make sure"),
        E::AlreadyExists        => cells((409, false), ["CONFLICT",            "conflict",               "CONFLICT",             "CONFLICT",            "CONFLICT"],              "Choose another path, or remove what is there"),
        E::Stale                => cells((409, false), ["CONFLICT",            "conflict",               "CONFLICT",             "CONFLICT",            "CONFLICT"],              "Read the file again and repeat the change"),
        E::Conflict             => cells((409, false), ["CONFLICT",            "conflict",               "CONFLICT",             "CONFLICT",            "CONFLICT"],              "Look at the current state and decide anew"),
        E::Unauthenticated      => cells((401, false), ["INVALID_TOKEN",       "unauthenticated",        "PERMISSION_DENIED",    "AUTH_REQUIRED",       "UNAUTHENTICATED"],       "Sign in, or refresh the access token"),
        E::Forbidden            => cells((403, false), ["FORBIDDEN",           "forbidden",              "PERMISSION_DENIED",    "FORBIDDEN",           "PERMISSION_DENIED"],     "Ask an owner of the workspace for the role that is needed"),
        E::ApprovalRequired     => cells((403, true),  ["FORBIDDEN",           "approval_required",      "APPROVAL_REQUIRED",    "APPROVAL_REQUIRED",   "APPROVAL_REQUIRED"],     "Have a person approve the call, then repeat it"),
        E::ApprovalDenied       => cells((403, false), ["FORBIDDEN",           "approval_denied",        "APPROVAL_DENIED",      "APPROVAL_DENIED",     "APPROVAL_DENIED"],       "Do not repeat the call; ask the person why"),
        E::RateLimited          => cells((429, true),  ["RATE_LIMITED",        "unavailable",            "RATE_LIMITED",         "RATE_LIMITED",        "UNAVAILABLE"],           "Wait as long as Retry-After says, then repeat the call"),
        E::QuotaExceeded        => cells((429, false), ["QUOTA_EXCEEDED",      "quota_exceeded",         "QUOTA_EXCEEDED",       "QUOTA_EXCEEDED",      "QUOTA_EXCEEDED"],        "Remove or stop what is not needed any more, or have the operator raise the setting that is named"),
        E::Timeout              => cells((504, true),  ["TIMEOUT",             "timeout",                "TIMEOUT",              "TIMEOUT",             "TIMEOUT"],               "Repeat the call, or ask for less at once"),
        E::Cancelled            => cells((499, true),  ["TIMEOUT",             "timeout",                "TIMEOUT",              "TIMEOUT",             "TIMEOUT"],               "Repeat the call if its effect is still wanted"),
        E::ExecutionFailed      => cells((422, false), ["VALIDATION_ERROR",    "execution_failed",       "EXECUTION_ERROR",      "COMMAND_FAILED",      "EXECUTION_FAILED"],      "Read what the program printed, correct the program and call again"),
        E::SandboxUnavailable   => cells((503, false), ["UNAVAILABLE",         "sandbox_unavailable",    "SANDBOX_UNAVAILABLE",  "SANDBOX_UNAVAILABLE", "SANDBOX_UNAVAILABLE"],   "Have the operator run `toolrest doctor`, which says what is missing and how to get it"),
        E::NotConfigured        => cells((501, false), ["UNAVAILABLE",         "not_configured",         "NOT_CONFIGURED",       "NOT_CONFIGURED",      "NOT_CONFIGURED"],        "Have the operator set up what is named"),
        E::StorageFull          => cells((507, true),  ["STORAGE_FULL",        "write_failed",           "STORAGE_FULL",         "STORAGE_FULL",        "STORAGE_FULL"],          "Have the operator make room on the server's disk, then repeat the call"),
        E::WriteFailed          => cells((503, true),  ["UNAVAILABLE",         "write_failed",           "UNAVAILABLE",          "INTERNAL",            "UNAVAILABLE"],           "Have the operator look at the server's disk, then repeat the call"),
        E::Unavailable          => cells((503, true),  ["UNAVAILABLE",         "unavailable",            "UNAVAILABLE",          "INTERNAL",            "UNAVAILABLE"],           "Repeat the call in a moment"),
        E::Internal             => cells((500, true),  ["INTERNAL_ERROR",      "unavailable",            "EXECUTION_ERROR",      "INTERNAL",            "INTERNAL"],              "Report the request's id to the operator"),
    }
}

/// The table as a page of documentation.
pub fn reference() -> String {
    let mut page = String::from(
        "| kind | HTTP | retry | workspace (000) | file (001) | system (002) | backend (003) | coding (004) | what to do |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for kind in ErrorKind::ALL {
        let ErrorRow { status, retryable, remediation, workspace, file, system, backend, coding } = row(kind);
        let retry = if retryable { "yes" } else { "no" };
        // Writing to a string does not fail.
        let _ = writeln!(
            page,
            "| {kind:?} | {status} | {retry} | `{workspace}` | `{file}` | `{system}` | `{backend}` | `{coding}` | {remediation} |"
        );
    }
    page
}

fn cells((status, retryable): (u16, bool), codes: [&'static str; 5], remediation: &'static str) -> ErrorRow {
    let [workspace, file, system, backend, coding] = codes;
    ErrorRow { status, retryable, remediation, workspace, file, system, backend, coding }
}

#[cfg(test)]
#[path = "errors_tests.rs"]
mod tests;

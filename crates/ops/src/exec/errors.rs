//! Conversion of errors of the sandbox.

use toolrest_core::{ErrorKind, ToolError};
use toolrest_sandbox::{Error, Layer};

/// Whether the only problem is that no overlay can be mounted.
pub(super) fn lacks_overlay(error: &Error) -> bool {
    matches!(error, Error::Unavailable { layer: Layer::Overlay, .. })
}

/// Converts an error of the sandbox.
pub(super) fn to_tool_error(error: &Error) -> ToolError {
    let kind = match error {
        error if error.is_unavailable() => ErrorKind::SandboxUnavailable,
        Error::Invalid(_) => ErrorKind::InvalidArgument,
        Error::LauncherGone | Error::Io(_) | Error::Moved(_) => ErrorKind::Unavailable,
        _ => ErrorKind::ExecutionFailed,
    };
    if matches!(error, Error::LauncherGone) {
        let message =
            "The program ended with the sandbox that it ran in, and what it changed is not kept; repeat the call";
        return ToolError::new(kind, message);
    }
    if let Error::Unwatched(failure) = error {
        let message = format!(
            "The program was ended, and what it changed is not kept, because its limits could not be watched: {failure}"
        );
        return ToolError::new(kind, message);
    }
    let mut message = format!("The program was not run: {error}");
    if lacks_overlay(error) {
        message.push_str(" Or allow programs to run on folders themselves, with run.without_overlay.");
    }
    ToolError::new(kind, message)
}

//! What a caller is told of a program that did not run.

use toolrest_core::{ErrorKind, ToolError};
use toolrest_sandbox::{Error, Layer};

/// Whether all that is missing is the overlay of a folder.
pub(super) fn lacks_overlay(error: &Error) -> bool {
    matches!(error, Error::Unavailable { layer: Layer::Overlay, .. })
}

/// Says why a program did not run.
pub(super) fn explain(error: &Error) -> ToolError {
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

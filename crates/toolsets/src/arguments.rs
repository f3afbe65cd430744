//! Conversion of arguments that several toolsets have.

use std::time::Duration;
use toolrest_core::{CallCx, ContentHash, Depth, ErrorKind, IgnoredFiles, Result, ToolError, WsPath};
use toolrest_ops::{Leniency, Occurrences, exec::RequestedLimits};

/// Parses a path relative to the workspace's root. The path must stay below the root.
pub(crate) fn relative_path(cx: &CallCx, argument: &str, text: &str) -> Result<WsPath> {
    toolrest_ops::locate_relative(cx, text).map_err(|error| error.about(argument))
}

/// Adds the name of the argument to an error about a pattern, unless the error names an argument already.
pub(crate) fn naming_pattern(argument: &str) -> impl FnOnce(ToolError) -> ToolError + '_ {
    move |error| match (error.kind, error.argument_at_fault()) {
        (ErrorKind::InvalidPattern, None) => error.about(argument),
        _ => error,
    }
}

/// Parses the hash that the file must still have.
pub(crate) fn expected_hash(hash: Option<&str>) -> Option<ContentHash> {
    hash.map(ContentHash::claimed)
}

/// Converts `fuzzy`.
pub(crate) fn leniency(fuzzy: Option<bool>) -> Leniency {
    if fuzzy.unwrap_or(false) { Leniency::Fuzzy } else { Leniency::Exact }
}

/// Converts `recursive` of a listing.
pub(crate) fn depth(recursive: Option<bool>) -> Depth {
    if recursive.unwrap_or(false) { Depth::Descendants } else { Depth::Children }
}

/// Converts `include_ignored`.
pub(crate) fn ignored_files(include_ignored: Option<bool>) -> IgnoredFiles {
    if include_ignored.unwrap_or(false) { IgnoredFiles::Include } else { IgnoredFiles::LeaveOut }
}

/// Converts `replace_all`.
pub(crate) fn occurrences(replace_all: Option<bool>) -> Occurrences {
    if replace_all.unwrap_or(false) { Occurrences::All } else { Occurrences::Single }
}

/// Converts a number of seconds, which must be positive.
pub(crate) fn seconds(argument: &str, seconds: Option<f64>) -> Result<Option<Duration>> {
    let Some(seconds) = seconds else { return Ok(None) };
    if seconds <= 0.0 {
        return Err(ToolError::argument(argument, format!("`{argument}` must be a number of seconds above 0")));
    }
    // A number that is too large for a duration is capped; the server's limits are lower.
    Ok(Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)))
}

/// Converts the limits that a caller requests for a program.
pub(crate) fn requested_limits(timeout: Option<f64>, memory_bytes: Option<u64>) -> Result<RequestedLimits> {
    Ok(RequestedLimits { wall: seconds("timeout", timeout)?, memory_bytes })
}

/// Returns the names of an optional list.
#[allow(clippy::ref_option, reason = "the arguments hold an option")]
pub(crate) fn names(list: &Option<Vec<String>>) -> &[String] {
    list.as_deref().unwrap_or_default()
}

/// Returns a duration in milliseconds, the unit of answers.
pub(crate) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

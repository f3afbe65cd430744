//! Arguments that several toolsets take, read in one way.

use std::time::Duration;
use toolrest_core::{CallCx, ContentHash, Depth, ErrorKind, IgnoredFiles, Result, ToolError, WsPath};
use toolrest_ops::{Leniency, Occurrences, Run, exec::Asked};

/// Reads a path relative to the workspace's root, which it may not leave.
pub(crate) fn relative_path(cx: &CallCx, argument: &str, text: &str) -> Result<WsPath> {
    toolrest_ops::locate_relative(cx, text).map_err(|error| error.about(argument))
}

/// Names the argument that holds a pattern in the refusal of it, unless another is named.
pub(crate) fn about_pattern(argument: &str) -> impl FnOnce(ToolError) -> ToolError + '_ {
    move |error| match (error.kind, error.argument_at_fault()) {
        (ErrorKind::InvalidPattern, None) => error.about(argument),
        _ => error,
    }
}

/// Reads the hash that a file is expected to have still.
pub(crate) fn expected_hash(hash: Option<&str>) -> Option<ContentHash> {
    hash.map(ContentHash::claimed)
}

/// Reads whether a change is only to be shown.
pub(crate) fn run(dry_run: Option<bool>) -> Run {
    if dry_run.unwrap_or(false) { Run::Dry } else { Run::ForReal }
}

/// Reads whether a text to replace may also be found by looser levels.
pub(crate) fn leniency(fuzzy: Option<bool>) -> Leniency {
    if fuzzy.unwrap_or(false) { Leniency::Fuzzy } else { Leniency::Exact }
}

/// Reads whether a listing goes all the way down.
pub(crate) fn depth(recursive: Option<bool>) -> Depth {
    if recursive.unwrap_or(false) { Depth::Descendants } else { Depth::Children }
}

/// Reads whether files are found that `.gitignore` leaves out.
pub(crate) fn ignored_files(include_ignored: Option<bool>) -> IgnoredFiles {
    if include_ignored.unwrap_or(false) { IgnoredFiles::Include } else { IgnoredFiles::LeaveOut }
}

/// Reads whether a text is replaced wherever it stands, or must stand in one place only.
pub(crate) fn which(replace_all: Option<bool>) -> Occurrences {
    if replace_all.unwrap_or(false) { Occurrences::All } else { Occurrences::Single }
}

/// Reads how long something may take.
pub(crate) fn seconds(argument: &str, seconds: Option<f64>) -> Result<Option<Duration>> {
    let Some(seconds) = seconds else { return Ok(None) };
    if seconds <= 0.0 {
        return Err(ToolError::argument(argument, format!("`{argument}` must be a number of seconds above 0")));
    }
    // More than can be counted is for ever; the ceiling is lower anyway.
    Ok(Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)))
}

/// Reads what a caller asks for a program.
pub(crate) fn asked(timeout: Option<f64>, memory_bytes: Option<u64>) -> Result<Asked> {
    Ok(Asked { wall: seconds("timeout", timeout)?, memory_bytes })
}

/// A duration as answers have it.
pub(crate) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

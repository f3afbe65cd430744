//! Options of walks that search a folder or find files in it.

use super::errors::{Attempt, to_tool_error};
use toolrest_core::{Depth, IgnoredFiles, MAX_PATH_BYTES, ToolError, WsPath};
use toolrest_directory::{Error, ErrorKind as DiskError, IgnoreMode, WalkOptions};
use toolrest_store::not_a_folder;

/// Returns the options of a walk from a folder of the workspace.
pub(super) fn options(folder: &WsPath, depth: Depth, ignored: IgnoredFiles, threads: usize) -> WalkOptions<'_> {
    WalkOptions {
        shown_as: if folder.is_root() { "" } else { folder.as_str() },
        depth: match depth {
            Depth::Children => 1,
            Depth::Descendants => usize::MAX,
        },
        rules: match ignored {
            IgnoredFiles::LeaveOut => IgnoreMode::Respect,
            IgnoredFiles::Include => IgnoreMode::Disregard,
        },
        max_files_per_visit: usize::MAX,
        max_path_bytes: MAX_PATH_BYTES,
        threads,
    }
}

/// Returns the error for a folder that cannot be walked.
pub(super) fn failed(error: &Error, folder: &WsPath) -> ToolError {
    match error.kind {
        DiskError::NotAFolder => not_a_folder(folder),
        _ => to_tool_error(error, folder, Attempt::Read),
    }
}

//! Names like one that was not found.

use std::time::{Duration, Instant};
use strsim::normalized_damerau_levenshtein as likeness;
use toolrest_core::{CallCx, Depth, Find, IgnoredFiles, ToolError, WsPath};

/// How many files of a folder are looked at, and for how long: the answer is a refusal either way.
const FILES_MOST: usize = 2_000;
const PATIENCE: Duration = Duration::from_secs(1);

/// How many names are given.
const NAMES_MOST: usize = 3;

/// How alike two names must be, from 0 to 1, for one to be given in place of the other.
const ALIKE_FROM: f64 = 0.6;

/// Adds to the refusal of a missing file which files of its folder have a name like it. How that is said, or whether it
/// stands beside, is for each toolset to decide, since some of their sentences are fixed.
pub(crate) async fn with_names(cx: &CallCx, path: &WsPath, error: ToolError) -> ToolError {
    let Some(folder) = path.parent() else { return error };
    let find = Find {
        folder,
        depth: Depth::Children,
        paths: None,
        ignored: IgnoredFiles::Include,
        limit: FILES_MOST,
        deadline: Instant::now() + PATIENCE,
    };
    let Ok(found) = cx.workspace.find(find).await else { return error };
    let wanted = path.name().to_lowercase();
    let mut near: Vec<(f64, &WsPath)> = found
        .files
        .iter()
        .map(|file| (likeness(&wanted, &file.path.name().to_lowercase()), &file.path))
        .filter(|(alike, _)| *alike >= ALIKE_FROM)
        .collect();
    near.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let names: Vec<String> = near.into_iter().take(NAMES_MOST).map(|(_, path)| path.to_string()).collect();
    if names.is_empty() { error } else { error.detail("near", names) }
}

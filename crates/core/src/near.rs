//! Names like one that was not found.

use crate::{CallCx, ErrorKind, ToolError, WsPath};
use std::time::Duration;
use strsim::normalized_damerau_levenshtein as likeness;

/// How many names of a folder are compared, and for how long they are waited for: the answer is a refusal either way.
const NAMES_MOST: usize = 2_000;
const PATIENCE: Duration = Duration::from_secs(1);

/// How many names are given.
const NEAR_MOST: usize = 3;

/// How alike two names must be, from 0 to 1, for one to be given in place of the other.
const ALIKE_FROM: f64 = 0.6;

impl CallCx {
    /// Adds to an error about a missing file or folder what there is of a similar name. How that is said is for each
    /// toolset to decide, since some of their sentences are fixed.
    pub async fn with_similar_names(&self, error: ToolError) -> ToolError {
        let (ErrorKind::NotFound, Some(missing)) = (error.kind, error.missing_path()) else { return error };
        let near = self.similar_paths(missing).await;
        if near.is_empty() { error } else { error.with_similar_paths(near) }
    }

    /// The paths of what has a name like that of a missing file or folder and lies where it would be.
    pub async fn similar_paths(&self, missing: &WsPath) -> Vec<WsPath> {
        let Some(folder) = missing.parent() else { return Vec::new() };
        let names = tokio::time::timeout(PATIENCE, self.workspace.names(&folder, NAMES_MOST));
        let names = match names.await {
            Ok(Ok(names)) => names,
            Ok(Err(error)) => {
                error.log_cause();
                return Vec::new();
            }
            Err(_) => return Vec::new(),
        };
        let wanted = missing.name().to_lowercase();
        let alike = names.iter().map(|path| (likeness(&wanted, &path.name().to_lowercase()), path));
        let mut near: Vec<_> = alike.filter(|(alike, _)| *alike >= ALIKE_FROM).collect();
        near.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        near.into_iter().take(NEAR_MOST).map(|(_, path)| path.clone()).collect()
    }
}

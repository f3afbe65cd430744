//! Suggestions for paths that were not found.

use crate::{CallCx, ErrorKind, ToolError, WsPath};
use std::time::Duration;
use strsim::normalized_damerau_levenshtein as similarity;

/// The maximum number of names that are compared, and the maximum time to wait for them.
const MAX_NAMES: usize = 2_000;
const NAMES_TIMEOUT: Duration = Duration::from_secs(1);

/// The maximum number of suggestions.
const MAX_SUGGESTIONS: usize = 3;

/// The minimum similarity of a suggestion, from 0 to 1.
const MIN_SIMILARITY: f64 = 0.6;

impl CallCx {
    /// Adds paths with similar names to an error about a missing file or folder. Each toolset decides how to show them,
    /// because some toolsets have fixed messages.
    pub async fn with_similar_names(&self, error: ToolError) -> ToolError {
        let (ErrorKind::NotFound, Some(missing)) = (error.kind, error.missing_path()) else { return error };
        let similar = self.similar_paths(missing).await;
        if similar.is_empty() { error } else { error.with_similar_paths(similar) }
    }

    /// Returns the paths in the folder of a missing file or folder whose names are similar to its name.
    pub async fn similar_paths(&self, missing: &WsPath) -> Vec<WsPath> {
        let Some(folder) = missing.parent() else { return Vec::new() };
        let names = tokio::time::timeout(NAMES_TIMEOUT, self.workspace.names(&folder, MAX_NAMES));
        let names = match names.await {
            Ok(Ok(names)) => names,
            Ok(Err(error)) => {
                error.log_cause();
                return Vec::new();
            }
            Err(_) => return Vec::new(),
        };
        let wanted = missing.name().to_lowercase();
        let scored = names.iter().map(|path| (similarity(&wanted, &path.name().to_lowercase()), path));
        let mut similar: Vec<_> = scored.filter(|(score, _)| *score >= MIN_SIMILARITY).collect();
        similar.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        similar.into_iter().take(MAX_SUGGESTIONS).map(|(_, path)| path.clone()).collect()
    }
}

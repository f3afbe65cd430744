//! Listing a folder.

use toolrest_core::{CallCx, Depth, ErrorKind, Listing, Result, ToolError, WsPath};

/// Minimum size of an entry in an answer of any toolset.
const MIN_ENTRY_BYTES: usize = 64;

/// Returns the maximum number of entries that fit into an answer; more are not fetched.
pub(crate) fn max_entries(cx: &CallCx) -> usize {
    cx.limits.response_bytes / MIN_ENTRY_BYTES
}

/// Lists a folder, sorted by path. A listing that does not fit into an answer is an error.
pub async fn list(cx: &CallCx, folder: &WsPath, depth: Depth) -> Result<Listing> {
    let limit = max_entries(cx);
    let listing = cx.workspace.list(folder, depth, limit).await?;
    if listing.truncated {
        return Err(too_many(folder, limit));
    }
    Ok(listing)
}

/// Creates the error for a listing that does not fit into an answer.
pub(crate) fn too_many(folder: &WsPath, limit: usize) -> ToolError {
    let message =
        format!("{folder} holds more than {limit} entries, too many for one answer; list its folders one at a time");
    ToolError::new(ErrorKind::ResponseTooLarge, message)
}

//! Listing a folder.

use toolrest_core::{CallCx, Depth, ErrorKind, Listing, Result, ToolError, WsPath};

/// No entry of any dialect takes less of an answer than this.
const LEAST_ENTRY_BYTES: usize = 64;

/// More entries than this cannot fit into an answer, so there is no use in fetching them.
pub(crate) fn entries_most(cx: &CallCx) -> usize {
    cx.limits.response_bytes / LEAST_ENTRY_BYTES
}

/// Lists a folder, sorted by path, complete or not at all.
pub async fn list(cx: &CallCx, folder: &WsPath, depth: Depth) -> Result<Listing> {
    let limit = entries_most(cx);
    let listing = cx.workspace.list(folder, depth, limit).await?;
    if listing.truncated {
        return Err(too_many(folder, limit));
    }
    Ok(listing)
}

/// What is answered where not all entries of a folder fit into an answer.
pub(crate) fn too_many(folder: &WsPath, limit: usize) -> ToolError {
    let message = format!("{folder} holds more than {limit} entries, too many for one answer; list its folders singly");
    ToolError::new(ErrorKind::ResponseTooLarge, message)
}

//! Listing a folder.

use toolrest_core::{CallCx, Depth, ErrorKind, Listed, Result, ToolError, WsPath};

/// No entry of any dialect takes less of an answer than this.
const LEAST_ENTRY_BYTES: usize = 64;

/// Lists a folder, sorted by path, complete or not at all.
pub async fn list(cx: &CallCx, folder: &WsPath, depth: Depth) -> Result<Vec<Listed>> {
    // More entries than this cannot fit into an answer, so there is no use in fetching them.
    let limit = cx.limits.response_bytes / LEAST_ENTRY_BYTES;
    let listing = cx.workspace.list(folder, depth, limit).await?;
    if listing.truncated {
        let message =
            format!("{folder} holds more than {limit} entries, too many for one answer; list its folders singly");
        return Err(ToolError::new(ErrorKind::ResponseTooLarge, message));
    }
    Ok(listing.entries)
}

//! Reading a file.

use toolrest_core::{CallCx, Content, Entry, ErrorKind, Result, ToolError, WsPath};

/// Reads a file. A folder has no content to read.
pub async fn read(cx: &CallCx, path: &WsPath) -> Result<(Entry, Content)> {
    let file = cx.workspace.read(path).await?;
    match file.content {
        Some(content) => Ok((file.entry, content)),
        None => Err(ToolError::new(ErrorKind::IsDirectory, format!("{path} is a folder; list it instead"))),
    }
}

//! Reading a file.

use crate::document::Editable;
use crate::near;
use std::io::Cursor;
use toolrest_core::{CallCx, Content, Entry, ErrorKind, OpenFile, Result, ToolError, WsPath};

/// Reads a file. A folder has no content to read.
pub async fn read(cx: &CallCx, path: &WsPath) -> Result<(Entry, Content)> {
    let file = match cx.workspace.read(path).await {
        Err(error) if error.kind == ErrorKind::NotFound => return Err(near::with_names(cx, path, error).await),
        read => read?,
    };
    match file.content {
        Some(content) => Ok((file.entry, content)),
        None => Err(ToolError::new(ErrorKind::IsDirectory, format!("{path} is a folder; list it instead"))),
    }
}

/// Opens a file to read its bytes from any place on. JSON is laid out for people.
pub async fn open(cx: &CallCx, path: &WsPath) -> Result<OpenFile> {
    if let Some(open) = cx.workspace.open(path, 0).await? {
        return Ok(open);
    }
    let (mut entry, content) = read(cx, path).await?;
    let bytes = match content {
        Content::Text(text) => text.into_bytes(),
        Content::Bytes(bytes) => bytes,
        json @ Content::Json(_) => {
            Editable::of(json, entry.file_type, path, cx.limits.response_bytes)?.text.into_bytes()
        }
    };
    entry.size = i64::try_from(bytes.len()).map_err(ToolError::internal)?;
    Ok(OpenFile { entry, bytes: Box::new(Cursor::new(bytes)) })
}

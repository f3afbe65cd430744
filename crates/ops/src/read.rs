//! Reading a file.

use crate::document::Editable;
use std::io::Cursor;
use toolrest_core::{CallCx, Content, Entry, ErrorKind, File, OpenFile, Result, ToolError, WsPath};

/// Reads a file that is small enough to be worked on in memory. A larger one is refused by its size, before it is read.
pub(crate) async fn read_bounded(cx: &CallCx, path: &WsPath) -> Result<File> {
    let limit = cx.limits.response_bytes;
    if let Some(large) = cx.workspace.open(path, limit as u64).await? {
        let message = format!(
            "{path} has {} bytes, over the limit of {limit} for a file that is read as a whole; read a part of it with \
             a tool that takes an offset and a limit, or work on it with a program",
            large.entry.size
        );
        return Err(ToolError::new(ErrorKind::ResponseTooLarge, message).detail("size", large.entry.size));
    }
    cx.workspace.read(path).await
}

/// Reads a file. A folder has no content to read.
pub async fn read(cx: &CallCx, path: &WsPath) -> Result<(Entry, Content)> {
    let file = read_bounded(cx, path).await?;
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
        Content::Encoded(text) => text.into_bytes(),
        Content::Bytes(bytes) => bytes,
        json @ Content::Json(_) => Editable::of_file(&entry, json, cx.limits.response_bytes)?.text.into_bytes(),
    };
    entry.size = i64::try_from(bytes.len()).map_err(ToolError::internal)?;
    Ok(OpenFile { entry, bytes: Box::new(Cursor::new(bytes)) })
}

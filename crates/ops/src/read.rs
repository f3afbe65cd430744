//! Reading a file.

use crate::document::Editable;
use std::io::Cursor;
use toolrest_core::{CallCx, Content, Entry, ErrorKind, File, OpenFile, Result, ToolError, WsPath};

/// Reads a file that can be processed in memory. A larger file is refused before it is read.
pub(crate) async fn read_bounded(cx: &CallCx, path: &WsPath) -> Result<File> {
    read_within(cx, path, cx.limits.response_bytes).await
}

/// Reads a file of up to `max_bytes`. A larger file is refused before it is read.
async fn read_within(cx: &CallCx, path: &WsPath, max_bytes: usize) -> Result<File> {
    let file = cx.workspace.read(path, max_bytes as u64).await?;
    let size = file.entry.size;
    if file.content.is_none() && u64::try_from(size).is_ok_and(|size| size > max_bytes as u64) {
        return Err(too_large(path, size, max_bytes));
    }
    Ok(file)
}

/// Creates the error for a file that is too large to be read as a whole.
pub(crate) fn too_large(path: &WsPath, size: i64, limit_bytes: usize) -> ToolError {
    let message = format!(
        "{path} has {size} bytes, over the limit of {limit_bytes} for a file that is read as a whole; read a part of it \
         with a tool that takes an offset and a limit, or work on it with a program"
    );
    ToolError::new(ErrorKind::ResponseTooLarge, message).detail("size", size)
}

/// Reads a file. A folder is an error.
pub async fn read(cx: &CallCx, path: &WsPath) -> Result<(Entry, Content)> {
    read_up_to(cx, path, cx.limits.response_bytes).await
}

/// Reads a file of up to `max_bytes`. A folder is an error.
pub(crate) async fn read_up_to(cx: &CallCx, path: &WsPath, max_bytes: usize) -> Result<(Entry, Content)> {
    let file = read_within(cx, path, max_bytes).await?;
    match file.content {
        Some(content) => Ok((file.entry, content)),
        None => Err(ToolError::new(ErrorKind::IsDirectory, format!("{path} is a folder; list it instead"))),
    }
}

/// Opens a file to read its bytes from any position. JSON is formatted.
pub async fn open(cx: &CallCx, path: &WsPath) -> Result<OpenFile> {
    if let Some(open) = cx.workspace.open(path, 0).await? {
        return Ok(open);
    }
    let (mut entry, content) = read_up_to(cx, path, usize::MAX).await?;
    let bytes = match content {
        Content::Text(text) => text.into_bytes(),
        Content::Encoded(text) => text.into_bytes(),
        Content::Bytes(bytes) => bytes,
        json @ Content::Json(_) => Editable::of_file(&entry, json, cx.limits.response_bytes)?.text.into_bytes(),
    };
    entry.size = i64::try_from(bytes.len()).map_err(ToolError::internal)?;
    Ok(OpenFile { entry, bytes: Box::new(Cursor::new(bytes)) })
}

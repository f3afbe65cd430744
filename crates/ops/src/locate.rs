//! Paths as callers write them.

use toolrest_core::{CallCx, Result, WsPath};

/// Reads a path that may not be absolute, except as programs or the file system have it: `x`, `./x`, `/workspace/x`, or
/// the path of the workspace's folder with `x` behind it.
pub fn locate_relative(cx: &CallCx, text: &str) -> Result<WsPath> {
    match cx.workspace.below_mount(text) {
        Some(below) => WsPath::within(&below),
        None => WsPath::relative(text),
    }
}

/// Reads a path that may also be absolute: as programs or the file system have it, or from the workspace's root where
/// its files are in a database.
pub async fn locate_absolute(cx: &CallCx, text: &str) -> Result<WsPath> {
    if !cx.workspace.is_in_file_system()
        && cx.workspace.below_mount(text).is_some()
        && let Ok(literal) = WsPath::within(text)
        && has_first_name(cx, &literal).await?
    {
        return Ok(literal);
    }
    cx.workspace.locate(text)
}

/// Reads a path from the workspace's root, as specification 000 does: `..` stops at the root, and white space around the
/// path is dropped, unless a file has the name with it.
pub async fn locate_posix(cx: &CallCx, text: &str) -> Result<WsPath> {
    let trimmed = text.trim();
    if trimmed != text
        && let Ok(untrimmed) = WsPath::posix(text)
        && cx.workspace.stat(&untrimmed).await?.is_some()
    {
        return Ok(untrimmed);
    }
    let literal = WsPath::posix(trimmed);
    let Some(below) = cx.workspace.below_mount(trimmed) else { return literal };
    match literal {
        Ok(literal) if has_first_name(cx, &literal).await? => Ok(literal),
        _ => WsPath::posix(&below),
    }
}

/// Whether the workspace has a file or folder of the path's first name. `/workspace/x` then means what lies in the
/// workspace's own folder `workspace`.
async fn has_first_name(cx: &CallCx, path: &WsPath) -> Result<bool> {
    let first = path.folders_above().nth(1).map(|first| WsPath::from_normal(first.to_owned()));
    Ok(cx.workspace.stat(first.as_ref().unwrap_or(path)).await?.is_some())
}

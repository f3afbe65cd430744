//! Paths as callers write them.

use toolrest_core::{CallCx, ErrorKind, Result, ToolError, WsPath};

/// Reads a path that may not be absolute, except as programs or the file system have it: `x`, `./x`, `/workspace/x`, or
/// the path of the workspace's folder with `x` behind it.
pub fn locate_relative(cx: &CallCx, text: &str) -> Result<WsPath> {
    noted(
        cx,
        match cx.workspace.below_mount(text) {
            Some(below) => WsPath::within(&below),
            None => WsPath::relative(text),
        },
    )
}

/// Notes a path for the errors of the call.
fn noted(cx: &CallCx, path: Result<WsPath>) -> Result<WsPath> {
    path.inspect(|path| cx.note_path(path))
}

/// Reads a path that may also be absolute: as programs or the file system have it, or from the workspace's root where
/// its files are in a database.
pub async fn locate_absolute(cx: &CallCx, text: &str) -> Result<WsPath> {
    if !cx.workspace.is_in_file_system()
        && cx.workspace.below_mount(text).is_some()
        && let Ok(literal) = WsPath::within(text)
        && has_first_name(cx, &literal).await?
    {
        return noted(cx, Ok(literal));
    }
    noted(cx, cx.workspace.locate(text))
}

/// Reads a path with blanks around it that may be padding: the path of the file that has them in its name, if there is
/// one, else the path without them.
pub(crate) async fn locate_padded(cx: &CallCx, text: &str) -> Result<WsPath> {
    let trimmed = text.trim_ascii();
    if trimmed != text
        && let Ok(untrimmed) = locate_absolute(cx, text).await
        && cx.workspace.stat(&untrimmed).await?.is_some()
    {
        return Ok(untrimmed);
    }
    locate_absolute(cx, trimmed).await
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

/// Reads a glob that may be written as programs or the file system have it, for files below a folder.
pub(crate) fn locate_glob(cx: &CallCx, glob: &str, folder: &WsPath) -> Result<String> {
    let (negation, path) = glob.strip_prefix('!').map_or(("", glob), |rest| ("!", rest));
    let Some(below) = cx.workspace.below_mount(path) else { return Ok(glob.to_owned()) };
    let below = format!("/{}", below.trim_start_matches('/'));
    match folder.part_below(&below) {
        Some(rest) => Ok(format!("{negation}{rest}")),
        None if folder.is_root() => Ok(format!("{negation}.")),
        None => {
            let message =
                format!("The glob '{glob}' is not for files below {folder}; begin it there, or leave out the path");
            Err(ToolError::new(ErrorKind::InvalidPattern, message))
        }
    }
}

/// Reads a path pattern of specification 000, which may be written as programs or the file system have it.
pub async fn locate_pattern(cx: &CallCx, pattern: &str) -> Result<String> {
    let pattern = pattern.trim();
    if let Some(below) = cx.workspace.below_mount(pattern) {
        let literal = WsPath::posix(pattern);
        if !matches!(&literal, Ok(literal) if has_first_name(cx, literal).await?) {
            return Ok(if below.is_empty() { "/".to_owned() } else { format!("/{}", below.trim_start_matches('/')) });
        }
    }
    Ok(pattern.to_owned())
}

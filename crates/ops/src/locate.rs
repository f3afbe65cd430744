//! Parsing of paths and patterns from callers.

use toolrest_core::{CallCx, ErrorKind, Result, ToolError, WsPath};

/// Parses a relative path. Absolute paths are accepted only if they begin with the workspace's root as programs or the
/// file system see it: `x`, `./x`, `/workspace/x`, or `x` below the path of the workspace's folder.
pub fn locate_relative(cx: &CallCx, text: &str) -> Result<WsPath> {
    noted(
        cx,
        match cx.workspace.below_mount(text) {
            Some(below) => WsPath::within(&below),
            None => WsPath::relative(text),
        },
    )
}

/// Adds a path to the context, for the errors of the call.
fn noted(cx: &CallCx, path: Result<WsPath>) -> Result<WsPath> {
    path.inspect(|path| cx.note_path(path))
}

/// Parses a path that may be absolute: as programs or the file system see it, or from the root of a workspace in a
/// database.
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

/// Parses a path with surrounding white space. If a file with the white space in its name exists, the path is that
/// file; otherwise the white space is removed.
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

/// Parses a path from the root by the rules of the `workspace` toolset: `..` stops at the root, and surrounding white
/// space is removed, unless a file with it in its name exists.
pub async fn locate_posix(cx: &CallCx, text: &str) -> Result<WsPath> {
    let path = parse_posix(cx, text).await?;
    cx.note_record_path(&path);
    Ok(path)
}

async fn parse_posix(cx: &CallCx, text: &str) -> Result<WsPath> {
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

/// Whether the first name of the path exists in the workspace. Then `/workspace/x` means the folder `workspace` in the
/// workspace.
async fn has_first_name(cx: &CallCx, path: &WsPath) -> Result<bool> {
    let first = path.folders_above().nth(1).map(|first| WsPath::from_normal(first.to_owned()));
    Ok(cx.workspace.stat(first.as_ref().unwrap_or(path)).await?.is_some())
}

/// Parses a glob pattern for files below a folder. It may begin with the root as programs or the file system see it.
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

/// Parses a path pattern of the `workspace` toolset. It may begin with the root as programs or the file system see it.
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

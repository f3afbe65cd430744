//! Analysis and plotting of data with Python.

use crate::exec::{Executor, Language, Libraries, Program, RequestedLimits, RunResult, WORKSPACE};
use crate::read::read_bounded;
use std::sync::Arc;
use toolrest_core::{
    BYTE_ORDER_MARK, CallCx, Content, ErrorKind, FileType, LeftOut, LeftOutReason, Result, ToolError, WsPath,
};

/// The Python program that runs the script and checks that a plot was written.
const WRAPPER: &str = include_str!("data/script.py");

/// Runs a script on a data file.
pub async fn analyze(
    cx: &CallCx,
    executor: &Arc<Executor>,
    input: &WsPath,
    script: &str,
    secrets: Vec<String>,
    requested: RequestedLimits,
) -> Result<RunResult> {
    check_input(cx, input).await?;
    executor.run(cx, Program { secrets, ..program(input, None, script)? }, requested).await
}

/// Runs a script on a data file; the script must write an image.
pub async fn visualize(
    cx: &CallCx,
    executor: &Arc<Executor>,
    input: &WsPath,
    image: &WsPath,
    script: &str,
    secrets: Vec<String>,
    requested: RequestedLimits,
) -> Result<RunResult> {
    check_input(cx, input).await?;
    if image.is_root() {
        return Err(ToolError::new(ErrorKind::IsDirectory, "The image needs a path of its own, not that of the root"));
    }
    executor.run(cx, Program { secrets, ..program(input, Some(image), script)? }, requested).await
}

/// Returns what is wrong with the image of a script, if anything.
pub async fn image_fault(cx: &CallCx, image: &WsPath, ran: &RunResult) -> Result<Option<String>> {
    let file = match read_bounded(cx, image).await {
        Ok(file) => file,
        Err(error) if error.kind == ErrorKind::NotFound => return Ok(Some(missing(image, ran))),
        Err(error) => return Err(error),
    };
    let is_image = file.content.as_ref().is_some_and(is_image_content);
    Ok((!is_image).then(|| format!("{image} is not an image: it is neither PNG, JPEG, GIF, WebP, SVG nor PDF")))
}

/// Explains why the image of a successful script is missing: it was not committed.
fn missing(image: &WsPath, ran: &RunResult) -> String {
    let is_it = |left: &&LeftOut| left.path.trim_start_matches('/') == image.without_slash();
    match ran.checked_in.left_out.iter().find(is_it) {
        Some(LeftOut { reason: LeftOutReason::Ignored, .. }) => {
            format!("The image was made, but {image} is not kept: a rule of .gitignore leaves it out")
        }
        Some(left) => format!("The image was made, but {image} is not kept ({:?})", left.reason),
        None => format!("The image is not in the workspace: there is no {image}"),
    }
}

async fn check_input(cx: &CallCx, input: &WsPath) -> Result<()> {
    match cx.workspace.stat(input).await? {
        None => Err(ToolError::file_not_found(input)),
        Some(entry) if entry.file_type == FileType::Folder => {
            Err(ToolError::new(ErrorKind::IsDirectory, format!("{input} is a folder; name a file with data")))
        }
        // Programs do not see this file.
        Some(entry) if entry.is_virtual => {
            Err(ToolError::new(ErrorKind::Protected, format!("{input} is made by the system; programs cannot see it")))
        }
        Some(_) => Ok(()),
    }
}

fn program(input: &WsPath, image: Option<&WsPath>, script: &str) -> Result<Program> {
    // A JSON string is also a valid Python string.
    let literal = |text: &str| serde_json::to_string(text).map_err(ToolError::internal);
    let path_in_sandbox = |path: &WsPath| format!("{WORKSPACE}{path}");
    let (input, image) = (path_in_sandbox(input), image.map(path_in_sandbox));
    let (before, after) = WRAPPER.split_once("SCRIPT, IMAGE").unwrap_or((WRAPPER, ""));
    let code = format!("{before}{}, {}{after}", literal(script)?, literal(image.as_deref().unwrap_or_default())?);
    let mut env = vec![("INPUT_FILE".to_owned(), input.clone())];
    env.extend(image.clone().map(|image| ("OUTPUT_IMAGE".to_owned(), image)));
    let arguments = [Some(input), image].into_iter().flatten().collect();
    Ok(Program { language: Language::Python, code, arguments, env, secrets: Vec::new(), libraries: Libraries::Needed })
}

/// Whether a content is an image. An image format that is text may have any encoding.
fn is_image_content(content: &Content) -> bool {
    match content {
        Content::Bytes(bytes) => is_image(bytes),
        Content::Text(text) => is_image(text.as_bytes()),
        Content::Encoded(text) => is_image(text.text().trim_start_matches(BYTE_ORDER_MARK).as_bytes()),
        Content::Json(_) => false,
    }
}

/// Whether bytes begin like an image.
fn is_image(bytes: &[u8]) -> bool {
    let starts: [&[u8]; 5] = [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8", b"%PDF-", b"<svg"];
    let is_webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP");
    let is_xml_svg =
        bytes.starts_with(b"<?xml") && bytes[..bytes.len().min(1024)].windows(4).any(|four| four == b"<svg");
    is_webp || is_xml_svg || starts.iter().any(|start| bytes.starts_with(start))
}

#[cfg(test)]
#[path = "data_tests.rs"]
mod tests;

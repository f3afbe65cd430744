use super::{about_hash, about_path, path};
use crate::arguments;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolrest_core::{
    Action, CallCx, ContentHash, FileId, FileType, JsonText, Parents, Result, Tool, ToolError, VersionId, WsPath,
};
use toolrest_ops::WriteOptions;

pub(super) struct Write;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Full path to the file.
    path: String,
    /// File content. For documents: a string, or an object with the field `text`. For the other types: a JSON object.
    #[schemars(with = "AnyContent")]
    content: JsonText,
    /// Type of a new file: document, folder, canvas, chat, whiteboard, agent or skill. Default: document. An existing
    /// file keeps its type.
    #[schemars(extend("enum" = ["document", "folder", "canvas", "chat", "whiteboard", "agent", "skill"]))]
    file_type: Option<String>,
    /// Hash of the content when it was last read. If given, the call fails if the content has changed since.
    last_read_hash: Option<String>,
    /// Return the answer without changing anything. Default: false.
    dry_run: Option<bool>,
}

#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "describes what `content` takes")]
enum AnyContent {
    Text(String),
    Object(Map<String, Value>),
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// The path that was written.
    path: WsPath,
    /// File identifier.
    file_id: FileId,
    /// New version identifier. A folder has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    version_id: Option<VersionId>,
    /// SHA-256 hash of the content. A folder has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<ContentHash>,
}

#[async_trait]
impl Tool for Write {
    const NAME: &'static str = "write";
    const DESCRIPTION: &'static str = "Create a file or replace its content. Missing folders are created";
    const ACTION: Action = Action::Write;
    type Args = Args;
    type Output = Output;

    fn is_dry_run(&self, args: &Args) -> bool {
        args.dry_run.unwrap_or(false)
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let path = path(cx, "path", &args.path).await?;
        let file_type = args.file_type.as_deref().map(str::parse).transpose();
        let file_type: Option<FileType> = file_type.map_err(|error: ToolError| error.about("file_type"))?;
        let expected = arguments::expected_hash(args.last_read_hash.as_deref());
        let options = WriteOptions { file_type, expected, parents: Parents::Create };
        let written = toolrest_ops::write(cx, &path, &args.content, &options).await;
        let written = written.map_err(about_path("path")).map_err(about_hash(expected))?;
        Ok(Output { path, file_id: written.file, version_id: written.version, hash: written.hash })
    }

    fn text(&self, output: &Output) -> Option<String> {
        Some(format!("Wrote {}", output.path))
    }
}

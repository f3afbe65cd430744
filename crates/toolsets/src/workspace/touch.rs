use super::{about_hash, about_path, path};
use crate::arguments;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolrest_core::{Action, CallCx, FileId, Result, Tool, WsPath};

pub(super) struct Touch;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Path to the file to touch.
    path: String,
    /// Hash of the content when it was last read. If given, the call fails if the content has changed since.
    last_read_hash: Option<String>,
    /// Return the answer without changing anything. Default: false.
    dry_run: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// The path that was touched.
    path: WsPath,
    /// File identifier.
    file_id: FileId,
}

#[async_trait]
impl Tool for Touch {
    const NAME: &'static str = "touch";
    const DESCRIPTION: &'static str = "Update a file's modification time, or create an empty document";
    const ACTION: Action = Action::Write;
    type Args = Args;
    type Output = Output;

    fn is_dry_run(&self, args: &Args) -> bool {
        args.dry_run.unwrap_or(false)
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let path = path(cx, "path", &args.path).await?;
        let hash = arguments::expected_hash(args.last_read_hash.as_deref());
        let touched = toolrest_ops::touch(cx, &path, hash).await;
        let touched = touched.map_err(about_path("path")).map_err(about_hash(hash))?;
        Ok(Output { path, file_id: touched.file })
    }

    fn text(&self, output: &Output) -> Option<String> {
        Some(format!("Touched {}", output.path))
    }
}

use super::{about_hash, about_path, path};
use crate::arguments;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolrest_core::{Action, CallCx, FileId, Removal, Result, Tool, WsPath};

pub(super) struct Rm;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Full path to the file or empty folder.
    path: String,
    /// Hash of the content when it was last read. If given, the call fails if the content has changed since.
    last_read_hash: Option<String>,
    /// Return the answer without changing anything. Default: false.
    dry_run: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// The path that was deleted.
    path: WsPath,
    /// Identifier of the deleted file, needed to restore it.
    file_id: FileId,
}

#[async_trait]
impl Tool for Rm {
    const NAME: &'static str = "rm";
    const DESCRIPTION: &'static str = "Delete a file or an empty folder. It can be restored from the trash";
    const ACTION: Action = Action::Delete;
    type Args = Args;
    type Output = Output;

    fn is_dry_run(&self, args: &Args) -> bool {
        args.dry_run.unwrap_or(false)
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let path = path(cx, "path", &args.path).await?;
        let hash = arguments::expected_hash(args.last_read_hash.as_deref());
        let removed = toolrest_ops::remove(cx, &path, Removal::Single, hash).await;
        let removed = removed.map_err(about_path("path")).map_err(about_hash(hash))?;
        Ok(Output { path, file_id: removed.file })
    }

    fn text(&self, output: &Output) -> Option<String> {
        Some(format!("Deleted {}", output.path))
    }
}

use super::{about_hash, about_path, path};
use crate::arguments;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolrest_core::{Action, CallCx, FileId, Result, Tool, WsPath};

pub(super) struct Mkdir;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Full path to the directory to create.
    path: String,
    /// Do not pass it: a directory has no hash, so the call fails if this is given.
    last_read_hash: Option<String>,
    /// Return the answer without changing anything. Default: false.
    dry_run: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// The directory's path.
    path: WsPath,
    /// Its identifier.
    file_id: FileId,
}

#[async_trait]
impl Tool for Mkdir {
    const NAME: &'static str = "mkdir";
    const DESCRIPTION: &'static str =
        "Create a directory and its missing parent directories. An existing directory is not changed";
    const ACTION: Action = Action::Write;
    type Args = Args;
    type Output = Output;

    fn is_dry_run(&self, args: &Args) -> bool {
        args.dry_run.unwrap_or(false)
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let path = path(cx, "path", &args.path).await?;
        let hash = arguments::expected_hash(args.last_read_hash.as_deref());
        let made = toolrest_ops::make_dir(cx, &path, hash).await;
        let made = made.map_err(about_path("path")).map_err(about_hash(hash))?;
        Ok(Output { path, file_id: made.file })
    }

    fn text(&self, output: &Output) -> Option<String> {
        Some(format!("Created {}", output.path))
    }
}

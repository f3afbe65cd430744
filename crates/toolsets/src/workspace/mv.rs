use super::{about_hash, about_path, path};
use crate::arguments;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolrest_core::{Action, CallCx, Destination, Result, Tool, WsPath};

pub(super) struct Mv;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Current path of the file or folder.
    source: String,
    /// New path. If it is an existing directory, or ends with `/`, the file is moved into this directory.
    destination: String,
    /// Hash of the content when it was last read. If given, the call fails if the content has changed since.
    last_read_hash: Option<String>,
    /// Return the answer without changing anything. Default: false.
    dry_run: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// The original path.
    from_path: WsPath,
    /// The new path.
    to_path: WsPath,
}

#[async_trait]
impl Tool for Mv {
    const NAME: &'static str = "mv";
    const DESCRIPTION: &'static str = "Move or rename a file, or a folder with its contents";
    const ACTION: Action = Action::Move;
    type Args = Args;
    type Output = Output;

    fn is_dry_run(&self, args: &Args) -> bool {
        args.dry_run.unwrap_or(false)
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let from_path = path(cx, "source", &args.source).await?;
        let to = path(cx, "destination", &args.destination).await?;
        let given = args.destination.trim_end();
        let into = to.is_root() || given.ends_with('/') || given.ends_with("/.");
        let to = if into { Destination::Into(to) } else { Destination::At(to) };
        let hash = arguments::expected_hash(args.last_read_hash.as_deref());
        let moved = toolrest_ops::move_to(cx, &from_path, to, hash).await;
        let moved = moved.map_err(about_path("source")).map_err(about_hash(hash))?;
        Ok(Output { from_path, to_path: moved.path })
    }

    fn text(&self, output: &Output) -> Option<String> {
        Some(format!("Moved {} to {}", output.from_path, output.to_path))
    }
}

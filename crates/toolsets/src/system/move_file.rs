use crate::arguments;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolrest_core::{Action, CallCx, Result, Tool, ToolError};
use toolrest_ops::Overwrite;

/// How to create a directory with this toolset.
const MAKE_DIRECTORY: &str =
    "Call write_file with \"createDirs\": true to create the directory together with a file in it";

pub(super) struct MoveFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Args {
    /// Path of the file or directory to move, relative to the workspace root.
    from: String,
    /// New path, relative to the workspace root.
    to: String,
    /// Replace a file that already exists at `to`. Default: false.
    overwrite: Option<bool>,
    /// Hash of the content when it was last read. If given, the call fails if the content has changed since.
    expected_hash: Option<String>,
    /// Return the answer without changing anything. Default: false.
    dry_run: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// The old path, relative to the workspace root.
    from: String,
    /// The new path, relative to the workspace root.
    to: String,
}

#[async_trait]
impl Tool for MoveFile {
    const NAME: &'static str = "move_file";
    const DESCRIPTION: &'static str = "Move or rename a file or directory";
    const ACTION: Action = Action::Move;
    type Args = Args;
    type Output = Output;

    fn is_dry_run(&self, args: &Args) -> bool {
        args.dry_run.unwrap_or(false)
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let (from, to) =
            (arguments::relative_path(cx, "from", &args.from)?, arguments::relative_path(cx, "to", &args.to)?);
        let overwrite = if args.overwrite.unwrap_or(false) { Overwrite::File } else { Overwrite::Refuse };
        let hash = arguments::expected_hash(args.expected_hash.as_deref());
        let about = |error: ToolError| {
            let error = match error.argument_at_fault() {
                Some("source") => error.about("from"),
                Some("destination") => error.about("to"),
                _ => error,
            };
            let error = match error.missing_path() {
                Some(missing) if *missing != from => error.with_hint(MAKE_DIRECTORY),
                _ => error,
            };
            error.detail("from", from.as_str()).detail("to", to.as_str())
        };
        toolrest_ops::rename(cx, &from, &to, overwrite, hash).await.map_err(about)?;
        Ok(Output { from: from.without_slash().to_owned(), to: to.without_slash().to_owned() })
    }

    fn text(&self, output: &Output) -> Option<String> {
        Some(format!("Moved {} to {}", output.from, output.to))
    }
}

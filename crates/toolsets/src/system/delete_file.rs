use crate::arguments;
use crate::text;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolrest_core::{Action, CallCx, ErrorKind, Removal, Result, Tool, ToolError};

pub(super) struct DeleteFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Args {
    /// Path of the file or directory, relative to the workspace root.
    path: String,
    /// Delete a directory together with its contents. Default: false.
    recursive: Option<bool>,
    /// Hash of the content when it was last read. If given, the call fails if the content has changed since.
    expected_hash: Option<String>,
    /// Return the answer without changing anything. Default: false.
    dry_run: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// The paths that were deleted, relative to the workspace root.
    deleted: Vec<String>,
}

fn or_recursive(error: ToolError) -> ToolError {
    match error.kind {
        ErrorKind::NotEmpty => error.with_hint("Pass \"recursive\": true to delete it with its contents"),
        _ => error,
    }
}

#[async_trait]
impl Tool for DeleteFile {
    const NAME: &'static str = "delete_file";
    const DESCRIPTION: &'static str = "Delete a file or directory. It can be restored from the trash";
    const ACTION: Action = Action::Delete;
    type Args = Args;
    type Output = Output;

    fn is_dry_run(&self, args: &Args) -> bool {
        args.dry_run.unwrap_or(false)
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let path = arguments::relative_path(cx, "path", &args.path)?;
        let hash = arguments::expected_hash(args.expected_hash.as_deref());
        let deleted = if args.recursive.unwrap_or(false) {
            toolrest_ops::remove_tree(cx, &path, hash).await?
        } else {
            let removed = toolrest_ops::remove(cx, &path, Removal::Single, hash).await;
            vec![removed.map_err(or_recursive)?.path]
        };
        Ok(Output { deleted: deleted.iter().map(|path| path.without_slash().to_owned()).collect() })
    }

    fn text(&self, output: &Output) -> Option<String> {
        Some(text::lines(output.deleted.iter().map(|path| format!("Deleted {path}")), "nothing deleted"))
    }
}

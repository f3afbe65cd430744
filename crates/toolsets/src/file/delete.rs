use crate::arguments;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolrest_core::{Action, CallCx, Removal, Result, Tool};

pub(super) struct Delete;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Path of the file, relative to the workspace root.
    path: String,
    /// Hash of the content when it was last read. If given, the call fails if the content has changed since.
    expected_hash: Option<String>,
    /// Return the answer without changing anything. Default: false.
    dry_run: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// Always true; a failure is an error.
    success: bool,
}

#[async_trait]
impl Tool for Delete {
    const NAME: &'static str = "file.delete";
    const DESCRIPTION: &'static str = "Delete a file. It can be restored from the trash";
    const ACTION: Action = Action::Delete;
    type Args = Args;
    type Output = Output;

    fn is_dry_run(&self, args: &Args) -> bool {
        args.dry_run.unwrap_or(false)
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let path = arguments::relative_path(cx, "path", &args.path)?;
        toolrest_ops::remove(cx, &path, Removal::File, arguments::expected_hash(args.expected_hash.as_deref())).await?;
        Ok(Output { success: true })
    }

    fn text(&self, _: &Output) -> Option<String> {
        Some("Deleted the file".to_owned())
    }
}

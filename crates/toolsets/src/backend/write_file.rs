use crate::arguments;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolrest_core::{Action, CallCx, ContentHash, Parents, Result, Tool};
use toolrest_ops::{ContentForm, TextOptions, write_text};

pub(super) struct WriteFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Args {
    /// Path of the file, relative to the workspace root.
    path: String,
    /// The whole new content of the file.
    content: String,
    /// Hash of the content when it was last read. If given, the call fails if the content has changed since.
    expected_hash: Option<String>,
    /// Return the change without writing it. Default: false.
    dry_run: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// A fixed message of success.
    message: &'static str,
    /// SHA-256 hash of the content.
    hash: ContentHash,
    /// The change as a unified diff.
    diff: String,
}

#[async_trait]
impl Tool for WriteFile {
    const NAME: &'static str = "writeFile";
    const DESCRIPTION: &'static str = "Create a file or replace its content. Missing directories are created";
    const ACTION: Action = Action::Write;
    type Args = Args;
    type Output = Output;

    fn is_dry_run(&self, args: &Args) -> bool {
        args.dry_run.unwrap_or(false)
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let path = arguments::relative_path(cx, "path", &args.path)?;
        let options = TextOptions {
            parents: Parents::Create,
            expected: arguments::expected_hash(args.expected_hash.as_deref()).into(),
            given: ContentForm::Text,
        };
        let written = write_text(cx, &path, args.content.into_bytes(), &options).await?;
        Ok(Output { message: "File written successfully", hash: written.hash, diff: written.diff })
    }

    fn text(&self, output: &Output) -> Option<String> {
        Some(output.diff.clone())
    }
}

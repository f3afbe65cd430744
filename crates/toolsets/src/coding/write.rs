use super::{cannot, path};
use crate::arguments;
use crate::text;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolrest_core::{Action, CallCx, ContentHash, Parents, Result, Tool};
use toolrest_ops::{ContentForm, TextOptions, write_text};

pub(super) struct Write;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Args {
    /// Content to write to the file.
    content: String,
    /// Path to the file.
    file_path: String,
    /// Hash of the content when it was last read. If given, the call fails if the content has changed since.
    expected_hash: Option<String>,
    /// Return the change without writing it. Default: false.
    dry_run: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Output {
    /// Always true; a failure is an error.
    success: bool,
    /// Path relative to the workspace root.
    file_path: String,
    /// The change as a unified diff.
    diff: String,
    /// Whether the file did not exist before.
    created: bool,
    /// SHA-256 hash of the content.
    hash: ContentHash,
}

#[async_trait]
impl Tool for Write {
    const NAME: &'static str = "write";
    const DESCRIPTION: &'static str = "Create a file or replace its content. Missing directories are created";
    const ACTION: Action = Action::Write;
    type Args = Args;
    type Output = Output;

    fn is_dry_run(&self, args: &Args) -> bool {
        args.dry_run.unwrap_or(false)
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let path = path(cx, "filePath", &args.file_path).await?;
        let options = TextOptions {
            parents: Parents::Create,
            expected: arguments::expected_hash(args.expected_hash.as_deref()).into(),
            given: ContentForm::Text,
        };
        let written = write_text(cx, &path, args.content.into_bytes(), &options).await;
        let written = written.map_err(cannot("write", &args.file_path))?;
        Ok(Output {
            success: true,
            file_path: path.without_slash().to_owned(),
            diff: written.diff,
            created: written.created,
            hash: written.hash,
        })
    }

    fn text(&self, output: &Output) -> Option<String> {
        Some(text::change(&output.diff, &output.file_path))
    }
}

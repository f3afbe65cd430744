use super::{cannot, path};
use crate::arguments;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolrest_core::{Action, CallCx, ContentHash, Parents, Result, Tool};
use toolrest_ops::{Given, TextOptions, write_text};

pub(super) struct Write;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Args {
    /// Content to write to the file.
    content: String,
    /// Path to the file.
    file_path: String,
    /// Hash of the content when last read. If given, the call fails if the content has changed since.
    expected_hash: Option<String>,
    /// Whether only to show the change. Default: false.
    dry_run: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Output {
    /// Whether the file has the content now; with `dryRun`, whether it would.
    success: bool,
    /// Path relative to the workspace root.
    file_path: String,
    /// The change as a unified diff.
    diff: String,
    /// Whether the file is new.
    created: bool,
    /// SHA-256 hash of the content.
    hash: ContentHash,
}

#[async_trait]
impl Tool for Write {
    const NAME: &'static str = "write";
    const DESCRIPTION: &'static str = "Create a file or overwrite it completely, creating directories as needed";
    const ACTION: Action = Action::Write;
    type Args = Args;
    type Output = Output;

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let path = path(cx, "filePath", &args.file_path).await?;
        let options = TextOptions {
            parents: Parents::Create,
            expected: arguments::expected_hash(args.expected_hash.as_deref()),
            run: arguments::run(args.dry_run),
            given: Given::Text,
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
}

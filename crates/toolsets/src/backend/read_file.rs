use crate::arguments;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolrest_core::{Action, CallCx, ContentHash, Result, Tool};
use toolrest_ops::document::Editable;

pub(super) struct ReadFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Path of the file, relative to the workspace root.
    path: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// The whole content as text.
    content: String,
    /// SHA-256 hash of the content.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<ContentHash>,
}

#[async_trait]
impl Tool for ReadFile {
    const NAME: &'static str = "readFile";
    const DESCRIPTION: &'static str = "Read a file from the sandbox";
    const ACTION: Action = Action::Read;
    type Args = Args;
    type Output = Output;

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let path = arguments::relative_path(cx, "path", &args.path)?;
        let (entry, content) = toolrest_ops::read(cx, &path).await?;
        let hash = entry.hash;
        let content = Editable::of_file(&entry, content, cx.limits.response_bytes)?.text;
        Ok(Output { content, hash })
    }

    fn text(&self, output: &Output) -> Option<String> {
        Some(output.content.clone())
    }
}

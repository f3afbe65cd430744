use crate::arguments;
use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolrest_core::{Action, CallCx, Content, ContentHash, Result, Tool};
use toolrest_ops::document::Editable;

pub(super) struct ReadFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Path of the file, relative to the workspace root.
    path: String,
    /// Encoding in which the content is returned: `utf-8` or `base64`. Default: `utf-8`.
    encoding: Option<Encoding>,
}

#[derive(Clone, Copy, PartialEq, Deserialize, JsonSchema)]
pub(super) enum Encoding {
    #[serde(rename = "utf-8")]
    Utf8,
    #[serde(rename = "base64")]
    Base64,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// The content.
    content: String,
    /// Size of the file in bytes.
    size: usize,
    /// Time of the last change.
    #[schemars(extend("format" = "date-time"))]
    modified: String,
    /// SHA-256 hash of the content.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<ContentHash>,
}

#[async_trait]
impl Tool for ReadFile {
    const NAME: &'static str = "read_file";
    const DESCRIPTION: &'static str = "Read the contents of a file in the workspace";
    const ACTION: Action = Action::Read;
    type Args = Args;
    type Output = Output;

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let path = arguments::relative_path(cx, "path", &args.path)?;
        let (entry, content) = toolrest_ops::read(cx, &path).await?;
        let (modified, hash) = (entry.updated_at.to_string(), entry.hash);
        // The size is that of the file, also if the text is converted to UTF-8.
        let own_size = if let Content::Encoded(text) = &content { Some(text.as_bytes().len()) } else { None };
        let encoding = args.encoding.unwrap_or(Encoding::Utf8);
        let bytes = match content {
            Content::Bytes(bytes) if encoding == Encoding::Base64 => bytes,
            Content::Encoded(text) if encoding == Encoding::Base64 => text.into_bytes(),
            content => Editable::of_file(&entry, content, cx.limits.response_bytes)?.text.into_bytes(),
        };
        let size = own_size.unwrap_or(bytes.len());
        let content = match encoding {
            Encoding::Base64 => STANDARD.encode(bytes),
            Encoding::Utf8 => String::from_utf8(bytes).map_err(toolrest_core::ToolError::internal)?,
        };
        Ok(Output { content, size, modified, hash })
    }

    fn text(&self, output: &Output) -> Option<String> {
        Some(if output.content.is_empty() { "[the file is empty]".to_owned() } else { output.content.clone() })
    }
}

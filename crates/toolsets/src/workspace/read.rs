use super::{about_path, path};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolrest_core::{Action, CallCx, Content, ContentHash, JsonText, Result, Tool, WsPath};
use toolrest_ops::document::Editable;

pub(super) struct Read;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Full path to the file.
    path: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// The path that was read.
    path: WsPath,
    /// The text of a document, or the JSON object of another type.
    content: Shown,
    /// SHA-256 hash of the content.
    hash: ContentHash,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum Shown {
    Text(String),
    Json(#[schemars(with = "Map<String, Value>")] JsonText),
}

#[async_trait]
impl Tool for Read {
    const NAME: &'static str = "read";
    const DESCRIPTION: &'static str = "Read the latest version of a file";
    const ACTION: Action = Action::Read;
    type Args = Args;
    type Output = Output;

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let path = path(cx, "path", &args.path).await?;
        let (entry, content) = toolrest_ops::read(cx, &path).await.map_err(about_path("path"))?;
        let hash = entry.hash.map_or_else(|| content.hash(), Ok)?;
        let content = match content {
            Content::Text(text) => Shown::Text(text),
            Content::Json(json) => Shown::Json(json),
            other @ (Content::Encoded(_) | Content::Bytes(_)) => {
                let text = Editable::of(other, entry.file_type, &path, cx.limits.response_bytes);
                Shown::Text(text.map_err(about_path("path"))?.text)
            }
        };
        Ok(Output { path, content, hash })
    }

    fn text(&self, output: &Output) -> Option<String> {
        Some(match &output.content {
            Shown::Text(text) if text.is_empty() => "[the file is empty]".to_owned(),
            Shown::Text(text) => text.clone(),
            Shown::Json(json) => json.pretty(),
        })
    }
}

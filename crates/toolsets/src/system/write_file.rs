use super::read_file::Encoding;
use crate::arguments;
use crate::text;
use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolrest_core::{Action, CallCx, ContentHash, ErrorKind, Parents, Result, Tool, ToolError};
use toolrest_ops::{ContentForm, TextOptions, write_text};

pub(super) struct WriteFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Args {
    /// Path of the file, relative to the workspace root.
    path: String,
    /// The content.
    content: String,
    /// Encoding of `content`: `utf-8` or `base64`. Default: `utf-8`.
    encoding: Option<Encoding>,
    /// Create missing parent directories. Default: false.
    create_dirs: Option<bool>,
    /// Hash of the content when it was last read. If given, the call fails if the content has changed since.
    expected_hash: Option<String>,
    /// Return the change without writing it. Default: false.
    dry_run: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// Path relative to the workspace root.
    path: String,
    /// Size in bytes.
    size: usize,
    /// SHA-256 hash of the content.
    hash: ContentHash,
    /// The change as a unified diff.
    diff: String,
}

#[async_trait]
impl Tool for WriteFile {
    const NAME: &'static str = "write_file";
    const DESCRIPTION: &'static str = "Create a file or replace its content";
    const ACTION: Action = Action::Write;
    type Args = Args;
    type Output = Output;

    fn is_dry_run(&self, args: &Args) -> bool {
        args.dry_run.unwrap_or(false)
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let path = arguments::relative_path(cx, "path", &args.path)?;
        let (given, bytes) = match args.encoding.unwrap_or(Encoding::Utf8) {
            Encoding::Utf8 => (ContentForm::Text, args.content.into_bytes()),
            Encoding::Base64 => {
                let bytes = STANDARD.decode(args.content.trim());
                let wrong = |error| ToolError::argument("content", format!("content is not base64: {error}"));
                (ContentForm::Bytes, bytes.map_err(wrong)?)
            }
        };
        let options = TextOptions {
            parents: if args.create_dirs.unwrap_or(false) { Parents::Create } else { Parents::Require },
            expected: arguments::expected_hash(args.expected_hash.as_deref()).into(),
            given,
        };
        let written = write_text(cx, &path, bytes, &options).await.map_err(|error| match error.kind {
            // A missing file is created, so only its directory can be missing.
            ErrorKind::NotFound => error.with_hint("Pass \"createDirs\": true to create missing directories"),
            _ => error,
        })?;
        Ok(Output {
            path: path.without_slash().to_owned(),
            size: written.bytes,
            hash: written.hash,
            diff: written.diff,
        })
    }

    fn text(&self, output: &Output) -> Option<String> {
        Some(text::change(&output.diff, &output.path))
    }
}

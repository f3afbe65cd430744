use super::{cannot, coerced, path};
use crate::text;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use toolrest_core::{Action, CallCx, ContentHash, Result, Tool, ToolError};
use toolrest_ops::{FilePage, PageLimits, read_page};

/// What a single read returns at most.
const MAX_LINES: usize = 2000;
const MAX_BYTES: usize = 50 * 1024;

pub(super) struct Read;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Args {
    /// Path to the file to read.
    file_path: String,
    /// Number of lines to skip before reading. Default: 0.
    #[serde(default, deserialize_with = "coerced")]
    #[schemars(range(min = 0))]
    offset: Option<usize>,
    /// Maximum number of lines to return. Default and maximum: 2000.
    #[serde(default, deserialize_with = "coerced")]
    #[schemars(range(min = 1))]
    limit: Option<usize>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// The lines. Each one begins with its number and an arrow (`→`).
    content: String,
    /// Facts about the file and this part of it.
    metadata: Metadata,
    /// SHA-256 hash of the content.
    hash: Option<ContentHash>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    /// Whether the file has more lines after these, or the last line was cut.
    truncated: bool,
    /// Number of lines of the whole file.
    line_count: usize,
    /// Path relative to the workspace root.
    file_path: String,
}

#[async_trait]
impl Tool for Read {
    const NAME: &'static str = "read";
    const DESCRIPTION: &'static str = "Read a file with line numbers, at most 2000 lines or 50 KB at a time";
    const ACTION: Action = Action::Read;
    type Args = Args;
    type Output = Output;

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        if args.limit == Some(0) {
            return Err(ToolError::argument("limit", "limit must be at least 1"));
        }
        let path = path(cx, "filePath", &args.file_path).await?;
        let limits = PageLimits {
            skip: args.offset.unwrap_or(0),
            lines: args.limit.unwrap_or(MAX_LINES).min(MAX_LINES),
            bytes: MAX_BYTES,
            separator: '→',
        };
        let read = read_page(cx, &path, limits).await.map_err(cannot("read", &args.file_path))?;
        let FilePage { page, hash } = read;
        let mut content = page.text;
        if page.cut_bytes > 0 {
            write!(content, "… ({} more bytes in this line)", page.cut_bytes).map_err(ToolError::internal)?;
        }
        let metadata = Metadata {
            truncated: page.is_truncated,
            line_count: page.total,
            file_path: path.without_slash().to_owned(),
        };
        Ok(Output { content, metadata, hash })
    }

    fn text(&self, output: &Output) -> Option<String> {
        let Output { content, metadata: Metadata { truncated, line_count, .. }, .. } = output;
        let mut text = content.clone();
        if *truncated {
            text::push_line(
                &mut text,
                &format!("[not the end of the file, which has {line_count} lines; read on with `offset`]"),
            );
        }
        Some(if text.is_empty() { format!("[no lines here; the file has {line_count}]") } else { text })
    }
}

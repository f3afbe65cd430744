use crate::arguments;
use crate::text;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;
use toolrest_core::{Action, CallCx, ContentHash, Result, Tool};
use toolrest_ops::{FilePage, PageLimits, read_page};

pub(super) struct Read;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Path of the file, relative to the workspace root.
    path: String,
    /// Number of the first line to return, counted from 1. Default: 1.
    offset: Option<NonZeroUsize>,
    /// Maximum number of lines to return. Default: all.
    limit: Option<NonZeroUsize>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// The lines. Each one begins with its number and a tab.
    content: String,
    /// Number of lines of the whole file.
    total_lines: usize,
    /// Whether the file has more lines after these.
    truncated: bool,
    /// SHA-256 hash of the content.
    hash: Option<ContentHash>,
}

#[async_trait]
impl Tool for Read {
    const NAME: &'static str = "file.read";
    const DESCRIPTION: &'static str = "Read all or some lines of a file";
    const ACTION: Action = Action::Read;
    type Args = Args;
    type Output = Output;

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let path = arguments::relative_path(cx, "path", &args.path)?;
        let limits = PageLimits {
            skip: args.offset.map_or(0, |offset| offset.get() - 1),
            lines: args.limit.map_or(usize::MAX, NonZeroUsize::get),
            bytes: usize::MAX,
            separator: '\t',
        };
        let FilePage { page, hash } = read_page(cx, &path, limits).await?;
        Ok(Output { content: page.text, total_lines: page.total, truncated: page.is_truncated, hash })
    }

    fn text(&self, output: &Output) -> Option<String> {
        let Output { content, total_lines, truncated, .. } = output;
        let mut text = content.clone();
        if *truncated {
            text::push_line(
                &mut text,
                &format!("[not the end of the file, which has {total_lines} lines; read on with `offset`]"),
            );
        }
        Some(if text.is_empty() { format!("[no lines here; the file has {total_lines}]") } else { text })
    }
}

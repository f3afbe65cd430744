use crate::arguments;
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
    /// First line to return, counted from 1. Default: 1.
    offset: Option<NonZeroUsize>,
    /// Most lines to return. Default: all.
    limit: Option<NonZeroUsize>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// The lines, each after its number and a tab.
    content: String,
    /// How many lines the file has.
    total_lines: usize,
    /// Whether lines follow that were not returned.
    truncated: bool,
    /// SHA-256 hash of the content.
    hash: Option<ContentHash>,
}

#[async_trait]
impl Tool for Read {
    const NAME: &'static str = "file.read";
    const DESCRIPTION: &'static str = "Read a file's lines, all of them or a part";
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
}

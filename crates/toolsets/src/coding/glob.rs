use super::{cannot_at_all, coerced};
use crate::text;
use crate::{arguments, counted};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolrest_core::{Action, CallCx, Result, Tool, ToolError, WsPath};
use toolrest_ops::{FilesOptions, files};

/// The default number of paths of an answer, and the maximum.
const RESULTS: usize = 100;
const MAX_RESULTS: usize = 1000;

pub(super) struct Glob;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Args {
    /// Glob pattern, relative to the workspace root (for example `src/**/*.ts`).
    pattern: String,
    /// Maximum number of results, at most 1000. Default: 100.
    #[serde(default, deserialize_with = "coerced")]
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
    /// Also find files that `.gitignore` excludes. Default: false.
    include_ignored: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// Paths of the files, relative to the workspace root, sorted.
    files: Vec<String>,
    /// Number of files in this answer.
    count: usize,
    /// The pattern, as passed in the call.
    pattern: String,
    /// Number of all files that match. Only if `limit` left some out.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<usize>,
    /// Number of files that were left out because of `.gitignore`. A folder that is left out counts as one.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<u64>,
    /// Number of directories that could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    unreadable: Option<u64>,
    /// Number of files and directories that were left out because of an invalid name: not UTF-8, or with control
    /// characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    unnamed: Option<u64>,
}

#[async_trait]
impl Tool for Glob {
    const NAME: &'static str = "glob";
    const DESCRIPTION: &'static str = "Find files by a glob pattern";
    const ACTION: Action = Action::Read;
    type Args = Args;
    type Output = Output;

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let limit = args.limit.unwrap_or(RESULTS);
        if !(1..=MAX_RESULTS).contains(&limit) {
            return Err(ToolError::argument("limit", format!("limit must be from 1 to {MAX_RESULTS}, not {limit}")));
        }
        let ignored = arguments::ignored_files(args.include_ignored);
        let options = FilesOptions { folder: &WsPath::root(), glob: Some(&args.pattern), ignored, limit };
        let found = files(cx, &options).await.map_err(arguments::naming_pattern("pattern"));
        let found = found.map_err(cannot_at_all("find files"))?;
        let files: Vec<String> = found.files.iter().map(|file| file.path.without_slash().to_owned()).collect();
        Ok(Output {
            count: files.len(),
            total: (found.total > files.len()).then_some(found.total),
            files,
            pattern: args.pattern,
            skipped: counted(found.ignored),
            unreadable: counted(found.unreadable),
            unnamed: counted(found.unnamed),
        })
    }

    fn text(&self, output: &Output) -> Option<String> {
        let mut text = text::lines(output.files.iter().cloned(), "no file matches");
        if let Some(total) = output.total {
            text::push_line(&mut text, &format!("[the first {} of {total} files; raise `limit`]", output.count));
        }
        let Output { skipped, unreadable, unnamed, .. } = output;
        let counts = [(*skipped, "ignored"), (*unreadable, "unreadable"), (*unnamed, "with an invalid name")];
        text::push_left_out(&mut text, &counts);
        Some(text)
    }
}

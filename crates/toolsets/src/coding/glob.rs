use super::{cannot_at_all, coerced};
use crate::{arguments, counted};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolrest_core::{Action, CallCx, Result, Tool, ToolError, WsPath};
use toolrest_ops::{FilesOptions, files};

/// How many paths are returned where the caller does not say, and at most.
const RESULTS: usize = 100;
const RESULTS_MOST: usize = 1000;

pub(super) struct Glob;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Args {
    /// Glob pattern, seen from the workspace root (e.g., `src/**/*.ts`).
    pattern: String,
    /// Maximum number of results, at most 1000. Default: 100.
    #[serde(default, deserialize_with = "coerced")]
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
    /// Whether to find files that `.gitignore` leaves out. Default: false.
    include_ignored: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// The files, relative to the workspace root, sorted by path.
    files: Vec<String>,
    /// How many are returned.
    count: usize,
    /// The pattern.
    pattern: String,
    /// How many files fit, where not all are returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<usize>,
    /// How many files `.gitignore` left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<u64>,
    /// How many directories could not be looked into.
    #[serde(skip_serializing_if = "Option::is_none")]
    unreadable: Option<u64>,
    /// How many files and directories have a name that no path can have: not UTF-8, or with control characters.
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
        if !(1..=RESULTS_MOST).contains(&limit) {
            return Err(ToolError::argument("limit", format!("limit must be from 1 to {RESULTS_MOST}, not {limit}")));
        }
        let ignored = arguments::ignored_files(args.include_ignored);
        let options = FilesOptions { folder: &WsPath::root(), glob: Some(&args.pattern), ignored, limit };
        let found = files(cx, &options).await.map_err(arguments::about_pattern("pattern"));
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
}

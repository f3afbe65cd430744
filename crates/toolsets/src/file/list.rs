use crate::text;
use crate::{arguments, counted};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolrest_core::{Action, CallCx, FoundFile, Result, Tool};
use toolrest_ops::all_files;

pub(super) struct List;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Directory to list, relative to the workspace root. Default: the root.
    path: Option<String>,
    /// Glob pattern, relative to the directory: `*.py` matches files directly in it, `**/*.py` files at any depth.
    /// Default: all files directly in it.
    pattern: Option<String>,
    /// With `**` in the pattern: also list files that `.gitignore` excludes. Default: false.
    include_ignored: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// The files, sorted by path.
    files: Vec<ListedFile>,
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

#[derive(Serialize, JsonSchema)]
struct ListedFile {
    /// Path relative to the workspace root.
    path: String,
    /// Size in bytes.
    size: i64,
    /// Time of the last change.
    #[schemars(extend("format" = "date-time"))]
    modified: String,
}

#[async_trait]
impl Tool for List {
    const NAME: &'static str = "file.list";
    const DESCRIPTION: &'static str = "List the files of a directory, or the files that match a glob pattern";
    const ACTION: Action = Action::Read;
    type Args = Args;
    type Output = Output;

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let folder = arguments::relative_path(cx, "path", args.path.as_deref().unwrap_or("."))?;
        let ignored = arguments::ignored_files(args.include_ignored);
        let found = all_files(cx, &folder, args.pattern.as_deref(), ignored).await;
        let found = found.map_err(arguments::naming_pattern("pattern"))?;
        let shown = |file: &FoundFile| ListedFile {
            path: file.path.without_slash().to_owned(),
            size: file.size,
            modified: file.updated_at.to_string(),
        };
        Ok(Output {
            files: found.files.iter().map(shown).collect(),
            skipped: counted(found.ignored),
            unreadable: counted(found.unreadable),
            unnamed: counted(found.unnamed),
        })
    }

    fn text(&self, output: &Output) -> Option<String> {
        let shown = |file: &ListedFile| format!("{}\t{}", file.path, file.size);
        let mut text = text::lines(output.files.iter().map(shown), "no files");
        let Output { skipped, unreadable, unnamed, .. } = output;
        let counts = [(*skipped, "ignored"), (*unreadable, "unreadable"), (*unnamed, "with an invalid name")];
        text::push_left_out(&mut text, &counts);
        Some(text)
    }
}

use super::{about_hash, about_path, path};
use crate::arguments;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolrest_core::{Action, CallCx, ContentHash, ErrorKind, FileId, Result, Tool, ToolError, VersionId, WsPath};
use toolrest_ops::{EditOptions, Occurrences, Replacement};

pub(super) struct Edit;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Full path to the file.
    path: String,
    /// Exact text to replace. With `edit` it must occur exactly once; `edit-many` replaces every occurrence.
    old_string: String,
    /// Replacement text, used literally.
    new_string: String,
    /// Hash of the content when it was last read. If given, the call fails if the content has changed since.
    last_read_hash: Option<String>,
    /// If the exact text is not found, also accept text that differs only in trailing whitespace, typographic
    /// punctuation or indentation, provided that there is exactly one such place. Default: false.
    fuzzy: Option<bool>,
    /// Return the change without writing it. Default: false.
    dry_run: Option<bool>,
}

impl Args {
    /// Whether to return the change without writing it.
    pub(super) fn is_dry_run(&self) -> bool {
        self.dry_run.unwrap_or(false)
    }
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// The path that was edited.
    path: WsPath,
    /// File identifier.
    file_id: FileId,
    /// New version identifier. With `dry_run`: the current one.
    version_id: Option<VersionId>,
    /// SHA-256 hash of the new content.
    hash: Option<ContentHash>,
    /// With `fuzzy`, if the text was not found exactly: the difference that was accepted (`trailing_whitespace`,
    /// `punctuation` or `indentation`).
    #[serde(skip_serializing_if = "Option::is_none")]
    matched_with: Option<&'static str>,
    /// The change as a unified diff. Only with `dry_run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
}

/// Runs `edit` and `edit-many`, which differ in the occurrences that they replace.
pub(super) async fn run(cx: &CallCx, args: Args, which: Occurrences) -> Result<Output> {
    let path = path(cx, "path", &args.path).await?;
    let is_dry_run = args.is_dry_run();
    let expected = arguments::expected_hash(args.last_read_hash.as_deref());
    let options = EditOptions {
        edits: vec![Replacement { old: args.old_string, new: args.new_string, which }],
        leniency: arguments::leniency(args.fuzzy),
        expected,
    };
    let edited = toolrest_ops::edit(cx, &path, &options).await.map_err(about_old_string);
    let edited = edited.map_err(about_path("path")).map_err(about_hash(expected))?;
    Ok(Output {
        path,
        file_id: edited.file,
        version_id: edited.version,
        hash: edited.hash,
        matched_with: edited.matched_loosely(),
        diff: is_dry_run.then_some(edited.diff),
    })
}

/// Returns the answer of `edit` and `edit-many` as a text.
pub(super) fn text(output: &Output) -> String {
    output.diff.clone().unwrap_or_else(|| format!("Edited {}", output.path))
}

fn about_old_string(error: ToolError) -> ToolError {
    match error.kind {
        ErrorKind::FindNotFound | ErrorKind::FindNotUnique | ErrorKind::InvalidArgument => error.about("old_string"),
        _ => error,
    }
}

#[async_trait]
impl Tool for Edit {
    const NAME: &'static str = "edit";
    const DESCRIPTION: &'static str = "Replace a text that occurs exactly once in a file";
    const ACTION: Action = Action::Write;
    type Args = Args;
    type Output = Output;

    fn is_dry_run(&self, args: &Args) -> bool {
        args.is_dry_run()
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        run(cx, args, Occurrences::Single).await
    }

    fn text(&self, output: &Output) -> Option<String> {
        Some(text(output))
    }
}

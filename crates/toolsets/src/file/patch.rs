use crate::arguments;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolrest_core::{Action, CallCx, ContentHash, Result, Tool, ToolError};
use toolrest_ops::{EditOptions, Occurrences, Replacement};

pub(super) struct Patch;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Path of the file, relative to the workspace root.
    path: String,
    /// Patches to apply in order, all or none.
    patches: Vec<FindReplace>,
    /// Hash of the content when last read. If given, the call fails if the content has changed since.
    expected_hash: Option<String>,
    /// Whether a text also counts that differs in trailing whitespace, typographic punctuation or indentation, if there
    /// is only one such place. Default: false.
    fuzzy: Option<bool>,
    /// Whether only to show the change. Default: false.
    dry_run: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FindReplace {
    /// Exact text to find; it must be unique.
    find: String,
    /// Text to replace it with, taken literally.
    replace: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// Whether all patches were applied; with `dry_run`, whether they would be.
    success: bool,
    /// How many patches were applied.
    patches_applied: usize,
    /// SHA-256 hash of the new content.
    hash: Option<ContentHash>,
    /// The change as a unified diff.
    diff: String,
    /// How the texts were found, where not all were exactly as given.
    #[serde(skip_serializing_if = "Option::is_none")]
    matched_with: Option<&'static str>,
}

#[async_trait]
impl Tool for Patch {
    const NAME: &'static str = "file.patch";
    const DESCRIPTION: &'static str = "Replace texts in a file, each of which must occur exactly once";
    const ACTION: Action = Action::Write;
    type Args = Args;
    type Output = Output;

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        if args.patches.is_empty() {
            return Err(ToolError::argument("patches", "patches is empty; give at least one"));
        }
        let path = arguments::relative_path(cx, "path", &args.path)?;
        let edit = |patch: FindReplace| Replacement { old: patch.find, new: patch.replace, which: Occurrences::Single };
        let options = EditOptions {
            edits: args.patches.into_iter().map(edit).collect(),
            leniency: arguments::leniency(args.fuzzy),
            expected: arguments::expected_hash(args.expected_hash.as_deref()),
            run: arguments::run(args.dry_run),
        };
        let edited = toolrest_ops::edit(cx, &path, &options).await?;
        Ok(Output {
            success: true,
            patches_applied: edited.counts.len(),
            matched_with: edited.matched_loosely(),
            hash: edited.hash,
            diff: edited.diff,
        })
    }
}

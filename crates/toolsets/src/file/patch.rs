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
    /// The replacements. Each one is applied to the result of the one before. If one fails, nothing is written.
    patches: Vec<FindReplace>,
    /// Hash of the content when it was last read. If given, the call fails if the content has changed since.
    expected_hash: Option<String>,
    /// If the exact text is not found, also accept text that differs only in trailing whitespace, typographic
    /// punctuation or indentation, provided that there is exactly one such place. Default: false.
    fuzzy: Option<bool>,
    /// Return the change without writing it. Default: false.
    dry_run: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FindReplace {
    /// Exact text to find. It must occur exactly once.
    find: String,
    /// Replacement text, used literally.
    replace: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// Always true; a failure is an error.
    success: bool,
    /// Number of patches that were applied.
    patches_applied: usize,
    /// SHA-256 hash of the new content.
    hash: Option<ContentHash>,
    /// The change as a unified diff.
    diff: String,
    /// With `fuzzy`, if a text was not found exactly: the loosest difference that was accepted (`trailing_whitespace`,
    /// `punctuation` or `indentation`).
    #[serde(skip_serializing_if = "Option::is_none")]
    matched_with: Option<&'static str>,
}

#[async_trait]
impl Tool for Patch {
    const NAME: &'static str = "file.patch";
    const DESCRIPTION: &'static str = "Replace texts in a file. Each text must occur exactly once";
    const ACTION: Action = Action::Write;
    type Args = Args;
    type Output = Output;

    fn is_dry_run(&self, args: &Args) -> bool {
        args.dry_run.unwrap_or(false)
    }

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

    fn text(&self, output: &Output) -> Option<String> {
        Some(output.diff.clone())
    }
}

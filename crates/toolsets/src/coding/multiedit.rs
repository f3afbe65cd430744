use super::{EditDetails, edit_file};
use crate::arguments;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolrest_core::{Action, CallCx, Result, Tool, ToolError};
use toolrest_ops::{EditOptions, Replacement};

pub(super) struct MultiEdit;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Args {
    /// Path to the file.
    file_path: String,
    /// The edits. Each one is applied to the result of the one before. If one fails, nothing is written.
    #[schemars(length(min = 1))]
    edits: Vec<OneEdit>,
    /// Hash of the content when it was last read. If given, the call fails if the content has changed since.
    expected_hash: Option<String>,
    /// If the exact text is not found, also accept text that differs only in trailing whitespace, typographic
    /// punctuation or indentation, provided that there is exactly one such place. Default: false.
    fuzzy: Option<bool>,
    /// Return the change without writing it. Default: false.
    dry_run: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct OneEdit {
    /// Exact text to replace.
    old_string: String,
    /// Replacement text, used literally.
    new_string: String,
    /// Replace all occurrences. Default: false; then the text must occur exactly once.
    replace_all: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Output {
    /// Always true; a failure is an error.
    success: bool,
    /// Path relative to the workspace root.
    file_path: String,
    /// Number of occurrences that all edits replaced.
    total_replacements: usize,
    /// The result of each edit, in the order of `edits`.
    results: Vec<OneResult>,
    #[serde(flatten)]
    details: EditDetails,
}

#[derive(Serialize, JsonSchema)]
struct OneResult {
    /// Number of occurrences that were replaced.
    replacements: usize,
}

#[async_trait]
impl Tool for MultiEdit {
    const NAME: &'static str = "multiedit";
    const DESCRIPTION: &'static str = "Apply several edits to one file. If one of them fails, nothing is written";
    const ACTION: Action = Action::Write;
    type Args = Args;
    type Output = Output;

    fn is_dry_run(&self, args: &Args) -> bool {
        args.dry_run.unwrap_or(false)
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        if args.edits.is_empty() {
            return Err(ToolError::argument("edits", "edits is empty; give at least one"));
        }
        let edit = |edit: OneEdit| Replacement {
            old: edit.old_string,
            new: edit.new_string,
            which: arguments::occurrences(edit.replace_all),
        };
        let options = EditOptions {
            edits: args.edits.into_iter().map(edit).collect(),
            leniency: arguments::leniency(args.fuzzy),
            expected: arguments::expected_hash(args.expected_hash.as_deref()),
        };
        let (path, edited) = edit_file(cx, &args.file_path, &options).await?;
        Ok(Output {
            success: true,
            file_path: path.without_slash().to_owned(),
            total_replacements: edited.counts.iter().sum(),
            results: edited.counts.iter().map(|count| OneResult { replacements: *count }).collect(),
            details: EditDetails::of(edited),
        })
    }

    fn text(&self, output: &Output) -> Option<String> {
        Some(output.details.diff.clone())
    }
}

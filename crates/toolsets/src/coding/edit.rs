use super::{Found, edit_file};
use crate::arguments;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolrest_core::{Action, CallCx, Result, Tool};
use toolrest_ops::{EditOptions, Replacement};

pub(super) struct Edit;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Args {
    /// Path to the file.
    file_path: String,
    /// Exact text to replace.
    old_string: String,
    /// Replacement text, taken literally.
    new_string: String,
    /// Replace all occurrences. Default: false, and then the text must occur once.
    replace_all: Option<bool>,
    /// Hash of the content when last read. If given, the call fails if the content has changed since.
    expected_hash: Option<String>,
    /// Whether a text also counts that differs in trailing whitespace, typographic punctuation or indentation, if there
    /// is only one such place. Default: false.
    fuzzy: Option<bool>,
    /// Whether only to show the change. Default: false.
    dry_run: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Output {
    /// Whether the text was replaced; with `dryRun`, whether it would be.
    success: bool,
    /// Path relative to the workspace root.
    file_path: String,
    /// How many occurrences were replaced.
    replacements: usize,
    #[serde(flatten)]
    found: Found,
}

#[async_trait]
impl Tool for Edit {
    const NAME: &'static str = "edit";
    const DESCRIPTION: &'static str = "Replace text in a file by exact matching";
    const ACTION: Action = Action::Write;
    type Args = Args;
    type Output = Output;

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let which = arguments::which(args.replace_all);
        let options = EditOptions {
            edits: vec![Replacement { old: args.old_string, new: args.new_string, which }],
            leniency: arguments::leniency(args.fuzzy),
            expected: arguments::expected_hash(args.expected_hash.as_deref()),
            run: arguments::run(args.dry_run),
        };
        let (path, edited) = edit_file(cx, &args.file_path, &options).await?;
        Ok(Output {
            success: true,
            file_path: path.without_slash().to_owned(),
            replacements: edited.counts.iter().sum(),
            found: Found::of(edited),
        })
    }
}

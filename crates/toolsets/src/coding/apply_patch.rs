use super::{cannot_at_all, path};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use toolrest_core::{Action, CallCx, ContentHash, Result, Tool, ToolError};
use toolrest_ops::{PatchAction, PatchOptions, patch};

const EXPECTED_HASHES: &str = "expectedHashes";

pub(super) struct ApplyPatch;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Args {
    /// The patch: a unified diff (of git or another tool) or the `*** Begin Patch` format, or several of them in a row.
    patch_text: String,
    /// Map from file paths to the hashes that the files had when they were last read. The call fails if one of these
    /// files has changed since.
    expected_hashes: Option<BTreeMap<String, String>>,
    /// Return the change without writing it. Default: false.
    dry_run: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Output {
    /// Always true; a failure is an error.
    success: bool,
    /// Number of files that changed.
    files_modified: usize,
    /// The files that changed, each once, in the order of the patch.
    files: Vec<File>,
    /// The change as a unified diff; renames and mode changes are in git's extended headers.
    diff: String,
}

#[derive(Serialize, JsonSchema)]
struct File {
    /// Path relative to the workspace root.
    path: String,
    /// `add`, `update`, `delete` or `move`.
    action: Kind,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Add,
    Update,
    Delete,
    Move,
}

impl From<PatchAction> for Kind {
    fn from(action: PatchAction) -> Self {
        match action {
            PatchAction::Add => Self::Add,
            PatchAction::Update => Self::Update,
            PatchAction::Delete => Self::Delete,
            PatchAction::Move => Self::Move,
        }
    }
}

#[async_trait]
impl Tool for ApplyPatch {
    const NAME: &'static str = "apply_patch";
    const DESCRIPTION: &'static str =
        "Apply a patch to one or more files. If a part of it does not apply, nothing is written";
    const ACTION: Action = Action::Write;
    type Args = Args;
    type Output = Output;

    fn is_dry_run(&self, args: &Args) -> bool {
        args.dry_run.unwrap_or(false)
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let mut expected = BTreeMap::new();
        for (file, hash) in args.expected_hashes.iter().flatten() {
            let located = path(cx, EXPECTED_HASHES, file).await?;
            if expected.contains_key(&located) {
                let message = format!("`{EXPECTED_HASHES}` names {located} twice; give one hash for each file");
                return Err(ToolError::argument(EXPECTED_HASHES, message));
            }
            expected.insert(located, ContentHash::claimed(hash));
        }
        let patched = patch(cx, &args.patch_text, &PatchOptions { expected }).await;
        let patched = patched.map_err(cannot_at_all("apply the patch"))?;
        let shown = |file: &toolrest_ops::PatchedFile| File {
            path: file.path.without_slash().to_owned(),
            action: file.action.into(),
        };
        Ok(Output {
            success: true,
            files_modified: patched.files.len(),
            files: patched.files.iter().map(shown).collect(),
            diff: patched.diff,
        })
    }

    fn text(&self, output: &Output) -> Option<String> {
        Some(output.diff.clone())
    }
}

use super::{expected, path};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolrest_core::{Action, CallCx, ContentHash, FileId, Result, Tool, VersionId, WsPath};
use toolrest_ops::{EditOptions, Occurrences};

pub(super) struct Edit;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Full path to the file.
    path: String,
    /// Text to search for, exactly as it stands in the file. To `edit`, it must occur once; `edit-many` replaces every
    /// occurrence.
    old_string: String,
    /// Replacement text, taken literally.
    new_string: String,
    /// Hash of the content when last read. If given, the call fails if the content has changed since.
    last_read_hash: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// The path that was edited.
    path: WsPath,
    /// File identifier.
    file_id: FileId,
    /// New version identifier.
    version_id: Option<VersionId>,
    /// SHA-256 hash of the new content.
    hash: Option<ContentHash>,
}

/// Edits as both tools do; they differ in which occurrences they mean.
pub(super) async fn run(cx: &CallCx, args: Args, which: Occurrences) -> Result<Output> {
    let path = path("path", &args.path)?;
    let options = EditOptions {
        old: args.old_string,
        new: args.new_string,
        which,
        expected: expected(args.last_read_hash.as_deref()),
    };
    let edited = toolrest_ops::edit(cx, &path, &options).await?;
    Ok(Output { path, file_id: edited.file, version_id: edited.version, hash: edited.hash })
}

#[async_trait]
impl Tool for Edit {
    const NAME: &'static str = "edit";
    const DESCRIPTION: &'static str = "Replace a text that occurs exactly once in a file";
    const ACTION: Action = Action::Write;
    type Args = Args;
    type Output = Output;

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        run(cx, args, Occurrences::Only).await
    }
}

//! Applying a patch to several files.

mod changes;
mod stage;

use crate::edit::{EXPLANATION_BYTES, shortened};
use crate::heavy;
use crate::locate::{locate_absolute, locate_padded};
use changes::Outcome;
use stage::{PatchPart, StagedPatch};
use std::collections::BTreeMap;
use std::sync::Arc;
use toolrest_core::{CallCx, Change, Changeset, ContentHash, ErrorKind, Removal, Result, ToolError, WsPath};
use toolrest_edit::patch::{Blanks, FilePatch, parse};
use toolrest_edit::{Limits, StopFlag};

/// Options of [`patch`].
pub struct PatchOptions {
    /// The hashes that files must still have.
    pub expected: BTreeMap<WsPath, ContentHash>,
}

/// The result of [`patch`].
#[derive(Debug)]
pub struct PatchResult {
    /// The files that changed, each once, in the order of the patch.
    pub files: Vec<PatchedFile>,
    /// All changes as one unified diff.
    pub diff: String,
}

/// One file of a patch.
#[derive(Debug, PartialEq, Eq)]
pub struct PatchedFile {
    /// Its path: the new one if it was moved, the old one if it was deleted.
    pub path: WsPath,
    /// What the patch did to it.
    pub action: PatchAction,
    /// Its old path, if it was moved.
    pub from: Option<WsPath>,
    /// The hash of its content; none if it was deleted.
    pub hash: Option<ContentHash>,
}

/// The kinds of changes of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchAction {
    /// Created.
    Add,
    /// Content or mode changed.
    Update,
    /// Deleted.
    Delete,
    /// Moved.
    Move,
}

/// Applies a patch. If a part of it does not apply, nothing is written. Folders that become empty are removed, as in
/// git.
pub async fn patch(cx: &CallCx, text: &str, options: &PatchOptions) -> Result<PatchResult> {
    let text: Arc<str> = text.into();
    let patch = Arc::clone(&text);
    let mut names = Names::new();
    let parse = move |_: StopFlag<'_>| {
        let files = read(&patch)?;
        Ok((names_in(&files)?, files.iter().map(PatchPart::of).collect::<Vec<_>>()))
    };
    let (patch_names, parts) = heavy::run(cx, text.len(), parse).await?;
    for (name, blanks) in patch_names {
        let located = match blanks {
            Blanks::PartOfName => locate_absolute(cx, &name).await,
            Blanks::MaybePadding => locate_padded(cx, &name).await,
        };
        names.insert(name.into_bytes(), file_path(located)?);
    }
    let names = Arc::new(names);
    if let Some(path) = options.expected.keys().find(|path| !names.values().any(|named| named == *path)) {
        let message = format!("a hash is expected of {path}, which the patch does not name");
        return Err(ToolError::new(ErrorKind::InvalidArgument, message));
    }
    loop {
        // The files of the patch in memory. The patch is applied to them before the commit.
        let mut stage = StagedPatch::new(Arc::clone(&names), cx.limits.response_bytes);
        stage.load(cx, &parts, &options.expected, text.len()).await?;
        let size = text.len().saturating_add(stage.bytes());
        let patch = Arc::clone(&text);
        let work = move |stop: StopFlag<'_>| {
            let limits = Limits { bytes: stage.limit_bytes, stop };
            // Parsed again, because the parsed patch borrows from the text and cannot be moved to this thread.
            stage.apply_all(&read(&patch)?, limits)?;
            stage.outcome(stop)
        };
        let Outcome { changes, patched, warnings } = heavy::run(cx, size, work).await?;
        match commit(cx, changes).await {
            Ok(()) => {
                for warning in warnings {
                    cx.warn(warning);
                }
                return Ok(patched);
            }
            // Another call changed a file; apply the patch to its new content. The call's deadline ends this loop.
            Err(error) if error.kind == ErrorKind::Stale => {}
            Err(error) => return Err(error),
        }
    }
}

/// Commits the changes. If folders that became empty cannot be removed, it commits without their removal.
async fn commit(cx: &CallCx, changes: Changeset) -> Result<()> {
    let removes_folder = |change: &Change| matches!(change, Change::Remove { removal: Removal::FolderIfEmpty, .. });
    if !changes.changes.iter().any(removes_folder) {
        return cx.workspace.commit(changes, cx).await.map(drop);
    }
    let mut without_folders = changes.clone();
    without_folders.changes.retain(|change| !removes_folder(change));
    match cx.workspace.commit(changes, cx).await {
        Err(error) if may_be_about_folder(error.kind) => cx.workspace.commit(without_folders, cx).await.map(drop),
        other => other.map(drop),
    }
}

/// Whether a commit may have failed because a folder could not be removed: another call added a file to it, or the user
/// has no right to remove it.
fn may_be_about_folder(kind: ErrorKind) -> bool {
    use ErrorKind as E;
    matches!(kind, E::NotEmpty | E::NotFound | E::Conflict | E::ThroughFile | E::Protected | E::Forbidden)
}

fn read(text: &str) -> Result<Vec<FilePatch<'_>>> {
    parse(text.as_bytes()).map_err(|error| {
        let message = format!("The patch cannot be understood: {error}\nNothing was written");
        ToolError::new(ErrorKind::PatchSyntax, message)
    })
}

/// The paths for the names in a patch.
type Names = BTreeMap<Vec<u8>, WsPath>;

/// Returns every file name in a patch. Whitespace around a name is part of it if at least one occurrence is marked so
/// ([`Blanks::PartOfName`]).
fn names_in(files: &[FilePatch<'_>]) -> Result<BTreeMap<String, Blanks>> {
    let mut names = BTreeMap::new();
    for file in files {
        for name in [file.source(), file.target()].into_iter().flatten() {
            let Ok(text) = String::from_utf8(name.to_vec()) else {
                let shown = String::from_utf8_lossy(name);
                let message = format!("The patch names a file in bytes that are no text: {shown}");
                return Err(short(ToolError::new(ErrorKind::InvalidPath, message)));
            };
            let blanks = names.entry(text).or_insert(file.blanks);
            if file.blanks == Blanks::PartOfName {
                *blanks = Blanks::PartOfName;
            }
        }
    }
    Ok(names)
}

/// Returns the path for a name of the patch, which must not be the root.
fn file_path(located: Result<WsPath>) -> Result<WsPath> {
    let path = located.map_err(short)?;
    if path.is_root() {
        return Err(ToolError::new(ErrorKind::IsDirectory, "The patch names the root folder where a file is needed"));
    }
    Ok(path)
}

/// Shortens the message of an error.
fn short(mut error: ToolError) -> ToolError {
    error.message = shortened(&error.message, EXPLANATION_BYTES).into_owned();
    error
}

#[cfg(test)]
#[path = "patch_tests.rs"]
mod tests;

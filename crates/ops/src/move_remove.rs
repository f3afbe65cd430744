//! Creating folders, touching, moving and removing.

use crate::list;
use toolrest_core::{
    CallCx, Change, Changeset, ContentHash, Depth, Destination, ErrorKind, Expect, FileType, Outcome, Removal, Result,
    ToolError, WsPath,
};

/// Creates a folder and its missing parents.
pub async fn make_dir(cx: &CallCx, path: &WsPath, expected: Option<ContentHash>) -> Result<Outcome> {
    commit_one(cx, Change::MakeDir(path.clone()), expecting(path, expected)).await
}

/// Updates the time of a file, or creates an empty document.
pub async fn touch(cx: &CallCx, path: &WsPath, expected: Option<ContentHash>) -> Result<Outcome> {
    commit_one(cx, Change::Touch(path.clone()), expecting(path, expected)).await
}

/// Moves a file, or a folder with its contents.
pub async fn move_to(cx: &CallCx, from: &WsPath, to: Destination, expected: Option<ContentHash>) -> Result<Outcome> {
    let moved = commit_one(cx, Change::Move { from: from.clone(), to }, expecting(from, expected)).await;
    with_path_at_fault(cx, from, moved).await
}

/// Moves a file or folder to the trash.
pub async fn remove(cx: &CallCx, path: &WsPath, removal: Removal, expected: Option<ContentHash>) -> Result<Outcome> {
    commit_one(cx, Change::Remove { path: path.clone(), removal }, expecting(path, expected)).await
}

/// Maximum number of attempts to remove a folder that others write into.
const TRIES: usize = 5;

/// Moves a file, or a folder with its contents, to the trash. Returns the removed paths, sorted.
pub async fn remove_tree(cx: &CallCx, path: &WsPath, expected: Option<ContentHash>) -> Result<Vec<WsPath>> {
    let mut tries = 1;
    loop {
        let below = below(cx, path).await?;
        let is_folder = below.is_some();
        let paths: Vec<WsPath> = std::iter::once(path.clone()).chain(below.into_iter().flatten()).collect();
        // The contents of a folder are removed before the folder.
        let removals = paths.iter().rev().map(|path| Change::Remove { path: path.clone(), removal: Removal::Single });
        let changes = Changeset { changes: removals.collect(), ..Changeset::default() };
        match cx.workspace.commit(changes.expecting(expecting(path, expected)), cx).await {
            Ok(_) => return Ok(paths),
            // Another call added or removed something in the folder meanwhile.
            Err(error) if is_folder && is_concurrent_change(error.kind) && tries < TRIES => tries += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Returns the paths below a folder; `None` for what has no contents to remove.
async fn below(cx: &CallCx, path: &WsPath) -> Result<Option<Vec<WsPath>>> {
    let entry = cx.workspace.stat(path).await?;
    // The target of a link is not removed.
    if entry.as_ref().is_some_and(|entry| entry.file_type != FileType::Folder || entry.is_link) {
        return Ok(None);
    }
    match list(cx, path, Depth::Descendants).await {
        // A dangling link. A folder of virtual files is not on disk either, but can be listed.
        Err(error) if entry.is_none() && error.kind == ErrorKind::NotFound => Ok(None),
        listing => Ok(Some(listing?.entries.into_iter().map(|entry| entry.path).collect())),
    }
}

fn is_concurrent_change(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotEmpty | ErrorKind::NotFound | ErrorKind::Conflict | ErrorKind::ThroughFile)
}

/// What to do if a file exists at the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overwrite {
    /// Refuse the move.
    Refuse,
    /// Move it to the trash. A folder is refused.
    File,
}

/// Moves a file or folder to exactly this path.
pub async fn rename(
    cx: &CallCx,
    from: &WsPath,
    to: &WsPath,
    overwrite: Overwrite,
    expected: Option<ContentHash>,
) -> Result<Outcome> {
    let move_it = Change::Move { from: from.clone(), to: Destination::Exactly(to.clone()) };
    if overwrite == Overwrite::File && from != to && cx.workspace.stat(to).await?.is_some() {
        let make_way = Change::Remove { path: to.clone(), removal: Removal::File };
        let changes = Changeset { changes: vec![make_way, move_it], ..Changeset::default() };
        let commit = cx.workspace.commit(changes.expecting(expecting(from, expected)), cx).await;
        let moved = commit.and_then(|commit| commit.outcomes.into_iter().last().ok_or_else(no_outcome));
        return with_path_at_fault(cx, from, moved).await;
    }
    with_path_at_fault(cx, from, commit_one(cx, move_it, expecting(from, expected)).await).await
}

/// Returns the result of a move. An error names the path at fault as `source` or `destination`.
async fn with_path_at_fault(cx: &CallCx, from: &WsPath, moved: Result<Outcome>) -> Result<Outcome> {
    use ErrorKind::{AlreadyExists, InvalidPath, IsDirectory, NotADirectory, NotFound, OutsideWorkspace, ThroughFile};
    match moved {
        Err(error)
            if error.argument_at_fault().is_none()
                && matches!(
                    error.kind,
                    AlreadyExists
                        | InvalidPath
                        | IsDirectory
                        | NotADirectory
                        | NotFound
                        | OutsideWorkspace
                        | ThroughFile
                ) =>
        {
            Err(match cx.workspace.stat(from).await {
                // The source exists, so the destination is at fault.
                Ok(Some(_)) => error.about("destination"),
                Ok(None) => error.about("source"),
                Err(failure) => {
                    failure.log_cause();
                    error.about("source")
                }
            })
        }
        moved => moved,
    }
}

fn no_outcome() -> ToolError {
    ToolError::internal("a change had no outcome")
}

fn expecting(path: &WsPath, hash: Option<ContentHash>) -> Option<Expect> {
    hash.map(|hash| Expect::Hash(path.clone(), hash))
}

/// Commits one change and returns its outcome.
pub(crate) async fn commit_one(cx: &CallCx, change: Change, expect: Option<Expect>) -> Result<Outcome> {
    commit_expecting(cx, change, expect).await
}

/// Commits one change if the expectations hold, and returns its outcome.
pub(crate) async fn commit_expecting(
    cx: &CallCx,
    change: Change,
    expect: impl IntoIterator<Item = Expect>,
) -> Result<Outcome> {
    let commit = cx.workspace.commit(Changeset::one(change).expecting(expect), cx).await?;
    commit.outcomes.into_iter().next().ok_or_else(no_outcome)
}

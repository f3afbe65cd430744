//! Changes of place rather than of content: folders, moves, removal.

use crate::list;
use toolrest_core::{
    CallCx, Change, Changeset, ContentHash, Depth, Destination, ErrorKind, Expect, FileType, Outcome, Removal, Result,
    ToolError, WsPath,
};

/// Makes a folder and those above it.
pub async fn make_dir(cx: &CallCx, path: &WsPath, expected: Option<ContentHash>) -> Result<Outcome> {
    commit_one(cx, Change::MakeDir(path.clone()), expecting(path, expected)).await
}

/// Renews a file's time, or makes an empty document.
pub async fn touch(cx: &CallCx, path: &WsPath, expected: Option<ContentHash>) -> Result<Outcome> {
    commit_one(cx, Change::Touch(path.clone()), expecting(path, expected)).await
}

/// Moves a file, or a folder with all that is below it.
pub async fn move_to(cx: &CallCx, from: &WsPath, to: Destination, expected: Option<ContentHash>) -> Result<Outcome> {
    let moved = commit_one(cx, Change::Move { from: from.clone(), to }, expecting(from, expected)).await;
    or_path_at_fault(cx, from, moved).await
}

/// Moves a file or folder to the trash.
pub async fn remove(cx: &CallCx, path: &WsPath, removal: Removal, expected: Option<ContentHash>) -> Result<Outcome> {
    commit_one(cx, Change::Remove { path: path.clone(), removal }, expecting(path, expected)).await
}

/// How often a folder that others write into is looked at anew before its removal is given up.
const TRIES: usize = 5;

/// Moves a file, or a folder with all that is below it, to the trash; gives the paths that went, sorted.
pub async fn remove_tree(cx: &CallCx, path: &WsPath, expected: Option<ContentHash>) -> Result<Vec<WsPath>> {
    let mut tries = 1;
    loop {
        let below = below(cx, path).await?;
        let is_folder = below.is_some();
        let paths: Vec<WsPath> = std::iter::once(path.clone()).chain(below.into_iter().flatten()).collect();
        // What lies in a folder goes before it.
        let removals = paths.iter().rev().map(|path| Change::Remove { path: path.clone(), removal: Removal::Single });
        let changes = Changeset { changes: removals.collect(), ..Changeset::default() };
        match cx.workspace.commit(changes.expecting(expecting(path, expected)), cx).await {
            Ok(_) => return Ok(paths),
            // Somebody put something into the folder, or took it out, meanwhile.
            Err(error) if is_folder && meanwhile(error.kind) && tries < TRIES => tries += 1,
            Err(error) => return Err(error),
        }
    }
}

/// The paths below a folder; none for what is removed by itself.
async fn below(cx: &CallCx, path: &WsPath) -> Result<Option<Vec<WsPath>>> {
    let entry = cx.workspace.stat(path).await?;
    // What a link leads to stays.
    if entry.as_ref().is_some_and(|entry| entry.file_type != FileType::Folder || entry.is_link) {
        return Ok(None);
    }
    match list(cx, path, Depth::Descendants).await {
        // A link that leads nowhere. A folder of virtual files is not on disk either, but can be listed.
        Err(error) if entry.is_none() && error.kind == ErrorKind::NotFound => Ok(None),
        listing => Ok(Some(listing?.entries.into_iter().map(|entry| entry.path).collect())),
    }
}

fn meanwhile(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotEmpty | ErrorKind::NotFound | ErrorKind::Conflict | ErrorKind::ThroughFile)
}

/// What to do about a file that stands where another is moved to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overwrite {
    /// Refuse.
    Refuse,
    /// Put it into the trash. A folder is refused all the same.
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
        return or_path_at_fault(cx, from, moved).await;
    }
    or_path_at_fault(cx, from, commit_one(cx, move_it, expecting(from, expected)).await).await
}

/// The result of a move. An error names the path at fault as `source` or `destination`.
async fn or_path_at_fault(cx: &CallCx, from: &WsPath, moved: Result<Outcome>) -> Result<Outcome> {
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
                // The source is there, so it is the destination that cannot be.
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

/// Commits a single change and gives its outcome.
pub(crate) async fn commit_one(cx: &CallCx, change: Change, expect: Option<Expect>) -> Result<Outcome> {
    commit_expecting(cx, change, expect).await
}

/// Commits a single change, if all that is expected holds, and gives its outcome.
pub(crate) async fn commit_expecting(
    cx: &CallCx,
    change: Change,
    expect: impl IntoIterator<Item = Expect>,
) -> Result<Outcome> {
    let commit = cx.workspace.commit(Changeset::one(change).expecting(expect), cx).await?;
    commit.outcomes.into_iter().next().ok_or_else(no_outcome)
}

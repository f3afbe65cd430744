//! Changes of place rather than of content: folders, moves, removal.

use toolrest_core::{
    CallCx, Change, Changeset, ContentHash, Destination, ErrorKind, Expect, Outcome, Removal, Result, ToolError, WsPath,
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
    commit_one(cx, Change::Move { from: from.clone(), to }, expecting(from, expected)).await
}

/// Moves a file or folder to the trash.
pub async fn remove(cx: &CallCx, path: &WsPath, removal: Removal, expected: Option<ContentHash>) -> Result<Outcome> {
    commit_one(cx, Change::Remove { path: path.clone(), removal }, expecting(path, expected)).await
}

fn expecting(path: &WsPath, hash: Option<ContentHash>) -> Option<Expect> {
    hash.map(|hash| Expect::Hash(path.clone(), hash))
}

/// Commits a single change and gives its outcome.
pub(crate) async fn commit_one(cx: &CallCx, change: Change, expect: Option<Expect>) -> Result<Outcome> {
    let commit = cx.workspace.commit(Changeset::one(change).expecting(expect), cx).await?;
    commit.outcomes.into_iter().next().ok_or_else(|| ToolError::new(ErrorKind::Internal, "a change had no outcome"))
}

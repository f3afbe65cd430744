//! Undoing changes of files that have changed since.

use super::{ChangedSince, FileUndo, MAX_VERSIONS, UndoError, Way};
use crate::commit_diff::{SMALL_BYTES, version_before};
use crate::heavy;
use std::collections::{BTreeMap, BTreeSet};
use toolrest_core::{
    CallCx, CommitId, CommitInfo, Content, Effect, EffectKind, Entry, ErrorKind, Expect, FileId, Page, Parents, Put,
    Result, ToolError, Version,
};
use toolrest_edit::merge::{MergeConflict, merge};

/// Finds for each file how to undo it from its current state.
pub(super) async fn resolve(
    cx: &CallCx,
    commits: &[CommitInfo],
    files: &mut BTreeMap<FileId, FileUndo<'_>>,
) -> Result<(), UndoError> {
    let mut in_the_way = Vec::new();
    let mut others = Vec::new();
    let mut is_changed = false;
    for file in files.values_mut() {
        // A file without versions is left to the conditions of the commit.
        if matches!(file.way, Way::Nothing) || !has_version(file.newest()) {
            continue;
        }
        match way(cx, file).await? {
            Found::AsLeft => others.push(file.newest().path.clone()),
            Found::Way(way) => {
                is_changed = true;
                file.way = way;
                others.push(file.newest().path.clone());
            }
            Found::Changed(region) => in_the_way.push((file.newest().clone(), region)),
        }
    }
    let Some((effect, region)) = in_the_way.into_iter().next() else {
        if is_changed {
            return Ok(());
        }
        return Err(ToolError::new(ErrorKind::Conflict, "The files have changed since").into());
    };
    let own: BTreeSet<CommitId> = commits.iter().map(|commit| commit.id).collect();
    let since = commits.iter().find(|commit| commit.changes.iter().any(|change| change.file_id == effect.file_id));
    let since = since.map(|commit| commit.id).ok_or_else(|| ToolError::internal("an effect without a commit"))?;
    let by = changed_by(cx, &effect, &own).await?;
    Err(UndoError::Changed(Box::new(ChangedSince { path: effect.path, since, by, region, others })))
}

fn has_version(effect: &Effect) -> bool {
    let changes_content = matches!(effect.op, EffectKind::Create | EffectKind::Restore | EffectKind::Update);
    changes_content && effect.version_id.is_some()
}

enum Found {
    /// It is as the newest effect left it.
    AsLeft,
    Way(Way),
    /// It has changed; with the lines in the way if it is a text.
    Changed(Option<MergeConflict>),
}

async fn way(cx: &CallCx, file: &FileUndo<'_>) -> Result<Found> {
    let newest = file.newest();
    let found = match cx.workspace.file_by_id(newest.file_id, 0).await {
        Ok(found) if found.entry.deleted_at.is_none() => found.entry,
        Ok(_) => return Ok(Found::Changed(None)),
        Err(error) if error.kind == ErrorKind::NotFound => return Ok(Found::Changed(None)),
        Err(error) => return Err(error),
    };
    // In a folder, only the disk says what the content is now.
    let max_bytes = u64::try_from(SMALL_BYTES).unwrap_or(0);
    let current = match cx.workspace.read(&found.path, max_bytes).await {
        Ok(current) => current,
        Err(error) if error.kind == ErrorKind::NotFound => return Ok(Found::Changed(None)),
        Err(error) => return Err(error),
    };
    let versions = cx.workspace.versions(newest.file_id, Page { before: None, limit: MAX_VERSIONS }).await?;
    let as_left = versions.iter().position(|version| Some(version.id) == newest.version_id);
    let hash = match &current.content {
        Some(content) => Some(content.hash()?),
        None => current.entry.hash,
    };
    if !file.net.is_interrupted
        && let Some(at) = as_left
        && Some(versions[at].hash) == hash
    {
        if at == 0 {
            return Ok(Found::AsLeft);
        }
        if are_undone(cx, &versions[..at]).await? {
            return Ok(Found::Way(Way::InverseFrom(versions[0].id)));
        }
    }
    if !file.is_of_content() {
        return Ok(Found::Changed(None));
    }
    merged(cx, file, current.entry, current.content).await
}

/// Whether all commits of these versions undo others or were undone, so that one commit after the other can be undone.
async fn are_undone(cx: &CallCx, versions: &[Version]) -> Result<bool> {
    for version in versions {
        let commit = version.commit_id;
        let is_undo = cx.workspace.commit_info(commit).await?.undoes.is_some();
        if !is_undo && cx.workspace.undone_by(commit).await?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Takes the updates of a text back, newest first, where nothing else has changed.
async fn merged(cx: &CallCx, file: &FileUndo<'_>, entry: Entry, content: Option<Content>) -> Result<Found> {
    let expect = Expect::unchanged(&entry).into_iter().collect();
    let Some(Content::Text(current)) = content else { return Ok(Found::Changed(None)) };
    let mut text = current.clone();
    for (after, before) in spans(&file.effects) {
        let (after, before) = (content_of(cx, file, after).await?, content_of(cx, file, before).await?);
        let (Some(after), Some(before)) = (after, before) else { return Ok(Found::Changed(None)) };
        let bytes = text.len() + after.len() + before.len();
        let merged = heavy::run(cx, bytes, move |stop| Ok(merge(&after, &text, &before, stop))).await?;
        match merged {
            Ok(merged) => text = merged,
            Err(conflict) => return Ok(Found::Changed(Some(conflict))),
        }
    }
    if text == current && file.net.mode_before.is_none() {
        return Ok(Found::Way(Way::Nothing));
    }
    let put = Put {
        path: entry.path,
        file_type: entry.file_type,
        content: Content::of_text(text),
        parents: Parents::Require,
        executable: file.net.mode_before.map(|mode| mode & 0o111 != 0),
    };
    Ok(Found::Way(Way::Merged(Box::new(put), expect)))
}

/// Returns the updates as pairs of the numbers of the versions after and before them. Updates that follow each other are one.
fn spans(effects: &[&Effect]) -> Vec<(i64, i64)> {
    let mut spans: Vec<(i64, i64)> = Vec::new();
    for effect in effects.iter().filter(|effect| effect.op == EffectKind::Update) {
        let (Some(after), Some(before)) = (effect.after, effect.before) else { continue };
        match spans.last_mut().filter(|span| span.1 == after) {
            Some(span) => span.1 = before,
            None => spans.push((after, before)),
        }
    }
    spans
}

/// Reads a version of a text that is not large.
async fn content_of(cx: &CallCx, file: &FileUndo<'_>, seq: i64) -> Result<Option<String>> {
    let id = file.newest().file_id;
    let Some(version) = version_before(cx, id, Some(seq + 1)).await? else { return Ok(None) };
    match cx.workspace.version(id, version, SMALL_BYTES).await {
        Ok((version, Some(Content::Text(text)))) if version.seq == seq => Ok(Some(text)),
        Ok(_) => Ok(None),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the first other commit that changed a file after an effect, if it is recorded.
async fn changed_by(cx: &CallCx, effect: &Effect, own: &BTreeSet<CommitId>) -> Result<Option<CommitInfo>> {
    let page = Page { before: None, limit: MAX_VERSIONS };
    let versions = match cx.workspace.versions(effect.file_id, page).await {
        Ok(versions) => versions,
        Err(error) if error.kind == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let is_later = |version: &&Version| effect.after.is_none_or(|after| version.seq > after);
    let later = versions.iter().take_while(is_later).filter(|version| !own.contains(&version.commit_id)).last();
    let later = later.or_else(|| versions.iter().find(|version| !own.contains(&version.commit_id)));
    match later {
        Some(version) => cx.workspace.commit_info(version.commit_id).await.map(Some),
        None => Ok(None),
    }
}

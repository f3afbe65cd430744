//! The diff of a commit.

use crate::heavy;
use crate::write_text::visible_bytes_if_any;
use std::collections::BTreeMap;
use toolrest_core::{
    CallCx, Content, Effect, EffectKind, ErrorKind, FileId, FileType, Page, Result, ToolError, VersionId, WsPath,
};
use toolrest_edit::diff::{FileChange, LIMIT_BYTES, Origin, Side};

/// Contents up to this size are read without reserving memory.
pub const SMALL_BYTES: i64 = 256 << 10;

/// A file before or after a change.
#[derive(Clone, Debug, Default)]
pub struct DiffSide {
    /// Its path; none if there is no file.
    pub path: Option<WsPath>,
    /// Its content; none for a folder, or if only the path is compared.
    pub content: Option<Content>,
    /// Its mode, if that changed.
    pub mode: Option<u32>,
}

/// Returns the diff of the effects of a commit. A file that cannot be shown has a line that says why.
pub async fn commit_diff(cx: &CallCx, effects: Vec<Effect>, limit_bytes: usize) -> Result<String> {
    let mut text = String::new();
    for effect in merge_moves(effects) {
        let path = effect.path.clone();
        match effect_contents(cx, &effect).await {
            Ok((before, after)) => text += &effect_diff(cx, effect, before, after).await?,
            // The other files are still shown.
            Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::ResponseTooLarge) => {
                text.extend(["# ", path.as_str(), ": ", &error.message, "\n"]);
            }
            Err(error) => return Err(error),
        }
        check_size(i64::try_from(text.len()).unwrap_or(i64::MAX), limit_bytes)?;
    }
    Ok(text)
}

/// Returns the contents of a file before and after an effect.
async fn effect_contents(cx: &CallCx, effect: &Effect) -> Result<(Option<Content>, Option<Content>)> {
    let (EffectKind::Create | EffectKind::Update | EffectKind::Remove | EffectKind::Restore, Some(version)) =
        (effect.op, effect.version_id)
    else {
        return Ok((None, None));
    };
    let (before, after) = match effect.op {
        EffectKind::Remove => (Some(version), None),
        EffectKind::Update => {
            let before = version_before(cx, effect.file_id, effect.after).await?;
            (Some(before.ok_or_else(|| ToolError::file_not_found(&effect.path))?), Some(version))
        }
        _ => (None, Some(version)),
    };
    // Small contents are read at once; for large ones, memory is reserved first.
    let read = async |version: Option<VersionId>, max_bytes: i64| -> Result<_> {
        let Some(version) = version else { return Ok((0, None)) };
        let (version, content) = cx.workspace.version(effect.file_id, version, max_bytes).await?;
        Ok((version.size, content))
    };
    let (mut old, mut new) = (read(before, SMALL_BYTES).await?, read(after, SMALL_BYTES).await?);
    if old.0.max(new.0) > SMALL_BYTES {
        let max_bytes = make_room(cx, &[old.0, new.0]).await?;
        (old, new) = (read(before, max_bytes).await?, read(after, max_bytes).await?);
    }
    Ok((old.1, new.1))
}

/// Returns the newest version of a file before the one with this number.
pub(crate) async fn version_before(cx: &CallCx, file: FileId, seq: Option<i64>) -> Result<Option<VersionId>> {
    let versions = cx.workspace.versions(file, Page { before: seq, limit: 1 }).await?;
    Ok(versions.first().map(|version| version.id))
}

/// Reserves memory for contents of these sizes; fails if one is larger than an answer. Returns the largest size.
pub async fn make_room(cx: &CallCx, sizes: &[i64]) -> Result<i64> {
    let largest = sizes.iter().copied().max().unwrap_or(0);
    check_size(largest, cx.limits.response_bytes)?;
    let all = sizes.iter().map(|size| u64::try_from(*size).unwrap_or(0)).sum();
    cx.workspace.make_room(all).await?;
    Ok(largest)
}

/// Refuses a content that is larger than an answer.
fn check_size(size: i64, limit: usize) -> Result<()> {
    if usize::try_from(size).is_ok_and(|size| size <= limit) {
        return Ok(());
    }
    let message = format!("The content is {size} bytes, over the limit of {limit}");
    Err(ToolError::new(ErrorKind::ResponseTooLarge, message))
}

/// Returns the diff of one effect of a commit, given the contents before and after. Renames and mode changes are in
/// git's extended headers.
pub async fn effect_diff(
    cx: &CallCx,
    effect: Effect,
    before: Option<Content>,
    after: Option<Content>,
) -> Result<String> {
    let (has_before, has_after) = (before.is_some(), after.is_some());
    let moved = effect.from.filter(|_| effect.op == EffectKind::Move);
    let is_move = moved.is_some();
    let side = |path: WsPath, content, mode, exists: bool| DiffSide {
        path: (exists || is_move).then_some(path),
        content,
        mode,
    };
    let before = side(moved.unwrap_or_else(|| effect.path.clone()), before, effect.mode_before, has_before);
    let after = side(effect.path, after, effect.mode_after, has_after);
    file_diff(cx, before, after).await
}

/// Returns the diff between two states of a file.
pub async fn file_diff(cx: &CallCx, before: DiffSide, after: DiffSide) -> Result<String> {
    let limit_bytes = cx.limits.response_bytes;
    let bytes_of = |side: &DiffSide| side.content.as_ref().map_or(0, |content| content.stored().len());
    heavy::run(cx, bytes_of(&before) + bytes_of(&after), move |stop| {
        // The type is not recorded with a version. Only documents and other JSON differ in how they are shown.
        let with_type = |content: Content| {
            let is_document = matches!(&content, Content::Json(json) if json.document_text().is_some());
            (if is_document { FileType::Document } else { FileType::Canvas }, content)
        };
        let root = WsPath::root();
        let named = [&before.path, &after.path].map(|path| path.as_ref().unwrap_or(&root).clone());
        let modes = [before.mode, after.mode];
        let exists = [before.path.is_some(), after.path.is_some()];
        let (before, after) = (before.content.map(with_type), after.content.map(with_type));
        let before = visible_bytes_if_any(before.as_ref(), &named[0], limit_bytes)?;
        let after = visible_bytes_if_any(after.as_ref(), &named[1], limit_bytes)?;
        let side =
            |content, index: usize| Side { path: named[index].without_slash().as_bytes(), content, mode: modes[index] };
        let change = FileChange {
            old: exists[0].then(|| side(before.as_deref().unwrap_or_default(), 0)),
            new: exists[1].then(|| side(after.as_deref().unwrap_or_default(), 1)),
            origin: Origin::Renamed,
        };
        Ok(change.unified(LIMIT_BYTES, stop))
    })
    .await
}

/// Merges the moves of each file into one. A file whose new path was not free was moved to a temporary name first; the
/// temporary name is left out.
pub fn merge_moves(effects: Vec<Effect>) -> Vec<Effect> {
    let is_move = |effect: &Effect| effect.op == EffectKind::Move;
    let mut last: BTreeMap<_, usize> = BTreeMap::new();
    for (at, effect) in effects.iter().enumerate().filter(|(_, effect)| is_move(effect)) {
        last.insert(effect.file_id, at);
    }
    let mut first: BTreeMap<_, Option<WsPath>> = BTreeMap::new();
    let mut kept = Vec::with_capacity(effects.len());
    for (at, mut effect) in effects.into_iter().enumerate() {
        if is_move(&effect) {
            let from = first.entry(effect.file_id).or_insert_with(|| effect.from.clone()).clone();
            if last.get(&effect.file_id) != Some(&at) {
                continue;
            }
            effect.from = from;
        }
        kept.push(effect);
    }
    kept
}

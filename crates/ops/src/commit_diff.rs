//! The diff of a commit.

use crate::heavy;
use crate::write_text::visible_bytes_if_any;
use std::collections::BTreeMap;
use toolrest_core::{CallCx, Content, Effect, EffectKind, FileType, Result, WsPath};
use toolrest_edit::diff::{FileChange, LIMIT_BYTES, Origin, Side};

/// Returns the diff of one effect of a commit, given the contents before and after. Renames and mode changes are in
/// git's extended headers.
pub async fn effect_diff(
    cx: &CallCx,
    effect: Effect,
    before: Option<Content>,
    after: Option<Content>,
) -> Result<String> {
    let limit_bytes = cx.limits.response_bytes;
    let bytes_of = |content: &Option<Content>| content.as_ref().map_or(0, |content| content.stored().len());
    heavy::run(cx, bytes_of(&before) + bytes_of(&after), move |stop| {
        let path = effect.path.without_slash().as_bytes();
        if let (EffectKind::Move, Some(from)) = (effect.op, &effect.from) {
            let side = |path| Some(Side { path, content: b"", mode: None });
            let moved =
                FileChange { old: side(from.without_slash().as_bytes()), new: side(path), origin: Origin::Renamed };
            return Ok(moved.unified(LIMIT_BYTES, stop));
        }
        // The type is not recorded with a version. Only documents and other JSON differ in how they are shown.
        let with_type = |content: Content| {
            let is_document = matches!(&content, Content::Json(json) if json.document_text().is_some());
            (if is_document { FileType::Document } else { FileType::Canvas }, content)
        };
        let (before, after) = (before.map(with_type), after.map(with_type));
        let before = visible_bytes_if_any(before.as_ref(), &effect.path, limit_bytes)?;
        let after = visible_bytes_if_any(after.as_ref(), &effect.path, limit_bytes)?;
        let side = |content, mode| Side { path, content, mode };
        let change = FileChange {
            old: before.as_deref().map(|content| side(content, effect.mode_before)),
            new: after.as_deref().map(|content| side(content, effect.mode_after)),
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

//! What a commit changed, as a unified diff.

use crate::write_text::seen;
use toolrest_core::{Content, Effect, EffectKind, FileType, Result};
use toolrest_edit::diff;

/// One effect of a commit as a part of a diff, with what the file held before and after, where it is a file. A new name
/// is told in git's words.
pub fn effect_diff(
    effect: &Effect,
    before: Option<Content>,
    after: Option<Content>,
    limit_bytes: usize,
) -> Result<String> {
    let path = effect.path.without_slash();
    if let (EffectKind::Move, Some(from)) = (effect.op, &effect.from) {
        let from = from.without_slash();
        return Ok(format!("diff --git a/{from} b/{path}\nrename from {from}\nrename to {path}\n"));
    }
    let shown = |content: Content| {
        let is_document = matches!(&content, Content::Json(json) if json.document_text().is_some());
        let file_type = if is_document { FileType::Document } else { FileType::Canvas };
        seen(&(file_type, content), &effect.path, limit_bytes)
    };
    let (before, after) = (before.map(shown).transpose()?, after.map(shown).transpose()?);
    Ok(diff::unified(path.as_bytes(), before.as_deref(), after.as_deref()))
}

//! What a commit changed, as a unified diff.

use crate::document::Editable;
use toolrest_core::{Content, Effect, EffectKind, FileType, Result};
use toolrest_edit::diff;

/// One effect of a commit as a part of a diff, with what the file held before and after, where it is a file. Names come
/// in git's words where nothing else changed.
pub fn effect_diff(
    effect: &Effect,
    before: Option<&Content>,
    after: Option<&Content>,
    limit_bytes: usize,
) -> Result<String> {
    let path = effect.path.without_slash();
    if let (EffectKind::Move, Some(from)) = (effect.op, &effect.from) {
        let from = from.without_slash();
        return Ok(format!("diff --git a/{from} b/{path}\nrename from {from}\nrename to {path}\n"));
    }
    let seen = |content: Option<&Content>| content.map(|content| bytes_of(content, effect, limit_bytes)).transpose();
    let (before, after) = (seen(before)?, seen(after)?);
    if before.is_none() && after.is_none() {
        return Ok(String::new());
    }
    Ok(diff::unified(path.as_bytes(), before.as_deref(), after.as_deref()))
}

/// What programs see of a content.
fn bytes_of(content: &Content, effect: &Effect, limit_bytes: usize) -> Result<Vec<u8>> {
    match content {
        Content::Text(text) => Ok(text.as_bytes().to_vec()),
        Content::Bytes(bytes) => Ok(bytes.clone()),
        Content::Json(json) => {
            let is_document = json.document_text().is_some();
            let file_type = if is_document { FileType::Document } else { FileType::Canvas };
            Ok(Editable::of(content.clone(), file_type, &effect.path, limit_bytes)?.text.into_bytes())
        }
    }
}

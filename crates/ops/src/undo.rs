//! Taking a commit back.

use std::collections::BTreeSet;
use toolrest_core::{
    Change, Changeset, CommitInfo, Destination, Effect, EffectKind, ErrorKind, Expect, Removal, Result, ToolError,
};

/// The changes that take a commit back, if nothing it touched has changed since.
pub fn undo(commit: &CommitInfo) -> Result<Changeset> {
    let mut inverse = Changeset { undoes: Some(commit.id), ..Changeset::default() };
    let mut seen = BTreeSet::new();
    for effect in commit.changes.iter().rev() {
        // What must still be true of a file is what the last of its effects left.
        if seen.insert(effect.file_id) {
            inverse.expect.extend(expectations(effect));
        }
        inverse.changes.extend(inverse_of(effect));
    }
    if inverse.changes.is_empty() {
        return Err(ToolError::new(ErrorKind::Conflict, format!("Commit {} changed nothing to undo", commit.id)));
    }
    Ok(inverse)
}

/// That nothing has happened to a file since.
fn expectations(effect: &Effect) -> Vec<Expect> {
    let file = effect.file_id;
    let at = Expect::At(file, effect.path.clone());
    let version = effect.version_id.map(|version| Expect::Version(file, version));
    match effect.op {
        EffectKind::Create | EffectKind::Restore => version.into_iter().chain([at]).collect(),
        EffectKind::Update => version.into_iter().collect(),
        EffectKind::Move => vec![at],
        EffectKind::Remove => vec![Expect::InTrash(file, effect.path.clone(), effect.version_id)],
        EffectKind::Touch => Vec::new(),
    }
}

fn inverse_of(effect: &Effect) -> Option<Change> {
    let (file, path) = (effect.file_id, effect.path.clone());
    match effect.op {
        EffectKind::Create | EffectKind::Restore => Some(Change::Remove { path, removal: Removal::Single }),
        EffectKind::Update => effect.before.map(|seq| Change::Revert { file, seq, mode: effect.mode_before }),
        EffectKind::Move => effect.from.clone().map(|from| Change::Move { from: path, to: Destination::Exactly(from) }),
        EffectKind::Remove => Some(Change::Restore(file)),
        // A time that was renewed is not worth taking back.
        EffectKind::Touch => None,
    }
}

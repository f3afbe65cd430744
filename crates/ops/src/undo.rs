//! Taking a commit back.

use toolrest_core::{
    Change, Changeset, CommitInfo, Destination, Effect, EffectKind, ErrorKind, Expect, Removal, Result, ToolError,
};

/// The changes that take a commit back, if nothing it touched has changed since.
pub fn undo(commit: &CommitInfo) -> Result<Changeset> {
    let mut inverse = Changeset { undoes: Some(commit.id), ..Changeset::default() };
    for effect in commit.changes.iter().rev() {
        take_back(effect, &mut inverse);
    }
    if inverse.changes.is_empty() {
        return Err(ToolError::new(ErrorKind::Conflict, format!("Commit {} changed nothing to undo", commit.id)));
    }
    Ok(inverse)
}

fn take_back(effect: &Effect, inverse: &mut Changeset) {
    let file = effect.file_id;
    let at = Expect::At(file, effect.path.clone());
    let version = effect.version_id.map(|version| Expect::Version(file, version));
    match (effect.op, effect.before, &effect.from) {
        (EffectKind::Create | EffectKind::Restore, _, _) => {
            inverse.expect.push(at);
            inverse.expect.extend(version);
            inverse.changes.push(Change::Remove { path: effect.path.clone(), removal: Removal::Single });
        }
        (EffectKind::Update, Some(seq), _) => {
            inverse.expect.extend(version);
            inverse.changes.push(Change::Revert { file, seq });
        }
        (EffectKind::Move, _, Some(from)) => {
            inverse.expect.push(at);
            let to = Destination::Exactly(from.clone());
            inverse.changes.push(Change::Move { from: effect.path.clone(), to });
        }
        (EffectKind::Remove, _, _) => inverse.changes.push(Change::Restore(file)),
        // A time that was renewed is not worth taking back, and an update from nothing does not exist.
        (EffectKind::Touch | EffectKind::Update | EffectKind::Move, _, _) => {}
    }
}

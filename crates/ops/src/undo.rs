//! Taking a commit back.

use std::collections::BTreeSet;
use toolrest_core::{
    Change, Changeset, CommitInfo, Destination, Effect, EffectKind, ErrorKind, Expect, Removal, Result, ToolError,
};

/// How many files a refusal names.
const NAMED: usize = 50;

/// Whether a commit is taken back though others may have made some of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Force {
    #[default]
    No,
    Yes,
}

/// The changes that take a commit back, if nothing it touched has changed since.
pub fn undo(commit: &CommitInfo, force: Force) -> Result<Changeset> {
    if commit.is_of_folder() && force == Force::No {
        return Err(not_told_apart(commit));
    }
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

/// The refusal to take back what a process did, or others did while it ran.
fn not_told_apart(commit: &CommitInfo) -> ToolError {
    let paths: BTreeSet<&str> = commit.changes.iter().map(|effect| effect.path.as_str()).collect();
    let mut named: Vec<&str> = paths.iter().copied().take(NAMED).collect();
    let more = paths.len() - named.len();
    let rest = format!("and {more} more");
    named.extend((more > 0).then_some(&*rest));
    let message = format!(
        "Commit {} holds what changed in the folder {}, by the process or by others, which cannot be told apart. Undoing it \
         takes back all of it: {}. To do that, send {{\"force\": true}}",
        commit.id,
        commit.tool,
        named.join(", ")
    );
    ToolError::new(ErrorKind::Conflict, message).detail("paths", paths.into_iter().collect::<Vec<_>>())
}

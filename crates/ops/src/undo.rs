//! Undo of a commit.

use std::collections::BTreeSet;
use toolrest_core::{
    Change, Changeset, CommitInfo, Destination, Effect, EffectKind, ErrorKind, Expect, Removal, Result, ToolError,
};

/// Maximum number of files in the error message.
const MAX_NAMED: usize = 50;

/// Whether to undo a commit that may contain changes of others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Force {
    #[default]
    No,
    Yes,
}

/// Returns the changeset that undoes a commit. It expects that the files have not changed since.
pub fn undo(commit: &CommitInfo, force: Force) -> Result<Changeset> {
    if commit.is_of_folder() && force == Force::No {
        return Err(unknown_author(commit));
    }
    let mut inverse = Changeset { undoes: Some(commit.id), ..Changeset::default() };
    let mut files = BTreeSet::new();
    for effect in commit.changes.iter().rev() {
        // The last effect on a file determines what is expected of it.
        if files.insert(effect.file_id) {
            inverse.expect.extend(expectations(effect));
        }
        inverse.changes.extend(inverse_of(effect));
    }
    if inverse.changes.is_empty() {
        return Err(ToolError::new(ErrorKind::Conflict, format!("Commit {} changed nothing to undo", commit.id)));
    }
    Ok(inverse)
}

/// Returns the conditions that a file has not changed since.
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
        // The update of a time is not undone.
        EffectKind::Touch => None,
    }
}

/// Creates the error for undoing changes whose author is unknown: a background process, or others while it ran.
fn unknown_author(commit: &CommitInfo) -> ToolError {
    let paths: BTreeSet<&str> = commit.changes.iter().map(|effect| effect.path.as_str()).collect();
    let mut named: Vec<&str> = paths.iter().copied().take(MAX_NAMED).collect();
    let more = paths.len() - named.len();
    let rest = format!("and {more} more");
    named.extend((more > 0).then_some(&*rest));
    let message = format!(
        "Commit {} contains all changes to the folder {}; it is not known which are from the process and which from \
         others. Undoing it undoes all of them: {}. To do that, send {{\"force\": true}}",
        commit.id,
        commit.tool,
        named.join(", ")
    );
    ToolError::new(ErrorKind::Conflict, message).detail("paths", paths.into_iter().collect::<Vec<_>>())
}

//! The guard: judges what a call does to the files of a workspace.

use crate::{Action, ActionSet, Effect, EffectKind, ErrorKind, FileId, Result, ToolError, WsPath};
use std::collections::{BTreeMap, HashSet};

/// What a caller may do in a workspace beyond what its role says.
///
/// It is pure: it does no I/O, so it can be asked within a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    allowed: ActionSet,
}

impl Default for Guard {
    fn default() -> Self {
        Self::UNRESTRICTED
    }
}

impl Guard {
    /// The guard of a person, who may do everything that the role allows.
    pub const UNRESTRICTED: Self = Self { allowed: ActionSet::all() };

    /// Creates the guard of a caller that may only do these actions.
    pub fn of_actions(allowed: ActionSet) -> Self {
        Self { allowed }
    }

    /// Whether nothing is forbidden.
    pub fn is_unrestricted(&self) -> bool {
        self.allowed == ActionSet::all()
    }

    /// Whether a change of this kind is allowed at a path.
    pub fn allows(&self, change: NetChange, _path: &WsPath) -> bool {
        self.allowed.contains(change.action())
    }

    /// Refuses an action that the caller may not do.
    pub fn require(&self, action: Action) -> Result<()> {
        if self.allowed.contains(action) { Ok(()) } else { Err(self.refusal(action, None)) }
    }

    /// Refuses changes of which at least one is not allowed.
    pub fn judge(&self, changes: &[NetEffect]) -> Result<()> {
        match changes.iter().find(|effect| !self.allows(effect.change, &effect.path)) {
            None => Ok(()),
            Some(effect) => Err(self.refusal(effect.change.action(), Some(effect))),
        }
    }

    fn refusal(&self, action: Action, effect: Option<&NetEffect>) -> ToolError {
        let (name, allowed) = (action.name(), self.allowed);
        let advice = "Ask a person for a key with that action";
        match effect {
            None => {
                let message = format!(
                    "This agent key may not do this: it needs the action '{name}', and the key has {allowed}. {advice}"
                );
                ToolError::new(ErrorKind::Forbidden, message)
            }
            Some(NetEffect { change, path }) => {
                let message = format!(
                    "The call would {change} {path}: that needs the action '{name}', and the agent key has {allowed}. \
                     Nothing was changed. {advice}"
                );
                ToolError::new(ErrorKind::Forbidden, message).at_path(path)
            }
        }
    }
}

/// The net effect of a changeset at one path, after its last step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetEffect {
    /// What happened.
    pub change: NetChange,
    /// The path; for a move, the new path.
    pub path: WsPath,
}

/// The kinds of net effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetChange {
    /// A file or folder is new.
    Create,
    /// The content, the mode or the time of a file changed, or another file replaced it.
    Overwrite,
    /// The file or folder is removed.
    Delete,
    /// It was moved to a path that was free.
    Move,
}

impl NetChange {
    /// Returns the action that a caller must be allowed to do.
    pub fn action(self) -> Action {
        match self {
            Self::Create | Self::Overwrite => Action::Write,
            Self::Delete => Action::Delete,
            Self::Move => Action::Move,
        }
    }
}

/// Writes the verb, as it follows "would".
impl std::fmt::Display for NetChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Create => "create",
            Self::Overwrite => "change",
            Self::Delete => "delete",
            Self::Move => "move something to",
        })
    }
}

/// Returns the net effects of a sequence of effects.
///
/// Effects are steps: an overwriting move is a removal and a move, a patch may remove a file and create it again. What
/// counts for the guard is what differs at each path between the state before the first step and after the last.
pub fn net_effects(effects: &[Effect]) -> Vec<NetEffect> {
    let mut paths: BTreeMap<&WsPath, PathStates> = BTreeMap::new();
    for effect in effects {
        let mut is_changed = false;
        if let Some(from) = &effect.from {
            let source = paths.entry(from).or_insert_with(|| PathStates::found(effect.file_id));
            source.after = None;
            is_changed = std::mem::take(&mut source.is_changed);
        }
        let file = Some(effect.file_id);
        match effect.op {
            EffectKind::Create | EffectKind::Restore | EffectKind::Move => {
                let states = paths.entry(&effect.path).or_insert_with(PathStates::free);
                states.after = file;
                states.is_changed |= is_changed;
            }
            EffectKind::Update | EffectKind::Touch => {
                let states = paths.entry(&effect.path).or_insert_with(|| PathStates::found(effect.file_id));
                (states.after, states.is_changed) = (file, true);
            }
            EffectKind::Remove => {
                paths.entry(&effect.path).or_insert_with(|| PathStates::found(effect.file_id)).after = None;
            }
        }
    }
    let before: HashSet<FileId> = paths.values().filter_map(|states| states.before).collect();
    let after: HashSet<FileId> = paths.values().filter_map(|states| states.after).collect();
    let mut net = Vec::new();
    for (path, states) in &paths {
        let is_other = states.before != states.after;
        let moved_here = is_other && states.after.is_some_and(|file| before.contains(&file));
        let moved_away = is_other && states.before.is_some_and(|file| after.contains(&file));
        let change = |change| NetEffect { change, path: (*path).clone() };
        if moved_here {
            net.push(change(NetChange::Move));
        }
        match (states.before, states.after) {
            (None, None) => {}
            (None, Some(_)) if moved_here && !states.is_changed => {}
            (None, Some(_)) if moved_here => net.push(change(NetChange::Overwrite)),
            (None, Some(_)) => net.push(change(NetChange::Create)),
            (Some(_), None) if moved_away => {}
            (Some(_), None) => net.push(change(NetChange::Delete)),
            (Some(before), Some(after)) if before == after && !states.is_changed => {}
            // The file that was here has moved, and another one is in its place.
            (Some(before), Some(after)) if before != after && moved_here && moved_away && !states.is_changed => {}
            (Some(_), Some(_)) => net.push(change(NetChange::Overwrite)),
        }
    }
    net
}

/// The file at a path before the first step and after the last.
struct PathStates {
    before: Option<FileId>,
    after: Option<FileId>,
    is_changed: bool,
}

impl PathStates {
    fn free() -> Self {
        Self { before: None, after: None, is_changed: false }
    }

    fn found(file: FileId) -> Self {
        Self { before: Some(file), after: Some(file), is_changed: false }
    }
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;

//! The guard: judges what a call does to the files of a workspace.

use crate::call_rules::{CallRules, Defaults};
use crate::{Action, ActionSet, Ask, Effect, EffectKind, ErrorKind, FileId, Intent, Result, ToolError, WsPath};
use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

/// What a caller may do in a workspace beyond what its role says: the scope of its key, and the rules.
///
/// It is pure: it does no I/O, so it can be asked within a transaction.
#[derive(Clone, Debug)]
pub struct Guard {
    allowed: ActionSet,
    rules: Option<Arc<CallRules>>,
}

impl Default for Guard {
    fn default() -> Self {
        Self::UNRESTRICTED
    }
}

impl Guard {
    /// The guard of a person in a workspace without rules, who may do everything that the role allows.
    pub const UNRESTRICTED: Self = Self { allowed: ActionSet::all(), rules: None };

    /// Creates the guard of a caller that may only do these actions.
    pub fn of_actions(allowed: ActionSet) -> Self {
        Self { allowed, rules: None }
    }

    /// Adds the rules of a call.
    #[must_use]
    pub fn with_rules(self, rules: CallRules) -> Self {
        Self { rules: (!rules.is_empty()).then(|| Arc::new(rules)), ..self }
    }

    /// Whether nothing is forbidden or asked.
    pub fn is_unrestricted(&self) -> bool {
        self.allowed == ActionSet::all() && self.rules.is_none()
    }

    /// Whether a change of this kind is allowed at a path without asking.
    pub fn allows(&self, change: NetChange, path: &WsPath) -> bool {
        self.judge(&[NetEffect { change, path: path.clone() }], &[]).is_ok()
    }

    /// Refuses an action that is not in the scope of the caller's key.
    pub fn require(&self, action: Action) -> Result<()> {
        if self.allowed.contains(action) { Ok(()) } else { Err(self.refusal(action, None)) }
    }

    /// Refuses to read a path that may not be read.
    pub fn require_read(&self, path: &WsPath) -> Result<()> {
        self.require(Action::Read)?;
        let Some(rules) = &self.rules else { return Ok(()) };
        match rules.judge_path(Action::Read, path, false, Defaults::Ignore)? {
            None => Ok(()),
            Some(ask) => Err(ToolError::needs_approval(vec![ask])),
        }
    }

    /// Whether listings and searches show a path.
    pub fn shows(&self, path: &WsPath) -> bool {
        self.allowed.contains(Action::Read) && self.rules.as_ref().is_none_or(|rules| rules.shows(path))
    }

    /// Whether listings and searches show a memory.
    pub fn shows_memory(&self, key: &str) -> bool {
        self.allowed.contains(Action::Memory) && self.rules.as_ref().is_none_or(|rules| rules.shows_memory(key))
    }

    /// Whether a person makes the change directly.
    pub(crate) fn is_own_hand(&self) -> bool {
        self.rules.as_ref().is_none_or(|rules| rules.is_own_hand())
    }

    /// Judges what a call will do beyond the files. Where a rule asks, the error says what.
    pub(crate) fn judge_intents(&self, intents: &[Intent]) -> Result<()> {
        let Some(rules) = &self.rules else { return Ok(()) };
        let asks = rules.judge_intents(intents)?;
        if asks.is_empty() { Ok(()) } else { Err(ToolError::needs_approval(asks)) }
    }

    /// Whether a call may go on to this host without asking a person.
    pub(crate) fn may_go_on_to(&self, host: &str) -> bool {
        self.rules.as_ref().is_none_or(|rules| rules.may_go_on_to(host))
    }

    /// Takes what was asked so far, if the call only collects it.
    pub(crate) fn collected_asks(&self) -> Vec<Ask> {
        self.rules.as_ref().map_or_else(Vec::new, |rules| rules.collected())
    }

    /// Whether a rule can ask or refuse this action, whatever its patterns are.
    pub fn restricts(&self, action: Action) -> bool {
        self.rules.as_ref().is_some_and(|rules| rules.restricts(action))
    }

    /// Whether a rule distinguishes paths.
    pub fn has_path_rules(&self) -> bool {
        self.rules.as_ref().is_some_and(|rules| rules.has_path_rules())
    }

    /// Refuses changes of which at least one is not allowed, or must be asked for. `moved_folders` are the folders that
    /// were moved with everything below them.
    pub fn judge(&self, changes: &[NetEffect], moved_folders: &[MovedFolder]) -> Result<()> {
        if let Some(effect) = changes.iter().find(|effect| !self.allowed.contains(effect.change.action())) {
            return Err(self.refusal(effect.change.action(), Some(effect)));
        }
        self.judge_by_rules(changes, moved_folders)
    }

    fn judge_by_rules(&self, changes: &[NetEffect], folders: &[MovedFolder]) -> Result<()> {
        let Some(rules) = &self.rules else { return Ok(()) };
        let (mut asks, defaults): (Vec<Ask>, _) = (Vec::new(), Defaults::Apply);
        for NetEffect { change, path } in changes {
            let actions: &[(Action, bool, Defaults)] = match change {
                NetChange::Create => &[(Action::Write, false, defaults)],
                NetChange::Overwrite => &[(Action::Write, true, defaults)],
                NetChange::Delete => &[(Action::Delete, true, defaults)],
                // A move takes the content from one path and writes it at another.
                NetChange::Move => &[(Action::Write, false, Defaults::Ignore), (Action::Move, false, defaults)],
                NetChange::MoveAway => &[
                    (Action::Read, false, Defaults::Ignore),
                    (Action::Delete, false, Defaults::Ignore),
                    (Action::Move, false, defaults),
                ],
            };
            for (action, overwrite, defaults) in actions {
                asks.extend(rules.judge_path(*action, path, *overwrite, *defaults)?);
            }
        }
        for folder in folders {
            folder.judge(rules)?;
        }
        if asks.is_empty() { Ok(()) } else { Err(ToolError::needs_approval(asks)) }
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

/// A folder that was moved, with everything below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedFolder {
    /// Its old path.
    pub from: WsPath,
    /// Its new path.
    pub to: WsPath,
}

impl MovedFolder {
    /// Refuses the move if a rule may concern something below the folder. What is below is not listed for this: the
    /// caller can move the files one by one, and each is judged then.
    fn judge(&self, rules: &CallRules) -> Result<()> {
        let sides = [
            (&self.from, [Action::Read, Action::Delete, Action::Move]),
            (&self.to, [Action::Write, Action::Move, Action::Move]),
        ];
        for (folder, actions) in sides {
            if actions.into_iter().any(|action| rules.may_match_below(action, folder)) {
                let message = format!(
                    "The folder {} cannot be moved as a whole, because a rule may concern files below {folder}. \
                     Nothing was changed; move its files one by one",
                    self.from
                );
                return Err(ToolError::new(ErrorKind::ApprovalDenied, message).at_path(folder));
            }
        }
        Ok(())
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
    /// It was moved here, to a path that was free.
    Move,
    /// It was moved to another path.
    MoveAway,
}

impl NetChange {
    /// Returns the action that a caller must be allowed to do.
    pub fn action(self) -> Action {
        match self {
            Self::Create | Self::Overwrite => Action::Write,
            Self::Delete => Action::Delete,
            Self::Move | Self::MoveAway => Action::Move,
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
            Self::MoveAway => "move away",
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
        if moved_away {
            net.push(change(NetChange::MoveAway));
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

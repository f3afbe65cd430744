//! Who calls, and what that caller may do in a workspace.

use crate::{
    Action, ActionSet, ErrorKind, Guard, KeyId, Result, ToolError, ToolsetMask, Toolsets, UserId, WorkspaceId,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{
    fmt,
    sync::{Arc, LazyLock},
};

/// A member's rights in a workspace, from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Can read everything and change nothing.
    Viewer,
    /// Can also change files and run programs.
    Editor,
    /// Can also manage members and the workspace itself.
    Owner,
}

impl Role {
    /// Returns the number that databases store for the role.
    pub fn code(self) -> i16 {
        match self {
            Self::Viewer => 1,
            Self::Editor => 2,
            Self::Owner => 3,
        }
    }

    /// Returns the role for a number of [`Role::code`].
    pub fn from_code(code: i16) -> Option<Self> {
        match code {
            1 => Some(Self::Viewer),
            2 => Some(Self::Editor),
            3 => Some(Self::Owner),
            _ => None,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Viewer => "viewer",
            Self::Editor => "editor",
            Self::Owner => "owner",
        })
    }
}

/// The authenticated origin of a call: a person, or an agent key of that person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "StoredCaller", into = "StoredCaller")]
pub struct Caller {
    /// The person: the one who calls, or the one who made the key. Authors, quotas and fair queues use this id.
    pub user: UserId,
    /// The agent key that the call was made with.
    pub key: Option<Key>,
}

impl Caller {
    /// Returns the caller for a person who calls without a key.
    pub fn person(user: UserId) -> Self {
        Self { user, key: None }
    }

    /// Returns the id of the caller's row in `members`: the key's id or the person's.
    pub fn member(&self) -> UserId {
        self.key.map_or(self.user, |key| UserId(key.id.0))
    }

    /// Returns the id of the key that the call was made with.
    pub fn key_id(&self) -> Option<KeyId> {
        self.key.map(|key| key.id)
    }

    /// Returns the guard of the caller's calls.
    pub fn guard(&self) -> Arc<Guard> {
        static UNRESTRICTED: LazyLock<Arc<Guard>> = LazyLock::new(Arc::default);
        match self.key {
            Some(key) if key.actions != ActionSet::all() => Arc::new(Guard::of_actions(key.actions)),
            _ => Arc::clone(&UNRESTRICTED),
        }
    }

    /// Returns the caller's access to a workspace, to be checked.
    pub fn access(&self, workspace: WorkspaceId, need: Role) -> Access {
        Access { workspace, user: self.member(), person: self.user, need, rules: None }
    }
}

/// A caller as it is stored: ids only. A stored key has no scope until it is looked up, so it may do nothing.
#[derive(Serialize, Deserialize)]
struct StoredCaller {
    user: UserId,
    key: Option<(KeyId, WorkspaceId)>,
}

impl From<Caller> for StoredCaller {
    fn from(caller: Caller) -> Self {
        Self { user: caller.user, key: caller.key.map(|key| (key.id, key.workspace)) }
    }
}

impl From<StoredCaller> for Caller {
    fn from(stored: StoredCaller) -> Self {
        let (actions, toolsets) = Default::default();
        Self { user: stored.user, key: stored.key.map(|(id, workspace)| Key { id, workspace, actions, toolsets }) }
    }
}

/// An agent key: acts for the person who made it, in one workspace, within its scope. The scope never changes, because
/// the key's secret contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// Its id.
    pub id: KeyId,
    /// The only workspace that it can use.
    pub workspace: WorkspaceId,
    /// What it may do.
    pub actions: ActionSet,
    /// The toolsets that it may call.
    pub toolsets: ToolsetMask,
}

impl Key {
    /// Refuses an action outside the key's scope.
    pub fn check_action(&self, action: Action) -> Result<()> {
        Guard::of_actions(self.actions).require(action)
    }

    /// Refuses a tool outside the key's scope.
    pub fn check_tool(&self, toolsets: &Toolsets, toolset: &str, action: Action) -> Result<()> {
        if !self.toolsets.contains(toolsets, toolset) {
            let names: Vec<&str> = self.toolsets.names(toolsets).collect();
            let message = format!(
                "This agent key may not use the toolset '{toolset}'; it has {}. Ask a person for a key with that toolset",
                names.join(", ")
            );
            return Err(ToolError::new(ErrorKind::Forbidden, message));
        }
        self.check_action(action)
    }
}

/// The access of a caller to a workspace, to be checked.
///
/// The statement that does the work checks it: this saves a round trip and leaves no gap between check and use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The id of the caller's row in `members`: a person's or a key's ([`Caller::member`]).
    pub user: UserId,
    /// The person: the same as `user`, or the one who made the key. Authors, budgets and fair queues use this id.
    pub person: UserId,
    /// The minimum role.
    pub need: Role,
    /// The revision of the rules that the call was judged by; none if the statement does not depend on rules. If the
    /// caller's membership has another revision, nothing is done.
    pub rules: Option<i64>,
}

impl Access {
    /// Whether the caller uses an agent key.
    pub fn is_by_key(&self) -> bool {
        self.user != self.person
    }

    /// Returns the access for a call that was judged by this revision of the rules.
    #[must_use]
    pub fn with_rules(self, revision: i64) -> Self {
        Self { rules: Some(revision), ..self }
    }
}

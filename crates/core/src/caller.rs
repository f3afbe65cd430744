//! Who calls, and what that caller may do in a workspace.

use crate::{Guard, UserId, WorkspaceId};
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

/// The authenticated origin of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// The account on whose behalf the call is made.
    pub user: UserId,
}

impl Caller {
    /// Returns the guard of this caller's calls.
    pub fn guard(&self) -> Arc<Guard> {
        static UNRESTRICTED: LazyLock<Arc<Guard>> = LazyLock::new(Arc::default);
        Arc::clone(&UNRESTRICTED)
    }
}

/// The access of a user to a workspace, to be checked.
///
/// The statement that does the work checks it: this saves a round trip and leaves no gap between check and use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The user.
    pub user: UserId,
    /// The minimum role.
    pub need: Role,
}

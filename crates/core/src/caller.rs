//! Who calls, and what that caller may do in a workspace.

use crate::{UserId, WorkspaceId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A member's rights in a workspace, from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Sees everything, changes nothing.
    Viewer,
    /// Reads and changes files.
    Editor,
    /// Also manages members and the workspace itself.
    Owner,
}

impl Role {
    /// The number that stands for the role in a database.
    pub fn code(self) -> i16 {
        match self {
            Self::Viewer => 1,
            Self::Editor => 2,
            Self::Owner => 3,
        }
    }

    /// The role for a number that [`Role::code`] gave.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The account on whose behalf the call is made.
    pub user: UserId,
}

/// A caller's claim on a workspace.
///
/// It is checked inside the statement that does the work, not before it: that saves a round trip, and there is no
/// moment between the check and the deed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The workspace that is asked for.
    pub workspace: WorkspaceId,
    /// Who asks.
    pub user: UserId,
    /// The least role that suffices.
    pub need: Role,
}

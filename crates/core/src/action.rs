//! Actions: what tools and changes do, in terms that are the same for every toolset.

use crate::Role;
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// What a tool mainly does, or what a change does to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Reads files.
    Read,
    /// Creates or changes files.
    Write,
    /// Removes files.
    Delete,
    /// Moves files.
    Move,
    /// Runs programs.
    Exec,
    /// Fetches from the web.
    Fetch,
    /// Uses GitHub.
    GitHub,
    /// Reads and writes memories.
    Memory,
}

impl Action {
    /// All actions.
    pub const ALL: [Self; 8] =
        [Self::Read, Self::Write, Self::Delete, Self::Move, Self::Exec, Self::Fetch, Self::GitHub, Self::Memory];

    /// Returns the minimum role for this action.
    pub fn needs(self) -> Role {
        match self {
            Self::Read => Role::Viewer,
            Self::Write | Self::Delete | Self::Move | Self::Exec | Self::Fetch | Self::GitHub | Self::Memory => {
                Role::Editor
            }
        }
    }

    /// Returns its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
            Self::Move => "move",
            Self::Exec => "exec",
            Self::Fetch => "fetch",
            Self::GitHub => "github",
            Self::Memory => "memory",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Action {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|action| action.name() == name).ok_or(())
    }
}

/// A set of actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ActionSet(u16);

impl ActionSet {
    /// The set of all actions.
    pub const ALL: Self = Self((1 << Action::ALL.len()) - 1);
    /// The empty set.
    pub const NONE: Self = Self(0);

    /// Whether the set has the action.
    pub fn contains(self, action: Action) -> bool {
        self.0 & bit(action) != 0
    }

    /// Returns the set with one more action.
    #[must_use]
    pub fn with(self, action: Action) -> Self {
        Self(self.0 | bit(action))
    }

    /// Returns the actions of the set, in the order of [`Action::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Action> {
        Action::ALL.into_iter().filter(move |action| self.contains(*action))
    }

    /// Returns the bits of the set, one for each action in the order of [`Action::ALL`].
    pub fn bits(self) -> u16 {
        self.0
    }

    /// Returns the set with these bits; unknown bits are dropped.
    pub fn from_bits(bits: u16) -> Self {
        Self(bits & Self::ALL.0)
    }
}

impl FromIterator<Action> for ActionSet {
    fn from_iter<I: IntoIterator<Item = Action>>(actions: I) -> Self {
        actions.into_iter().fold(Self::NONE, Self::with)
    }
}

/// Writes the names of the actions, or `none`.
impl fmt::Display for ActionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().map(Action::name).collect();
        f.write_str(if names.is_empty() { "none" } else { "" })?;
        f.write_str(&names.join(", "))
    }
}

fn bit(action: Action) -> u16 {
    1 << action as u16
}

/// What a bound call will do beyond the workspace's files, known before it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Intent {
    /// Run a program or a command line.
    Exec {
        /// The language or shell: `bash`, `python`, …
        language: String,
        /// The command line or the code.
        command: String,
    },
    /// Write to the standard input of a running process.
    Input {
        /// The process.
        process: String,
        /// The text.
        text: String,
    },
}

impl Intent {
    /// Returns the action that the intent is an instance of.
    pub fn action(&self) -> Action {
        match self {
            Self::Exec { .. } | Self::Input { .. } => Action::Exec,
        }
    }
}

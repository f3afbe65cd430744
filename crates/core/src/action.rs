//! Actions: what tools and changes do, in terms that are the same for every toolset.

use crate::Role;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;

/// What a tool mainly does, or what a change does to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
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
    /// Reads from the web.
    Fetch,
    /// Uses GitHub.
    GitHub,
    /// Uses memories.
    Memory,
}

impl Action {
    /// All actions, in the order in which they are listed.
    pub const ALL: [Self; 8] =
        [Self::Read, Self::Write, Self::Delete, Self::Move, Self::Exec, Self::Fetch, Self::GitHub, Self::Memory];

    /// Returns the minimum role for this action.
    pub fn needs(self) -> Role {
        match self {
            Self::Read | Self::Fetch => Role::Viewer,
            Self::Write | Self::Delete | Self::Move | Self::Exec | Self::GitHub | Self::Memory => Role::Editor,
        }
    }

    /// Whether it is done to files of the workspace, and to nothing else.
    pub fn is_about_files(self) -> bool {
        matches!(self, Self::Read | Self::Write | Self::Delete | Self::Move)
    }

    /// Returns the name on the wire.
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

    /// Whether tools of this action change nothing.
    pub fn is_read_only(self) -> bool {
        matches!(self, Self::Read | Self::Fetch)
    }

    /// Returns what clients are told about tools of this action, before they decide whether to ask their user.
    pub fn hints(self) -> ToolHints {
        ToolHints {
            is_read_only: self.is_read_only(),
            is_destructive: !self.is_read_only(),
            is_idempotent: self.is_read_only() || self == Self::Delete,
            is_open_world: matches!(self, Self::Exec | Self::Fetch | Self::GitHub),
        }
    }

    /// Returns the action of a name of [`Action::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.name() == name)
    }
}

/// What clients are told about a tool, in the terms of the Model Context Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "the protocol has four independent hints")]
pub struct ToolHints {
    /// It changes nothing.
    pub is_read_only: bool,
    /// It may replace or remove something, and not only add.
    pub is_destructive: bool,
    /// The same call again changes nothing more.
    pub is_idempotent: bool,
    /// It may reach what is outside of the workspace.
    pub is_open_world: bool,
}

/// The hints that a tool gives to clients of the Model Context Protocol. One that is none is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// Whether it changes nothing.
    #[serde(rename = "readOnlyHint", skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Whether it may replace or remove something.
    #[serde(rename = "destructiveHint", skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// Whether the same call again changes nothing more.
    #[serde(rename = "idempotentHint", skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// Whether it may reach what is outside of the workspace.
    #[serde(rename = "openWorldHint", skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

impl Annotations {
    /// Returns all hints.
    pub fn of(hints: ToolHints) -> Self {
        Self {
            read_only: Some(hints.is_read_only),
            destructive: Some(hints.is_destructive),
            idempotent: Some(hints.is_idempotent),
            open_world: Some(hints.is_open_world),
        }
    }
}

/// A set of actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ActionSet(u16);

impl ActionSet {
    /// Returns the set of all actions.
    pub const fn all() -> Self {
        Self((1 << Action::ALL.len()) - 1)
    }

    /// Whether the action is in the set.
    pub fn contains(self, action: Action) -> bool {
        self.0 & bit(action) != 0
    }

    /// Whether the set has no action.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns its actions, in the order of [`Action::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Action> {
        Action::ALL.into_iter().filter(move |action| self.contains(*action))
    }

    /// Returns the lowest role with which all its actions are allowed.
    pub fn needs(self) -> Role {
        self.iter().map(Action::needs).max().unwrap_or(Role::Viewer)
    }

    /// Returns the set as a number, in which each action is one bit.
    pub fn bits(self) -> u16 {
        self.0
    }

    /// Returns the set for a number of [`ActionSet::bits`]. Bits that are no action are ignored.
    pub fn from_bits(bits: u16) -> Self {
        Self(bits & Self::all().0)
    }
}

fn bit(action: Action) -> u16 {
    1 << action as u16
}

impl FromIterator<Action> for ActionSet {
    fn from_iter<I: IntoIterator<Item = Action>>(actions: I) -> Self {
        Self(actions.into_iter().fold(0, |bits, action| bits | bit(action)))
    }
}

/// Writes the names, separated by commas.
impl fmt::Display for ActionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, action) in self.iter().enumerate() {
            write!(f, "{}{}", if n == 0 { "" } else { ", " }, action.name())?;
        }
        Ok(())
    }
}

impl Serialize for ActionSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(Action::name))
    }
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
        /// The simple commands that it consists of, if it is a plain list of them.
        commands: Option<Vec<String>>,
        /// The names of the secrets that the program gets.
        secrets: Vec<String>,
        /// Its arguments, and its environment variables as `NAME=value`.
        inputs: Vec<String>,
    },
    /// Write to the standard input of a running process.
    Input {
        /// The process.
        process: String,
        /// The text.
        text: String,
    },
    /// Send a request to a host of the web.
    Fetch {
        /// The method: `GET`, `POST`.
        method: String,
        /// The whole address.
        url: String,
        /// The host, and the port if it is not the usual one of the scheme.
        host: String,
    },
    /// Use GitHub.
    GitHub {
        /// What is done, in words: `merge pull request 7 (squash)`.
        operation: String,
        /// The repository, as `owner/name`.
        repository: String,
    },
    /// Use the memories of the workspace.
    Memory {
        /// What is done: `save`, `retrieve`, `delete`.
        operation: String,
        /// The key; empty if there is none.
        key: String,
    },
}

impl Intent {
    /// Adds the arguments and environment variables of a program. With variables it is not certain what a command line
    /// does: some make the shell or a program run other programs.
    #[must_use]
    pub fn with_inputs(mut self, arguments: &[String], env: impl IntoIterator<Item = (String, String)>) -> Self {
        if let Self::Exec { inputs, commands, language, .. } = &mut self {
            inputs.extend_from_slice(arguments);
            let variables = inputs.len();
            inputs.extend(env.into_iter().map(|(name, value)| format!("{name}={value}")));
            if inputs.len() > variables || (language == "bash" && !inputs.is_empty()) {
                *commands = None;
            }
        }
        self
    }

    /// Adds the names of the secrets that a program gets.
    #[must_use]
    pub fn with_secrets(mut self, names: &[String]) -> Self {
        if let Self::Exec { secrets, .. } = &mut self {
            secrets.extend_from_slice(names);
        }
        self
    }

    /// Returns the action that the intent is an instance of.
    pub fn action(&self) -> Action {
        match self {
            Self::Exec { .. } | Self::Input { .. } => Action::Exec,
            Self::Fetch { .. } => Action::Fetch,
            Self::GitHub { .. } => Action::GitHub,
            Self::Memory { .. } => Action::Memory,
        }
    }
}

#[cfg(test)]
#[path = "action_tests.rs"]
mod tests;

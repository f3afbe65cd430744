//! `toolrest mcp install`: adds Toolrest to the configuration of an agent.

use clap::ValueEnum;

use super::Action;

/// The agents whose configuration is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Client {
    ClaudeCode,
}

pub(crate) fn install(action: Action) -> Result<(), String> {
    let Action::Install { client, dir, print } = action;
    Err(format!("{client:?} {dir:?} {print}"))
}

//! Runs the `toolrest` command.

use std::{
    path::Path,
    process::{Command, Output},
};

pub const BINARY: &str = env!("CARGO_BIN_EXE_toolrest");

/// The command in a folder, with no settings but those of the arguments.
pub fn toolrest(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(arguments).current_dir(folder);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("TOOLREST_") || name.starts_with("BUILDSCALE_")) {
            command.env_remove(name);
        }
    }
    // All servers of a test run would want the same port.
    command.env("TOOLREST__TOOL_BACKEND__LISTEN", "none");
    command
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

//! The `toolrest` command.

mod cli;
mod commands;
mod doctor;
mod setup;
mod waiting_notices;

use clap::Parser;
use commands::failure::Failure;
use std::process::ExitCode;

/// The argument with which the sandbox starts this program as its launcher.
const LAUNCHER: &str = "__launcher";

fn main() -> ExitCode {
    // Must come first: the launcher is forked for every program, so it must stay small and single-threaded.
    if std::env::args_os().nth(1).is_some_and(|argument| argument == LAUNCHER) {
        return toolrest_sandbox::launcher_main();
    }
    match cli::Cli::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("toolrest: {error}");
            let code = error.downcast_ref::<Failure>().map_or(1, Failure::exit_code);
            ExitCode::from(code)
        }
    }
}

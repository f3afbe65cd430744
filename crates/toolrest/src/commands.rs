//! The commands, one file each.
//!
//! Data goes to standard output, words go to standard error, and `--json` prints one document. The exit codes are those of
//! [`failure::EXIT_CODES`].

pub(crate) mod backup;
pub(crate) mod failure;
pub(crate) mod mcp;
pub(crate) mod restore_backup;
pub(crate) mod secrets;
pub(crate) mod terminal;
pub(crate) mod user;

mod approvals;
mod archive;
mod call;
mod commits;
mod credentials;
mod files;
mod http_client;
mod keys;
mod log;
mod login;
mod password;
mod people;
mod rules;
mod shell;
mod target;
mod tool_arguments;
mod tools;
mod workspaces;

use clap::Subcommand;
use failure::{Failure, Outcome};
use serde_json::Value;
use terminal::ColorChoice;

/// The commands for people and scripts that use a workspace.
#[derive(Subcommand)]
pub(crate) enum WorkspaceCommand {
    /// Sign in to a server and store the session for other commands, readable for this user only.
    Login(login::LoginArgs),
    /// End a session and remove it.
    Logout(login::LogoutArgs),
    /// Call a tool. It is your own hand: `deny` rules hold, and nothing asks.
    Call(call::CallArgs),
    /// List the tools, or print their schemas.
    Tools(tools::ToolsArgs),
    /// Show calls of agents that wait for a person, and decide about them.
    Approvals(approvals::ApprovalsArgs),
    /// Show the records of calls.
    Log(log::LogArgs),
    /// Show the versions of a file.
    History(files::HistoryArgs),
    /// Show a commit with its diff.
    Show(commits::ShowArgs),
    /// Show what a commit changed.
    Diff(commits::DiffArgs),
    /// Undo a commit.
    Undo(commits::UndoArgs),
    /// Restore a removed file, or list the trash.
    Restore(files::RestoreArgs),
    /// Manage agent keys.
    Keys(keys::KeysArgs),
    /// Show and change the rules of a workspace.
    Rules(rules::RulesArgs),
    /// List workspaces, or make one.
    Workspaces(workspaces::WorkspacesArgs),
    /// Print the script that completes commands in a shell.
    Completions(shell::CompletionsArgs),
    /// Print the manual page.
    #[command(hide = true)]
    Man(shell::ManArgs),
}

/// How a command prints.
#[derive(Clone, Copy)]
pub(crate) struct Output {
    /// One JSON document instead of text.
    pub(crate) json: bool,
    pub(crate) color: ColorChoice,
}

impl WorkspaceCommand {
    /// Runs the command. `definition` is that of the whole command line.
    pub(crate) fn run(self, output: Output, definition: clap::Command) -> Outcome {
        match self {
            Self::Completions(args) => return shell::completions(&args, definition),
            Self::Man(args) => return shell::man(&args, definition),
            _ => {}
        }
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(2).enable_all().build();
        runtime.map_err(Failure::io("cannot start the runtime"))?.block_on(self.run_async(output))
    }

    async fn run_async(self, output: Output) -> Outcome {
        match self {
            Self::Login(args) => login::login(args).await,
            Self::Logout(args) => login::logout(args).await,
            Self::Call(args) => call::run(args, output).await,
            Self::Tools(args) => tools::run(args, output).await,
            Self::Approvals(args) => approvals::run(args, output).await,
            Self::Log(args) => log::run(args, output).await,
            Self::History(args) => files::history(args, output).await,
            Self::Show(args) => commits::show(args, output).await,
            Self::Diff(args) => commits::diff(args, output).await,
            Self::Undo(args) => commits::undo(args, output).await,
            Self::Restore(args) => files::restore(args, output).await,
            Self::Keys(args) => keys::run(args, output).await,
            Self::Rules(args) => rules::run(args, output).await,
            Self::Workspaces(args) => workspaces::run(args, output).await,
            // They need no runtime.
            Self::Completions(_) | Self::Man(_) => Ok(()),
        }
    }
}

/// Returns a text for a part of a URL: all but letters, digits and `-._~` is escaped.
fn encoded(text: &str) -> String {
    let mut url = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            url.push(char::from(byte));
        } else {
            url.extend([format!("%{byte:02X}")]);
        }
    }
    url
}

/// Returns a time of an answer for tables, to the second and in UTC.
fn time(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    let seconds = text.get(..19).filter(|_| text.ends_with('Z'));
    seconds.map_or_else(|| text.to_owned(), |seconds| format!("{}Z", seconds.replace('T', " ")))
}

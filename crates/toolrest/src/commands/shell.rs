//! `toolrest completions` and the hidden `toolrest man`: texts that are made from the definition of the commands.

use super::failure::{EXIT_CODES, Failure, Outcome};
use super::terminal::print;
use clap::{Arg, Args, Command};
use clap_complete::Shell;
use std::{fmt::Write, path::PathBuf};

#[derive(Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

#[derive(Args)]
pub(crate) struct ManArgs {
    /// Write a manual page for every command into this folder, instead of printing that of `toolrest`
    #[arg(long, value_name = "DIR", conflicts_with = "markdown")]
    to: Option<PathBuf>,
    /// Print the reference of all commands as Markdown instead
    #[arg(long)]
    markdown: bool,
}

pub(super) fn completions(args: &CompletionsArgs, mut command: Command) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "toolrest", &mut script);
    print(&String::from_utf8_lossy(&script))
}

pub(super) fn man(args: &ManArgs, command: Command) -> Outcome {
    if args.markdown {
        return print(&markdown(command));
    }
    let Some(folder) = &args.to else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page).map_err(Failure::io("cannot make the manual page"))?;
        return print(&String::from_utf8_lossy(&page));
    };
    let cannot = || format!("cannot write manual pages to {}", folder.display());
    std::fs::create_dir_all(folder).map_err(Failure::io(cannot()))?;
    clap_mangen::generate_to(command, folder).map_err(Failure::io(cannot()))
}

/// Returns the reference of all commands for the documentation.
fn markdown(mut command: Command) -> String {
    command.build();
    let mut text = String::from("## Exit codes\n\n| code | meaning |\n|---|---|\n");
    for (code, meaning) in EXIT_CODES {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {code} | {meaning} |");
    }
    text += "\n## Options of many commands\n\n| option | |\n|---|---|\n";
    let mut described = Vec::new();
    let commands = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    for arg in commands.flat_map(Command::get_arguments).filter(|arg| is_shared(arg)) {
        if !described.contains(&arg.get_id()) {
            described.push(arg.get_id());
            text.extend([argument_row(arg).as_str(), "\n"]);
        }
    }
    text += "\n## Commands\n";
    for sub in command.get_subcommands().filter(|sub| is_shown(sub)) {
        add_command(&mut text, sub, "toolrest", 3);
    }
    text
}

/// Whether many commands take an argument, so that it is described once.
fn is_shared(arg: &Arg) -> bool {
    arg.is_global_set()
}

fn is_shown(command: &Command) -> bool {
    !command.is_hide_set() && command.get_name() != "help"
}

fn add_command(text: &mut String, command: &Command, parent: &str, level: usize) {
    let name = format!("{parent} {}", command.get_name());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let _ = writeln!(text, "\n{} `{name}`\n\n{about}.", "#".repeat(level));
    let is_own =
        |arg: &&Arg| !arg.is_hide_set() && !is_shared(arg) && !["help", "version"].contains(&arg.get_id().as_str());
    let mut rows: Vec<String> = command.get_arguments().filter(is_own).map(argument_row).collect();
    let shared: Vec<String> = command
        .get_arguments()
        .filter(|arg| level == 3 && is_shared(arg) && arg.get_id() != "json" && arg.get_id() != "color")
        .filter_map(|arg| Some(format!("`--{}`", arg.get_long()?)))
        .collect();
    if !shared.is_empty() {
        rows.push(format!("| {} | as described above |", shared.join(", ")));
    }
    if !rows.is_empty() {
        let _ = writeln!(text, "\n| argument | |\n|---|---|\n{}", rows.join("\n"));
    }
    for sub in command.get_subcommands().filter(|sub| is_shown(sub)) {
        add_command(text, sub, &name, level + 1);
    }
}

fn argument_row(arg: &Arg) -> String {
    let values: Vec<String> = arg.get_value_names().into_iter().flatten().map(ToString::to_string).collect();
    let takes_value = arg.get_action().takes_values();
    let value = if takes_value { values.join(" ") } else { String::new() };
    let name = match (arg.get_long(), arg.get_short()) {
        (Some(long), Some(short)) => format!("-{short}, --{long} {value}"),
        (Some(long), None) => format!("--{long} {value}"),
        (None, Some(short)) => format!("-{short} {value}"),
        (None, None) => {
            if arg.is_required_set() {
                value
            } else {
                format!("[{value}]")
            }
        }
    };
    let mut about = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let choices: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|_| takes_value)
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if !choices.is_empty() && choices.len() <= 6 {
        about.extend([format!(": {}", choices.join(", "))]);
    }
    let defaults: Vec<_> = arg.get_default_values().iter().filter_map(|value| value.to_str()).collect();
    if takes_value && !defaults.is_empty() {
        about.extend([format!(" (default `{}`)", defaults.join(" "))]);
    }
    format!("| `{}` | {} |", name.trim(), about.replace('|', "\\|"))
}

//! `toolrest approvals`: calls that wait for a person.

mod decide;
mod edit;
mod events;
mod shown;
mod watch;

use super::Output;
use super::failure::Outcome;
use super::people::People;
use super::target::{Client, Programs, TargetOptions};
use super::terminal::{Table, print_json};
use clap::{Args, Subcommand};
use decide::{ApproveArgs, DenyArgs, RespondArgs};
use serde_json::Value;

#[derive(Args)]
pub(crate) struct ApprovalsArgs {
    #[command(subcommand)]
    action: Option<ApprovalsAction>,
    #[command(flatten)]
    target: TargetOptions,
}

#[derive(Subcommand)]
enum ApprovalsAction {
    /// List the calls that wait.
    List {
        /// Calls in this state instead: approved, executing, done, failed, denied, expired, cancelled, or all
        #[arg(long, value_name = "STATE", default_value = "pending")]
        state: String,
        /// Maximum number, newest first
        #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 100)]
        limit: u32,
    },
    /// Show what a call would do, and what happened to it.
    Show {
        /// Id of the approval
        id: String,
    },
    /// Show calls as they begin to wait and, on a terminal, ask what to do about each.
    Watch,
    /// Show a call and have it run.
    Approve(ApproveArgs),
    /// Refuse a call.
    Deny(DenyArgs),
    /// Give the agent an answer instead of running the call.
    Respond(RespondArgs),
}

pub(super) async fn run(args: ApprovalsArgs, output: Output) -> Outcome {
    let action = args.action.unwrap_or(ApprovalsAction::List { state: "pending".to_owned(), limit: 100 });
    // An approved call is run by this process if no server does it.
    let programs = match action {
        ApprovalsAction::Approve(_) | ApprovalsAction::Watch => Programs::Run,
        _ => Programs::None,
    };
    let client = args.target.connect(programs).await?;
    let result = match action {
        ApprovalsAction::List { state, limit } => list(&client, &state, limit, output).await,
        ApprovalsAction::Show { id } => show(&client, &id, output).await,
        ApprovalsAction::Watch => watch::run(&client, output).await,
        ApprovalsAction::Approve(args) => decide::approve(&client, &args, output).await,
        ApprovalsAction::Deny(args) => decide::deny(&client, &args, output).await,
        ApprovalsAction::Respond(args) => decide::respond(&client, &args, output).await,
    };
    client.close().await;
    result
}

async fn list(client: &Client, state: &str, limit: u32, output: Output) -> Outcome {
    let workspace = client.workspace().await?;
    let filter = if state == "all" { String::new() } else { format!("&state={}", super::encoded(state)) };
    let listed = client.get(&format!("{workspace}/approvals?limit={limit}{filter}")).await?;
    if output.json {
        return print_json(&listed);
    }
    let people = People::of(client, &workspace).await;
    let mut table = Table::new(&["id", "asked", "by", "tool", "what", "because", "state"]);
    for approval in listed["approvals"].as_array().into_iter().flatten() {
        let text = |name: &str| approval[name].as_str().unwrap_or_default().to_owned();
        table.row(&[
            text("id"),
            super::time(&approval["created_at"]),
            people.name_of_caller(&approval["requested_by"]),
            format!("{}/{}", text("toolset"), text("tool")),
            super::terminal::one_line(approval["asks"][0]["subject"].as_str().unwrap_or_default(), 60),
            super::terminal::one_line(approval["asks"][0]["because"].as_str().unwrap_or_default(), 60),
            text("state"),
        ]);
    }
    table.print(output.color)?;
    if listed["truncated"] == Value::Bool(true) {
        eprintln!("There are more; use --limit.");
    }
    Ok(())
}

async fn show(client: &Client, id: &str, output: Output) -> Outcome {
    let found = client.get(&path_of(client, id).await?).await?;
    if output.json {
        return print_json(&found);
    }
    let workspace = client.workspace().await?;
    let people = People::of(client, &workspace).await;
    let mut text = shown::text(&found["approval"], &people, output.color, &std::io::stdout());
    text += &shown::events(&found["events"], &people);
    super::terminal::print(&text)
}

/// Returns the route of an approval.
async fn path_of(client: &Client, id: &str) -> Outcome<String> {
    Ok(format!("{}/approvals/{}", client.workspace().await?, super::encoded(id)))
}

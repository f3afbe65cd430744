//! `toolrest workspaces`: the workspaces that the caller can use.

use super::Output;
use super::failure::Outcome;
use super::target::{Client, Programs, TargetOptions};
use super::terminal::{Table, print, print_json};
use clap::{Args, Subcommand};
use serde_json::json;

#[derive(Args)]
pub(crate) struct WorkspacesArgs {
    #[command(subcommand)]
    action: Option<WorkspacesAction>,
    #[command(flatten)]
    target: TargetOptions,
}

#[derive(Subcommand)]
enum WorkspacesAction {
    /// List the workspaces.
    List,
    /// Make a workspace and print its id.
    Create {
        /// Name of the workspace
        name: String,
        /// Folder on the server's machine that becomes the workspace; without it, its files are in the database
        #[arg(long, value_name = "DIR")]
        root: Option<String>,
    },
}

pub(super) async fn run(args: WorkspacesArgs, output: Output) -> Outcome {
    let client = args.target.connect(Programs::None).await?;
    let result = act(args.action.unwrap_or(WorkspacesAction::List), &client, output).await;
    client.close().await;
    result
}

async fn act(action: WorkspacesAction, client: &Client, output: Output) -> Outcome {
    if let WorkspacesAction::Create { name, root } = action {
        let body = match root {
            Some(root) => json!({ "name": name, "kind": "directory", "root": root }),
            None => json!({ "name": name }),
        };
        let made = client.post("/workspaces", &body).await?;
        if output.json {
            return print_json(&made);
        }
        return print(&format!("{}\n", made["workspace"]["id"].as_str().unwrap_or_default()));
    }
    let listed = client.get("/workspaces").await?;
    if output.json {
        return print_json(&listed);
    }
    let mut table = Table::new(&["id", "name", "role", "folder"]);
    for workspace in listed["workspaces"].as_array().into_iter().flatten() {
        let text = |name: &str| workspace[name].as_str().unwrap_or_default().to_owned();
        table.row(&[text("id"), text("name"), text("role"), text("root")]);
    }
    table.print(output.color)
}

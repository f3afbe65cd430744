//! `toolrest history` and `restore`: the versions of a file, and files in the trash.

use super::Output;
use super::failure::{Failure, Outcome};
use super::people::People;
use super::target::{Client, Programs, TargetOptions};
use super::terminal::{Table, print, print_json, visible};
use clap::Args;
use serde_json::{Value, json};
use std::path::Path;

#[derive(Args)]
pub(crate) struct HistoryArgs {
    /// Path of the file in the workspace
    path: String,
    /// Maximum number of versions, newest first
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 100)]
    limit: u32,
    #[command(flatten)]
    target: TargetOptions,
}

#[derive(Args)]
pub(crate) struct RestoreArgs {
    /// Path that the file had in the workspace; without it, the files in the trash are listed
    path: Option<String>,
    #[command(flatten)]
    target: TargetOptions,
}

/// Returns a path for a route, relative to the root.
fn in_route(path: &str) -> String {
    let path = path.trim_start_matches("./").trim_matches('/');
    path.split('/').map(super::encoded).collect::<Vec<_>>().join("/")
}

pub(super) async fn history(args: HistoryArgs, output: Output) -> Outcome {
    let client = args.target.clone().connect(Programs::None).await?;
    let result = show_history(&args, &client, output).await;
    client.close().await;
    result
}

async fn show_history(args: &HistoryArgs, client: &Client, output: Output) -> Outcome {
    let workspace = client.workspace().await?;
    let found = client.get(&format!("{workspace}/history/{}?limit={}", in_route(&args.path), args.limit)).await?;
    if output.json {
        return print_json(&found);
    }
    let people = People::of(client, &workspace).await;
    let mut table = Table::new(&["version", "created", "by", "bytes", "commit"]);
    let versions = found["versions"].as_array().cloned().unwrap_or_default();
    for version in &versions {
        table.row(&[
            version["seq"].to_string(),
            super::time(&version["created_at"]),
            people.name_of(&version["author"]),
            version["size"].to_string(),
            version["commit_id"].as_str().unwrap_or_default().to_owned(),
        ]);
    }
    table.print(output.color)?;
    if versions.is_empty() {
        eprintln!("Nothing was recorded of this file: no tool has changed it.");
    }
    if let Some(deleted) = found["file"]["deleted_at"].as_str() {
        eprintln!("The file was removed at {deleted}; `toolrest restore` brings it back.");
    }
    if found["truncated"] == Value::Bool(true) {
        eprintln!("There are more; use --limit.");
    }
    Ok(())
}

pub(super) async fn restore(args: RestoreArgs, output: Output) -> Outcome {
    if let Some(path) = args.path.as_deref().filter(|path| Path::new(path).is_absolute())
        && Path::new(path).join(super::archive::MANIFEST).is_file()
    {
        let message = format!("{path} is the backup of a server; restore it with `toolrest restore-backup {path}`");
        return Err(Failure::Usage(message));
    }
    let client = args.target.clone().connect(Programs::None).await?;
    let result = match &args.path {
        Some(path) => restore_file(path, &client, output).await,
        None => list_trash(&client, output).await,
    };
    client.close().await;
    result
}

async fn list_trash(client: &Client, output: Output) -> Outcome {
    let workspace = client.workspace().await?;
    let trash = client.get(&format!("{workspace}/trash")).await?;
    if output.json {
        return print_json(&trash);
    }
    let mut table = Table::new(&["path", "bytes", "removed"]);
    for file in trash["files"].as_array().into_iter().flatten() {
        let path = file["path"].as_str().unwrap_or_default().to_owned();
        table.row(&[path, file["size"].to_string(), super::time(&file["deleted_at"])]);
    }
    table.print(output.color)
}

async fn restore_file(path: &str, client: &Client, output: Output) -> Outcome {
    let workspace = client.workspace().await?;
    let found = client.get(&format!("{workspace}/history/{}?limit=1", in_route(path))).await?;
    let file = &found["file"];
    if file["deleted_at"].is_null() {
        let path = visible(path);
        return Err(Failure::Conflict(format!("{path} is not in the trash: there is such a file now")));
    }
    let id = file["id"].as_str().unwrap_or_default();
    let restored = client.post(&format!("{workspace}/files/{id}/restore"), &json!({})).await?;
    if output.json {
        return print_json(&restored);
    }
    print(&format!("{}\n", visible(restored["file"]["path"].as_str().unwrap_or_default())))
}

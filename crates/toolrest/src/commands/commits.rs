//! `toolrest show`, `diff` and `undo`: the commits of a workspace.

use super::Output;
use super::failure::{Failure, Outcome};
use super::people::People;
use super::target::{Client, Programs, TargetOptions};
use super::terminal::{Paint, print, print_json, visible};
use clap::Args;
use serde_json::{Value, json};
use std::{collections::HashSet, io};

#[derive(Args)]
pub(crate) struct ShowArgs {
    /// The commit
    commit: String,
    #[command(flatten)]
    target: TargetOptions,
}

#[derive(Args)]
pub(crate) struct DiffArgs {
    /// The commit; without it, the last one
    commit: Option<String>,
    #[command(flatten)]
    target: TargetOptions,
}

#[derive(Args)]
pub(crate) struct UndoArgs {
    /// The commit; without it, the last one that is neither undone nor an undo
    commit: Option<String>,
    /// Also undo what others may have changed in the folder while a background process ran
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    target: TargetOptions,
}

pub(super) async fn show(args: ShowArgs, output: Output) -> Outcome {
    let client = args.target.clone().connect(Programs::None).await?;
    let result = show_commit(&client, &args.commit, output).await;
    client.close().await;
    result
}

async fn show_commit(client: &Client, commit: &str, output: Output) -> Outcome {
    let path = commit_path(client, commit).await?;
    let shown = client.get(&path).await?;
    let diff = diff_of(client, &path).await?;
    if output.json {
        return print_json(&json!({ "commit": shown["commit"], "diff": diff }));
    }
    let workspace = client.workspace().await?;
    let people = People::of(client, &workspace).await;
    let commit = &shown["commit"];
    let text = |name: &str| commit[name].as_str().unwrap_or_default().to_owned();
    let paint = Paint::new(output.color, &io::stdout());
    let mut head = format!("{} {}\n", paint.bold("commit"), paint.bold(text("id")));
    head.extend([format!("by      {}\n", visible(&people.name_of(&commit["author"])))]);
    head.extend([format!("at      {}\n", super::time(&commit["created_at"]))]);
    head.extend([format!("with    {}/{}\n", text("toolset"), visible(&text("tool")))]);
    if let Some(undone) = commit["undoes"].as_str() {
        head.extend([format!("undoes  {undone}\n")]);
    }
    print(&format!("{head}\n{}", paint.diff(&diff)))
}

pub(super) async fn diff(args: DiffArgs, output: Output) -> Outcome {
    let client = args.target.clone().connect(Programs::None).await?;
    let result = show_diff(&client, args.commit, output).await;
    client.close().await;
    result
}

async fn show_diff(client: &Client, commit: Option<String>, output: Output) -> Outcome {
    let id = if let Some(id) = commit {
        id
    } else {
        let workspace = client.workspace().await?;
        let listed = client.get(&format!("{workspace}/commits?limit=1")).await?;
        let last = listed["commits"][0]["id"].as_str().map(str::to_owned);
        last.ok_or_else(|| Failure::NotFound("nothing was changed here yet".to_owned()))?
    };
    let path = commit_path(client, &id).await?;
    let diff = diff_of(client, &path).await?;
    if output.json {
        return print_json(&json!({ "commit": id, "diff": diff }));
    }
    print(&Paint::new(output.color, &io::stdout()).diff(&diff))
}

async fn commit_path(client: &Client, commit: &str) -> Outcome<String> {
    Ok(format!("{}/commits/{}", client.workspace().await?, super::encoded(commit)))
}

async fn diff_of(client: &Client, commit_path: &str) -> Outcome<String> {
    let answer = client.get(&format!("{commit_path}/diff")).await?;
    Ok(answer["diff"].as_str().unwrap_or_default().to_owned())
}

pub(super) async fn undo(args: UndoArgs, output: Output) -> Outcome {
    let client = args.target.clone().connect(Programs::None).await?;
    let result = undo_commit(&client, args.commit, args.force, output).await;
    client.close().await;
    result
}

async fn undo_commit(client: &Client, commit: Option<String>, force: bool, output: Output) -> Outcome {
    let id = match commit {
        Some(id) => id,
        None => last_to_undo(client).await?,
    };
    let path = commit_path(client, &id).await?;
    let done = client.post(&format!("{path}/undo"), &json!({ "force": force })).await?;
    if output.json {
        return print_json(&done);
    }
    let commit = &done["commit"];
    print(&format!("{}\n", commit["id"].as_str().unwrap_or_default()))?;
    eprintln!("Undid commit {id}:");
    for change in commit["changes"].as_array().into_iter().flatten() {
        let text = |name: &str| visible(change[name].as_str().unwrap_or_default()).into_owned();
        eprintln!("  {} {}", text("op"), text("path"));
    }
    Ok(())
}

/// Returns the last commit that is neither an undo nor undone, so that repeating the command goes further back.
async fn last_to_undo(client: &Client) -> Outcome<String> {
    const PAGE: usize = 100;
    let workspace = client.workspace().await?;
    let mut undone: HashSet<String> = HashSet::new();
    let mut before = String::new();
    loop {
        let listed = client.get(&format!("{workspace}/commits?limit={PAGE}{before}")).await?;
        let commits = listed["commits"].as_array().cloned().unwrap_or_default();
        for commit in &commits {
            let id = commit["id"].as_str().unwrap_or_default();
            match commit["undoes"].as_str() {
                // An undo that was undone itself counts as nothing, and so does what it undid.
                Some(target) if !undone.contains(id) => drop(undone.insert(target.to_owned())),
                None if !undone.contains(id) => return Ok(id.to_owned()),
                _ => {}
            }
        }
        let last = commits.last().and_then(|commit| commit["id"].as_str());
        match last {
            Some(last) if listed["truncated"] == Value::Bool(true) => before = format!("&before={last}"),
            _ => return Err(Failure::NotFound("there is no commit to undo".to_owned())),
        }
    }
}

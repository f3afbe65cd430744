//! `toolrest log`: shows the records of calls.

use super::Output;
use super::failure::Outcome;
use super::people::People;
use super::target::{Client, Programs, TargetOptions};
use super::terminal::{Table, print_json};
use clap::Args;
use serde_json::Value;

#[derive(Args)]
pub(crate) struct LogArgs {
    /// Maximum number of calls, newest first
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 30)]
    limit: u32,
    /// Only calls of this tool
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,
    /// Only calls of this toolset; `api` is the REST interface
    #[arg(long, value_name = "TOOLSET")]
    toolset: Option<String>,
    /// Only calls that name this path, or one below it
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// Only calls with this outcome: `ok`, `interrupted` or the kind of an error
    #[arg(long, value_name = "OUTCOME")]
    outcome: Option<String>,
    /// Only calls since this time, such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// The programs that run now
    #[arg(long)]
    running: bool,
    #[command(flatten)]
    target: TargetOptions,
}

pub(super) async fn run(args: LogArgs, output: Output) -> Outcome {
    let client = args.target.clone().connect(Programs::None).await?;
    let result = show(&args, &client, output).await;
    client.close().await;
    result
}

async fn show(args: &LogArgs, client: &Client, output: Output) -> Outcome {
    let workspace = client.workspace().await?;
    let mut path = format!("{workspace}/calls?limit={}", args.limit);
    let running = args.running.then(|| "running".to_owned());
    for (name, value) in [
        ("tool", &args.tool),
        ("toolset", &args.toolset),
        ("path", &args.path),
        ("outcome", &args.outcome),
        ("since", &args.since),
        ("state", &running),
    ] {
        if let Some(value) = value {
            path.extend([format!("&{name}={}", super::encoded(value))]);
        }
    }
    let listed = client.get(&path).await?;
    if output.json {
        return print_json(&listed);
    }
    let people = People::of(client, &workspace).await;
    let mut table = Table::new(&["started", "by", "tool", "path", "outcome", "ms", "commit"]);
    for call in listed["calls"].as_array().into_iter().flatten() {
        let text = |name: &str| call[name].as_str().unwrap_or_default().to_owned();
        let duration = call["duration_us"].as_i64().map(|us| format!("{}.{}", us / 1000, us % 1000 / 100));
        table.row(&[
            super::time(&call["started_at"]),
            people.name_of_caller(call),
            format!("{}/{}", text("toolset"), text("tool")),
            text("path"),
            if call["outcome"].is_null() { "running".to_owned() } else { text("outcome") },
            duration.unwrap_or_default(),
            text("commit_id"),
        ]);
    }
    table.print(output.color)?;
    if listed["truncated"] == Value::Bool(true) {
        eprintln!("There are more; use --limit.");
    }
    Ok(())
}

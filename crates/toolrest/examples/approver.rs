//! Decides about the calls of an agent in the program that makes them: `cargo run --example approver -- FOLDER`.

use async_trait::async_trait;
use serde_json::json;
use std::{error::Error, path::Path};
use toolrest::settings::Settings;
use toolrest::{ApprovalRequest, Approver, ApproverDecision, Runtime, RuntimeOptions};

/// Allows changes of a few lines, and refuses everything else that asks.
pub struct SmallChangesOnly;

#[async_trait]
impl Approver for SmallChangesOnly {
    async fn decide(&self, request: &ApprovalRequest) -> ApproverDecision {
        let changed = request.diff.lines().filter(|line| line.starts_with(['+', '-'])).count();
        // The two lines with the names of the file count too.
        if request.command.is_none() && changed <= 2 + 4 {
            ApproverDecision::Approve
        } else {
            ApproverDecision::Deny("only changes of up to four lines are allowed here".to_owned())
        }
    }
}

/// Overwrites a file with little and with much; returns what came of both.
pub async fn run(folder: &Path, data: &Path) -> Result<[String; 2], Box<dyn Error>> {
    let mut settings = Settings::default();
    settings.server.data_dir = data.to_owned();
    settings.folders.local_dir = Some(folder.to_owned());
    settings.run.enabled = false;

    let options = RuntimeOptions::default().with_approver(SmallChangesOnly);
    let runtime = Runtime::open_with(settings, options).await?;
    let local = runtime.open_local(folder).await?;
    let mut results = [String::new(), String::new()];
    for (result, content) in results.iter_mut().zip(["short\n".to_owned(), "long\n".repeat(100)]) {
        let args = json!({ "path": "notes.txt", "content": content });
        *result = match runtime.call(local.workspace, local.caller, "system", "write_file", &args).await {
            Ok(outcome) => outcome.json()?,
            Err(error) => error.message,
        };
    }
    runtime.close().await;
    Ok(results)
}

#[tokio::main(flavor = "multi_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).ok_or("give a folder")?;
    let data = tempfile::tempdir()?;
    std::fs::write(Path::new(&folder).join("notes.txt"), "old\n")?;
    println!("{}", run(Path::new(&folder), data.path()).await?.join("\n"));
    Ok(())
}

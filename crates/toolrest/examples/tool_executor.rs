//! Calls a tool as specification 000 shows it: `cargo run --example tool_executor -- FOLDER`.

use serde_json::json;
use std::{error::Error, path::Path};
use toolrest::{Runtime, ToolResponse, get_tool_executor, settings::Settings};

/// Lists a path of the folder.
pub async fn run(folder: &Path, data: &Path, path: &str) -> Result<ToolResponse, Box<dyn Error>> {
    let mut settings = Settings::default();
    settings.server.data_dir = data.to_owned();
    settings.folders.local_dir = Some(folder.to_owned());
    settings.run.enabled = false;

    let runtime = Runtime::open(settings).await?;
    let local = runtime.open_local(folder).await?;
    let executor = get_tool_executor("ls")?;
    let args = json!({ "path": path, "recursive": false });
    let response = executor.execute(&runtime, local.workspace, local.caller, &args).await;
    runtime.close().await;
    Ok(response?)
}

#[tokio::main(flavor = "multi_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).ok_or("give a folder")?;
    let data = tempfile::tempdir()?;
    let response = run(Path::new(&folder), data.path(), "/").await?;
    if response.success {
        println!("Tool result: {}", serde_json::to_string_pretty(&response.result)?);
    } else {
        eprintln!("Tool error: {}", response.error.unwrap_or_default());
    }
    Ok(())
}

//! Opens a folder and calls tools in it: `cargo run --example open_folder -- FOLDER`.

use serde_json::json;
use std::{error::Error, path::Path};
use toolrest::{Runtime, settings::Settings};

/// Writes a file in the folder and lists it; the history is in `data`.
pub async fn run(folder: &Path, data: &Path) -> Result<String, Box<dyn Error>> {
    let mut settings = Settings::default();
    settings.server.data_dir = data.to_owned();
    settings.folders.local_dir = Some(folder.to_owned());
    settings.run.enabled = false;

    let runtime = Runtime::open(settings).await?;
    let local = runtime.open_local(folder).await?;
    let args = json!({ "filePath": "notes.txt", "content": "remember\n" });
    let written = runtime.call(local.workspace, local.caller, "coding", "write", &args).await?;
    let listed = runtime.call(local.workspace, local.caller, "coding", "ls", &json!({ "dirPath": "." })).await?;
    let text = format!("{}\n{}", written.text()?, listed.json()?);
    runtime.close().await;
    Ok(text)
}

#[tokio::main(flavor = "multi_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).ok_or("give a folder")?;
    let data = tempfile::tempdir()?;
    println!("{}", run(Path::new(&folder), data.path()).await?);
    Ok(())
}

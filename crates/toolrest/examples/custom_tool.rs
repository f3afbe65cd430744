//! Adds a tool of the program beside those of Toolrest: `cargo run --example custom_tool -- FILE`.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{error::Error, path::Path, sync::Arc};
use toolrest::core::{Action, CallCx, Content, ErrorKind, Result, Tool, ToolError, Toolset, WsPath};
use toolrest::toolsets::workspace::WorkspaceDialect;
use toolrest::{Runtime, RuntimeOptions, settings::Settings};

/// Counts the words of a file.
pub struct CountWords;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Path of the file.
    path: String,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Number of words.
    words: usize,
}

#[async_trait]
impl Tool for CountWords {
    const NAME: &'static str = "count_words";
    const DESCRIPTION: &'static str = "Count the words of a text file";
    const ACTION: Action = Action::Read;
    type Args = Args;
    type Output = Output;

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let path: WsPath = cx.workspace.locate(&args.path)?;
        cx.note_path(&path);
        let file = cx.workspace.read(&path, 1 << 20).await?;
        match file.content {
            Some(Content::Text(text)) => Ok(Output { words: text.split_whitespace().count() }),
            _ => Err(ToolError::new(ErrorKind::InvalidArgument, format!("{path} is not a text of up to 1 MiB"))),
        }
    }
}

/// Counts the words of a file in the folder with the new tool.
pub async fn run(folder: &Path, data: &Path, file: &str) -> std::result::Result<String, Box<dyn Error>> {
    let mut settings = Settings::default();
    settings.server.data_dir = data.to_owned();
    settings.folders.local_dir = Some(folder.to_owned());
    settings.run.enabled = false;

    let toolset = Toolset::new("words", Arc::new(WorkspaceDialect)).with(CountWords);
    let runtime = Runtime::open_with(settings, RuntimeOptions::default().with_toolset(toolset)).await?;
    let local = runtime.open_local(folder).await?;
    let called = runtime.call(local.workspace, local.caller, "words", "count_words", &json!({ "path": file })).await;
    runtime.close().await;
    Ok(called?.json()?)
}

#[tokio::main(flavor = "multi_thread")]
async fn main() -> std::result::Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("give a file")?;
    let file = std::path::absolute(file)?;
    let (Some(folder), Some(name)) = (file.parent(), file.file_name().and_then(|name| name.to_str())) else {
        return Err("the file has no name".into());
    };
    let data = tempfile::tempdir()?;
    println!("{}", run(folder, data.path(), name).await?);
    Ok(())
}

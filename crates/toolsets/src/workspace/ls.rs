use super::path;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolrest_core::{Action, CallCx, Depth, Entry, FileType, Result, Timestamp, Tool, WsPath};

pub(super) struct Ls;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Directory path to list; the root if not given.
    path: Option<String>,
    /// List all descendants, not only what is directly in the directory.
    recursive: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// The path that was listed.
    path: WsPath,
    /// What is there, sorted by path.
    entries: Vec<Listed>,
}

#[derive(Serialize, JsonSchema)]
struct Listed {
    /// The last part of the path.
    name: String,
    /// The name that people see.
    display_name: String,
    /// Full path to the item.
    path: WsPath,
    /// Document, Folder, Canvas, Whiteboard, Chat, Agent, Skill or File.
    file_type: FileType,
    /// Whether the system manages the file.
    is_virtual: bool,
    /// When it last changed.
    #[schemars(with = "String")]
    updated_at: Timestamp,
}

impl From<Entry> for Listed {
    fn from(entry: Entry) -> Self {
        let name = entry.path.name().to_owned();
        Self {
            display_name: entry.display_name.unwrap_or_else(|| name.clone()),
            name,
            path: entry.path,
            file_type: entry.file_type,
            is_virtual: entry.is_virtual,
            updated_at: entry.updated_at,
        }
    }
}

#[async_trait]
impl Tool for Ls {
    const NAME: &'static str = "ls";
    const DESCRIPTION: &'static str = "List the files and folders in a directory of the workspace";
    const ACTION: Action = Action::Read;
    type Args = Args;
    type Output = Output;

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let path = path("path", args.path.as_deref().unwrap_or("/"))?;
        let depth = if args.recursive.unwrap_or(false) { Depth::Descendants } else { Depth::Children };
        let entries = toolrest_ops::list(cx, &path, depth).await?;
        Ok(Output { path, entries: entries.into_iter().map(Listed::from).collect() })
    }
}

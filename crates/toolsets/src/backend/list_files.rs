use crate::arguments;
use crate::not_listed::NotListed;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolrest_core::{Action, CallCx, Depth, FileType, Result, Tool};

pub(super) struct ListFiles;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Directory to list, relative to the workspace root.
    path: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// The names of the files in the directory, sorted.
    files: Vec<String>,
    /// The names of the directories in the directory, sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    directories: Vec<String>,
    /// Entries that could not be listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<NotListed>,
}

#[async_trait]
impl Tool for ListFiles {
    const NAME: &'static str = "listFiles";
    const DESCRIPTION: &'static str = "List the files in a directory, and the names of its subdirectories";
    const ACTION: Action = Action::Read;
    type Args = Args;
    type Output = Output;

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let folder = arguments::relative_path(cx, "path", &args.path)?;
        let listing = toolrest_ops::list(cx, &folder, Depth::Children).await?;
        let skipped = NotListed::of(&listing, |path| path.without_slash().to_owned());
        let (directories, files): (Vec<_>, Vec<_>) =
            listing.entries.iter().partition(|entry| entry.file_type == FileType::Folder);
        let names = |entries: Vec<&toolrest_core::Listed>| {
            entries.into_iter().map(|entry| entry.path.name().to_owned()).collect::<Vec<_>>()
        };
        Ok(Output { files: names(files), directories: names(directories), skipped })
    }

    fn text(&self, output: &Output) -> Option<String> {
        let directories = output.directories.iter().map(|name| format!("{name}/\n"));
        let files = output.files.iter().map(|name| format!("{name}\n"));
        let mut text: String = directories.chain(files).collect();
        if let Some(skipped) = &output.skipped {
            skipped.push_to(&mut text);
        }
        Some(text)
    }
}

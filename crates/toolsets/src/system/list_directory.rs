use crate::arguments;
use crate::not_listed::NotListed;
use crate::text;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolrest_core::{Action, CallCx, FileType, Listed, Result, Tool, WsPath};

pub(super) struct ListDirectory;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Args {
    /// Directory to list, relative to the workspace root.
    path: String,
    /// Also list the contents of all subdirectories. Default: false.
    recursive: Option<bool>,
    /// Also list entries whose names begin with a dot. Default: false.
    include_hidden: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// The contents of the directory, sorted by path.
    entries: Vec<Entry>,
    /// Entries that could not be listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<NotListed>,
}

#[derive(Serialize, JsonSchema)]
struct Entry {
    /// The name. In a recursive listing: the path relative to the listed directory.
    name: String,
    /// `file`, `directory` or `symlink`.
    #[serde(rename = "type")]
    kind: Kind,
    /// Size in bytes; 0 for a directory.
    size: i64,
    /// Time of the last change.
    #[schemars(extend("format" = "date-time"))]
    modified: String,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    File,
    Directory,
    Symlink,
}

fn name_below(path: &WsPath, folder: &WsPath) -> String {
    let above = if folder.is_root() { "" } else { folder.as_str() };
    path.as_str()[above.len()..].trim_start_matches('/').to_owned()
}

fn shown(entry: &Listed, folder: &WsPath) -> Entry {
    let kind = match entry.file_type {
        _ if entry.is_link => Kind::Symlink,
        FileType::Folder => Kind::Directory,
        _ => Kind::File,
    };
    Entry { name: name_below(&entry.path, folder), kind, size: entry.size, modified: entry.updated_at.to_string() }
}

#[async_trait]
impl Tool for ListDirectory {
    const NAME: &'static str = "list_directory";
    const DESCRIPTION: &'static str = "List the files and directories in a directory";
    const ACTION: Action = Action::Read;
    type Args = Args;
    type Output = Output;

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let folder = arguments::relative_path(cx, "path", &args.path)?;
        let depth = arguments::depth(args.recursive);
        let listing = toolrest_ops::list(cx, &folder, depth).await?;
        let skipped = NotListed::of(&listing, |path| path.without_slash().to_owned());
        let entries = listing.entries.iter().map(|entry| shown(entry, &folder));
        let hidden = args.include_hidden.unwrap_or(false);
        let is_shown = |entry: &Entry| hidden || !entry.name.split('/').any(|name| name.starts_with('.'));
        Ok(Output { entries: entries.filter(is_shown).collect(), skipped })
    }

    fn text(&self, output: &Output) -> Option<String> {
        let shown = |entry: &Entry| match entry.kind {
            Kind::File => format!("{}\t{}", entry.name, entry.size),
            Kind::Directory => format!("{}/", entry.name),
            Kind::Symlink => format!("{} [link]", entry.name),
        };
        let mut text = text::lines(output.entries.iter().map(shown), "empty");
        if let Some(skipped) = &output.skipped {
            skipped.push_to(&mut text);
        }
        Some(text)
    }
}

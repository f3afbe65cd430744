use super::{cannot, path};
use crate::arguments;
use crate::not_listed::NotListed;
use crate::text;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolrest_core::{Action, CallCx, ErrorKind, FileType, Listed, Notice, Result, Tool};

pub(super) struct Ls;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Args {
    /// Path to the directory.
    dir_path: String,
    /// Also list the contents of all subdirectories. Default: false.
    recursive: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// The contents of the directory, sorted by path.
    entries: Vec<Entry>,
    /// Number of entries.
    count: usize,
    /// True if the directory does not exist.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    missing: bool,
    /// Entries that could not be listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<NotListed>,
}

#[derive(Serialize, JsonSchema)]
struct Entry {
    /// The name.
    name: String,
    /// Path relative to the workspace root.
    path: String,
    /// `file` or `directory`.
    #[serde(rename = "type")]
    kind: Kind,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    File,
    Directory,
}

fn shown(entry: &Listed) -> Entry {
    let kind = if entry.file_type == FileType::Folder { Kind::Directory } else { Kind::File };
    Entry { name: entry.path.name().to_owned(), path: entry.path.without_slash().to_owned(), kind }
}

#[async_trait]
impl Tool for Ls {
    const NAME: &'static str = "ls";
    const DESCRIPTION: &'static str = "List the contents of a directory";
    const ACTION: Action = Action::Read;
    type Args = Args;
    type Output = Output;

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let folder = path(cx, "dirPath", &args.dir_path).await?;
        let depth = arguments::depth(args.recursive);
        let (listing, missing) = match toolrest_ops::list(cx, &folder, depth).await {
            Ok(listing) => (Some(listing), false),
            Err(error) if error.kind == ErrorKind::NotFound => {
                let similar: Vec<String> = cx.similar_paths(&folder).await.iter().map(ToString::to_string).collect();
                if !similar.is_empty() {
                    let text = format!("Directory not found: {folder}. Did you mean {}?", similar.join(" or "));
                    cx.warn(Notice { text, paths: similar.into_iter().chain([folder.to_string()]).collect() });
                }
                (None, true)
            }
            Err(error) => return Err(cannot("list", &args.dir_path)(error)),
        };
        let skipped = listing.as_ref().and_then(|it| NotListed::of(it, |path| path.without_slash().to_owned()));
        let entries: Vec<Entry> = listing.iter().flat_map(|it| &it.entries).map(shown).collect();
        Ok(Output { count: entries.len(), entries, missing, skipped })
    }

    fn text(&self, output: &Output) -> Option<String> {
        let shown = |entry: &Entry| match entry.kind {
            Kind::File => entry.path.clone(),
            Kind::Directory => format!("{}/", entry.path),
        };
        let empty = if output.missing { "there is no such directory" } else { "empty" };
        let mut text = text::lines(output.entries.iter().map(shown), empty);
        if let Some(skipped) = &output.skipped {
            skipped.push_to(&mut text);
        }
        Some(text)
    }
}

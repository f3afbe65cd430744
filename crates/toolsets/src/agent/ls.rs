use super::answer::{Answer, size};
use super::arguments::compact;
use super::locate::Located;
use super::{Kit, READER, tree};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use toolrest_core::{Action, Annotations, CallCx, FileType, Result, Tool, WsPath};

pub(super) struct Ls(pub(super) Arc<Kit>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Folder. Default: the project root.
    #[serde(alias = "dir", alias = "directory", alias = "folder", alias = "file_path", alias = "filePath")]
    path: Option<String>,
    /// Files to find: `*.rs` at any depth, `src/**/*.rs` from the folder.
    #[serde(alias = "pattern")]
    glob: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Data {
    /// What the text shows, at most 2,000 entries.
    entries: Vec<tree::Entry>,
    /// The number of all files.
    total: usize,
}

#[async_trait]
impl Tool for Ls {
    const NAME: &'static str = "ls";
    const DESCRIPTION: &'static str = "List a folder as a tree with sizes, as deep as fits, or find files by glob. Files that .gitignore excludes are left out unless `path` names them.";
    const ACTION: Action = Action::Read;
    const ANNOTATIONS: Option<Annotations> = Some(READER);
    type Args = Args;
    type Output = Answer<Data>;

    fn shape_schema(schema: &mut Value) {
        compact(schema);
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Answer<Data>> {
        let named = args.path.as_deref().map(str::trim).filter(|path| !path.is_empty());
        let folder = match named {
            None => WsPath::root(),
            Some(named) => {
                let Located { path, entry, .. } = self.0.locate(cx, named).await?;
                match entry {
                    None if path.is_root() => path,
                    None => return Err(self.0.not_found(cx, &path).await),
                    Some(entry) if entry.file_type != FileType::Folder => {
                        let bytes = u64::try_from(entry.size).unwrap_or(0);
                        let text = format!("{} {}", path.without_slash(), size(bytes));
                        return Ok(self.0.finish(cx, Answer::new(text, Data { entries: Vec::new(), total: 1 })));
                    }
                    Some(_) => path,
                }
            }
        };
        let glob = args.glob.as_deref().map(str::trim).filter(|glob| !glob.is_empty());
        let listing = tree::listing(cx, &folder, glob, self.0.options.ls_bytes).await;
        let listing = listing.map_err(crate::arguments::naming_pattern("glob"))?;
        let data = Data { entries: listing.entries, total: listing.total };
        Ok(self.0.finish(cx, Answer::new(listing.text, data)))
    }

    fn text(&self, output: &Answer<Data>) -> Option<String> {
        Some(output.text.clone())
    }
}

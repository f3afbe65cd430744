use super::{about_path, path};
use crate::arguments;
use crate::not_listed::NotListed;
use crate::text;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt::Write;
use toolrest_core::{Action, CallCx, FileType, Listed, Render, Result, Tool, ToolError, WsPath, push_json_string};

pub(super) struct Ls;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Directory to list. Default: the root.
    #[schemars(extend("default" = "/"))]
    path: Option<String>,
    /// Also list the contents of all subdirectories.
    #[schemars(extend("default" = false))]
    recursive: Option<bool>,
}

#[derive(JsonSchema)]
pub(super) struct Output {
    /// The path that was listed.
    path: WsPath,
    /// The contents of the directory, sorted by path.
    #[schemars(with = "Vec<Shown>")]
    entries: Vec<Listed>,
    /// Entries that could not be listed.
    #[schemars(skip_serializing_if = "Option::is_none")]
    skipped: Option<NotListed>,
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "the schema of what `Output` writes")]
struct Shown {
    /// The last part of the path.
    name: String,
    /// The name to show to people.
    display_name: String,
    /// Full path to the item.
    path: WsPath,
    /// Document, Folder, Canvas, Whiteboard, Chat, Agent, Skill or File.
    file_type: FileType,
    /// Whether the system generates the file. File tools cannot change it.
    is_virtual: bool,
    /// Time of the last change.
    #[schemars(extend("format" = "date-time"))]
    updated_at: String,
}

impl Render for Output {
    /// Writes the JSON directly: a listing may have thousands of entries, and serialising them field by field takes
    /// several times as long.
    fn render(&self, limit_bytes: usize) -> Result<Option<String>> {
        const ENTRY_BYTES: usize = 200;
        let mut out = String::with_capacity((100 + self.entries.len() * ENTRY_BYTES).min(limit_bytes));
        out.push_str(r#"{"path":"#);
        push_json_string(&mut out, self.path.as_str());
        out.push_str(r#","entries":["#);
        for (i, entry) in self.entries.iter().enumerate() {
            let name = entry.path.name();
            out.push_str(if i == 0 { r#"{"name":"# } else { r#",{"name":"# });
            push_json_string(&mut out, name);
            out.push_str(r#","display_name":"#);
            push_json_string(&mut out, entry.display_name.as_deref().unwrap_or(name));
            out.push_str(r#","path":"#);
            push_json_string(&mut out, entry.path.as_str());
            out.push_str(r#","file_type":""#);
            out.push_str(entry.file_type.name());
            out.push_str(r#"","is_virtual":"#);
            out.push_str(if entry.is_virtual { "true" } else { "false" });
            write!(out, r#","updated_at":"{}"}}"#, entry.updated_at).map_err(ToolError::internal)?;
            if out.len() > limit_bytes {
                return Ok(None);
            }
        }
        out.push(']');
        if let Some(skipped) = &self.skipped {
            out.push_str(r#","skipped":"#);
            out.push_str(&serde_json::to_string(skipped).map_err(ToolError::internal)?);
        }
        out.push('}');
        Ok((out.len() <= limit_bytes).then_some(out))
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
        let path = path(cx, "path", args.path.as_deref().unwrap_or("/")).await?;
        let depth = arguments::depth(args.recursive);
        let listing = toolrest_ops::list(cx, &path, depth).await.map_err(about_path("path"))?;
        let skipped = NotListed::of(&listing, ToString::to_string);
        Ok(Output { path, entries: listing.entries, skipped })
    }

    fn text(&self, output: &Output) -> Option<String> {
        let shown = |entry: &Listed| match entry.file_type {
            FileType::Folder => format!("{}/", entry.path),
            _ => entry.path.to_string(),
        };
        let mut text = text::lines(output.entries.iter().map(shown), "empty");
        if let Some(skipped) = &output.skipped {
            skipped.push_to(&mut text);
        }
        Some(text)
    }
}

use super::answer::{Answer, count, push, short_commit, short_hash};
use super::arguments::compact;
use super::edit::{Data, File};
use super::locate::Located;
use super::{EDITOR, Kit};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use toolrest_core::{
    Action, Annotations, CallCx, Entry, ErrorKind, FileType, Parents, Result, Tool, ToolError, WsPath,
};
use toolrest_ops::{ContentForm, ExcerptOptions, ExpectedFile, TextOptions, excerpt, write_text};

pub(super) struct Write(pub(super) Arc<Kit>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// File.
    #[serde(alias = "file", alias = "file_path", alias = "filePath")]
    path: String,
    /// The whole content.
    #[serde(alias = "text", alias = "contents", alias = "file_text")]
    content: String,
    /// The hash as shown by read, or `new`: the file must not exist.
    if_hash: Option<String>,
}

#[async_trait]
impl Tool for Write {
    const NAME: &'static str = "write";
    const DESCRIPTION: &'static str =
        "Create a file, with its folders, or replace all of its content. To change parts of a file use edit.";
    const ACTION: Action = Action::Write;
    const ANNOTATIONS: Option<Annotations> = Some(EDITOR);
    type Args = Args;
    type Output = Answer<Data>;

    fn shape_schema(schema: &mut Value) {
        compact(schema);
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Answer<Data>> {
        let Located { path, entry, .. } = self.0.locate(cx, &args.path).await?;
        if path.is_root() || entry.as_ref().is_some_and(|entry| entry.file_type == FileType::Folder) {
            let message = format!("{} is a folder", path.without_slash());
            return Err(ToolError::new(ErrorKind::IsDirectory, message).with_hint("name a file in it"));
        }
        let expected = match args.if_hash.as_deref().map(|hash| hash.trim().trim_start_matches('#')) {
            None | Some("") => ExpectedFile::Any,
            Some("new") => ExpectedFile::Missing,
            Some(hash) => self.expected(cx, &path, entry.as_ref(), hash).await?,
        };
        let had_crlf = match &entry {
            Some(_) if !args.content.contains("\r\n") && args.content.contains('\n') => has_crlf(cx, &path).await,
            _ => false,
        };
        let options = TextOptions { parents: Parents::Create, expected, given: ContentForm::Text };
        let written = match write_text(cx, &path, args.content.into_bytes(), &options).await {
            Ok(written) => written,
            Err(error) if error.kind == ErrorKind::AlreadyExists => return Err(exists(cx, &path).await),
            Err(error) if error.kind == ErrorKind::Stale => {
                let message = format!("{} was changed by somebody else at this moment", path.without_slash());
                let hint = format!("read \"{}\"", path.without_slash());
                return Err(ToolError::new(ErrorKind::Stale, message).with_hint(hint));
            }
            Err(error) => return Err(error),
        };
        let commit = cx.commit();
        self.0.note_commit(cx, commit, "write").await;
        let name = path.without_slash();
        let lines = written.lines.map_or_else(|| "binary".to_owned(), |lines| count(lines, "line"));
        let was = match (written.created, written.lines_before) {
            (false, Some(before)) => format!(" (was {before}{})", plus_minus(&written.diff)),
            _ => String::new(),
        };
        let verb = if written.created { "created" } else { "replaced" };
        let named = commit.map_or_else(String::new, |commit| format!(", commit {}", short_commit(commit)));
        let mut text = format!("== {verb} {name} {lines}{was} #{}{named}", short_hash(written.hash));
        if had_crlf {
            push(&mut text, ".. its lines ended in CRLF; now they end in LF, as sent");
        }
        let file = File {
            path: name.to_owned(),
            action: Some(if written.created { 'A' } else { 'M' }),
            from: None,
            hash: Some(written.hash),
            diff: Some(written.diff),
            matched_with: Vec::new(),
        };
        Ok(self.0.finish(cx, Answer::new(text, Data { commit, files: vec![file] })))
    }

    fn text(&self, output: &Answer<Data>) -> Option<String> {
        Some(output.text.clone())
    }
}

impl Write {
    /// Returns the whole hash that the file must have, if it has the digits that were given.
    async fn expected(&self, cx: &CallCx, path: &WsPath, entry: Option<&Entry>, digits: &str) -> Result<ExpectedFile> {
        if digits.len() < 8 {
            return Err(ToolError::argument("if_hash", "`if_hash` needs at least 8 digits of the hash, or `new`"));
        }
        if entry.is_none() {
            return Err(self.0.not_found(cx, path).await);
        }
        let (entry, content) = toolrest_ops::read(cx, path).await?;
        let hash = entry.hash.map_or_else(|| content.hash(), Ok)?;
        if hash.to_string().starts_with(&digits.to_lowercase()) {
            return Ok(ExpectedFile::Hash(hash));
        }
        Err(self.0.stale(cx, &entry, hash, digits).await)
    }
}

/// Creates the error for a file that must not exist.
async fn exists(cx: &CallCx, path: &WsPath) -> ToolError {
    let name = path.without_slash();
    let one_line = ExcerptOptions { from: 1, to: 1, bytes: 100, line_bytes: 100 };
    let about = match excerpt(cx, path, one_line).await {
        Ok(found) => {
            let hash = found.hash.map_or_else(String::new, |hash| format!(" #{}", short_hash(hash)));
            format!(", {}{hash}", count(found.total, "line"))
        }
        Err(_) => String::new(),
    };
    let error = ToolError::new(ErrorKind::AlreadyExists, format!("{name}{about}"));
    error.with_hint("edit it, or leave out if_hash to replace all of it")
}

async fn has_crlf(cx: &CallCx, path: &WsPath) -> bool {
    let one_line = ExcerptOptions { from: 1, to: 1, bytes: 100, line_bytes: 100 };
    excerpt(cx, path, one_line).await.is_ok_and(|found| found.forms.contains(&"crlf"))
}

/// Returns how many lines a diff adds and removes: `: +12 -182`. Nothing if it is cut.
fn plus_minus(diff: &str) -> String {
    let lines = diff.lines().skip_while(|line| !line.starts_with("@@"));
    let (mut added, mut removed) = (0, 0);
    for line in lines {
        match line.as_bytes().first() {
            Some(b'+') => added += 1,
            Some(b'-') => removed += 1,
            Some(b'#') => return String::new(),
            _ => {}
        }
    }
    if added + removed == 0 { ", the same".to_owned() } else { format!(": +{added} -{removed}") }
}

use super::answer::{Answer, ago, append, count, push, short_commit, short_hash};
use super::arguments::{compact, list_if_any, switch};
use super::locate::Located;
use super::{EDITOR, Kit};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::sync::Arc;
use toolrest_core::{
    Action, Annotations, CallCx, CommitId, Content, ContentHash, Entry, ErrorKind, Page, Result, Tool, ToolError,
    WsPath,
};
use toolrest_ops::{
    ChangedLines, EditError, EditedFile, EditsError, EditsResult, FileEdit, NoPlace, Occurrences, edit_files,
};

/// Maximum number of edits of a call.
const MAX_EDITS: usize = 100;
/// Maximum number of lines of an error that are named.
const MAX_NAMED_LINES: usize = 10;

pub(super) struct Edit(pub(super) Arc<Kit>);

#[derive(JsonSchema)]
pub(super) struct Args {
    #[schemars(description = "")]
    edits: Vec<EditArgs>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
struct EditArgs {
    /// File. `a.rs:57` means the occurrence at line 57.
    #[serde(alias = "file", alias = "file_path", alias = "filePath")]
    path: String,
    #[serde(alias = "old_string", alias = "old_str", alias = "old_text", alias = "oldString", alias = "oldText")]
    old: String,
    #[serde(alias = "new_string", alias = "new_str", alias = "new_text", alias = "newString", alias = "newText")]
    new: String,
    /// Replace every occurrence.
    #[serde(default, alias = "replace_all", alias = "replaceAll", deserialize_with = "switch")]
    all: Option<bool>,
    /// The file's hash as shown by read; fails if it has changed since.
    #[serde(default)]
    if_hash: Option<String>,
}

/// The arguments as models send them: the list, or a single edit without a list.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    #[serde(default, deserialize_with = "list_if_any")]
    edits: Option<Vec<EditArgs>>,
    #[serde(alias = "file", alias = "file_path", alias = "filePath")]
    path: Option<String>,
    #[serde(alias = "old_string", alias = "old_str", alias = "old_text", alias = "oldString", alias = "oldText")]
    old: Option<String>,
    #[serde(alias = "new_string", alias = "new_str", alias = "new_text", alias = "newString", alias = "newText")]
    new: Option<String>,
    #[serde(default, alias = "replace_all", alias = "replaceAll", deserialize_with = "switch")]
    all: Option<bool>,
    if_hash: Option<String>,
}

impl<'de> Deserialize<'de> for Args {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Given { edits, path, old, new, all, if_hash } = Given::deserialize(deserializer)?;
        match (edits, path, old, new) {
            (Some(edits), None, None, None) => Ok(Self { edits }),
            (None, Some(path), Some(old), Some(new)) => {
                Ok(Self { edits: vec![EditArgs { path, old, new, all, if_hash }] })
            }
            (Some(_), ..) => Err(D::Error::custom("give `edits`, or `path`, `old` and `new` of a single edit")),
            (None, None, None, None) => Err(D::Error::missing_field("edits")),
            (None, None, ..) => Err(D::Error::missing_field("path")),
            (None, _, None, _) => Err(D::Error::missing_field("old")),
            (None, ..) => Err(D::Error::missing_field("new")),
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Data {
    /// The commit; none if nothing was to change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) commit: Option<CommitId>,
    /// The files that changed.
    pub(super) files: Vec<File>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct File {
    /// The path.
    pub(super) path: String,
    /// What was done: `A` created, `M` changed, `R` moved, `D` deleted. Only by `apply_patch`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) action: Option<char>,
    /// The old path, if it was moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<String>,
    /// The hash of the new content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hash: Option<ContentHash>,
    /// The change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) diff: Option<String>,
    /// What did not count where a text was found loosely.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub(super) matched_with: Vec<&'static str>,
}

#[async_trait]
impl Tool for Edit {
    const NAME: &'static str = "edit";
    const DESCRIPTION: &'static str = "Replace text in one or more files. All edits are made, in order and as one commit, or none. `old` must occur exactly once; copy it from the file, without line numbers.";
    const ACTION: Action = Action::Write;
    const ANNOTATIONS: Option<Annotations> = Some(EDITOR);
    type Args = Args;
    type Output = Answer<Data>;

    fn shape_schema(schema: &mut Value) {
        compact(schema);
        if let Some(edits) = schema.pointer_mut("/properties/edits").and_then(Value::as_object_mut) {
            edits.remove("description");
        }
        for name in ["all", "if_hash"] {
            if let Some(property) = schema.pointer_mut(&format!("/properties/edits/items/properties/{name}/type"))
                && let Some(kind) = property.as_array().and_then(|kinds| kinds.first().cloned())
            {
                *property = kind;
            }
        }
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Answer<Data>> {
        let number = args.edits.len();
        if number == 0 || number > MAX_EDITS {
            let message = format!("`edits` must have 1 to {MAX_EDITS} edits, not {number}");
            return Err(ToolError::argument("edits", message));
        }
        let mut edits = Vec::with_capacity(number);
        for (index, edit) in args.edits.into_iter().enumerate() {
            edits.push(self.located(cx, edit, (index, number)).await?);
        }
        let named: Vec<WsPath> = edits.iter().map(|edit| edit.path.clone()).collect();
        match edit_files(cx, edits.clone()).await {
            Ok(result) => {
                self.0.note_commit(cx, result.commit, "edit").await;
                let answer = self.answer(cx, result).await;
                Ok(self.0.finish(cx, answer))
            }
            Err(EditsError::Failed(error)) if error.kind == ErrorKind::NotFound => {
                let missing = error.missing_path().cloned().or_else(|| named.first().cloned());
                match missing {
                    Some(path) => Err(self.0.not_found(cx, &path).await),
                    None => Err(error),
                }
            }
            Err(EditsError::Failed(error)) => Err(error),
            Err(EditsError::NoPlace(failed)) => Err(no_place(&failed, number)),
            Err(EditsError::Stale { index, entry, current }) => {
                Err(self.0.stale(cx, &entry, current, edits[index].expected.as_deref().unwrap_or_default()).await)
            }
        }
    }

    fn text(&self, output: &Answer<Data>) -> Option<String> {
        Some(output.text.clone())
    }
}

impl Edit {
    async fn located(&self, cx: &CallCx, edit: EditArgs, (index, number): (usize, usize)) -> Result<FileEdit> {
        let which = || if number > 1 { format!("edit {} of {number}: ", index + 1) } else { String::new() };
        if edit.old.is_empty() {
            let message = format!("{}`old` is empty", which());
            return Err(ToolError::argument("old", message).with_hint("write replaces or creates a whole file"));
        }
        if edit.old == edit.new {
            let message = format!("{}`old` and `new` are the same", which());
            return Err(ToolError::argument("new", message));
        }
        let Located { path, lines, entry } = self.0.locate(cx, &edit.path).await?;
        if entry.is_none() {
            return Err(self.0.not_found(cx, &path).await);
        }
        let occurrences = match lines.line() {
            _ if edit.all.unwrap_or(false) => Occurrences::All,
            Some(line) => Occurrences::Near(line),
            None => Occurrences::Single,
        };
        let expected = edit.if_hash.map(|hash| hash.trim().trim_start_matches('#').to_owned());
        if expected.as_ref().is_some_and(|hash| hash.len() < 8) {
            return Err(ToolError::argument("if_hash", "`if_hash` needs at least 8 digits of the hash"));
        }
        Ok(FileEdit { path, old: edit.old, new: edit.new, which: occurrences, expected })
    }

    async fn answer(&self, cx: &CallCx, result: EditsResult) -> Answer<Data> {
        let EditsResult { commit, files, already_there } = result;
        if files.is_empty() {
            let mut text = String::new();
            for (_, path, line) in &already_there {
                let made = self.last_change(cx, path).await;
                let name = path.without_slash();
                push(&mut text, format!("== nothing to change: {name}:{line} already holds the new text{made}"));
            }
            if already_there.is_empty() {
                push(&mut text, "== nothing to change: the edits leave the files as they are");
            }
            return Answer::new(text, Data { commit: None, files: Vec::new() });
        }
        let named = commit.map_or_else(String::new, |commit| format!(", commit {}", short_commit(commit)));
        let header = format!("== edited {}{named}", count(files.len(), "file"));
        let mut text = header.clone();
        for file in &files {
            push(&mut text, title(file));
            push(&mut text, diff(&file.changes));
        }
        if text.len() > self.0.options.edit_bytes.saturating_sub(200) {
            text = header;
            for file in &files {
                let sum = |lines: fn(&ChangedLines) -> usize| file.changes.iter().map(lines).sum::<usize>();
                let (added, removed) = (sum(|change| change.added.len()), sum(|change| change.removed.len()));
                push(&mut text, format!("{} +{added} -{removed}", title(file)));
            }
            if text.len() > self.0.options.edit_bytes.saturating_sub(200) {
                let fitting = super::answer::head(&text, self.0.options.edit_bytes.saturating_sub(200));
                text = format!("{fitting}.. and more files");
            }
            let shown = commit
                .map_or_else(String::new, |commit| format!(": changes {{\"commit\":\"{}\"}}", short_commit(commit)));
            push(&mut text, format!(".. the diff is too long to show{shown}"));
        }
        for (index, path, line) in &already_there {
            let name = path.without_slash();
            push(&mut text, format!(".. edit {}: {name}:{line} already held the new text", index + 1));
        }
        let file = |file: EditedFile| File {
            path: file.path.without_slash().to_owned(),
            action: None,
            from: None,
            hash: Some(file.hash),
            diff: Some(diff(&file.changes)),
            matched_with: file.loosely,
        };
        Answer::new(text, Data { commit, files: files.into_iter().map(file).collect() })
    }

    /// Returns the last commit of a file in brackets, if there is one.
    async fn last_change(&self, cx: &CallCx, path: &WsPath) -> String {
        let Ok(Some(entry)) = cx.workspace.stat(path).await else { return String::new() };
        let Ok(versions) = cx.workspace.versions(entry.id, Page { before: None, limit: 1 }).await else {
            return String::new();
        };
        let Some(version) = versions.first() else { return String::new() };
        let Ok(commit) = cx.workspace.commit_info(version.commit_id).await else { return String::new() };
        let by = self.0.made_by(cx, &commit).await;
        format!(" (commit {}, {by}, {})", short_commit(commit.id), ago(commit.created_at))
    }
}

fn title(file: &EditedFile) -> String {
    let loosely = if file.loosely.is_empty() {
        String::new()
    } else {
        format!(" (matched ignoring {})", file.loosely.join(", "))
    };
    format!("{} #{}{loosely}", file.path.without_slash(), short_hash(file.hash))
}

/// Writes changes as a diff without context, at the new line numbers.
fn diff(changes: &[ChangedLines]) -> String {
    let mut text = String::new();
    for change in changes {
        push(&mut text, format!("@@ {}", change.line));
        for (mark, lines) in [('-', &change.removed), ('+', &change.added)] {
            for line in lines {
                push(&mut text, format!("{mark}{line}"));
            }
        }
    }
    text
}

/// Creates the error for an edit whose place was not found, or is not the only one.
fn no_place(failed: &NoPlace, number: usize) -> ToolError {
    let NoPlace { index, path, hash, error } = failed;
    let name = path.without_slash();
    let which = if number > 1 { format!("edit {} of {number}, {name}", index + 1) } else { name.to_owned() };
    let again = match number {
        1 => String::new(),
        2 => "; send both edits".to_owned(),
        _ => format!("; send all {number} edits"),
    };
    match error {
        EditError::NotUnique { lines, count, .. } => {
            let named: Vec<String> = lines.iter().take(MAX_NAMED_LINES).map(ToString::to_string).collect();
            let more = if *count > named.len() { ", …" } else { "" };
            let message = format!("{which}: old occurs {count} times: lines {}{more}", named.join(", "));
            let line = lines.get(1).or_else(|| lines.first()).copied().unwrap_or(1);
            let hint = format!("\"path\":\"{name}:{line}\", more lines in old, or \"all\":true{again}");
            ToolError::new(ErrorKind::FindNotUnique, message).with_hint(hint)
        }
        EditError::NotFound { closest, .. } => {
            let mut message = format!("{which}: old is not in the file. Nothing was changed");
            let Some(closest) = closest else {
                let error = ToolError::new(ErrorKind::FindNotFound, message);
                return error.with_hint(format!("read \"{name}\" and copy old from it{again}"));
            };
            let last = closest.first + closest.count.max(1) - 1;
            let lines =
                if closest.count > 1 { format!("lines {}-{last}", closest.first) } else { format!("line {last}") };
            let after = if hash.is_none() { " (after the edits before)" } else { "" };
            let hash = hash.map_or_else(String::new, |hash| format!(" #{}", short_hash(hash)));
            push(&mut message, format!("closest, {lines}{hash}{after}:"));
            for (at, line) in closest.lines.iter().enumerate() {
                push(&mut message, format!("{}\t{line}", closest.first + at));
            }
            if let Some((line, difference)) = &closest.difference {
                push(&mut message, format!("differs: line {line} (old vs file): {difference}"));
            }
            let error = ToolError::new(ErrorKind::FindNotFound, message);
            error.with_hint(format!("copy old from these lines{again}"))
        }
        other => ToolError::new(ErrorKind::FindNotFound, format!("{which}: {other}")),
    }
}

impl Kit {
    /// Creates the error for a file that has another hash than the caller expects: with what changed since, and by whom.
    pub(super) async fn stale(&self, cx: &CallCx, entry: &Entry, current: ContentHash, expected: &str) -> ToolError {
        let name = entry.path.without_slash();
        let mut message = format!("{name} is #{}, not #{}", short_hash(current), &expected[..expected.len().min(8)]);
        let mut place = name.to_owned();
        if let Some((line, commit)) = self.changed_since(cx, entry, expected).await {
            if let Some(line) = line {
                append(&mut message, format!(": line {line} changed"));
                place = format!("{name}:{line}");
            } else {
                message.push_str(": changed");
            }
            append(&mut message, format!(" by commit {commit}"));
        }
        ToolError::new(ErrorKind::Stale, message).with_hint(format!("read \"{place}\""))
    }

    /// Returns the first line that differs from the version with this hash, and the commit of the current version.
    async fn changed_since(&self, cx: &CallCx, entry: &Entry, expected: &str) -> Option<(Option<usize>, String)> {
        const MAX_BYTES: i64 = 1 << 20;
        let versions = cx.workspace.versions(entry.id, Page { before: None, limit: 50 }).await.ok()?;
        let newest = versions.first()?;
        let commit = cx.workspace.commit_info(newest.commit_id).await.ok()?;
        let commit = self.named_commit(cx, &commit).await;
        let known = versions.iter().find(|version| version.hash.to_string().starts_with(expected));
        let Some(known) = known else { return Some((None, commit)) };
        let (_, before) = cx.workspace.version(entry.id, known.id, MAX_BYTES).await.ok()?;
        let now = cx.workspace.read(&entry.path, 1 << 20).await.ok()?.content;
        let (Some(Content::Text(before)), Some(Content::Text(now))) = (before, now) else {
            return Some((None, commit));
        };
        let changes = toolrest_ops::changed_lines(&before, &now);
        Some((changes.first().map(|change| change.line), commit))
    }
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;

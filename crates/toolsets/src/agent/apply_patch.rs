use super::answer::{Answer, count, head, push, short_commit, short_hash};
use super::arguments::compact;
use super::edit::{Data, File};
use super::{EDITOR, Kit};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use toolrest_core::{Action, Annotations, CallCx, ErrorKind, Result, Tool, ToolError};
use toolrest_ops::{PatchAction, PatchOptions, PatchedFile, patch};

pub(super) struct ApplyPatch(pub(super) Arc<Kit>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The patch.
    #[serde(alias = "input", alias = "patchText", alias = "patch_text", alias = "diff")]
    patch: String,
}

#[async_trait]
impl Tool for ApplyPatch {
    const NAME: &'static str = "apply_patch";
    const DESCRIPTION: &'static str = "Apply a patch to any number of files, as one commit or not at all: a unified diff, or the `*** Begin Patch` format. It can also create, delete and move files.";
    const ACTION: Action = Action::Write;
    const ANNOTATIONS: Option<Annotations> = Some(EDITOR);
    type Args = Args;
    type Output = Answer<Data>;

    fn shape_schema(schema: &mut Value) {
        compact(schema);
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Answer<Data>> {
        let options = PatchOptions { expected: BTreeMap::new() };
        let patched = patch(cx, &args.patch, &options).await.map_err(with_next)?;
        let commit = cx.commit();
        self.0.note_commit(cx, commit, "apply_patch").await;
        let files = patched.files;
        if files.is_empty() {
            let text = "== nothing to change: the files have this content already".to_owned();
            return Ok(self.0.finish(cx, Answer::new(text, Data { commit: None, files: Vec::new() })));
        }
        let named = commit.map_or_else(String::new, |commit| format!(", commit {}", short_commit(commit)));
        let mut text = format!("== patched {}{named}", count(files.len(), "file"));
        for file in &files {
            push(&mut text, line(file));
        }
        if text.len() > self.0.options.edit_bytes.saturating_sub(200) {
            let end = head(&text, self.0.options.edit_bytes.saturating_sub(200)).len();
            text.truncate(end);
            push(&mut text, ".. and more files");
        }
        let mut diffs = Some(patched.diff);
        let file = |file: PatchedFile| File {
            path: file.path.without_slash().to_owned(),
            action: Some(letter(file.action)),
            from: file.from.as_ref().map(|from| from.without_slash().to_owned()),
            hash: file.hash,
            // The diff of all files stands with the first.
            diff: diffs.take(),
            matched_with: Vec::new(),
        };
        let data = Data { commit, files: files.into_iter().map(file).collect() };
        Ok(self.0.finish(cx, Answer::new(text, data)))
    }

    fn text(&self, output: &Answer<Data>) -> Option<String> {
        Some(output.text.clone())
    }
}

fn letter(action: PatchAction) -> char {
    match action {
        PatchAction::Add => 'A',
        PatchAction::Update => 'M',
        PatchAction::Delete => 'D',
        PatchAction::Move => 'R',
    }
}

fn line(file: &PatchedFile) -> String {
    let path = file.path.without_slash();
    let moved = match &file.from {
        Some(from) => format!("{} -> {path}", from.without_slash()),
        None => path.to_owned(),
    };
    let hash = file.hash.map_or_else(String::new, |hash| format!(" #{}", short_hash(hash)));
    format!("{} {moved}{hash}", letter(file.action))
}

/// Adds the call that helps.
fn with_next(error: ToolError) -> ToolError {
    match error.kind {
        ErrorKind::FindNotFound | ErrorKind::FindNotUnique => {
            error.with_hint("copy the context from the file, and send the whole patch again")
        }
        ErrorKind::PatchSyntax => error.with_hint("correct that line, and send the whole patch again"),
        _ => error,
    }
}

//! Replacing text in a file.

use crate::document::Editable;
use crate::move_remove::commit_one;
use crate::{heavy, read};
use std::borrow::Cow;
use toolrest_core::{
    CallCx, Change, Content, ContentHash, Entry, ErrorKind, Expect, FileId, Parents, Put, Result, ToolError, VersionId,
    WsPath,
};
use toolrest_edit::{
    Edit, EditError, Leniency, Limits, MatchLevel, Occurrences, ReplaceInOrderResult, diff, replace, replace_in_order,
};

/// Maximum size of an explanation, because a model has to read it.
pub(crate) const EXPLANATION_BYTES: usize = 4_000;
/// Maximum size of the path at the start of an explanation.
const PATH_BYTES: usize = 400;

/// Options of [`edit`].
#[derive(Clone)]
pub struct EditOptions {
    /// The replacements. Each one is applied to the result of the one before. If one fails, nothing is written.
    pub edits: Vec<Replacement>,
    /// How exactly the text must match.
    pub leniency: Leniency,
    /// The hash that the file must still have.
    pub expected: Option<ContentHash>,
}

/// One replacement.
#[derive(Clone)]
pub struct Replacement {
    /// The text to find.
    pub old: String,
    /// The new text.
    pub new: String,
    /// Which occurrences to replace.
    pub which: Occurrences,
}

/// The result of [`edit`].
pub struct Edited {
    /// The file.
    pub file: FileId,
    /// Its version. In a dry run, the current one.
    pub version: Option<VersionId>,
    /// The hash of the new content.
    pub hash: Option<ContentHash>,
    /// Number of occurrences that each replacement replaced.
    pub counts: Vec<usize>,
    /// The loosest level of matching that was needed.
    pub matched_with: MatchLevel,
    /// The change as a unified diff.
    pub diff: String,
}

impl Edited {
    /// Returns the level of matching, if it was not exact.
    pub fn matched_loosely(&self) -> Option<&'static str> {
        (self.matched_with != MatchLevel::Exact).then(|| self.matched_with.name())
    }
}

/// Replaces text in a file. Concurrent edits of one file are applied one after the other.
pub async fn edit(cx: &CallCx, path: &WsPath, options: &EditOptions) -> Result<Edited> {
    let _lock = cx.lock_for_edit(path).await;
    loop {
        let (entry, content) = read(cx, path).await?;
        changeable(&entry)?;
        let hash = entry.hash.map_or_else(|| content.hash(), Ok)?;
        if options.expected.is_some_and(|expected| expected != hash) {
            return Err(ToolError::stale(path, Some(hash)));
        }
        let (file_type, file, version) = (entry.file_type, entry.id, entry.version);
        let unchanged = Expect::unchanged(&entry);
        let done = edited(cx, entry, content, options).await?;
        let mut edited = Edited {
            file,
            version,
            hash: Some(done.content.hash()?),
            counts: done.counts,
            matched_with: done.matched_with,
            diff: done.diff,
        };
        let put =
            Put { path: path.clone(), file_type, content: done.content, parents: Parents::Require, executable: None };
        match commit_one(cx, Change::Put(put), unchanged).await {
            Ok(outcome) => {
                (edited.file, edited.version) = (outcome.file, outcome.version);
                return Ok(edited);
            }
            // Another replica changed the file; edit its new content. The call's deadline ends this loop.
            Err(error) if error.kind == ErrorKind::Stale && options.expected.is_none() => {}
            Err(error) => return Err(error),
        }
    }
}

/// Refuses files that the system generates.
pub(crate) fn changeable(entry: &Entry) -> Result<()> {
    if entry.is_virtual {
        let message = format!("{} is managed by the system and cannot be edited; use the chat API", entry.path);
        return Err(ToolError::new(ErrorKind::Protected, message));
    }
    Ok(())
}

struct EditResult {
    content: Content,
    counts: Vec<usize>,
    matched_with: MatchLevel,
    diff: String,
}

async fn edited(cx: &CallCx, entry: Entry, content: Content, options: &EditOptions) -> Result<EditResult> {
    let limit_bytes = cx.limits.response_bytes;
    let given = options.edits.iter().map(|edit| edit.old.len() + edit.new.len()).sum::<usize>();
    let size = usize::try_from(entry.size).unwrap_or(usize::MAX).saturating_add(given);
    let options = options.clone();
    heavy::run(cx, size, move |stop| {
        let limits = Limits { bytes: limit_bytes, stop };
        let editable = Editable::of(content, entry.file_type, &entry.path, limit_bytes)?;
        let edits: Vec<Edit<'_>> = options
            .edits
            .iter()
            .map(|edit| Edit {
                old: edit.old.as_bytes(),
                new: edit.new.as_bytes(),
                occurrences: edit.which,
                leniency: options.leniency,
            })
            .collect();
        let replaced = match &edits[..] {
            // The error for a single edit has no number.
            [only] => replace(editable.text.as_bytes(), only, limits)
                .map(|one| ReplaceInOrderResult { text: one.text, edits: vec![(one.count, one.level)] }),
            several => replace_in_order(editable.text.as_bytes(), several, limits),
        };
        let replaced = replaced.map_err(|error| to_tool_error(&error, &entry.path, entry.hash))?;
        let text = String::from_utf8(replaced.text).map_err(ToolError::internal)?;
        let name = entry.path.without_slash();
        Ok(EditResult {
            counts: replaced.edits.iter().map(|(count, _)| *count).collect(),
            matched_with: replaced.edits.iter().map(|(_, level)| *level).max().unwrap_or(MatchLevel::Exact),
            diff: diff::unified(name.as_bytes(), Some(editable.text.as_bytes()), Some(text.as_bytes()), stop),
            content: editable.put_back(text)?,
        })
    })
    .await
}

/// Returns the text, or its start and an ellipsis if it is longer than `max_bytes`.
pub(crate) fn shortened(text: &str, max_bytes: usize) -> Cow<'_, str> {
    const MARK: &str = "…";
    if text.len() <= max_bytes {
        return Cow::Borrowed(text);
    }
    let max_bytes = max_bytes.saturating_sub(MARK.len());
    let end = (0..=max_bytes).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    Cow::Owned(format!("{}{MARK}", &text[..end]))
}

/// Converts an error of the editing engine.
pub(crate) fn to_tool_error(error: &EditError, path: &WsPath, hash: Option<ContentHash>) -> ToolError {
    use toolrest_edit::ErrorKind as E;
    let kind = match error.kind() {
        E::InvalidArgument => ErrorKind::InvalidArgument,
        E::NotFound => ErrorKind::FindNotFound,
        E::NotUnique => ErrorKind::FindNotUnique,
        E::AlreadyApplied => ErrorKind::AlreadyApplied,
        E::Syntax | E::Overlap => ErrorKind::PatchSyntax,
        E::TooLarge => ErrorKind::PayloadTooLarge,
        E::BaseMismatch => ErrorKind::Stale,
        E::Stopped => ErrorKind::Cancelled,
    };
    // The explanation of failed hunks names the file itself.
    let prefix = match error {
        EditError::Hunks { .. } => String::new(),
        _ => format!("{}: ", shortened(path.as_str(), PATH_BYTES)),
    };
    let end = "\nNothing was written";
    let explanation = error.to_string();
    let explanation = shortened(&explanation, EXPLANATION_BYTES - prefix.len() - end.len());
    let tool_error = ToolError::new(kind, format!("{prefix}{explanation}{end}")).at_path(path);
    let tool_error = match hash {
        Some(hash) => tool_error.detail("current_hash", hash.to_string()),
        None => tool_error,
    };
    match error {
        EditError::Edit { number, .. } => tool_error.in_edit(*number),
        _ => tool_error,
    }
}

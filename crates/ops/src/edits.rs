//! Replacing text in several files at once, as one change.

use crate::document::Editable;
use crate::edit::{changeable, to_tool_error};
use crate::heavy;
use crate::read::{read_up_to, too_large};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use toolrest_core::{
    CallCx, Change, Changeset, CommitId, Content, ContentHash, Entry, ErrorKind, Expect, Parents, Put, Result,
    ToolError, WsPath,
};
use toolrest_edit::diff::changes;
use toolrest_edit::{Edit, EditError, Leniency, Limits, MatchLevel, Occurrences, StopFlag, replace};

/// Files up to this total size are read without reserving memory.
const FREE_BYTES: u64 = 256 << 10;
/// Maximum size of all files together, as a multiple of the size of an answer.
const MAX_ANSWERS: usize = 3;
/// A new text with fewer characters than this is not taken for the result of an earlier edit.
const MIN_NEW_CHARS: usize = 4;

/// One replacement in one file.
#[derive(Clone, Debug)]
pub struct FileEdit {
    /// The file.
    pub path: WsPath,
    /// The text to find.
    pub old: String,
    /// The new text.
    pub new: String,
    /// Which occurrences to replace.
    pub which: Occurrences,
    /// The first digits of the hash that the file must still have.
    pub expected: Option<String>,
}

/// The result of [`edit_files`].
#[derive(Debug)]
pub struct EditsResult {
    /// The commit; none if nothing was to change.
    pub commit: Option<CommitId>,
    /// The changed files, in the order of the edits.
    pub files: Vec<EditedFile>,
    /// The edits whose new text was there already, by index, with the path and the line.
    pub already_there: Vec<(usize, WsPath, usize)>,
}

/// A file that was edited.
#[derive(Debug)]
pub struct EditedFile {
    /// Its path.
    pub path: WsPath,
    /// The hash of the new content.
    pub hash: ContentHash,
    /// The lines that changed.
    pub changes: Vec<ChangedLines>,
    /// How the texts were found, if not exactly, each once.
    pub loosely: Vec<&'static str>,
}

/// Consecutive lines that changed, without their endings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedLines {
    /// The number of the first new line, counted from 1.
    pub line: usize,
    /// The lines before.
    pub removed: Vec<String>,
    /// The lines after.
    pub added: Vec<String>,
}

impl ChangedLines {
    /// Returns the lines that differ between two texts.
    pub fn between(old: &str, new: &str, stop: StopFlag<'_>) -> Vec<Self> {
        let owned = |lines: &[&str]| lines.iter().map(|line| line.trim_end_matches(['\n', '\r']).to_owned()).collect();
        let all = changes(old, new, stop).into_iter();
        all.map(|change| Self {
            line: change.new_start + 1,
            removed: owned(&change.removed),
            added: owned(&change.added),
        })
        .collect()
    }
}

/// Returns the lines that differ between two texts.
pub fn changed_lines(old: &str, new: &str) -> Vec<ChangedLines> {
    ChangedLines::between(old, new, StopFlag::never())
}

/// Why edits were refused. Nothing was changed.
#[derive(Debug)]
pub enum EditsError {
    /// Any error.
    Failed(ToolError),
    /// The place of an edit was not found, or there are several.
    NoPlace(Box<NoPlace>),
    /// A file has another hash than expected.
    Stale {
        /// The index of the edit that expects the hash.
        index: usize,
        /// The file.
        entry: Box<Entry>,
        /// Its hash.
        current: ContentHash,
    },
}

impl From<ToolError> for EditsError {
    fn from(error: ToolError) -> Self {
        Self::Failed(error)
    }
}

/// An edit whose place was not found, or is not the only one.
#[derive(Debug)]
pub struct NoPlace {
    /// The index of the edit.
    pub index: usize,
    /// The file.
    pub path: WsPath,
    /// The hash of the file, if it is as it was read.
    pub hash: Option<ContentHash>,
    /// What is wrong.
    pub error: EditError,
}

/// Replaces text in files. Each edit is made in the result of the ones before; all of them are one commit, or none is made.
/// A text is found loosely where it is not found exactly, if the place is unique.
pub async fn edit_files(cx: &CallCx, edits: Vec<FileEdit>) -> Result<EditsResult, EditsError> {
    let paths: BTreeSet<WsPath> = edits.iter().map(|edit| edit.path.clone()).collect();
    // In the order of the paths, so that two calls cannot wait for each other.
    let mut locks = Vec::with_capacity(paths.len());
    for path in &paths {
        locks.push(cx.lock_for_edit(path).await);
    }
    let edits = Arc::new(edits);
    loop {
        let files = read_all(cx, &paths).await?;
        check_hashes(&edits, &files)?;
        let size = files.values().map(|(entry, _)| usize::try_from(entry.size).unwrap_or(usize::MAX)).sum();
        let (limit_bytes, planned) = (cx.limits.response_bytes, Arc::clone(&edits));
        let made = heavy::run(cx, size, move |stop| Ok(apply(&planned, files, limit_bytes, stop))).await??;
        if made.changes.changes.is_empty() {
            return Ok(made.result);
        }
        match cx.workspace.commit(made.changes, cx).await {
            Ok(commit) => return Ok(EditsResult { commit: commit.id, ..made.result }),
            // Another call changed a file; make the edits in its new content. The call's deadline ends this loop.
            Err(error) if error.kind == ErrorKind::Stale && edits.iter().all(|edit| edit.expected.is_none()) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

type Files = BTreeMap<WsPath, (Entry, Content)>;

/// Reads the files, after memory for all of them was reserved.
async fn read_all(cx: &CallCx, paths: &BTreeSet<WsPath>) -> Result<Files> {
    let mut total = 0_u64;
    for path in paths {
        let entry = cx.workspace.stat(path).await?.ok_or_else(|| ToolError::file_not_found(path))?;
        cx.note_path(path);
        total = total.saturating_add(u64::try_from(entry.size).unwrap_or(0));
    }
    let most = cx.limits.response_bytes.saturating_mul(MAX_ANSWERS);
    if total > most as u64 {
        let message = format!("The files have {total} bytes together, over the limit of {most}; edit fewer at once");
        return Err(ToolError::new(ErrorKind::PayloadTooLarge, message));
    }
    cx.workspace.make_room(if total > FREE_BYTES { total } else { 0 }).await?;
    let mut files = Files::new();
    for path in paths {
        let (entry, content) = read_up_to(cx, path, cx.limits.response_bytes).await?;
        changeable(&entry)?;
        if u64::try_from(entry.size).unwrap_or(0) > most as u64 {
            return Err(too_large(path, entry.size, most));
        }
        files.insert(path.clone(), (entry, content));
    }
    Ok(files)
}

fn check_hashes(edits: &[FileEdit], files: &Files) -> Result<(), EditsError> {
    for (index, edit) in edits.iter().enumerate() {
        let (Some(expected), Some((entry, content))) = (&edit.expected, files.get(&edit.path)) else { continue };
        let current = entry.hash.map_or_else(|| content.hash(), Ok)?;
        if !current.to_string().starts_with(&expected.to_lowercase()) {
            return Err(EditsError::Stale { index, entry: Box::new(entry.clone()), current });
        }
    }
    Ok(())
}

struct Made {
    changes: Changeset,
    result: EditsResult,
}

/// A file while its edits are made.
struct Working {
    entry: Entry,
    hash: ContentHash,
    editable: Editable,
    text: String,
    loosely: Vec<&'static str>,
}

fn apply(edits: &[FileEdit], files: Files, limit_bytes: usize, stop: StopFlag<'_>) -> Result<Made, EditsError> {
    let mut working: BTreeMap<WsPath, Working> = BTreeMap::new();
    for (path, (entry, content)) in files {
        let hash = entry.hash.map_or_else(|| content.hash(), Ok)?;
        let editable = Editable::of(content, entry.file_type, &path, limit_bytes)?;
        let text = editable.text.clone();
        working.insert(path, Working { entry, hash, editable, text, loosely: Vec::new() });
    }
    let mut already_there = Vec::new();
    for (index, edit) in edits.iter().enumerate() {
        let Some(file) = working.get_mut(&edit.path) else { continue };
        match replaced(&file.text, edit, Limits { bytes: limit_bytes, stop }) {
            Ok(Replaced::Text { text, loosely }) => {
                file.text = text;
                let new = loosely.filter(|note| !file.loosely.contains(note));
                file.loosely.extend(new);
            }
            Ok(Replaced::AlreadyThere { line }) => already_there.push((index, edit.path.clone(), line)),
            Err(error @ (EditError::NotFound { .. } | EditError::NotUnique { .. })) => {
                let is_as_read = file.text == file.editable.text;
                let (path, hash) = (edit.path.clone(), is_as_read.then_some(file.hash));
                return Err(EditsError::NoPlace(Box::new(NoPlace { index, path, hash, error })));
            }
            Err(error) => return Err(to_tool_error(&error, &edit.path, Some(file.hash)).into()),
        }
    }
    let mut made =
        Made { changes: Changeset::default(), result: EditsResult { commit: None, files: Vec::new(), already_there } };
    let mut order: Vec<&WsPath> = Vec::new();
    for edit in edits {
        if !order.contains(&&edit.path) {
            order.push(&edit.path);
        }
    }
    for path in order {
        let Some(file) = working.remove(path) else { continue };
        let Working { entry, editable, text, loosely, .. } = file;
        if text == editable.text {
            continue;
        }
        let changes = ChangedLines::between(&editable.text, &text, stop);
        let content = editable.put_back(text)?;
        let edited = EditedFile { path: path.clone(), hash: content.hash()?, changes, loosely };
        made.result.files.push(edited);
        made.changes.expect.extend(Expect::unchanged(&entry));
        let (path, file_type) = (path.clone(), entry.file_type);
        let put = Put { path, file_type, content, parents: Parents::Require, executable: None };
        made.changes.changes.push(Change::Put(put));
    }
    Ok(made)
}

enum Replaced {
    Text { text: String, loosely: Option<&'static str> },
    AlreadyThere { line: usize },
}

/// Makes one edit. The levels of matching are tried from the strictest to the loosest.
fn replaced(text: &str, edit: &FileEdit, limits: Limits<'_>) -> Result<Replaced, EditError> {
    if let Some(line) = line_of_result(text, edit) {
        return Ok(Replaced::AlreadyThere { line });
    }
    let attempt = |old: &str, new: &str, leniency| {
        let edit = Edit { old: old.as_bytes(), new: new.as_bytes(), occurrences: edit.which, leniency };
        replace(text.as_bytes(), &edit, limits)
    };
    let done = |text: Vec<u8>, loosely: Option<&'static str>| {
        // A replacement of whole characters in UTF-8 is UTF-8.
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok(Replaced::Text { text, loosely })
    };
    match attempt(&edit.old, &edit.new, Leniency::Exact) {
        Ok(exact) => return done(exact.text, None),
        Err(EditError::NotFound { .. }) => {}
        Err(error) => return Err(error),
    }
    if let Some((old, new)) = without_line_numbers(&edit.old, &edit.new) {
        match attempt(&old, &new, Leniency::Fuzzy) {
            Ok(numbered) => return done(numbered.text, Some("line numbers")),
            Err(EditError::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let loose = attempt(&edit.old, &edit.new, Leniency::Fuzzy)?;
    done(loose.text, ignored_at(loose.level))
}

/// Returns what a level of matching ignores, in words.
fn ignored_at(level: MatchLevel) -> Option<&'static str> {
    match level {
        MatchLevel::Exact => None,
        MatchLevel::TrailingWhitespace => Some("trailing blanks"),
        MatchLevel::Punctuation => Some("typographic punctuation"),
        MatchLevel::Indentation => Some("indentation"),
        MatchLevel::FaultyContext => Some("a context line"),
    }
}

/// Returns the line at which the result of an edit is already, if it is at one place: the old text is gone, or it is a part
/// of the new one there. So an edit that is sent again changes nothing.
fn line_of_result(text: &str, edit: &FileEdit) -> Option<usize> {
    if edit.old == edit.new || edit.new.trim().chars().count() < MIN_NEW_CHARS {
        return None;
    }
    let at = text.find(&edit.new)?;
    let is_only = text.matches(&edit.new).nth(1).is_none();
    let mut old = text.match_indices(edit.old.as_str()).map(|(start, _)| start);
    let is_result = match (old.next(), old.next()) {
        (None, _) => !edit.old.contains(&edit.new),
        (Some(start), None) => edit.new.contains(&edit.old) && (at..at + edit.new.len()).contains(&start),
        _ => false,
    };
    (is_only && is_result).then(|| text[..at].matches('\n').count() + 1)
}

/// Characters that stand between the number of a line and the line in the answers of tools.
const AFTER_NUMBER: [char; 5] = ['\t', '→', ':', '-', '|'];

/// Returns both texts without the line numbers that were copied with the lines, if every line of the old one has its number.
fn without_line_numbers(old: &str, new: &str) -> Option<(String, String)> {
    let mut stripped_old = String::new();
    let mut next = None;
    for line in old.split_inclusive('\n') {
        let (number, rest) = numbered(line)?;
        if next.is_some_and(|next| next != number) {
            return None;
        }
        next = number.checked_add(1);
        stripped_old.push_str(rest);
    }
    let stripped_new = new.split_inclusive('\n').map(|line| numbered(line).map_or(line, |(_, rest)| rest)).collect();
    (!stripped_old.trim().is_empty()).then_some((stripped_old, stripped_new))
}

/// Splits a line into its number and the rest.
fn numbered(line: &str) -> Option<(u32, &str)> {
    let trimmed = line.trim_start_matches(' ');
    let digits = trimmed.len() - trimmed.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let number = trimmed[..digits].parse().ok()?;
    Some((number, trimmed[digits..].strip_prefix(AFTER_NUMBER)?))
}

#[cfg(test)]
#[path = "edits_tests.rs"]
mod tests;

//! Changing the text of a file in place.

use crate::document::Editable;
use crate::place::commit_one;
use crate::{heavy, read};
use std::borrow::Cow;
use toolrest_core::{
    CallCx, Change, Content, ContentHash, Entry, ErrorKind, Expect, FileId, Parents, Put, Result, ToolError, VersionId,
    WsPath,
};
use toolrest_edit::{
    Edit, EditError, Leniency, Limits, MatchLevel, Occurrences, ReplacedInOrder, diff, replace, replace_in_order,
};

/// The most bytes of an explanation: a model has to read it.
pub(crate) const EXPLANATION_BYTES: usize = 4_000;
/// The most bytes of a path that an explanation begins with.
const PATH_BYTES: usize = 400;

/// What to replace in a file.
#[derive(Clone)]
pub struct EditOptions {
    /// The replacements, each made in what the one before left. All are made or none.
    pub edits: Vec<Replacement>,
    /// How exactly a text must be there.
    pub leniency: Leniency,
    /// The hash that the file must still have.
    pub expected: Option<ContentHash>,
    /// Whether to do it or to show what would be done.
    pub run: Run,
}

/// One text to put in the place of another.
#[derive(Clone)]
pub struct Replacement {
    /// The text to find.
    pub old: String,
    /// The text to put in its place.
    pub new: String,
    /// Which occurrences.
    pub which: Occurrences,
}

/// Whether a change is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// It is.
    ForReal,
    /// It is only shown.
    Dry,
}

/// What became of a file.
pub struct Edited {
    /// The file.
    pub file: FileId,
    /// Its version; the one before if nothing was done.
    pub version: Option<VersionId>,
    /// The hash of the new content, written or not.
    pub hash: Option<ContentHash>,
    /// How many places each replacement changed.
    pub counts: Vec<usize>,
    /// The loosest level at which a text was found.
    pub matched_with: MatchLevel,
    /// The change as a unified diff.
    pub diff: String,
}

impl Edited {
    /// How the texts were found, where not all were exactly as given.
    pub fn matched_loosely(&self) -> Option<&'static str> {
        (self.matched_with != MatchLevel::Exact).then(|| self.matched_with.name())
    }
}

/// Replaces text in a file. Of edits that meet at one file, each is applied to what the one before left.
pub async fn edit(cx: &CallCx, path: &WsPath, options: &EditOptions) -> Result<Edited> {
    let _turn = cx.turn(path).await;
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
        if options.run == Run::Dry {
            return Ok(edited);
        }
        let put =
            Put { path: path.clone(), file_type, content: done.content, parents: Parents::Require, executable: None };
        match commit_one(cx, Change::Put(put), unchanged).await {
            Ok(outcome) => {
                (edited.file, edited.version) = (outcome.file, outcome.version);
                return Ok(edited);
            }
            // Somebody on another replica came between; edit what they left. The call's deadline bounds this.
            Err(error) if error.kind == ErrorKind::Stale && options.expected.is_none() => {}
            Err(error) => return Err(error),
        }
    }
}

/// Refuses files that the system keeps.
pub(crate) fn changeable(entry: &Entry) -> Result<()> {
    if entry.is_virtual {
        let message = format!("{} is managed by the system and cannot be edited; use the chat API", entry.path);
        return Err(ToolError::new(ErrorKind::Protected, message));
    }
    Ok(())
}

struct Done {
    content: Content,
    counts: Vec<usize>,
    matched_with: MatchLevel,
    diff: String,
}

async fn edited(cx: &CallCx, entry: Entry, content: Content, options: &EditOptions) -> Result<Done> {
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
            // A single one is not numbered where it fails.
            [only] => replace(editable.text.as_bytes(), only, limits)
                .map(|one| ReplacedInOrder { text: one.text, edits: vec![(one.count, one.level)] }),
            several => replace_in_order(editable.text.as_bytes(), several, limits),
        };
        let replaced = replaced.map_err(|error| refused(&error, &entry.path, entry.hash))?;
        let text = String::from_utf8(replaced.text).map_err(ToolError::internal)?;
        let name = entry.path.without_slash();
        Ok(Done {
            counts: replaced.edits.iter().map(|(count, _)| *count).collect(),
            matched_with: replaced.edits.iter().map(|(_, level)| *level).max().unwrap_or(MatchLevel::Exact),
            diff: diff::unified(name.as_bytes(), Some(editable.text.as_bytes()), Some(text.as_bytes()), stop),
            content: editable.put_back(text)?,
        })
    })
    .await
}

/// The text, or its start with a mark if it has more bytes than so many.
pub(crate) fn shortened(text: &str, most_bytes: usize) -> Cow<'_, str> {
    const MARK: &str = "…";
    if text.len() <= most_bytes {
        return Cow::Borrowed(text);
    }
    let most_bytes = most_bytes.saturating_sub(MARK.len());
    let end = (0..=most_bytes).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    Cow::Owned(format!("{}{MARK}", &text[..end]))
}

/// The refusal of a change that does not fit what is there.
pub(crate) fn refused(error: &EditError, path: &WsPath, hash: Option<ContentHash>) -> ToolError {
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
    // Failed hunks name their file themselves.
    let place = match error {
        EditError::Hunks { .. } => String::new(),
        _ => format!("{}: ", shortened(path.as_str(), PATH_BYTES)),
    };
    let end = "\nNothing was written";
    let lesson = error.to_string();
    let lesson = shortened(&lesson, EXPLANATION_BYTES - place.len() - end.len());
    let refused = ToolError::new(kind, format!("{place}{lesson}{end}")).at_path(path);
    let refused = match hash {
        Some(hash) => refused.detail("current_hash", hash.to_string()),
        None => refused,
    };
    match error {
        EditError::Edit { number, .. } => refused.in_edit(*number),
        _ => refused,
    }
}

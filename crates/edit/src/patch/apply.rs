//! Applies the patch of one file to its content.

use super::anchor;
use super::candidate::{Candidate, Candidates, Endings, IndexedFile, PreparedHunk, split_ending};
use super::select::{Selection, is_under_headings, move_insertions, select};
use super::splice::{created, splice};
use super::warnings::{IndentStyle, warnings_about};
use super::{Change, Content, EndConstraint, FilePatch, Hunk, LineKind};
use crate::error::{EditError, HunkFailure};
use crate::explain::{self, Position};
use crate::indent::{IndentChange, indent_of};
use crate::limits::{Limits, StopFlag};
use crate::lines::{Line, split_limited};
use crate::match_level::MatchLevel;
use std::cell::LazyCell;
use std::fmt::Write as _;

/// The match levels below exact, in the order in which they are tried.
const LOOSER_LEVELS: [MatchLevel; 4] =
    [MatchLevel::TrailingWhitespace, MatchLevel::Punctuation, MatchLevel::Indentation, MatchLevel::FaultyContext];

/// The byte order mark, which some editors write at the start of a text. Most patches do not contain it.
const BYTE_ORDER_MARK: &[u8] = "\u{FEFF}".as_bytes();

/// Maximum number of lines of a file, because a split line takes more memory than its bytes.
const MAX_LINES: usize = 4_000_000;

/// Maximum number of failed hunks for which the error shows the most similar lines.
const MAX_EXPLAINED_HUNKS: usize = 20;

/// The result of applying a patch to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedPatch {
    pub content: Vec<u8>,
    /// Where each hunk was applied, in the order of the patch. Hunks that change nothing are left out.
    pub placements: Vec<Placement>,
    /// Decisions that were not certain.
    pub warnings: Vec<String>,
}

/// Where a hunk was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The number of the hunk within its file, counted from 1.
    pub hunk: usize,
    /// The first line of the old content that it covers, counted from 1.
    pub line: usize,
    /// The old line number in its header.
    pub header_line: Option<usize>,
    pub level: MatchLevel,
}

/// Applies the patch of one file: all its hunks or none.
///
/// `base` is the content before the change: that of the source for a rename or a copy; for a new file it is not used. A
/// patch whose result could be larger than the limit is refused.
pub fn apply(patch: &FilePatch, base: &[u8], limits: Limits) -> Result<AppliedPatch, EditError> {
    limits.stop.check()?;
    let limit_bytes = limits.bytes;
    let hunks = match &patch.content {
        Content::Binary(binary) => {
            let content = binary.apply(base, limit_bytes)?;
            return Ok(AppliedPatch { content, placements: Vec::new(), warnings: Vec::new() });
        }
        Content::Text(hunks) => hunks,
    };
    let inserted = hunks.iter().flat_map(Hunk::inserted_lines).map(|line| line.text.len() + 2).sum::<usize>();
    if base.len().saturating_add(inserted) > limit_bytes {
        return Err(EditError::TooLarge { limit_bytes });
    }
    let applied = match &patch.change {
        Change::Create(_) => create(patch, hunks)?,
        // A git diff (only these have modes) contains all lines of a deleted file, so without hunks the file must be
        // empty. The other format deletes a file without listing its lines.
        Change::Delete(_) if hunks.is_empty() => {
            let content = if patch.old_mode.is_some() { base.to_vec() } else { Vec::new() };
            AppliedPatch { content, placements: Vec::new(), warnings: Vec::new() }
        }
        _ => {
            let applied = apply_after_byte_order_mark(patch, hunks, base, limits.stop);
            limits.stop.check()?;
            applied?
        }
    };
    if applied.content.len() > limit_bytes {
        return Err(EditError::TooLarge { limit_bytes });
    }
    if let (Change::Delete(_), false) = (&patch.change, applied.content.is_empty()) {
        let message = format!(
            "{}: the patch deletes the file but its hunks leave {} bytes of it; read the file and create the patch again",
            patch.shown_name(),
            applied.content.len()
        );
        return Err(EditError::BaseMismatch { message });
    }
    Ok(applied)
}

/// Creates the content of a new file.
fn create(patch: &FilePatch, hunks: &[Hunk]) -> Result<AppliedPatch, EditError> {
    if let Some(hunk) = hunks.iter().find(|hunk| hunk.old_lines().next().is_some()) {
        let problem = format!("{}: a new file has inserted lines only", patch.shown_name());
        return Err(EditError::syntax(hunk.patch_line, problem));
    }
    Ok(AppliedPatch { content: created(hunks), placements: Vec::new(), warnings: Vec::new() })
}

/// A hunk that changes something, with its number.
struct NumberedHunk<'h, 'a> {
    number: usize,
    hunk: &'h Hunk<'a>,
}

/// Applies hunks to the text after a byte order mark, unless their lines contain the mark themselves.
fn apply_after_byte_order_mark(
    patch: &FilePatch,
    hunks: &[Hunk],
    base: &[u8],
    stop: StopFlag,
) -> Result<AppliedPatch, EditError> {
    let contains_mark = || hunks.iter().flat_map(|hunk| &hunk.lines).any(|line| line.text.starts_with(BYTE_ORDER_MARK));
    let Some(text) = base.strip_prefix(BYTE_ORDER_MARK).filter(|_| !contains_mark()) else {
        return apply_hunks(patch, hunks, base, stop);
    };
    let mut applied = apply_hunks(patch, hunks, text, stop)?;
    let is_deleted = matches!(patch.change, Change::Delete(_)) && applied.content.is_empty();
    if !is_deleted {
        applied.content.splice(..0, BYTE_ORDER_MARK.iter().copied());
    }
    Ok(applied)
}

fn apply_hunks(patch: &FilePatch, hunks: &[Hunk], base: &[u8], stop: StopFlag) -> Result<AppliedPatch, EditError> {
    let file = split_limited(base, MAX_LINES).ok_or(EditError::TooManyLines { max_lines: MAX_LINES })?;
    let numbered: Vec<NumberedHunk> = hunks
        .iter()
        .enumerate()
        .filter(|(_, hunk)| hunk.lines.iter().any(|line| line.kind != LineKind::Context))
        .map(|(n, hunk)| NumberedHunk { number: n + 1, hunk })
        .collect();
    let prepared: Vec<PreparedHunk> = numbered.iter().map(|numbered| PreparedHunk::new(numbered.hunk)).collect();
    let mut warnings = Vec::new();
    let at_header_positions: Option<Vec<Candidate>> =
        prepared.iter().map(|hunk| hunk.at_header_position(&file)).collect();
    let chosen = match at_header_positions.filter(|chosen| first_overlap(&prepared, chosen).is_none()) {
        Some(chosen) => chosen,
        None => find_positions(patch, &numbered, &prepared, &file, &mut warnings, stop)?,
    };
    stop.check()?;
    let indent_style = LazyCell::new(|| IndentStyle::new(&file));
    for ((numbered, prepared), candidate) in numbered.iter().zip(&prepared).zip(&chosen) {
        let about_hunk = warnings_about(&file, prepared, candidate, &indent_style).into_iter();
        warnings.extend(about_hunk.map(|warning| format!("hunk {}: {warning}", numbered.number)));
    }
    let mut order: Vec<(&Hunk, &Candidate)> = numbered.iter().map(|numbered| numbered.hunk).zip(&chosen).collect();
    order.sort_by_key(|(_, candidate)| candidate.start);
    let content = splice(base, &file, &order);
    let placements = numbered
        .iter()
        .zip(&chosen)
        .map(|(numbered, candidate)| Placement {
            hunk: numbered.number,
            line: candidate.start + 1,
            header_line: numbered.hunk.header_position.map(|header| header.old_start),
            level: candidate.level,
        })
        .collect();
    Ok(AppliedPatch { content, placements, warnings })
}

/// Finds a position for every hunk. The error gives the reason for each hunk without one.
fn find_positions(
    patch: &FilePatch,
    numbered: &[NumberedHunk],
    prepared: &[PreparedHunk],
    file: &[Line],
    warnings: &mut Vec<String>,
    stop: StopFlag,
) -> Result<Vec<Candidate>, EditError> {
    let indexed = IndexedFile::new(file, stop);
    let mut errors: Vec<Option<EditError>> = vec![None; prepared.len()];
    let mut all: Vec<Selection> = Vec::with_capacity(prepared.len());
    let mut explained = 0;
    for (n, hunk) in prepared.iter().enumerate() {
        let found = if indexed.work.is_exhausted() {
            Err(not_searched())
        } else if hunk.old.is_empty() {
            insertion_position(hunk, &indexed).map(|candidate| Candidates { kept: vec![candidate], total: 1 })
        } else {
            find_candidates(&indexed, hunk)
        };
        let found = found.and_then(|candidates| {
            if candidates.total > 0 {
                return Ok(candidates);
            }
            // Searching for similar lines takes long, and a message has no room for more of them.
            explained += 1;
            let shown = if explained <= MAX_EXPLAINED_HUNKS { file } else { &[] };
            Err(explain::not_found("the hunk's old lines", shown, &hunk.bodies(), None, stop))
        });
        let candidates = found.unwrap_or_else(|error| {
            errors[n] = Some(error);
            Candidates::default()
        });
        all.push(Selection::new(candidates));
    }
    select(&indexed, prepared, &mut all);
    for n in move_insertions(file, prepared, &mut all) {
        let message =
            "the hunk has inserted lines only, and the hunks before and after it match at different distances from \
                      their line numbers; add a line above or below that is in the file"
                .to_owned();
        errors[n] = Some(EditError::NotFound { looser_level: None, message, closest: None });
    }
    for (n, hunk) in prepared.iter().enumerate() {
        let Some(candidate) = &all[n].selected else { continue };
        match section(&indexed, hunk, candidate) {
            Section::Named => {}
            Section::Unknown => errors[n] = Some(not_searched()),
            Section::Above => {
                errors[n] = Some(EditError::NotFound {
                    looser_level: None,
                    message: outside_section_message(hunk, candidate),
                    closest: None,
                });
            }
            Section::Other => {
                warnings.push(format!("hunk {}: {}", numbered[n].number, outside_section_message(hunk, candidate)));
            }
        }
    }
    for (n, hunk) in prepared.iter().enumerate() {
        let Some(candidate) = &all[n].selected else { continue };
        match anchor::check(hunk, candidate, file.len(), all[n].total) {
            Ok(warning) => warnings.extend(warning.map(|warning| format!("hunk {}: {warning}", numbered[n].number))),
            Err(message) => errors[n] = Some(EditError::NotFound { looser_level: None, message, closest: None }),
        }
    }
    let mut chosen = Vec::with_capacity(all.len());
    for (n, selection) in all.iter().enumerate() {
        if let Some(candidate) = &selection.selected {
            if let Some(reason) = selection.reason {
                warnings.push(selection_warning(numbered[n].number, selection, candidate, reason));
            }
            chosen.push(candidate.clone());
        } else if errors[n].is_none() {
            let positions: Vec<Position> =
                selection.candidates.iter().map(|candidate| at_line(candidate.start)).collect();
            let (total, len) = (selection.total, prepared[n].old.len());
            errors[n] = Some(explain::not_unique("the hunk's old lines", file, &positions, total, len));
        }
    }
    if errors.iter().all(Option::is_none) {
        share_tab_conversion(prepared, &mut chosen);
    }
    if errors.iter().all(Option::is_none)
        && let Some((first, second)) = first_overlap(prepared, &chosen)
    {
        let line = chosen[first].start.max(chosen[second].start) + 1;
        errors[second] =
            Some(EditError::Overlap { first: numbered[first].number, second: numbered[second].number, line });
    }
    let failures: Vec<HunkFailure> = errors
        .into_iter()
        .zip(numbered)
        .filter_map(|(error, numbered)| {
            Some(HunkFailure { hunk: numbered.number, patch_line: numbered.hunk.patch_line, error: error? })
        })
        .collect();
    if failures.is_empty() { Ok(chosen) } else { Err(EditError::Hunks { file: patch.shown_name(), failures }) }
}

fn at_line(line: usize) -> Position {
    Position { line, column: None }
}

fn not_searched() -> EditError {
    let message =
        "it was not searched for: the hunks match in too many places; give correct line numbers, or more lines \
                  around each change, or fewer hunks at once"
            .to_owned();
    EditError::NotFound { looser_level: None, message, closest: None }
}

fn selection_warning(hunk: usize, selection: &Selection, candidate: &Candidate, reason: &str) -> String {
    const LISTED: usize = 8;
    let mut warning = format!("hunk {hunk}: its old lines match in {} places (lines", selection.total);
    for (n, other) in selection.candidates.iter().take(LISTED).enumerate() {
        let separator = if n == 0 { "" } else { "," };
        _ = write!(warning, "{separator} {}", other.start + 1);
    }
    let more = if selection.total > LISTED { ", …" } else { "" };
    _ = write!(warning, "{more}); line {} was chosen because {reason}", candidate.start + 1);
    warning
}

/// If one hunk needs a conversion between tabs and spaces, applies the same conversion to the hunks whose old lines
/// have no indentation from which it could be detected.
fn share_tab_conversion(prepared: &[PreparedHunk], chosen: &mut [Candidate]) {
    let mut changes = chosen.iter().map(|candidate| &candidate.indent_change);
    let Some(change) = changes.find(|change| change.is_conversion()).cloned() else { return };
    let unchanged = |(_, candidate): &(_, &mut Candidate)| candidate.indent_change == IndentChange::None;
    for (hunk, candidate) in prepared.iter().zip(chosen.iter_mut()).filter(unchanged) {
        if hunk.old.iter().all(|line| change.keeps(indent_of(line.body))) {
            candidate.indent_change = change.clone();
        }
    }
}

/// Returns the first two hunks, in the order of the file, that cover the same lines.
fn first_overlap(prepared: &[PreparedHunk], chosen: &[Candidate]) -> Option<(usize, usize)> {
    let mut order: Vec<usize> = (0..chosen.len()).collect();
    order.sort_by_key(|n| chosen[*n].start);
    let end = |n: usize| chosen[n].start + chosen[n].fault.covered(prepared[n].old.len());
    order.windows(2).map(|pair| (pair[0], pair[1])).find(|(first, second)| chosen[*second].start < end(*first))
}

/// Returns the candidates of a hunk at the strictest level that has any.
fn find_candidates(file: &IndexedFile, prepared: &PreparedHunk) -> Result<Candidates, EditError> {
    let exact = file.candidates(prepared, MatchLevel::Exact);
    if exact.total > 0 {
        return Ok(exact);
    }
    // Checked before looser levels, at which a hunk that changes only whitespace would match its own result.
    check_not_applied(file, prepared, MatchLevel::Exact)?;
    for level in LOOSER_LEVELS {
        let candidates = file.candidates(prepared, level);
        if candidates.total > 0 {
            return Ok(candidates);
        }
    }
    check_not_applied(file, prepared, MatchLevel::TrailingWhitespace)?;
    Ok(Candidates::default())
}

/// Returns an error if the hunk seems to be applied already: its new lines occur exactly once in the file, and contain
/// enough words that this is unlikely to be a coincidence.
fn check_not_applied(file: &IndexedFile, prepared: &PreparedHunk, level: MatchLevel) -> Result<(), EditError> {
    let new_lines: Vec<&[u8]> = prepared.hunk.new_lines().map(|line| split_ending(line).0).collect();
    // Lines without words, such as braces, are in every file.
    let has_word = |body: &[u8]| body.iter().any(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii());
    let inserts_something = prepared.hunk.inserted_lines().any(|line| has_word(line.text));
    let lines_with_words = new_lines.iter().filter(|body| has_word(body)).count();
    if new_lines.is_empty() || !(inserts_something || lines_with_words >= 2) {
        return Ok(());
    }
    match file.starts(&new_lines, level).as_slice() {
        [start] => Err(EditError::AlreadyApplied { line: start + 1 }),
        _ => Ok(()),
    }
}

/// Whether a candidate is in the section that the headings of its hunk name.
enum Section {
    /// The candidate is in that section, or this cannot be checked: the hunk has a line number, no headings or no old
    /// lines, or the file has no such section.
    Named,
    /// The candidate is below the heading, but seems to be in another section.
    Other,
    /// The candidate is above the heading.
    Above,
    /// The search for the heading would take too long.
    Unknown,
}

fn section(indexed: &IndexedFile, prepared: &PreparedHunk, candidate: &Candidate) -> Section {
    let Hunk { header_position: None, headings, .. } = prepared.hunk else { return Section::Named };
    let Some(last) = headings.last().filter(|_| !prepared.old.is_empty()) else { return Section::Named };
    let (file, end) = (indexed.lines, candidate.start + candidate.fault.covered(prepared.old.len()));
    // The heading may be one of the lines of the hunk.
    if is_under_headings(file, candidate.start, headings) || is_under_headings(file, end - 1, headings) {
        return Section::Named;
    }
    indexed.work.add(file.len());
    if indexed.work.is_exhausted() {
        return Section::Unknown;
    }
    let is_heading = |line: &Line| line.body.trim_ascii_start().starts_with(last.trim_ascii());
    match file.iter().position(is_heading) {
        None => Section::Named,
        Some(at) if at < end => Section::Other,
        Some(_) => Section::Above,
    }
}

fn outside_section_message(prepared: &PreparedHunk, candidate: &Candidate) -> String {
    let headings: Vec<String> = prepared.hunk.headings.iter().map(|heading| explain::display_line(heading)).collect();
    let (headings, line) = (headings.join("` / `"), candidate.start + 1);
    format!("its old lines are at line {line}, which does not seem to be in the section `{headings}`")
}

/// Returns the position of a hunk that has inserted lines only. There are no old lines to search for, so the position
/// follows from the hunk's line number, its end-of-file mark or its heading. In an empty file there is only one.
fn insertion_position(prepared: &PreparedHunk, file: &IndexedFile) -> Result<Candidate, EditError> {
    let (hunk, lines) = (prepared.hunk, file.lines);
    if let Some(candidate) = prepared.at_header_position(lines) {
        return Ok(candidate);
    }
    let candidate = |start: usize| Candidate::exact(start, Endings::Different);
    if lines.is_empty() || hunk.end_constraint == EndConstraint::EndOfFile {
        return Ok(candidate(lines.len()));
    }
    let Some(heading) = hunk.headings.last() else {
        let message = "the hunk has inserted lines only; add a line above or below that is in the file".to_owned();
        return Err(EditError::NotFound { looser_level: None, message, closest: None });
    };
    let is_heading = |line: &Line| line.body.trim_ascii_start().starts_with(heading.trim_ascii());
    let found: Vec<usize> = (0..lines.len()).filter(|at| is_heading(&lines[*at])).collect();
    match found.as_slice() {
        [at] => Ok(candidate(at + 1)),
        [] => Err(explain::not_found("the hunk's heading", lines, &[*heading], None, file.work.stop)),
        several => {
            let listed: Vec<Position> = several.iter().copied().map(at_line).collect();
            Err(explain::not_unique("the hunk's heading", lines, &listed, listed.len(), 1))
        }
    }
}

#[cfg(test)]
#[path = "apply_tests.rs"]
mod tests;

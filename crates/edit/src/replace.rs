//! Replaces a text in a file by another one.

mod fold;
mod loose_match;

use crate::error::EditError;
use crate::limits::{Limits, StopFlag};
use crate::lines::{self, Line, LineEnding, common_ending, split_limited};
use crate::match_level::MatchLevel;
use crate::similarity::LineRange;
use crate::{explain, near_miss};
use fold::FoldedText;
use memchr::memchr_iter;
use memchr::memmem::{self, Finder};
use std::borrow::Cow;
use std::ops::Range;

/// What error messages call the text to find.
const TEXT_NAME: &str = "the text";
/// Maximum number of lines for loose matching and explanations, because a split line takes more memory than its bytes.
const MAX_LINES: usize = 2_000_000;

/// Which occurrences of a text are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occurrences {
    /// The only one. An edit with several occurrences is refused.
    Single,
    /// All of them.
    All,
    /// The one that begins at this line, counted from 1; or else the only one that begins up to three lines from there.
    /// If there is only one in the whole text, that one.
    Near(usize),
}

/// Maximum distance in lines of an occurrence from the line that was given.
const MAX_LINES_AWAY: usize = 3;

/// Returns the index of the occurrence that is meant, given the lines at which they begin, counted from 0.
fn nearest(starts: &[usize], line: usize) -> Option<usize> {
    let line = line.saturating_sub(1);
    let mut here = starts.iter().enumerate().filter(|(_, start)| **start == line);
    match (here.next(), here.next()) {
        (Some((index, _)), None) => return Some(index),
        (Some(_), Some(_)) => return None,
        (None, _) => {}
    }
    let mut near = starts.iter().enumerate().filter(|(_, start)| start.abs_diff(line) <= MAX_LINES_AWAY);
    match (near.next(), near.next()) {
        (Some((index, _)), None) => Some(index),
        _ => None,
    }
}

/// Whether a text must be found exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leniency {
    Exact,
    /// Looser levels are tried too, from the strictest to the loosest. The first one with a match must have exactly
    /// one.
    Fuzzy,
}

/// A literal text to find and the text that replaces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edit<'a> {
    pub old: &'a [u8],
    pub new: &'a [u8],
    pub occurrences: Occurrences,
    pub leniency: Leniency,
}

/// The result of an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplaceResult {
    pub text: Vec<u8>,
    /// Number of occurrences that were replaced.
    pub count: usize,
    /// The level at which they were found.
    pub level: MatchLevel,
}

/// The result of several edits, with the number of replaced occurrences and the match level of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplaceInOrderResult {
    pub text: Vec<u8>,
    pub edits: Vec<(usize, MatchLevel)>,
}

/// An occurrence of the text to find, and the text that replaces it.
struct Match<'a> {
    range: Range<usize>,
    new: Cow<'a, [u8]>,
}

/// The matches to replace.
enum Matches<'t, 'a> {
    /// The exact matches. There can be as many as the text has bytes, so they are not collected.
    Exact(ExactMatches<'t, 'a>),
    /// The only match at a looser level.
    Loose(Match<'a>),
}

/// The exact matches of a text, which do not overlap.
struct ExactMatches<'t, 'a> {
    folded: FoldedText<'t>,
    old: Cow<'a, [u8]>,
    new: &'a [u8],
    count: usize,
}

impl ExactMatches<'_, '_> {
    /// Returns the matches as ranges of the original text.
    fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        let range = |start: usize| self.folded.start(start)..self.folded.end(start + self.old.len());
        memmem::find_iter(&self.folded.bytes, &*self.old).map(range)
    }
}

impl Matches<'_, '_> {
    fn count(&self) -> usize {
        match self {
            Self::Exact(exact) => exact.count,
            Self::Loose(_) => 1,
        }
    }

    /// Calls `replace` with the range and the new text of each match, in order.
    fn for_each(&self, mut replace: impl FnMut(Range<usize>, &[u8])) {
        match self {
            Self::Exact(exact) => exact.ranges().for_each(|range| replace(range, exact.new)),
            Self::Loose(found) => replace(found.range.clone(), &found.new),
        }
    }

    /// Returns the maximum size of a text of `text_bytes` after all matches are replaced.
    fn max_bytes(&self, text_bytes: usize) -> usize {
        let (new, old_bytes) = match self {
            // A match is at least as long as the text to find; it can also contain carriage returns.
            Self::Exact(exact) => (exact.new, exact.old.len()),
            Self::Loose(found) => (&*found.new, found.range.len()),
        };
        // Each new line may get a carriage return.
        let max_new_bytes = new.len() + memchr_iter(b'\n', new).count();
        (text_bytes - self.count() * old_bytes).saturating_add(self.count().saturating_mul(max_new_bytes))
    }
}

/// Replaces occurrences of `old` by `new`; all other bytes stay.
///
/// `old` is also found with different line endings. Every line keeps its ending, unless `new` differs from `old` only
/// in line endings. An edit whose result could be larger than the limit is refused before anything is built.
pub fn replace(text: &[u8], edit: &Edit, limits: Limits) -> Result<ReplaceResult, EditError> {
    if edit.old.is_empty() {
        return Err(EditError::NothingToFind);
    }
    limits.stop.check()?;
    let found = find(text, edit, limits.stop);
    limits.stop.check()?;
    let (matches, level) = found?;
    let max_bytes = matches.max_bytes(text.len());
    if max_bytes > limits.bytes {
        return Err(EditError::TooLarge { limit_bytes: limits.bytes });
    }
    let changes_only_endings = with_lf(edit.old) == with_lf(edit.new);
    let file_ending = if edit.new.contains(&b'\n') { common_ending(endings(text)) } else { None };
    let mut out = Vec::with_capacity(max_bytes);
    let mut kept = 0;
    matches.for_each(|range, new| {
        out.extend_from_slice(&text[kept..range.start]);
        kept = range.end;
        if changes_only_endings {
            out.extend_from_slice(new);
        } else {
            push_lines(&mut out, new, &text[range], file_ending);
        }
    });
    out.extend_from_slice(&text[kept..]);
    Ok(ReplaceResult { text: out, count: matches.count(), level })
}

/// Applies several edits, each to the result of the one before. Either all are applied or none.
pub fn replace_in_order(text: &[u8], edits: &[Edit], limits: Limits) -> Result<ReplaceInOrderResult, EditError> {
    let mut done = ReplaceInOrderResult { text: text.to_vec(), edits: Vec::with_capacity(edits.len()) };
    let count = edits.len();
    for (index, edit) in edits.iter().enumerate() {
        let replaced = replace(&done.text, edit, limits).map_err(|error| EditError::Edit {
            number: index + 1,
            count,
            error: Box::new(error),
        })?;
        done.text = replaced.text;
        done.edits.push((replaced.count, replaced.level));
    }
    Ok(done)
}

/// Returns the matches to replace and the level at which they were found.
fn find<'t, 'a>(text: &'t [u8], edit: &Edit<'a>, stop: StopFlag) -> Result<(Matches<'t, 'a>, MatchLevel), EditError> {
    if let Some(exact) = find_exact(text, edit)? {
        return Ok((exact, MatchLevel::Exact));
    }
    let (Some(lines), Some(wanted)) = (split_limited(text, MAX_LINES), split_limited(edit.old, MAX_LINES)) else {
        return Err(explain::not_found(TEXT_NAME, &[], &[], None, stop));
    };
    let wanted: Vec<&[u8]> = wanted.iter().map(|line| line.body).collect();
    for level in [MatchLevel::TrailingWhitespace, MatchLevel::Punctuation, MatchLevel::Indentation] {
        let Some(mut matches) = loose_match::find(text, &lines, edit, level, stop) else { break };
        if let (Leniency::Fuzzy, 1) = (edit.leniency, matches.len())
            && let Some(only) = matches.pop()
        {
            return Ok((Matches::Loose(only), level));
        }
        if let (Leniency::Fuzzy, Occurrences::Near(line)) = (edit.leniency, edit.occurrences) {
            let starts: Vec<usize> = matches.iter().map(|found| line_at(&lines, found.range.start)).collect();
            if let Some(index) = nearest(&starts, line) {
                return Ok((Matches::Loose(matches.swap_remove(index)), level));
            }
        }
        match (edit.leniency, matches.as_slice()) {
            (_, []) => {}
            (Leniency::Fuzzy, several) => {
                let what = format!("{TEXT_NAME} is not found exactly; with {} ignored, it", level.ignores());
                let positions = explain::positions(text, several.iter().map(|found| found.range.start));
                return Err(explain::not_unique(&what, &lines, &positions, several.len(), wanted.len()));
            }
            (Leniency::Exact, [only]) => {
                let start = line_at(&lines, only.range.start);
                let range = LineRange { start, len: wanted.len().min(lines.len() - start) };
                return Err(explain::not_found(TEXT_NAME, &lines, &wanted, Some((level, range)), stop));
            }
            // The next level would find these matches too.
            (Leniency::Exact, _) => break,
        }
    }
    if let Some(near) = near_miss::find(text, edit.old, stop) {
        return Err(explain::not_found_but_near(TEXT_NAME, &near, &wanted));
    }
    Err(explain::not_found(TEXT_NAME, &lines, &wanted, None, stop))
}

/// Returns the exact matches, or `None` if there are none. If a single one is asked for, overlapping ones count too: `aa`
/// is not unique in `aaa`.
fn find_exact<'t, 'a>(text: &'t [u8], edit: &Edit<'a>) -> Result<Option<Matches<'t, 'a>>, EditError> {
    // Folding takes memory for each line.
    if edit.old.contains(&b'\n') && lines::count(text) <= MAX_LINES {
        let found = find_in(FoldedText::new(text, MatchLevel::Exact), text, with_lf(edit.old), edit)?;
        // A text that ends between the two characters of a CRLF is found only without folding.
        if found.is_some() || !edit.old.ends_with(b"\r") {
            return Ok(found);
        }
    }
    find_in(FoldedText::unchanged(text), text, Cow::Borrowed(edit.old), edit)
}

/// Returns the matches in the folded text, or `None` if there are none.
fn find_in<'t, 'a>(
    folded: FoldedText<'t>,
    text: &[u8],
    old: Cow<'a, [u8]>,
    edit: &Edit<'a>,
) -> Result<Option<Matches<'t, 'a>>, EditError> {
    let finder = Finder::new(&*old);
    let Some(first) = finder.find(&folded.bytes) else { return Ok(None) };
    let count = finder.find_iter(&folded.bytes).count();
    if edit.occurrences != Occurrences::All {
        let next = first + 1;
        let overlapping = finder.find(&folded.bytes[next..]).map(|start| next + start);
        let starts: Vec<usize> = match (count, overlapping) {
            (1, None) => Vec::new(),
            (1, Some(overlapping)) => vec![first, overlapping],
            _ => finder.find_iter(&folded.bytes).take(explain::MAX_POSITIONS).collect(),
        };
        if let (Occurrences::Near(line), false) = (edit.occurrences, starts.is_empty()) {
            let all: Vec<usize> = finder.find_iter(&folded.bytes).map(|start| folded.start(start)).collect();
            if let Some(index) = nearest(&explain::line_indexes(text, &all), line) {
                let start = finder.find_iter(&folded.bytes).nth(index).unwrap_or(first);
                let range = all[index]..folded.end(start + old.len());
                return Ok(Some(Matches::Loose(Match { range, new: Cow::Borrowed(edit.new) })));
            }
        }
        if !starts.is_empty() {
            let lines = split_limited(text, MAX_LINES).unwrap_or_default();
            let positions = explain::positions(text, starts.iter().map(|start| folded.start(*start)));
            let len = memchr_iter(b'\n', &old).count().max(1);
            return Err(explain::not_unique(TEXT_NAME, &lines, &positions, count.max(2), len));
        }
    }
    Ok(Some(Matches::Exact(ExactMatches { folded, old, new: edit.new, count })))
}

/// Returns the index of the line that contains an offset.
fn line_at(lines: &[Line], offset: usize) -> usize {
    lines.partition_point(|line| line.start <= offset).saturating_sub(1)
}

/// Returns the text with LF line endings.
fn with_lf(text: &[u8]) -> Cow<'_, [u8]> {
    let mut crlf = memmem::find_iter(text, b"\r\n").peekable();
    if crlf.peek().is_none() {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut kept = 0;
    for at in crlf {
        bytes.extend_from_slice(&text[kept..at]);
        kept = at + 1;
    }
    bytes.extend_from_slice(&text[kept..]);
    Cow::Owned(bytes)
}

/// Returns the endings of the lines of a text, in order.
fn endings(text: &[u8]) -> impl Iterator<Item = LineEnding> {
    text.split_inclusive(|byte| *byte == b'\n').map(|line| Line::new(line, 0).ending)
}

/// Appends the new lines, each with the ending of the line that it replaces. Additional lines get the ending that all
/// lines of the file have, or keep their own if these differ.
fn push_lines(out: &mut Vec<u8>, new: &[u8], replaced: &[u8], file_ending: Option<LineEnding>) {
    let mut replaced = endings(replaced);
    for line in new.split_inclusive(|byte| *byte == b'\n') {
        let line = Line::new(line, 0);
        out.extend_from_slice(line.body);
        if line.ending != LineEnding::Missing {
            out.extend_from_slice(
                replaced
                    .next()
                    .filter(|ending| *ending != LineEnding::Missing)
                    .or(file_ending)
                    .unwrap_or(line.ending)
                    .bytes(),
            );
        }
    }
}

#[cfg(test)]
#[path = "replace_tests.rs"]
mod tests;

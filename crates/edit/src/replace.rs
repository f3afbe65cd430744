//! Replaces a text in a file by another one.

mod fold;
mod loose_match;

use crate::error::EditError;
use crate::limits::{Limits, StopFlag};
use crate::lines::{Ending, Line, common_ending, split_limited};
use crate::match_level::MatchLevel;
use crate::similarity::LineRange;
use crate::{explain, near_miss};
use fold::Folded;
use memchr::memchr_iter;
use memchr::memmem::Finder;
use std::borrow::Cow;
use std::ops::Range;

/// What error messages call the text to find.
const TEXT_NAME: &str = "the text";
/// Maximum number of lines for loose matching and explanations, because a split line takes more memory than its bytes.
const LINES_MAX: usize = 2_000_000;

/// Which occurrences of a text are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occurrences {
    /// The only one. An edit with several occurrences is refused.
    Single,
    /// All of them.
    All,
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
pub struct Replaced {
    pub text: Vec<u8>,
    /// Number of occurrences that were replaced.
    pub count: usize,
    /// The level at which they were found.
    pub level: MatchLevel,
}

/// The result of several edits, with the number of replaced occurrences and the match level of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplacedInOrder {
    pub text: Vec<u8>,
    pub edits: Vec<(usize, MatchLevel)>,
}

/// An occurrence of the text to find, and the text that replaces it.
struct Match<'a> {
    range: Range<usize>,
    new: Cow<'a, [u8]>,
}

/// Replaces occurrences of `old` by `new`; all other bytes stay.
///
/// `old` is also found with different line endings. Every line keeps its ending, unless `new` differs from `old` only
/// in line endings. An edit whose result could be larger than the limit is refused before anything is built.
pub fn replace(text: &[u8], edit: &Edit, limits: Limits) -> Result<Replaced, EditError> {
    if edit.old.is_empty() {
        return Err(EditError::NothingToFind);
    }
    limits.stop.check()?;
    let found = find(text, edit, limits.stop);
    limits.stop.check()?;
    let (found, level) = found?;
    check_size(text, &found, limits.bytes)?;
    let changes_only_endings = with_lf(edit.old) == with_lf(edit.new);
    let file_ending = if edit.new.contains(&b'\n') { common_ending(endings(text)) } else { None };
    let mut out = Vec::with_capacity(text.len() + edit.new.len());
    let mut kept = 0;
    for Match { range, new } in &found {
        out.extend_from_slice(&text[kept..range.start]);
        if changes_only_endings {
            out.extend_from_slice(new);
        } else {
            push_lines(&mut out, new, &text[range.clone()], file_ending);
        }
        kept = range.end;
    }
    out.extend_from_slice(&text[kept..]);
    Ok(Replaced { text: out, count: found.len(), level })
}

/// Applies several edits, each to the result of the one before. Either all are applied or none.
pub fn replace_in_order(text: &[u8], edits: &[Edit], limits: Limits) -> Result<ReplacedInOrder, EditError> {
    let mut done = ReplacedInOrder { text: text.to_vec(), edits: Vec::with_capacity(edits.len()) };
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

/// Returns the occurrences to replace and the level at which they were found.
fn find<'a>(text: &[u8], edit: &Edit<'a>, stop: StopFlag) -> Result<(Vec<Match<'a>>, MatchLevel), EditError> {
    let exact = find_exact(text, edit)?;
    if !exact.is_empty() {
        return Ok((exact, MatchLevel::Exact));
    }
    let (Some(lines), Some(wanted)) = (split_limited(text, LINES_MAX), split_limited(edit.old, LINES_MAX)) else {
        return Err(explain::not_found(TEXT_NAME, &[], &[], None, stop));
    };
    let wanted: Vec<&[u8]> = wanted.iter().map(|line| line.body).collect();
    for level in [MatchLevel::TrailingWhitespace, MatchLevel::Punctuation, MatchLevel::Indentation] {
        let Some(matches) = loose_match::find(text, &lines, edit, level, stop) else { break };
        match (edit.leniency, matches.as_slice()) {
            (_, []) => {}
            (Leniency::Fuzzy, [_]) => return Ok((matches, level)),
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

/// Returns the exact matches, which do not overlap. If a single one is asked for, overlapping ones count too: `aa` is
/// not unique in `aaa`.
fn find_exact<'a>(text: &[u8], edit: &Edit<'a>) -> Result<Vec<Match<'a>>, EditError> {
    if edit.old.contains(&b'\n') {
        let found = find_in(&Folded::new(text, MatchLevel::Exact), text, &with_lf(edit.old), edit)?;
        // A text that ends between the two characters of a CRLF is found only without folding.
        if !found.is_empty() || !edit.old.ends_with(b"\r") {
            return Ok(found);
        }
    }
    find_in(&Folded::unchanged(text), text, edit.old, edit)
}

/// Returns the matches in the folded text, as ranges of the original text.
fn find_in<'a>(folded: &Folded, text: &[u8], old: &[u8], edit: &Edit<'a>) -> Result<Vec<Match<'a>>, EditError> {
    let finder = Finder::new(old);
    let mut starts: Vec<usize> = finder.find_iter(&folded.bytes).collect();
    if let (Occurrences::Single, Some(first)) = (edit.occurrences, starts.first()) {
        let next = first + 1;
        if starts.len() == 1
            && let Some(overlapping) = finder.find(&folded.bytes[next..])
        {
            starts.push(next + overlapping);
        }
        if starts.len() > 1 {
            let lines = split_limited(text, LINES_MAX).unwrap_or_default();
            let positions = explain::positions(text, starts.iter().map(|start| folded.start(*start)));
            let len = memchr_iter(b'\n', old).count().max(1);
            return Err(explain::not_unique(TEXT_NAME, &lines, &positions, starts.len(), len));
        }
    }
    let range = |start: usize| folded.start(start)..folded.end(start + old.len());
    Ok(starts.into_iter().map(|start| Match { range: range(start), new: Cow::Borrowed(edit.new) }).collect())
}

/// Returns the index of the line that contains an offset.
fn line_at(lines: &[Line], offset: usize) -> usize {
    lines.partition_point(|line| line.start <= offset).saturating_sub(1)
}

/// Returns the text with LF line endings.
fn with_lf(text: &[u8]) -> Cow<'_, [u8]> {
    Folded::new(text, MatchLevel::Exact).bytes
}

/// Returns the endings of the lines of a text, in order.
fn endings(text: &[u8]) -> impl Iterator<Item = Ending> {
    text.split_inclusive(|byte| *byte == b'\n').map(|line| Line::new(line, 0).ending)
}

/// Appends the new lines, each with the ending of the line that it replaces. Additional lines get the ending that all
/// lines of the file have, or keep their own if these differ.
fn push_lines(out: &mut Vec<u8>, new: &[u8], replaced: &[u8], file_ending: Option<Ending>) {
    let mut replaced = endings(replaced);
    for line in new.split_inclusive(|byte| *byte == b'\n') {
        let line = Line::new(line, 0);
        out.extend_from_slice(line.body);
        if line.ending != Ending::Missing {
            out.extend_from_slice(
                replaced
                    .next()
                    .filter(|ending| *ending != Ending::Missing)
                    .or(file_ending)
                    .unwrap_or(line.ending)
                    .bytes(),
            );
        }
    }
}

/// Refuses an edit whose result could be too large.
fn check_size(text: &[u8], found: &[Match], limit_bytes: usize) -> Result<(), EditError> {
    let mut size = text.len();
    if let Some(Match { new, .. }) = found.first() {
        // Each new line may get a carriage return.
        let new_bytes_max = new.len() + memchr_iter(b'\n', new).count();
        size = found.len().saturating_mul(new_bytes_max).saturating_add(size);
    }
    if size > limit_bytes { Err(EditError::TooLarge { limit_bytes }) } else { Ok(()) }
}

#[cfg(test)]
#[path = "replace_tests.rs"]
mod tests;

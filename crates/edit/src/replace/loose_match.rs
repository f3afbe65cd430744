//! Finds a text at the match levels below exact.

use super::fold::FoldedText;
use super::{Edit, Match};
use crate::indent::{IndentChange, indent_of};
use crate::limits::StopFlag;
use crate::lines::{Line, has_text, split};
use crate::match_level::MatchLevel;
use memchr::memmem::Finder;
use std::borrow::Cow;

/// Maximum number of matches collected. If there are several, all of them are refused anyway.
const MAX_MATCHES: usize = 100;
/// Maximum number of possible matches that are checked.
const MAX_CHECKED: usize = 10_000;
/// Maximum number of lines compared in all checks together, so that fewer possible matches of a long text are checked.
const MAX_COMPARED_LINES: usize = 2_000_000;

/// Returns the matches at a level below exact, including overlapping ones; `None` if there are too many to check.
pub(super) fn find<'a>(
    text: &[u8],
    lines: &[Line],
    edit: &Edit<'a>,
    level: MatchLevel,
    stop: StopFlag,
) -> Option<Vec<Match<'a>>> {
    if stop.is_set() || !has_text(edit.old) {
        // Whitespace alone would match everywhere.
        return Some(Vec::new());
    }
    match level {
        MatchLevel::Indentation => find_reindented(lines, edit, stop),
        _ => find_folded(text, edit, level, stop),
    }
}

/// Finds the text after folding both texts for the level.
fn find_folded<'a>(text: &[u8], edit: &Edit<'a>, level: MatchLevel, stop: StopFlag) -> Option<Vec<Match<'a>>> {
    let haystack = FoldedText::new(text, level);
    let old = FoldedText::new(edit.old, level);
    let folded = &haystack.bytes;
    let mut matches = Vec::new();
    for start in find_all(&old.bytes, folded, MAX_CHECKED, stop)? {
        let end = start + old.bytes.len();
        let at_line_end = folded.get(end).is_none_or(|byte| *byte == b'\n');
        if old.ends_in_whitespace() && !at_line_end {
            continue;
        }
        let range = haystack.start(start)..haystack.end(end);
        let splits_character = |offset| level == MatchLevel::Punctuation && is_within_character(text, offset);
        if !splits_character(range.start) && !splits_character(range.end) {
            matches.push(Match { range, new: Cow::Borrowed(edit.new) });
        }
        if matches.len() == MAX_MATCHES {
            break;
        }
    }
    Some(matches)
}

/// Returns all occurrences of the needle, including overlapping ones; `None` if there are more than `max`. A part of
/// them is not enough to know that a match is the only one.
fn find_all(needle: &[u8], haystack: &[u8], max: usize, stop: StopFlag) -> Option<Vec<usize>> {
    let finder = Finder::new(needle);
    let mut starts: Vec<usize> = Vec::new();
    loop {
        let from = starts.last().map_or(0, |last| last + 1);
        let Some(at) = finder.find(&haystack[from..]) else { return Some(starts) };
        if starts.len() == max || stop.is_set() {
            return None;
        }
        starts.push(from + at);
    }
}

/// Returns whether an offset is inside a character. This is possible where one character is folded to several.
fn is_within_character(text: &[u8], offset: usize) -> bool {
    text.get(offset).is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000)
}

/// Finds whole lines that differ only in indentation, if one change of indentation explains the difference for all
/// lines.
fn find_reindented<'a>(lines: &[Line], edit: &Edit<'a>, stop: StopFlag) -> Option<Vec<Match<'a>>> {
    let old = split(edit.old);
    let (joined, starts) = join_trimmed(lines);
    let (needle, _) = join_trimmed(&old);
    let mut matches = Vec::new();
    let max = (MAX_COMPARED_LINES / old.len()).clamp(MAX_MATCHES, MAX_CHECKED);
    for at in find_all(&needle, &joined, max, stop)? {
        if stop.is_set() {
            return None;
        }
        let first = starts.partition_point(|start| *start < at);
        let here = &lines[first..first + old.len()];
        let pairs: Vec<(&[u8], &[u8])> = old
            .iter()
            .zip(here)
            .filter(|(old, _)| has_text(old.body))
            .map(|(old, line)| (indent_of(old.body), indent_of(line.body)))
            .collect();
        let Some(indent_change) = IndentChange::between(&pairs) else { continue };
        let last = &here[here.len() - 1];
        let end = if edit.old.ends_with(b"\n") { last.end() } else { last.body_end() };
        matches.push((here[0].start..end, reindent(edit.new, &indent_change)));
        if matches.len() == MAX_MATCHES {
            break;
        }
    }
    // The new text does not fit the only match.
    if let [(_, None)] = matches.as_slice() {
        return Some(Vec::new());
    }
    // Of several matches, one that the new text does not fit is kept, because it makes the others ambiguous.
    let found = |(range, new): (_, Option<Vec<u8>>)| Match { range, new: new.map_or(edit.new.into(), Cow::Owned) };
    Some(matches.into_iter().map(found).collect())
}

/// Joins the lines without their indentation, with a newline before and after each. Also returns the offset of each
/// line in the result.
fn join_trimmed(lines: &[Line]) -> (Vec<u8>, Vec<usize>) {
    let mut joined = vec![b'\n'];
    let mut starts = Vec::with_capacity(lines.len());
    for line in lines {
        starts.push(joined.len() - 1);
        joined.extend_from_slice(line.body.trim_ascii());
        joined.push(b'\n');
    }
    (joined, starts)
}

/// Applies the change of indentation to all lines; returns `None` if a line does not fit it.
fn reindent(new: &[u8], indent_change: &IndentChange) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(new.len() + new.len() / 8);
    for line in split(new) {
        out.extend_from_slice(&indent_change.apply_to_line(line.body)?);
        out.extend_from_slice(line.ending.bytes());
    }
    Some(out)
}

//! The places of a text that is not there exactly.

use super::fold::Folded;
use super::{Edit, Found};
use crate::indent::{Shift, indent_of};
use crate::level::Level;
use crate::limits::Stop;
use crate::lines::{Line, is_solid, split};
use memchr::memmem::Finder;
use std::borrow::Cow;

/// No more places than this are gathered: all of them are refused anyway.
const MOST_PLACES: usize = 100;
/// Where the text seems to stand more often than this, it is not looked at which of the places are real.
const MOST_LOOKED_AT: usize = 10_000;
/// So many lines at most are compared with the text's, so that a long text is looked at in fewer places.
const MOST_LINES_COMPARED: usize = 2_000_000;

/// The places at a level below exact, overlapping ones too; nothing if there are too many to look at.
pub(super) fn places<'a>(
    text: &[u8],
    lines: &[Line],
    edit: &Edit<'a>,
    level: Level,
    stop: Stop,
) -> Option<Vec<Found<'a>>> {
    if stop.is_set() || !is_solid(edit.old) {
        // Blanks alone are everywhere once blanks do not count.
        return Some(Vec::new());
    }
    match level {
        Level::Indentation => shifted(lines, edit, stop),
        _ => folded(text, edit, level, stop),
    }
}

fn folded<'a>(text: &[u8], edit: &Edit<'a>, level: Level, stop: Stop) -> Option<Vec<Found<'a>>> {
    let haystack = Folded::new(text, level);
    let old = Folded::new(edit.old, level);
    let flat = &haystack.flat;
    let mut places = Vec::new();
    for start in every(&old.flat, flat, MOST_LOOKED_AT, stop)? {
        let end = start + old.flat.len();
        let at_line_end = flat.get(end).is_none_or(|byte| *byte == b'\n');
        if old.ends_in_blanks() && !at_line_end {
            continue;
        }
        let range = haystack.start(start)..haystack.end(end);
        let parts_character = |offset| level == Level::Punctuation && within_character(text, offset);
        if !parts_character(range.start) && !parts_character(range.end) {
            places.push(Found { range, new: Cow::Borrowed(edit.new) });
        }
        if places.len() == MOST_PLACES {
            break;
        }
    }
    Some(places)
}

/// Where the needle stands, overlapping itself or not; nothing if that is in more places than `most`. A part of them
/// would not do: the only real one among them need not be the only one.
fn every(needle: &[u8], haystack: &[u8], most: usize, stop: Stop) -> Option<Vec<usize>> {
    let finder = Finder::new(needle);
    let mut starts: Vec<usize> = Vec::new();
    loop {
        let from = starts.last().map_or(0, |last| last + 1);
        let Some(at) = finder.find(&haystack[from..]) else { return Some(starts) };
        if starts.len() == most || stop.is_set() {
            return None;
        }
        starts.push(from + at);
    }
}

/// Whether an offset falls inside a character, as it can where one character stands for several.
fn within_character(text: &[u8], offset: usize) -> bool {
    text.get(offset).is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000)
}

/// The places where whole lines are the same but for their indentation, and that is explained by one shift.
fn shifted<'a>(lines: &[Line], edit: &Edit<'a>, stop: Stop) -> Option<Vec<Found<'a>>> {
    let old = split(edit.old);
    let (flat, starts) = trimmed(lines);
    let (needle, _) = trimmed(&old);
    let mut places = Vec::new();
    let most = (MOST_LINES_COMPARED / old.len()).clamp(MOST_PLACES, MOST_LOOKED_AT);
    for at in every(&needle, &flat, most, stop)? {
        if stop.is_set() {
            return None;
        }
        let first = starts.partition_point(|start| *start < at);
        let here = &lines[first..first + old.len()];
        let pairs: Vec<(&[u8], &[u8])> = old
            .iter()
            .zip(here)
            .filter(|(old, _)| is_solid(old.body))
            .map(|(old, line)| (indent_of(old.body), indent_of(line.body)))
            .collect();
        let Some(shift) = Shift::explain(&pairs) else { continue };
        let last = &here[here.len() - 1];
        let end = if edit.old.ends_with(b"\n") { last.end() } else { last.body_end() };
        places.push((here[0].start..end, reindented(edit.new, &shift)));
        if places.len() == MOST_PLACES {
            break;
        }
    }
    if let [(_, None)] = places.as_slice() {
        return Some(Vec::new());
    }
    // One that the new text does not fit still makes the other ambiguous.
    let found = |(range, new): (_, Option<Vec<u8>>)| Found { range, new: new.map_or(edit.new.into(), Cow::Owned) };
    Some(places.into_iter().map(found).collect())
}

/// The lines without their indentation, each between newlines, and where each starts there.
fn trimmed(lines: &[Line]) -> (Vec<u8>, Vec<usize>) {
    let mut flat = vec![b'\n'];
    let mut starts = Vec::with_capacity(lines.len());
    for line in lines {
        starts.push(flat.len() - 1);
        flat.extend_from_slice(line.body.trim_ascii());
        flat.push(b'\n');
    }
    (flat, starts)
}

fn reindented(new: &[u8], shift: &Shift) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(new.len() + new.len() / 8);
    for line in split(new) {
        out.extend_from_slice(&shift.line(line.body)?);
        out.extend_from_slice(line.ending.bytes());
    }
    Some(out)
}

//! Showing a reader why a text was not found, or why it was found too often.

use crate::error::{EditError, cut};
use crate::indent::indent_of;
use crate::level::{Level, ascii_form};
use crate::lines::{Line, is_solid};
use crate::similarity::{Region, nearest, similarity_percent};
use memchr::memchr_iter;
use similar::{Algorithm, DiffOp, capture_diff_slices};
use std::fmt::Write as _;

const SHOWN_LINE_BYTES: usize = 120;
const SHOWN_LINES: usize = 24;
const SHOWN_PLACES: usize = 10;
/// How far around a place something is sought that tells it from the others.
const LOOKED_AROUND: usize = 30;

/// A line for a message: readable, and not too long.
pub(crate) fn shown(body: &[u8]) -> String {
    cut(&String::from_utf8_lossy(body), SHOWN_LINE_BYTES)
}

/// The refusal of a text that is not there: what looser level would find it, or what is most like it.
pub(crate) fn not_found(what: &str, file: &[Line], wanted: &[&[u8]], looser: Option<(Level, Region)>) -> EditError {
    let mut lesson = format!("{what} not found");
    let region = looser.map(|(_, region)| region).or_else(|| nearest(file, wanted));
    if let Some((level, region)) = looser {
        let lines = line_numbers(region);
        _ = write!(lesson, ", but {lines} would match if {} did not count", level.overlooks());
    }
    match region {
        Some(region) => lesson.push_str(&compared(file, region, wanted, looser.is_some())),
        None => lesson.push_str("; nothing similar is there. Read the file again and copy the text exactly"),
    }
    EditError::NotFound { looser: looser.map(|(level, _)| level), lesson }
}

/// The refusal of a text that stands in `count` places, some of which are given as the indexes of their first lines.
pub(crate) fn not_unique(what: &str, file: &[Line], starts: &[usize], count: usize, len: usize) -> EditError {
    let listed = &starts[..starts.len().min(SHOWN_PLACES)];
    let mut lesson = format!("{what} is found {count} times; add surrounding text until it is unique:");
    for (start, mark) in listed.iter().zip(tell_apart(file, listed, len)) {
        _ = write!(lesson, "\n  line {}{mark}", start + 1);
    }
    if count > listed.len() {
        _ = write!(lesson, "\n  and {} more", count - listed.len());
    }
    EditError::NotUnique { lines: listed.iter().map(|start| start + 1).collect(), count, lesson }
}

fn line_numbers(region: Region) -> String {
    match region.len {
        0 | 1 => format!("line {}", region.start + 1),
        len => format!("lines {} to {}", region.start + 1, region.start + len),
    }
}

/// For each place the nearest line around it that not all places share.
fn tell_apart(file: &[Line], starts: &[usize], len: usize) -> Vec<String> {
    let above = |start: usize, far: usize| start.checked_sub(far).map(|at| file[at].body);
    let below = |start: usize, far: usize| file.get(start + len + far - 1).map(|line| line.body);
    for far in 1..=LOOKED_AROUND {
        for (place, lines) in [
            ("above", starts.iter().map(|start| above(*start, far)).collect::<Vec<_>>()),
            ("below", starts.iter().map(|start| below(*start, far)).collect()),
        ] {
            if lines.iter().all(|line| *line == lines[0]) {
                continue;
            }
            let lines_away = if far == 1 { "line" } else { "lines" };
            return lines
                .iter()
                .map(|line| match line {
                    Some(body) => format!(" ({far} {lines_away} {place}: `{}`)", shown(body.trim_ascii())),
                    None => format!(" ({far} {lines_away} {place}: the file's edge)"),
                })
                .collect();
        }
    }
    vec![String::new(); starts.len()]
}

/// What was expected against what is there: the first difference with its kind, and a small diff.
fn compared(file: &[Line], region: Region, wanted: &[&[u8]], matches_loosely: bool) -> String {
    let actual: Vec<&[u8]> = file[region.start..region.start + region.len].iter().map(|line| line.body).collect();
    let (expected, found) = (&wanted[..wanted.len().min(SHOWN_LINES)], &actual[..actual.len().min(SHOWN_LINES)]);
    let ops = capture_diff_slices(Algorithm::Myers, expected, found);
    let mut text =
        if matches_loosely { String::from(".") } else { format!("; most similar: {}.", line_numbers(region)) };
    if let Some((line, kind)) = first_difference(&ops, expected, found) {
        _ = write!(text, " First difference at line {}: {kind}.", region.start + line + 1);
    }
    text.push_str(" (- expected, + in the file)");
    for op in ops {
        let (_, old, new) = op.as_tag_tuple();
        if let DiffOp::Equal { .. } = op {
            for at in new {
                _ = write!(text, "\n {:>6} {}", region.start + at + 1, shown(found[at]));
            }
            continue;
        }
        for at in old {
            _ = write!(text, "\n-       {}", shown(expected[at]));
        }
        for at in new {
            _ = write!(text, "\n+{:>6} {}", region.start + at + 1, shown(found[at]));
        }
    }
    if wanted.len() > SHOWN_LINES {
        _ = write!(text, "\n ({} more lines expected)", wanted.len() - SHOWN_LINES);
    }
    text
}

fn first_difference(ops: &[DiffOp], expected: &[&[u8]], found: &[&[u8]]) -> Option<(usize, String)> {
    let op = ops.iter().find(|op| !matches!(op, DiffOp::Equal { .. }))?;
    let (old, new) = (op.old_range(), op.new_range());
    let kind = match (expected[old].first(), found[new.clone()].first()) {
        (Some(expected), Some(found)) => divergence(expected, found),
        (Some(expected), None) => format!("the file lacks the line `{}`", shown(expected.trim_ascii())),
        (None, _) => "the file has a line more".to_owned(),
    };
    Some((new.start, kind))
}

/// In what respect two lines differ.
pub(crate) fn divergence(expected: &[u8], found: &[u8]) -> String {
    if expected.trim_ascii_end() == found.trim_ascii_end() {
        return "trailing whitespace".to_owned();
    }
    if expected.trim_ascii() == found.trim_ascii() {
        return format!("{} vs {} in the indentation", blanks(indent_of(expected)), blanks(indent_of(found)));
    }
    let (one, other) = (String::from_utf8_lossy(expected), String::from_utf8_lossy(found));
    if Level::Punctuation.key(expected).trim_ascii() == Level::Punctuation.key(found).trim_ascii() {
        let typographic = one.chars().chain(other.chars()).find(|character| ascii_form(*character).is_some());
        return typographic.map_or_else(|| "punctuation".to_owned(), |character| different(character).to_owned());
    }
    if one.trim().to_lowercase() == other.trim().to_lowercase() {
        return "upper and lower case".to_owned();
    }
    if one.split_whitespace().eq(other.split_whitespace()) {
        return "spaces within the line".to_owned();
    }
    if !is_solid(expected) || !is_solid(found) || similarity_percent(expected, found) < 40 {
        return "another line".to_owned();
    }
    let column = one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let from = |text: &str| text.chars().skip(column).take(12).collect::<String>();
    format!("column {}: `{}` vs `{}`", column + 1, from(&one), from(&other))
}

fn different(typographic: char) -> &'static str {
    match ascii_form(typographic) {
        Some("-") => "different dash character",
        Some(" ") => "different space character",
        Some("...") => "an ellipsis character vs three dots",
        _ => "different quote character",
    }
}

fn blanks(indent: &[u8]) -> String {
    let count = |byte, one: &str, many: &str| match memchr_iter(byte, indent).count() {
        0 => None,
        1 => Some(one.to_owned()),
        n => Some(format!("{n} {many}")),
    };
    match (count(b'\t', "tab", "tabs"), count(b' ', "1 space", "spaces")) {
        (Some(tabs), Some(spaces)) => format!("{tabs} and {spaces}"),
        (Some(only), None) | (None, Some(only)) => only,
        (None, None) => "nothing".to_owned(),
    }
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;

//! Showing a reader why a text was not found, or why it was found too often.

use crate::error::{EditError, cut};
use crate::indent::indent_of;
use crate::level::{Level, ascii_form};
use crate::limits::Stop;
use crate::lines::{Line, is_solid};
use crate::near_miss::NearMiss;
use crate::similarity::{Region, nearest, similarity_percent};
use memchr::{memchr_iter, memrchr};
use similar::{Algorithm, DiffOp, capture_diff_slices};
use std::fmt::Write as _;

const SHOWN_LINE_BYTES: usize = 120;
const SHOWN_LINES: usize = 24;
pub(crate) const SHOWN_PLACES: usize = 10;
/// No more of a line is compared for a message.
const COMPARED_BYTES: usize = 10_000;
/// How far around a place something is sought that tells it from the others.
const LOOKED_AROUND: usize = 30;

/// A line for a message: readable, and not too long.
pub(crate) fn shown(body: &[u8]) -> String {
    cut(&String::from_utf8_lossy(body), SHOWN_LINE_BYTES)
}

/// The refusal of a text that is not there: what looser level would find it, or what is most like it.
pub(crate) fn not_found(
    what: &str,
    file: &[Line],
    wanted: &[&[u8]],
    looser: Option<(Level, Region)>,
    stop: Stop,
) -> EditError {
    let mut lesson = format!("{what} not found");
    let region = looser.map(|(_, region)| region).or_else(|| nearest(file, wanted, stop));
    if let Some((level, region)) = looser {
        let lines = line_numbers(region);
        _ = write!(lesson, ", but {lines} would match if {} did not count.", level.overlooks());
    }
    match region {
        Some(region) => {
            if looser.is_none() {
                _ = write!(lesson, "; most similar: {}.", line_numbers(region));
            }
            let actual = file[region.start..region.start + region.len].iter().map(|line| line.body);
            lesson.push_str(&compared(region.start, &actual.take(SHOWN_LINES).collect::<Vec<_>>(), wanted));
        }
        None => lesson.push_str("; nothing similar is there. Read the file again and copy the text exactly"),
    }
    EditError::NotFound { looser: looser.map(|(level, _)| level), lesson }
}

/// The refusal of a text that would be there if its case or its spaces did not count.
pub(crate) fn not_found_but_near(what: &str, near: &NearMiss, wanted: &[&[u8]]) -> EditError {
    let mut lesson = format!("{what} not found");
    let region = Region { start: near.first_line, len: near.lines.len() };
    _ = write!(lesson, ", but {} would match if {} did not count.", line_numbers(region), near.overlooks);
    lesson.push_str(&compared(near.first_line, &near.lines[..near.lines.len().min(SHOWN_LINES)], wanted));
    EditError::NotFound { looser: None, lesson }
}

/// A place that a text stands at, counted from 0: its line and, where the text is only a part of it, the character in
/// that line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    pub line: usize,
    pub column: Option<usize>,
}

/// The places of the first of some offsets in a text, as many as a message lists.
pub(crate) fn spots(text: &[u8], offsets: impl IntoIterator<Item = usize>) -> Vec<Spot> {
    let (mut line, mut line_start, mut counted) = (0, 0, 0);
    let spot = |offset: usize| {
        line += memchr_iter(b'\n', &text[counted..offset]).count();
        line_start = memrchr(b'\n', &text[counted..offset]).map_or(line_start, |newline| counted + newline + 1);
        counted = offset;
        let column = String::from_utf8_lossy(&text[line_start..offset]).chars().count();
        Spot { line, column: Some(column) }
    };
    offsets.into_iter().take(SHOWN_PLACES).map(spot).collect()
}

/// The refusal of a text that stands in `count` places, the first of which are given in order.
pub(crate) fn not_unique(what: &str, file: &[Line], spots: &[Spot], count: usize, len: usize) -> EditError {
    let listed = &spots[..spots.len().min(SHOWN_PLACES)];
    let mut lesson = format!("{what} is found {count} times; add surrounding text until it is unique:");
    let by_line: Vec<&[Spot]> = listed.chunk_by(|one, next| one.line == next.line).collect();
    let lines: Vec<usize> = by_line.iter().map(|spots| spots[0].line).collect();
    for (spots, mark) in by_line.iter().zip(tell_apart(file, &lines, len)) {
        _ = write!(lesson, "\n  line {}{}{mark}", spots[0].line + 1, columns(spots));
    }
    if count > listed.len() {
        _ = write!(lesson, "\n  and {} more", count - listed.len());
    }
    EditError::NotUnique { lines: lines.iter().map(|line| line + 1).collect(), count, lesson }
}

/// Where in their line several places are.
fn columns(spots: &[Spot]) -> String {
    let columns: Vec<String> =
        spots.iter().filter_map(|spot| spot.column).map(|column| (column + 1).to_string()).collect();
    match columns.as_slice() {
        [] | [_] => String::new(),
        [first @ .., last] => format!(", columns {} and {last}", first.join(", ")),
    }
}

fn line_numbers(region: Region) -> String {
    match region.len {
        0 | 1 => format!("line {}", region.start + 1),
        len => format!("lines {} to {}", region.start + 1, region.start + len),
    }
}

/// For each place the nearest line around it that not all places share.
fn tell_apart(file: &[Line], starts: &[usize], len: usize) -> Vec<String> {
    if file.is_empty() || starts.len() < 2 {
        return vec![String::new(); starts.len()];
    }
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
fn compared(first_line: usize, actual: &[&[u8]], wanted: &[&[u8]]) -> String {
    let expected: Vec<&[u8]> = wanted.iter().take(SHOWN_LINES).map(|line| start_of(line)).collect();
    let found: Vec<&[u8]> = actual.iter().take(SHOWN_LINES).map(|line| start_of(line)).collect();
    let ops = capture_diff_slices(Algorithm::Myers, &expected, &found);
    let mut text = String::new();
    if let Some((line, kind)) = first_difference(&ops, &expected, &found) {
        _ = write!(text, " First difference at line {}: {kind}.", first_line + line + 1);
    }
    text.push_str(" (- expected, + in the file)");
    for op in ops {
        let (_, old, new) = op.as_tag_tuple();
        if let DiffOp::Equal { .. } = op {
            for at in new {
                _ = write!(text, "\n {:>6} {}", first_line + at + 1, shown(found[at]));
            }
            continue;
        }
        for at in old {
            _ = write!(text, "\n-       {}", shown(expected[at]));
        }
        for at in new {
            _ = write!(text, "\n+{:>6} {}", first_line + at + 1, shown(found[at]));
        }
    }
    if wanted.len() > SHOWN_LINES {
        _ = write!(text, "\n ({} more lines expected)", wanted.len() - SHOWN_LINES);
    }
    text
}

/// As much of a line as is compared.
fn start_of(line: &[u8]) -> &[u8] {
    &line[..line.len().min(COMPARED_BYTES)]
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

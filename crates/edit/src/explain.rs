//! Builds the errors for a text that was not found, or was found several times.

use crate::error::{ClosestLines, EditError, truncated};
use crate::indent::indent_of;
use crate::limits::StopFlag;
use crate::lines::{Line, has_text};
use crate::match_level::{MatchLevel, ascii_form};
use crate::near_miss::NearMiss;
use crate::similarity::{LineRange, most_similar_range, similarity_percent};
use memchr::{memchr_iter, memrchr};
use similar::{Algorithm, DiffOp, capture_diff_slices};
use std::fmt::Write as _;

/// Maximum length of a line in a message.
const MAX_LINE_BYTES: usize = 120;
/// Maximum number of lines in a comparison.
const MAX_LINES: usize = 24;
/// Maximum number of positions that a message lists.
pub(crate) const MAX_POSITIONS: usize = 10;
/// Maximum number of bytes of a line that are compared.
const MAX_COMPARED_BYTES: usize = 10_000;
/// Maximum distance from the positions at which a line is searched that distinguishes them.
const MAX_DISTANCE: usize = 30;

/// Returns a line for a message: as text, and shortened if it is long.
pub(crate) fn display_line(body: &[u8]) -> String {
    truncated(&String::from_utf8_lossy(body), MAX_LINE_BYTES)
}

/// Returns the error for a text that was not found. It shows the match at a looser level, or the most similar lines.
///
/// `what` names the text in the message, and `looser` is the only match that a looser level would find.
pub(crate) fn not_found(
    what: &str,
    file: &[Line],
    wanted: &[&[u8]],
    looser: Option<(MatchLevel, LineRange)>,
    stop: StopFlag,
) -> EditError {
    let mut message = format!("{what} not found");
    let range = looser.map(|(_, range)| range).or_else(|| most_similar_range(file, wanted, stop));
    if let Some((level, range)) = looser {
        let lines = line_numbers(range);
        _ = write!(message, ", but {lines} would match if {} did not count.", level.ignores());
    }
    match range {
        Some(range) => {
            if looser.is_none() {
                _ = write!(message, "; most similar: {}.", line_numbers(range));
            }
            let actual = file[range.start..range.start + range.len].iter().map(|line| line.body);
            message.push_str(&comparison(range.start, &actual.take(MAX_LINES).collect::<Vec<_>>(), wanted));
        }
        None => message.push_str("; nothing similar was found. Read the file again and copy the text exactly"),
    }
    let closest = range.map(|range| {
        let lines: Vec<&[u8]> = file[range.start..range.start + range.len].iter().map(|line| line.body).collect();
        Box::new(closest(range.start, &lines, wanted))
    });
    EditError::NotFound { looser_level: looser.map(|(level, _)| level), message, closest }
}

/// Maximum number of lines of [`ClosestLines`].
const MAX_CLOSEST_LINES: usize = 12;

/// Describes the lines that are closest to the wanted ones.
fn closest(first_line: usize, actual: &[&[u8]], wanted: &[&[u8]]) -> ClosestLines {
    let expected: Vec<&[u8]> = wanted.iter().take(MAX_LINES).map(|line| compared_part(line)).collect();
    let found: Vec<&[u8]> = actual.iter().take(MAX_LINES).map(|line| compared_part(line)).collect();
    let difference = first_difference(&capture_diff_slices(Algorithm::Myers, &expected, &found), &expected, &found);
    ClosestLines {
        first: first_line + 1,
        lines: actual.iter().take(MAX_CLOSEST_LINES).map(|line| display_line(line)).collect(),
        count: actual.len(),
        difference: difference.map(|(line, kind)| (first_line + line + 1, kind)),
    }
}

/// Returns the error for a text that was found only with case or spaces ignored.
pub(crate) fn not_found_but_near(what: &str, near: &NearMiss, wanted: &[&[u8]]) -> EditError {
    let mut message = format!("{what} not found");
    let range = LineRange { start: near.first_line, len: near.lines.len() };
    _ = write!(message, ", but {} would match if {} did not count.", line_numbers(range), near.ignores);
    message.push_str(&comparison(near.first_line, &near.lines[..near.lines.len().min(MAX_LINES)], wanted));
    let closest = Some(Box::new(closest(near.first_line, &near.lines, wanted)));
    EditError::NotFound { looser_level: None, message, closest }
}

/// A position in a file, counted from 0: a line and, for a match within it, the character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub line: usize,
    pub column: Option<usize>,
}

/// Converts offsets in a text to positions, as many as a message lists. The offsets are in ascending order.
pub(crate) fn positions(text: &[u8], offsets: impl IntoIterator<Item = usize>) -> Vec<Position> {
    let (mut line, mut line_start, mut counted) = (0, 0, 0);
    let position = |offset: usize| {
        line += memchr_iter(b'\n', &text[counted..offset]).count();
        line_start = memrchr(b'\n', &text[counted..offset]).map_or(line_start, |newline| counted + newline + 1);
        counted = offset;
        let column = String::from_utf8_lossy(&text[line_start..offset]).chars().count();
        Position { line, column: Some(column) }
    };
    offsets.into_iter().take(MAX_POSITIONS).map(position).collect()
}

/// Returns the indexes of the lines of offsets in a text, which are in ascending order.
pub(crate) fn line_indexes(text: &[u8], offsets: &[usize]) -> Vec<usize> {
    let (mut line, mut counted) = (0, 0);
    let index = |offset: &usize| {
        line += memchr_iter(b'\n', &text[counted..*offset]).count();
        counted = *offset;
        line
    };
    offsets.iter().map(index).collect()
}

/// Returns the error for a text that was found `count` times.
///
/// `positions` are the first matches, in order, and `len` is the number of lines of each.
pub(crate) fn not_unique(what: &str, file: &[Line], positions: &[Position], count: usize, len: usize) -> EditError {
    let listed = &positions[..positions.len().min(MAX_POSITIONS)];
    let mut message = format!("{what} is found {count} times; add surrounding text until it is unique:");
    let by_line: Vec<&[Position]> = listed.chunk_by(|one, next| one.line == next.line).collect();
    let lines: Vec<usize> = by_line.iter().map(|positions| positions[0].line).collect();
    for (positions, mark) in by_line.iter().zip(distinguishing_lines(file, &lines, len)) {
        _ = write!(message, "\n  line {}{}{mark}", positions[0].line + 1, columns(positions));
    }
    if count > listed.len() {
        _ = write!(message, "\n  and {} more", count - listed.len());
    }
    EditError::NotUnique { lines: lines.iter().map(|line| line + 1).collect(), count, message }
}

/// Lists the columns, if several positions are on the same line.
fn columns(positions: &[Position]) -> String {
    let columns: Vec<String> =
        positions.iter().filter_map(|position| position.column).map(|column| (column + 1).to_string()).collect();
    match columns.as_slice() {
        [] | [_] => String::new(),
        [first @ .., last] => format!(", columns {} and {last}", first.join(", ")),
    }
}

fn line_numbers(range: LineRange) -> String {
    match range.len {
        0 | 1 => format!("line {}", range.start + 1),
        len => format!("lines {} to {}", range.start + 1, range.start + len),
    }
}

/// Describes for each start the nearest line above or below it that is not the same for all starts.
fn distinguishing_lines(file: &[Line], starts: &[usize], len: usize) -> Vec<String> {
    if file.is_empty() || starts.len() < 2 {
        return vec![String::new(); starts.len()];
    }
    let above = |start: usize, far: usize| start.checked_sub(far).map(|at| file[at].body);
    let below = |start: usize, far: usize| file.get(start + len + far - 1).map(|line| line.body);
    for far in 1..=MAX_DISTANCE {
        for (side, lines) in [
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
                    Some(body) => format!(" ({far} {lines_away} {side}: `{}`)", display_line(body.trim_ascii())),
                    None => format!(" ({far} {lines_away} {side}: the file's edge)"),
                })
                .collect();
        }
    }
    vec![String::new(); starts.len()]
}

/// Compares the wanted lines with those of the file: describes the first difference and appends a small diff.
fn comparison(first_line: usize, actual: &[&[u8]], wanted: &[&[u8]]) -> String {
    let expected: Vec<&[u8]> = wanted.iter().take(MAX_LINES).map(|line| compared_part(line)).collect();
    let found: Vec<&[u8]> = actual.iter().take(MAX_LINES).map(|line| compared_part(line)).collect();
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
                _ = write!(text, "\n {:>6} {}", first_line + at + 1, display_line(found[at]));
            }
            continue;
        }
        for at in old {
            _ = write!(text, "\n-       {}", display_line(expected[at]));
        }
        for at in new {
            _ = write!(text, "\n+{:>6} {}", first_line + at + 1, display_line(found[at]));
        }
    }
    if wanted.len() > MAX_LINES {
        _ = write!(text, "\n ({} more lines expected)", wanted.len() - MAX_LINES);
    }
    text
}

/// Returns the part of a line that is compared.
fn compared_part(line: &[u8]) -> &[u8] {
    &line[..line.len().min(MAX_COMPARED_BYTES)]
}

fn first_difference(ops: &[DiffOp], expected: &[&[u8]], found: &[&[u8]]) -> Option<(usize, String)> {
    let op = ops.iter().find(|op| !matches!(op, DiffOp::Equal { .. }))?;
    let (old, new) = (op.old_range(), op.new_range());
    let kind = match (expected[old].first(), found[new.clone()].first()) {
        (Some(expected), Some(found)) => describe_difference(expected, found),
        (Some(expected), None) => format!("the file lacks the line `{}`", display_line(expected.trim_ascii())),
        (None, _) => "the file has an extra line".to_owned(),
    };
    Some((new.start, kind))
}

/// Describes in what respect two lines differ.
pub(crate) fn describe_difference(expected: &[u8], found: &[u8]) -> String {
    if expected.trim_ascii_end() == found.trim_ascii_end() {
        return "trailing whitespace".to_owned();
    }
    if expected.trim_ascii() == found.trim_ascii() {
        return format!(
            "{} vs {} in the indentation",
            describe_indent(indent_of(expected)),
            describe_indent(indent_of(found))
        );
    }
    let (one, other) = (String::from_utf8_lossy(expected), String::from_utf8_lossy(found));
    if MatchLevel::Punctuation.comparison_key(expected).trim_ascii()
        == MatchLevel::Punctuation.comparison_key(found).trim_ascii()
    {
        let typographic = one.chars().chain(other.chars()).find(|character| ascii_form(*character).is_some());
        return typographic
            .map_or_else(|| "punctuation".to_owned(), |character| describe_typographic(character).to_owned());
    }
    if one.trim().to_lowercase() == other.trim().to_lowercase() {
        return "upper and lower case".to_owned();
    }
    if one.split_whitespace().eq(other.split_whitespace()) {
        return "spaces within the line".to_owned();
    }
    if !has_text(expected) || !has_text(found) || similarity_percent(expected, found) < 40 {
        return "a different line".to_owned();
    }
    let column = one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let from = |text: &str| text.chars().skip(column).take(12).collect::<String>();
    format!("column {}: `{}` vs `{}`", column + 1, from(&one), from(&other))
}

fn describe_typographic(typographic: char) -> &'static str {
    match ascii_form(typographic) {
        Some("-") => "different dash character",
        Some(" ") => "different space character",
        Some("...") => "an ellipsis character vs three dots",
        _ => "different quote character",
    }
}

fn describe_indent(indent: &[u8]) -> String {
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

//! What a program printed, as a model reads it: without escape codes, overwritten lines and repeats, and as much as fits.

use super::answer::{count, push};
use std::borrow::Cow;

/// A longer line is cut.
const LINE_BYTES: usize = 1_000;
/// Maximum length of a line that is shown because it looks like a failure.
const FAILURE_BYTES: usize = 200;

/// Words that lines about failures have.
const FAILURE_WORDS: [&str; 8] = ["error", "fail", "fatal", "panic", "exception", "traceback", "assert", "not ok"];
/// Marks that test runners put before failures.
const FAILURE_MARKS: [char; 4] = ['●', '✗', '✕', '✘'];

/// A part of an output.
pub(super) struct ShownOutput {
    /// The text.
    pub(super) text: String,
    /// Number of lines of the whole.
    pub(super) lines: usize,
    /// Whether anything is left out or was cleaned.
    pub(super) is_shortened: bool,
}

/// A line that is shown, for one or more lines of the output.
struct Line {
    /// The number of the first, counted from 1.
    first: usize,
    last: usize,
    text: String,
}

/// Returns an output within a budget: its beginning, lines that look like failures, and its end.
pub(super) fn shown(output: &str, budget: usize) -> ShownOutput {
    let (lines, number, mut is_shortened) = cleaned(output);
    let bytes: usize = lines.iter().map(|line| line.text.len() + 1).sum();
    if bytes <= budget {
        let text = lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n");
        return ShownOutput { text, lines: number, is_shortened };
    }
    is_shortened = true;
    let room = budget.saturating_sub(100);
    let head = fitting(lines.iter(), room * 3 / 10);
    let tail = fitting(lines[head..].iter().rev(), room * 6 / 10);
    let middle = &lines[head..lines.len() - tail];
    let mut text = String::new();
    for line in &lines[..head] {
        push(&mut text, &line.text);
    }
    if let (Some(first), Some(last)) = (middle.first(), middle.last()) {
        let failures: Vec<&Line> = middle.iter().filter(|line| is_failure(&line.text)).collect();
        let look = match failures.len() {
            0 => String::new(),
            1 => "; 1 looks like a failure:".to_owned(),
            number => format!("; {number} look like failures:"),
        };
        push(&mut text, format!(".. lines {}-{} of {number} left out{look}", first.first, last.last));
        let mut room = room / 10;
        for failure in failures {
            let line = format!("{}: {}", failure.first, cut(&failure.text, FAILURE_BYTES));
            let Some(left) = room.checked_sub(line.len() + 1) else { break };
            room = left;
            push(&mut text, line);
        }
    }
    for line in &lines[lines.len() - tail..] {
        push(&mut text, &line.text);
    }
    ShownOutput { text, lines: number, is_shortened }
}

/// Returns how many lines fit.
fn fitting<'l>(lines: impl Iterator<Item = &'l Line>, room: usize) -> usize {
    let mut bytes = 0;
    let fits = |line: &&Line| {
        bytes += line.text.len() + 1;
        bytes <= room
    };
    lines.take_while(fits).count()
}

fn is_failure(text: &str) -> bool {
    let lower = text.to_lowercase();
    // "0 failed" and "no errors" are no failures.
    let is_none = |at: usize| {
        let before = lower[..at].trim_end();
        before == "0" || before.ends_with(" 0") || before.ends_with("no")
    };
    let has_word = FAILURE_WORDS.iter().any(|word| lower.find(word).is_some_and(|at| !is_none(at)));
    has_word || text.contains(FAILURE_MARKS)
}

/// Removes the escape codes of terminals: colours, movements, titles.
fn without_escapes(output: &str) -> Cow<'_, str> {
    if !output.contains('\x1b') {
        return output.into();
    }
    let mut parts = output.split('\x1b');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = match part.as_bytes().first() {
            // Parameters, then a letter.
            Some(b'[') => after_first(part[1..].trim_start_matches(|c: char| (' '..='?').contains(&c))),
            // A title ends with a bell, or with another escape.
            Some(b']') => part.split_once('\x07').map_or("", |(_, rest)| rest),
            _ => after_first(part),
        };
        text.push_str(rest);
    }
    text.into()
}

fn after_first(text: &str) -> &str {
    let mut rest = text.chars();
    rest.next();
    rest.as_str()
}

/// Returns the lines as they are shown, the number of all lines, and whether they differ from the output.
fn cleaned(output: &str) -> (Vec<Line>, usize, bool) {
    let without_codes = without_escapes(output);
    let mut is_changed = without_codes.len() != output.len();
    let mut lines: Vec<Line> = Vec::new();
    let mut times = 1;
    let mut number = 0;
    let mut last_raw = "";
    let note_times = |lines: &mut Vec<Line>, times: usize| {
        if times > 1
            && let Some(line) = lines.last_mut()
        {
            super::answer::append(&mut line.text, format!(" ({times} times)"));
        }
    };
    for raw in without_codes.lines() {
        number += 1;
        // What a progress line wrote last.
        let text = raw.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default();
        is_changed |= text.len() != raw.len();
        if number > 1 && text == last_raw && !text.trim().is_empty() {
            times += 1;
            is_changed = true;
            if let Some(line) = lines.last_mut() {
                line.last = number;
            }
            continue;
        }
        note_times(&mut lines, times);
        times = 1;
        last_raw = text;
        let shown = cut(text, LINE_BYTES);
        is_changed |= shown.len() != text.len();
        lines.push(Line { first: number, last: number, text: quoted(shown) });
    }
    note_times(&mut lines, times);
    (lines, number, is_changed)
}

/// Cuts a long line.
fn cut(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    let end = (0..=max_bytes).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}… +{} bytes", &text[..end], text.len() - end)
}

/// Puts a space before a line that begins like those of the tools, so that nothing can pose as them.
fn quoted(line: String) -> String {
    let is_like_ours = ["== ", ".. ", "error ", "next: "].iter().any(|mark| line.starts_with(mark));
    if is_like_ours { format!(" {line}") } else { line }
}

/// Returns a text of others in which no line begins like those of the tools.
pub(super) fn quoted_text(text: &str) -> String {
    text.lines().map(|line| quoted(line.to_owned())).collect::<Vec<_>>().join("\n")
}

/// Returns a number of lines in words, with their size: `1240 lines (75 KB)`.
pub(super) fn extent(lines: usize, bytes: u64) -> String {
    format!("{} ({})", count(lines, "line"), kilobytes(bytes))
}

/// Returns a size: `834 bytes`, `75 KB`, `2.1 MB`.
pub(super) fn kilobytes(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} KB", bytes.div_ceil(1_000)),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;

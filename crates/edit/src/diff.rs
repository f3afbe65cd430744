//! Unified diffs of two contents.

use crate::lines::split;
use crate::patch::quoted_name;
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline, group_diff_ops};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::time::{Duration, Instant};

/// A diff is cut after this many bytes, unless another limit is given.
pub const LIMIT_BYTES: usize = 256 * 1024;

const CONTEXT_LINES: usize = 3;
/// How long the shortest diff is searched for; a longer one that is right does as well.
const SEARCHED_FOR: Duration = Duration::from_millis(300);
/// Contents with a NUL byte among their first bytes are binary.
const SNIFFED_BYTES: usize = 8_000;

/// The unified diff that turns `old` into `new`, with three lines of context; empty if they are equal.
///
/// Nothing in place of a content means that the file is not there: the diff then creates or deletes it. Contents that
/// are no text give one line that says so. A diff beyond [`LIMIT_BYTES`] is cut after a hunk and says what is missing.
pub fn unified(path: &[u8], old: Option<&[u8]>, new: Option<&[u8]>) -> String {
    unified_within(path, old, new, LIMIT_BYTES)
}

/// Like [`unified`], cut after `limit_bytes`.
pub fn unified_within(path: &[u8], old: Option<&[u8]>, new: Option<&[u8]>, limit_bytes: usize) -> String {
    if old == new {
        return String::new();
    }
    let name = |side: Option<&[u8]>, prefix| side.map_or_else(|| "/dev/null".to_owned(), |_| quoted_name(prefix, path));
    let (old_name, new_name) = (name(old, "a/"), name(new, "b/"));
    let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
    let (Some(old), Some(new)) = (as_text(old), as_text(new)) else {
        return format!("Binary files {} and {} differ\n", old_name.trim_end(), new_name.trim_end());
    };
    let mut diff = format!("--- {old_name}\n+++ {new_name}\n");
    let (old, new) = (lines_of(old), lines_of(new));
    let hunks = group_diff_ops(changes(&old, &new), CONTEXT_LINES);
    let mut left_out = LeftOut::default();
    for ops in &hunks {
        let hunk = hunk(ops, &old, &new);
        if left_out.hunks > 0 || diff.len() + hunk.len() > limit_bytes {
            left_out.hunks += 1;
            left_out.lines += hunk.lines().count();
        } else {
            diff.push_str(&hunk);
        }
    }
    if left_out.hunks > 0 {
        _ = writeln!(diff, "# the diff is cut: {} more hunks of {} lines are left out", left_out.hunks, left_out.lines);
    }
    diff
}

#[derive(Default)]
struct LeftOut {
    hunks: usize,
    lines: usize,
}

fn as_text(content: &[u8]) -> Option<&str> {
    let start = &content[..content.len().min(SNIFFED_BYTES)];
    if start.contains(&0) { None } else { str::from_utf8(content).ok() }
}

/// The lines with their endings.
fn lines_of(text: &str) -> Vec<&str> {
    split(text.as_bytes()).iter().map(|line| &text[line.start..line.end()]).collect()
}

/// What changed, found on numbers that stand for lines: comparing them costs nothing.
fn changes<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<DiffOp> {
    let mut numbers: HashMap<&'t str, usize> = HashMap::with_capacity(old.len());
    let mut numbered = |lines: &[&'t str]| -> Vec<usize> {
        let mut number = |line| {
            let next = numbers.len();
            *numbers.entry(line).or_insert(next)
        };
        lines.iter().map(|line| number(*line)).collect()
    };
    let (old, new) = (numbered(old), numbered(new));
    capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(Instant::now() + SEARCHED_FOR))
}

fn hunk(ops: &[DiffOp], old: &[&str], new: &[&str]) -> String {
    let span = |range: fn(&DiffOp) -> Range<usize>| {
        let (first, last) = (ops.first().map(range), ops.last().map(range));
        first.map_or(0, |range| range.start)..last.map_or(0, |range| range.end)
    };
    let (old_span, new_span) = (span(DiffOp::old_range), span(DiffOp::new_range));
    let mut hunk = format!("@@ -{} +{} @@\n", numbers(&old_span), numbers(&new_span));
    for op in ops {
        if let DiffOp::Equal { .. } = op {
            push_lines(&mut hunk, ' ', &old[op.old_range()]);
        } else {
            push_lines(&mut hunk, '-', &old[op.old_range()]);
            push_lines(&mut hunk, '+', &new[op.new_range()]);
        }
    }
    hunk
}

fn numbers(span: &Range<usize>) -> String {
    match span.len() {
        // A span without lines is named by the line before it.
        0 => format!("{},0", span.start),
        1 => format!("{}", span.start + 1),
        len => format!("{},{len}", span.start + 1),
    }
}

fn push_lines(hunk: &mut String, mark: char, lines: &[&str]) {
    for line in lines {
        hunk.push(mark);
        hunk.push_str(line);
        if !line.ends_with('\n') {
            hunk.push_str("\n\\ No newline at end of file\n");
        }
    }
}

#[cfg(test)]
#[path = "diff_tests.rs"]
mod tests;

//! The lines of a hunk: read by the counts of its header if they are right, else by how the lines look.

use super::hunk_header::{HunkHeader, Numbers};
use super::parse::PatchLines;
use super::{Claim, Counts, Hunk, HunkLine, Newline, Reach, Role};

/// Reads the hunk whose header stands at `header_at`, and gives where it ends.
pub(super) fn read<'a>(lines: &PatchLines<'a>, header_at: usize, header: &HunkHeader<'a>) -> (Hunk<'a>, usize) {
    let start = header_at + 1;
    let counted = header.numbers.and_then(|numbers| read_by_counts(lines, start, numbers));
    let counts = if counted.is_some() { Counts::Right } else { Counts::Wrong };
    let (body, end) = counted.unwrap_or_else(|| read_by_looks(lines, start));
    let claim = header.numbers.map(|numbers| Claim {
        // A hunk without old lines names the line before it.
        old_start: if counts == Counts::Right && numbers.old_count == 0 {
            numbers.old_start.saturating_add(1)
        } else {
            numbers.old_start
        },
        new_start: if counts == Counts::Right && numbers.new_count == 0 {
            numbers.new_start.saturating_add(1)
        } else {
            numbers.new_start
        },
        counts,
    });
    let headings = header.heading.into_iter().collect();
    (Hunk { claim, headings, lines: body, reach: Reach::Anywhere, patch_line: header_at + 1 }, end)
}

/// Reads a hunk that has no header.
pub(super) fn read_headless<'a>(lines: &PatchLines<'a>, start: usize) -> (Hunk<'a>, usize) {
    let (body, end) = read_by_looks(lines, start);
    (Hunk { lines: body, patch_line: start + 1, ..Hunk::default() }, end)
}

/// A line of a hunk, by its first byte. A line that begins with none of the marks is context that lost its space.
pub(super) fn read_line(line: &[u8]) -> HunkLine<'_> {
    let (role, text) = match line {
        [b'+', text @ ..] => (Role::Insert, text),
        [b'-', text @ ..] => (Role::Delete, text),
        [b' ', text @ ..] | text => (Role::Context, text),
    };
    HunkLine { role, text, newline: Newline::Present }
}

/// Marks the last line as one without a newline, if this is the line that says so.
pub(super) fn mark_missing_newline(line: &[u8], body: &mut [HunkLine]) -> bool {
    let is_mark = line.starts_with(b"\\ ");
    if let (true, Some(last)) = (is_mark, body.last_mut()) {
        last.newline = Newline::Missing;
    }
    is_mark
}

/// The hunk's lines by its counts, unless these do not fit the lines.
fn read_by_counts<'a>(lines: &PatchLines<'a>, start: usize, numbers: Numbers) -> Option<(Vec<HunkLine<'a>>, usize)> {
    let (mut old_left, mut new_left) = (numbers.old_count, numbers.new_count);
    let mut body = Vec::new();
    let mut at = start;
    while old_left > 0 || new_left > 0 {
        let line = lines.get(at)?;
        let may_be_lost_context = !line.starts_with(b"@@") && !line.starts_with(b"diff --git ");
        if !mark_missing_newline(line, &mut body) {
            let line = read_line(line);
            match line.role {
                Role::Context if may_be_lost_context => {
                    old_left = old_left.checked_sub(1)?;
                    new_left = new_left.checked_sub(1)?;
                }
                Role::Context => return None,
                Role::Delete => old_left = old_left.checked_sub(1)?,
                Role::Insert => new_left = new_left.checked_sub(1)?,
            }
            body.push(line);
        }
        at += 1;
    }
    while lines.get(at).is_some_and(|line| mark_missing_newline(line, &mut body)) {
        at += 1;
    }
    is_plausible_end(lines, at).then_some((body, at))
}

/// Whether a hunk may end here: nothing that looks like one more of its lines follows before the next header.
fn is_plausible_end(lines: &PatchLines, end: usize) -> bool {
    let stops = |at: usize| lines.ends_hunk(at) || lines.ends_diff(at) || lines.is_between_diffs(at);
    let next_is_context = !stops(end) && lines.get(end).is_some_and(|line| line.starts_with(b" "));
    let mut rest = (end..lines.len()).take_while(|at| !stops(*at)).filter_map(|at| lines.get(at));
    !next_is_context && !rest.any(|line| matches!(line, [b'+' | b'-', ..]))
}

/// The hunk's lines by their looks: all up to the next header.
fn read_by_looks<'a>(lines: &PatchLines<'a>, start: usize) -> (Vec<HunkLine<'a>>, usize) {
    let end = (start..lines.len()).find(|at| lines.ends_hunk(*at) || lines.ends_diff(*at)).unwrap_or(lines.len());
    let mut body: Vec<HunkLine> = Vec::with_capacity(end - start);
    let mut last = 0;
    for at in start..end {
        let line = lines.get(at).unwrap_or_default();
        let is_mark = mark_missing_newline(line, &mut body);
        if !is_mark {
            body.push(read_line(line));
        }
        if !line.is_empty() {
            last = body.len();
        }
    }
    // Empty lines at the end part the hunk from what follows.
    body.truncate(last);
    (body, end)
}

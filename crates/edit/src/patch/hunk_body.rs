//! Parses the lines of a hunk: by the counts in its header if they are right, otherwise by the prefixes of the lines.

use super::hunk_header::{HeaderRanges, HunkHeader};
use super::parse::PatchLines;
use super::{Counts, EndConstraint, HeaderPosition, Hunk, HunkLine, LineKind, Newline, begin_patch};
use crate::error::EditError;

/// Parses the hunk whose header is at `header_at`; returns it with the line at which it ends. A hunk with fewer lines
/// than its header announces is refused.
pub(super) fn parse<'a>(
    lines: &PatchLines<'a>,
    header_at: usize,
    header: &HunkHeader<'a>,
) -> Result<(Hunk<'a>, usize), EditError> {
    let start = header_at + 1;
    let counted = header.ranges.and_then(|ranges| parse_by_counts(lines, start, ranges));
    let counts = if counted.is_some() { Counts::Right } else { Counts::Wrong };
    let (body, end) = match (counted, header.ranges) {
        (Some(counted), _) => counted,
        (None, ranges) => {
            let BodyByPrefixes { mut body, nonblank_len, end } = parse_by_prefixes(lines, start);
            if let Some(ranges) = ranges {
                check_is_complete(&body, ranges, header_at + 1)?;
            }
            body.truncate(nonblank_len);
            (body, end)
        }
    };
    let header_position = header.ranges.map(|ranges| HeaderPosition {
        // The header of a hunk without old lines has the number of the line before it.
        old_start: if counts == Counts::Right && ranges.old_count == 0 {
            ranges.old_start.saturating_add(1)
        } else {
            ranges.old_start
        },
        new_start: if counts == Counts::Right && ranges.new_count == 0 {
            ranges.new_start.saturating_add(1)
        } else {
            ranges.new_start
        },
        counts,
    });
    let headings = header.heading.into_iter().collect();
    Ok((
        Hunk {
            header_position,
            headings,
            lines: body,
            end_constraint: EndConstraint::Anywhere,
            patch_line: header_at + 1,
        },
        end,
    ))
}

/// Refuses a hunk with fewer lines than its header announces, because the rest of it may be lost.
pub(super) fn check_is_complete(
    lines: &[HunkLine],
    announced: HeaderRanges,
    patch_line: usize,
) -> Result<(), EditError> {
    let old = lines.iter().filter(|line| line.kind != LineKind::Insert).count();
    let new = lines.iter().filter(|line| line.kind != LineKind::Delete).count();
    if old >= announced.old_count && new >= announced.new_count {
        return Ok(());
    }
    let problem = format!(
        "the hunk announces {} old and {} new lines, but has {old} and {new}; it seems to be cut off: \
         send all of its lines, or correct the counts in its header",
        announced.old_count, announced.new_count
    );
    Err(EditError::syntax(patch_line, problem))
}

/// Parses a hunk that has no header.
pub(super) fn parse_without_header<'a>(lines: &PatchLines<'a>, start: usize) -> (Hunk<'a>, usize) {
    let BodyByPrefixes { mut body, nonblank_len, end } = parse_by_prefixes(lines, start);
    body.truncate(nonblank_len);
    (Hunk { lines: body, patch_line: start + 1, ..Hunk::default() }, end)
}

/// Parses a line of a hunk by its first byte. A line without one of the prefixes is context that lost its leading
/// space.
pub(super) fn parse_line(line: &[u8]) -> HunkLine<'_> {
    let (kind, text) = match line {
        [b'+', text @ ..] => (LineKind::Insert, text),
        [b'-', text @ ..] => (LineKind::Delete, text),
        [b' ', text @ ..] | text => (LineKind::Context, text),
    };
    HunkLine { kind, text, newline: Newline::Present }
}

/// If this line is `\ No newline at end of file`, marks the line before it, and returns true.
pub(super) fn mark_missing_newline(line: &[u8], body: &mut [HunkLine]) -> bool {
    let is_mark = line.starts_with(b"\\ ");
    if let (true, Some(last)) = (is_mark, body.last_mut()) {
        last.newline = Newline::Missing;
    }
    is_mark
}

/// Parses the lines by the counts in the header; returns `None` if the counts do not fit the lines.
fn parse_by_counts<'a>(
    lines: &PatchLines<'a>,
    start: usize,
    ranges: HeaderRanges,
) -> Option<(Vec<HunkLine<'a>>, usize)> {
    let (mut old_left, mut new_left) = (ranges.old_count, ranges.new_count);
    let mut body = Vec::new();
    let mut at = start;
    while old_left > 0 || new_left > 0 {
        let line = lines.get(at)?;
        let may_be_context =
            !line.starts_with(b"@@") && !line.starts_with(b"diff --git ") && !begin_patch::is_marker(line);
        if !mark_missing_newline(line, &mut body) {
            let line = parse_line(line);
            match line.kind {
                LineKind::Context if may_be_context => {
                    old_left = old_left.checked_sub(1)?;
                    new_left = new_left.checked_sub(1)?;
                }
                LineKind::Context => return None,
                LineKind::Delete => old_left = old_left.checked_sub(1)?,
                LineKind::Insert => new_left = new_left.checked_sub(1)?,
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

/// Returns whether a hunk may end here: no line that looks like one more of its lines comes before the next header.
fn is_plausible_end(lines: &PatchLines, end: usize) -> bool {
    let stops = |at: usize| lines.ends_hunk(at) || lines.ends_diff(at) || lines.is_between_diffs(at);
    let next_is_context = !stops(end) && lines.get(end).is_some_and(|line| line.starts_with(b" "));
    let mut rest = (end..lines.len()).take_while(|at| !stops(*at)).filter_map(|at| lines.get(at));
    !next_is_context && !rest.any(|line| matches!(line, [b'+' | b'-', ..]))
}

/// The lines of a hunk parsed by their prefixes.
struct BodyByPrefixes<'a> {
    body: Vec<HunkLine<'a>>,
    /// Number of lines without the empty ones at the end, which only separate the hunk from what follows.
    nonblank_len: usize,
    /// The line of the patch at which the hunk ends.
    end: usize,
}

/// Parses the lines by their prefixes: all lines up to the next header.
fn parse_by_prefixes<'a>(lines: &PatchLines<'a>, start: usize) -> BodyByPrefixes<'a> {
    let end = (start..lines.len()).find(|at| lines.ends_hunk(*at) || lines.ends_diff(*at)).unwrap_or(lines.len());
    let mut body: Vec<HunkLine> = Vec::with_capacity(end - start);
    let mut nonblank_len = 0;
    for line in (start..end).filter_map(|at| lines.get(at)) {
        if !mark_missing_newline(line, &mut body) {
            body.push(parse_line(line));
        }
        if !line.is_empty() {
            nonblank_len = body.len();
        }
    }
    BodyByPrefixes { body, nonblank_len, end }
}

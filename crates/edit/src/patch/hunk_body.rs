//! The lines of a hunk: read by the counts of its header if they are right, else by how the lines look.

use super::hunk_header::{HunkHeader, Numbers};
use super::parse::PatchLines;
use super::{Claim, Counts, Hunk, HunkLine, Newline, Reach, Role, begin_patch};
use crate::error::EditError;

/// Reads the hunk whose header stands at `header_at`, and gives where it ends. One that is shorter than its header says
/// is refused.
pub(super) fn read<'a>(
    lines: &PatchLines<'a>,
    header_at: usize,
    header: &HunkHeader<'a>,
) -> Result<(Hunk<'a>, usize), EditError> {
    let start = header_at + 1;
    let counted = header.numbers.and_then(|numbers| read_by_counts(lines, start, numbers));
    let counts = if counted.is_some() { Counts::Right } else { Counts::Wrong };
    let (body, end) = match (counted, header.numbers) {
        (Some(counted), _) => counted,
        (None, numbers) => {
            let Looks { mut body, solid, end } = read_by_looks(lines, start);
            if let Some(numbers) = numbers {
                refuse_short(&body, numbers, header_at + 1)?;
            }
            body.truncate(solid);
            (body, end)
        }
    };
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
    Ok((Hunk { claim, headings, lines: body, reach: Reach::Anywhere, patch_line: header_at + 1 }, end))
}

/// Refuses a hunk with fewer lines than its header announces: the rest of it may be lost.
pub(super) fn refuse_short(lines: &[HunkLine], announced: Numbers, patch_line: usize) -> Result<(), EditError> {
    let old = lines.iter().filter(|line| line.role != Role::Insert).count();
    let new = lines.iter().filter(|line| line.role != Role::Delete).count();
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

/// Reads a hunk that has no header.
pub(super) fn read_headless<'a>(lines: &PatchLines<'a>, start: usize) -> (Hunk<'a>, usize) {
    let Looks { mut body, solid, end } = read_by_looks(lines, start);
    body.truncate(solid);
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
        let may_be_lost_context =
            !line.starts_with(b"@@") && !line.starts_with(b"diff --git ") && !begin_patch::is_mark(line);
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

/// A hunk's lines by their looks.
struct Looks<'a> {
    body: Vec<HunkLine<'a>>,
    /// How many of them there are without the empty ones at the end, which part the hunk from what follows.
    solid: usize,
    /// Where they end in the patch.
    end: usize,
}

/// The hunk's lines by their looks: all up to the next header.
fn read_by_looks<'a>(lines: &PatchLines<'a>, start: usize) -> Looks<'a> {
    let end = (start..lines.len()).find(|at| lines.ends_hunk(*at) || lines.ends_diff(*at)).unwrap_or(lines.len());
    let mut body: Vec<HunkLine> = Vec::with_capacity(end - start);
    let mut solid = 0;
    for line in (start..end).filter_map(|at| lines.get(at)) {
        if !mark_missing_newline(line, &mut body) {
            body.push(read_line(line));
        }
        if !line.is_empty() {
            solid = body.len();
        }
    }
    Looks { body, solid, end }
}

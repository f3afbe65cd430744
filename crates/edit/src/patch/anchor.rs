//! Hunks that belong at the start or the end of their file.
//!
//! A diff has context on both sides of a change, unless the file starts or ends there. So a hunk without context after
//! its change belongs at the end of the file, and a hunk whose header has line number 1 belongs at the start. Git applies
//! such hunks nowhere else, unless they have no context at all (`--unidiff-zero`). Here a hunk is also applied elsewhere,
//! with a warning, if its lines identify the position, because people and models leave context out and make up line
//! numbers.

use super::candidate::{Candidate, PreparedHunk, split_ending};
use super::{Counts, LineKind};

/// Minimum number of old lines with letters or digits that identify a position.
const LINES_WITH_WORDS_MIN: usize = 2;

/// Returns whether a hunk indicates the end of the file: it has context before its change and none after it.
pub(super) fn indicates_file_end(prepared: &PreparedHunk) -> bool {
    let (leading, trailing) = context_around(prepared);
    has_right_counts(prepared) && leading > 0 && trailing == 0
}

/// Returns whether a hunk indicates the start of the file: its header has line number 1, and it has context.
pub(super) fn indicates_file_start(prepared: &PreparedHunk) -> bool {
    names_line_1(prepared) && context_around(prepared) != (0, 0)
}

/// Returns whether the header of a hunk has the line number 1.
pub(super) fn names_line_1(prepared: &PreparedHunk) -> bool {
    has_right_counts(prepared) && prepared.hunk.header_position.is_some_and(|header| header.old_start <= 1)
}

fn has_right_counts(prepared: &PreparedHunk) -> bool {
    prepared.hunk.header_position.is_some_and(|header| header.counts == Counts::Right)
}

/// Returns the number of context lines at the start and at the end of a hunk.
pub(super) fn context_around(prepared: &PreparedHunk) -> (usize, usize) {
    let lines = &prepared.hunk.lines;
    let leading = lines.iter().take_while(|line| line.kind == LineKind::Context).count();
    let trailing = lines.iter().rev().take_while(|line| line.kind == LineKind::Context).count();
    (leading, trailing)
}

/// Checks the candidate of a hunk that indicates the start or the end of the file. `candidates` is the number of
/// candidates that the hunk has. Returns a warning, or the reason why the candidate is refused.
pub(super) fn check(
    prepared: &PreparedHunk,
    candidate: &Candidate,
    file_lines: usize,
    candidates: usize,
) -> Result<Option<String>, String> {
    let end = candidate.start + candidate.fault.covered(prepared.old.len());
    let (line, advice) = (candidate.start + 1, "add the lines around the change to the hunk");
    let reason = if indicates_file_end(prepared) && end < file_lines {
        "it has no lines after its change, as at the end of a file, but the file continues after its old lines"
    } else if indicates_file_start(prepared) && candidate.start > 0 {
        "its header has line number 1, as at the start of a file"
    } else {
        return Ok(None);
    };
    let reason = format!("{reason}; its old lines match at line {line}");
    let is_at_header_line = prepared.hunk.header_position.is_some_and(|header| header.old_start == line);
    let has_word = |body: &[u8]| body.iter().any(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii());
    let lines_with_words = prepared.hunk.old_lines().filter(|line| has_word(split_ending(line).0)).count();
    if candidates == 1 && (is_at_header_line || lines_with_words >= LINES_WITH_WORDS_MIN) {
        return Ok(Some(format!("{reason}. If that is not the right place, {advice}")));
    }
    Err(format!("{reason}, which may not be the right place; {advice}"))
}

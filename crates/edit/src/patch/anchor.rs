//! Hunks that lie at the start or the end of their file.
//!
//! A diff has context on both sides of a change, unless the file starts or ends there. So a hunk without context after
//! its change goes to the end of the file, and one whose header names line 1 goes to the start. Git holds hunks to that,
//! unless they have no context at all (`--unidiff-zero`). Here a hunk may also stand elsewhere if its lines leave no
//! doubt, with a warning, because people and models leave context out and make line numbers up.

use super::place::{Place, Wanted, taken_apart};
use super::{Counts, Role};

/// So many lines that say something are enough to be sure of a place.
const TELLING_LINES: usize = 2;

/// Whether a hunk without context after its change says that the file ends there. One without any context says nothing.
pub(super) fn ends_file(wanted: &Wanted) -> bool {
    let (leading, trailing) = context_around(wanted);
    has_right_counts(wanted) && leading > 0 && trailing == 0
}

/// Whether a hunk that names line 1 says that the file begins with it. One without any context says nothing.
pub(super) fn starts_file(wanted: &Wanted) -> bool {
    names_line_1(wanted) && context_around(wanted) != (0, 0)
}

/// Whether the header of a hunk names the first line.
pub(super) fn names_line_1(wanted: &Wanted) -> bool {
    has_right_counts(wanted) && wanted.hunk.claim.is_some_and(|claim| claim.old_start <= 1)
}

fn has_right_counts(wanted: &Wanted) -> bool {
    wanted.hunk.claim.is_some_and(|claim| claim.counts == Counts::Right)
}

/// How many lines of context a hunk begins and ends with.
pub(super) fn context_around(wanted: &Wanted) -> (usize, usize) {
    let lines = &wanted.hunk.lines;
    let leading = lines.iter().take_while(|line| line.role == Role::Context).count();
    let trailing = lines.iter().rev().take_while(|line| line.role == Role::Context).count();
    (leading, trailing)
}

/// Checks the place of a hunk that says it lies at the start or the end of its file, of so many places that it could
/// have. Gives a warning, or why the place is refused.
pub(super) fn check(
    wanted: &Wanted,
    place: &Place,
    file_lines: usize,
    places: usize,
) -> Result<Option<String>, String> {
    let end = place.start + place.fault.covered(wanted.old.len());
    let (line, advice) = (place.start + 1, "add the lines around the change to the hunk");
    let claim = if ends_file(wanted) && end < file_lines {
        "it has no lines after its change, as at the end of a file, but the file goes on after its old lines"
    } else if starts_file(wanted) && place.start > 0 {
        "its header names line 1, as at the start of a file"
    } else {
        return Ok(None);
    };
    let claim = format!("{claim}; its old lines stand at line {line}");
    let is_at_claim = wanted.hunk.claim.is_some_and(|claim| claim.old_start == line);
    let says_something = |body: &[u8]| body.iter().any(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii());
    let telling = wanted.hunk.before().filter(|line| says_something(taken_apart(line).0)).count();
    if places == 1 && (is_at_claim || telling >= TELLING_LINES) {
        return Ok(Some(format!("{claim}. If that is not the place, {advice}")));
    }
    Err(format!("{claim}, but not only there or not surely enough; {advice}"))
}

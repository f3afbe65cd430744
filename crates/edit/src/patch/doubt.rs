//! What is odd about a hunk although it has a place: its author may have meant something else.

use super::narrow::reaches_end;
use super::place::{Fault, Place, Wanted};
use super::{Counts, Role};
use crate::explain::shown;
use crate::indent::Shift;
use crate::lines::{Line, is_solid};
use std::cell::LazyCell;

/// Which blanks the lines of a file are indented with.
pub(super) struct Indents {
    tabs: bool,
    spaces: bool,
}

impl Indents {
    pub fn of(file: &[Line]) -> Self {
        let has = |byte| file.iter().any(|line| is_indented_with(byte, line.body));
        Self { tabs: has(b'\t'), spaces: has(b' ') }
    }
}

fn is_indented_with(byte: u8, body: &[u8]) -> bool {
    body.first() == Some(&byte) && is_solid(body)
}

/// What there is to say about a placed hunk.
pub(super) fn doubts(
    file: &[Line],
    wanted: &Wanted,
    place: &Place,
    indents: &LazyCell<Indents, impl FnOnce() -> Indents>,
) -> Vec<String> {
    let mut doubts = Vec::new();
    if wanted.old.is_empty() && !file.is_empty() {
        doubts.push(format!("it has no context; it was put after line {}", place.start));
    }
    doubts.extend(faulty_line(file, wanted, place));
    if may_reach_end(file, wanted, place) {
        doubts.push(format!(
            "its old lines stand at the end of the file too, where a hunk without lines after its change is at home; \
             line {} was taken because its header says so",
            place.start + 1
        ));
    }
    if may_lack_context(file, wanted, place) {
        doubts.push(format!(
            "its header counts other lines than it has, and it inserts at its edge, at line {}: \
             if a context line was left out there, the lines are in the wrong place",
            place.start + 1
        ));
    }
    if place.shift == Shift::None {
        doubts.extend(foreign_indentation(wanted, indents));
    }
    doubts
}

/// The context line in which the hunk and the file differ.
fn faulty_line(file: &[Line], wanted: &Wanted, place: &Place) -> Option<String> {
    let expected = |at: usize| shown(wanted.old[at].body.trim_ascii());
    let found = |at: usize| (place.start + at + 1, shown(file[place.start + at].body.trim_ascii()));
    Some(match place.fault {
        Fault::None => return None,
        Fault::Replaced(at) => {
            let (number, line) = found(at);
            format!("its context line `{}` is `{line}` in the file, at line {number}", expected(at))
        }
        Fault::Invented(at) => format!("its context line `{}` is not in the file", expected(at)),
        Fault::Skipped(at) => {
            let (number, line) = found(at);
            format!("it leaves out line {number} of the file, `{line}`")
        }
    })
}

/// Whether a hunk that was found at its line number would as well be found at the file's end, where it seems to belong.
fn may_reach_end(file: &[Line], wanted: &Wanted, place: &Place) -> bool {
    let old = &wanted.old;
    let Some(start) = file.len().checked_sub(old.len()).filter(|start| *start != place.start) else { return false };
    let at_claim = wanted.hunk.claim.is_some_and(|claim| claim.old_start == place.start + 1);
    let same = || old.iter().zip(&file[start..]).all(|(old, line)| old.body == line.body);
    at_claim && !old.is_empty() && reaches_end(wanted) && same()
}

/// Whether a hunk inserts beside a line that it does not name, and is known to lack lines or to have too many.
fn may_lack_context(file: &[Line], wanted: &Wanted, place: &Place) -> bool {
    let lines = &wanted.hunk.lines;
    let end = place.start + place.fault.covered(wanted.old.len());
    let inserts = |line: Option<&super::HunkLine>| line.is_some_and(|line| line.role == Role::Insert);
    let at_edge = (inserts(lines.first()) && place.start > 0) || (inserts(lines.last()) && end < file.len());
    let miscounted = wanted.hunk.claim.is_some_and(|claim| claim.counts == Counts::Wrong);
    miscounted && at_edge && !wanted.old.is_empty()
}

/// Whether the inserted lines are indented in a way that no line of the file is.
fn foreign_indentation(wanted: &Wanted, file: &LazyCell<Indents, impl FnOnce() -> Indents>) -> Option<String> {
    let inserted_with = |byte| wanted.hunk.inserts().any(|line| is_indented_with(byte, line.text));
    if inserted_with(b'\t') && !file.tabs && file.spaces {
        return Some("it inserts lines indented with tabs, but the file's are indented with spaces".to_owned());
    }
    (inserted_with(b' ') && !file.spaces && file.tabs)
        .then(|| "it inserts lines indented with spaces, but the file's are indented with tabs".to_owned())
}

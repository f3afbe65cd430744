//! Warnings about a hunk that is applied although its author may have meant something else.

use super::candidate::{Candidate, ContextFault, PreparedHunk};
use super::select::belongs_at_file_end;
use super::{Counts, LineKind};
use crate::explain::display_line;
use crate::indent::IndentChange;
use crate::lines::{Line, has_text};
use std::cell::LazyCell;

/// Which characters indent lines of a file.
pub(super) struct IndentStyle {
    tabs: bool,
    spaces: bool,
}

impl IndentStyle {
    pub fn new(file: &[Line]) -> Self {
        let has = |byte| file.iter().any(|line| is_indented_with(byte, line.body));
        Self { tabs: has(b'\t'), spaces: has(b' ') }
    }
}

fn is_indented_with(byte: u8, body: &[u8]) -> bool {
    body.first() == Some(&byte) && has_text(body)
}

/// Returns the warnings about a hunk at its chosen position.
pub(super) fn warnings_about(
    file: &[Line],
    prepared: &PreparedHunk,
    candidate: &Candidate,
    indent_style: &LazyCell<IndentStyle, impl FnOnce() -> IndentStyle>,
) -> Vec<String> {
    let mut warnings = Vec::new();
    if prepared.old.is_empty() && !file.is_empty() {
        warnings.push(format!("it has no context; it was put after line {}", candidate.start));
    }
    warnings.extend(faulty_line(file, prepared, candidate));
    if may_belong_at_end(file, prepared, candidate) {
        warnings.push(format!(
            "its old lines also match at the end of the file, where a hunk without lines after its change belongs; \
             line {} was chosen because its header says so",
            candidate.start + 1
        ));
    }
    if may_lack_context(file, prepared, candidate) {
        warnings.push(format!(
            "the counts in its header are wrong, and it inserts lines at its edge, at line {}: \
             if a context line was left out there, the inserted lines are in the wrong position",
            candidate.start + 1
        ));
    }
    if candidate.indent_change == IndentChange::None {
        warnings.extend(other_indentation(prepared, indent_style));
    }
    warnings
}

/// Describes the context line in which the hunk and the file differ.
fn faulty_line(file: &[Line], prepared: &PreparedHunk, candidate: &Candidate) -> Option<String> {
    let expected = |at: usize| display_line(prepared.old[at].body.trim_ascii());
    let found = |at: usize| (candidate.start + at + 1, display_line(file[candidate.start + at].body.trim_ascii()));
    Some(match candidate.fault {
        ContextFault::None => return None,
        ContextFault::Changed(at) => {
            let (number, line) = found(at);
            format!("its context line `{}` is `{line}` in the file, at line {number}", expected(at))
        }
        ContextFault::MissingInFile(at) => format!("its context line `{}` is not in the file", expected(at)),
        ContextFault::ExtraInFile(at) => {
            let (number, line) = found(at);
            format!("it leaves out line {number} of the file, `{line}`")
        }
    })
}

/// Returns whether a hunk that matches at its line number also matches at the end of the file, where it seems to
/// belong.
fn may_belong_at_end(file: &[Line], prepared: &PreparedHunk, candidate: &Candidate) -> bool {
    let old = &prepared.old;
    let Some(start) = file.len().checked_sub(old.len()).filter(|start| *start != candidate.start) else { return false };
    let is_at_header_position =
        prepared.hunk.header_position.is_some_and(|header| header.old_start == candidate.start + 1);
    let same = || old.iter().zip(&file[start..]).all(|(old, line)| old.body == line.body);
    is_at_header_position && !old.is_empty() && belongs_at_file_end(prepared) && same()
}

/// Returns whether a hunk with wrong header counts begins or ends with inserted lines next to another line of the file:
/// a context line may be missing there.
fn may_lack_context(file: &[Line], prepared: &PreparedHunk, candidate: &Candidate) -> bool {
    let lines = &prepared.hunk.lines;
    let end = candidate.start + candidate.fault.covered(prepared.old.len());
    let inserts = |line: Option<&super::HunkLine>| line.is_some_and(|line| line.kind == LineKind::Insert);
    let at_edge = (inserts(lines.first()) && candidate.start > 0) || (inserts(lines.last()) && end < file.len());
    let has_wrong_counts = prepared.hunk.header_position.is_some_and(|header| header.counts == Counts::Wrong);
    has_wrong_counts && at_edge && !prepared.old.is_empty()
}

/// Returns a warning if inserted lines are indented with tabs and the file only with spaces, or the reverse.
fn other_indentation(
    prepared: &PreparedHunk,
    file: &LazyCell<IndentStyle, impl FnOnce() -> IndentStyle>,
) -> Option<String> {
    let inserted_with = |byte| prepared.hunk.inserted_lines().any(|line| is_indented_with(byte, line.text));
    if inserted_with(b'\t') && !file.tabs && file.spaces {
        return Some("it inserts lines indented with tabs, but the file's are indented with spaces".to_owned());
    }
    (inserted_with(b' ') && !file.spaces && file.tabs)
        .then(|| "it inserts lines indented with spaces, but the file's are indented with tabs".to_owned())
}

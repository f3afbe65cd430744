//! Builds the new content of a file: lines that no hunk touches are copied unchanged.

use super::candidate::{Candidate, ContextFault, Endings, split_ending};
use super::{Hunk, HunkLine, LineKind};
use crate::lines::{Line, LineEnding, common_ending};
use std::collections::VecDeque;

/// Builds the new content from the start to the end.
struct ContentBuilder<'a> {
    text: &'a [u8],
    file: &'a [Line<'a>],
    /// The ending that all lines of the file have.
    common_ending: Option<LineEnding>,
    out: Vec<u8>,
    /// The first line of the file that is not yet copied or deleted.
    next: usize,
    last_written: LastWritten,
}

/// The line that was written last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LastWritten {
    /// A line of the file, or nothing yet.
    FileLine,
    /// An inserted line with the ending that the patch gives it.
    InsertedAsGiven,
    /// An inserted line with the ending of the file's lines.
    InsertedAdapted,
}

/// Applies hunks at their positions, which are in order and do not overlap.
pub(super) fn splice(text: &[u8], file: &[Line], hunks: &[(&Hunk, &Candidate)]) -> Vec<u8> {
    let inserted = hunks.iter().flat_map(|(hunk, _)| hunk.inserted_lines()).map(|line| line.text.len() + 2);
    let mut builder = ContentBuilder {
        text,
        file,
        common_ending: common_ending(file.iter().map(|line| line.ending)),
        out: Vec::with_capacity(text.len() + inserted.sum::<usize>()),
        next: 0,
        last_written: LastWritten::FileLine,
    };
    for (hunk, candidate) in hunks {
        builder.apply(hunk, candidate);
    }
    builder.finish()
}

impl ContentBuilder<'_> {
    fn apply(&mut self, hunk: &Hunk, candidate: &Candidate) {
        self.copy_to(candidate.start);
        let mut deleted = VecDeque::new();
        let mut old = 0;
        let has_missing_newline = hunk.has_missing_newline();
        for line in &hunk.lines {
            if line.kind == LineKind::Insert {
                self.insert(line, candidate, deleted.pop_front(), has_missing_newline);
                continue;
            }
            if let Some(offset) = candidate.fault.offset(old) {
                let at = candidate.start + offset;
                if line.kind == LineKind::Delete {
                    self.copy_to(at);
                    deleted.push_back(self.file[at].ending);
                    self.next = at + 1;
                } else {
                    deleted.clear();
                    self.copy_to(at + 1);
                }
            }
            old += 1;
        }
        if let ContextFault::ExtraInFile(_) = candidate.fault {
            self.copy_to(candidate.start + candidate.fault.covered(old));
        }
    }

    /// Copies the file's lines up to, but without, this one.
    fn copy_to(&mut self, line: usize) {
        let Some(first) = self.file.get(self.next).filter(|_| self.next < line) else { return };
        let end = self.file[line - 1].end();
        self.end_line();
        self.out.extend_from_slice(&self.text[first.start..end]);
        self.next = line;
        self.last_written = LastWritten::FileLine;
    }

    /// Inserts a line. `deleted` is the ending of the deleted line that it replaces.
    fn insert(
        &mut self,
        line: &HunkLine,
        candidate: &Candidate,
        deleted: Option<LineEnding>,
        has_missing_newline: bool,
    ) {
        self.end_line();
        let (body, given) = split_ending(line);
        let indented = candidate.indent_change.apply_to_line(body).unwrap_or(body.into());
        self.out.extend_from_slice(&indented);
        let (ending, last_written) = match (candidate.endings, given) {
            (Endings::Same, given) => (given, LastWritten::InsertedAsGiven),
            (Endings::Different, LineEnding::Missing) => (LineEnding::Missing, LastWritten::InsertedAsGiven),
            (Endings::Different, _) => {
                let file_ending = deleted.filter(|ending| *ending != LineEnding::Missing).or(self.common_ending);
                let last_written =
                    if has_missing_newline { LastWritten::InsertedAsGiven } else { LastWritten::InsertedAdapted };
                (file_ending.unwrap_or_else(|| self.neighbour_ending()), last_written)
            }
        };
        self.out.extend_from_slice(ending.bytes());
        self.last_written = last_written;
    }

    /// Returns the ending of the line before or, if that has none, of the line after.
    fn neighbour_ending(&self) -> LineEnding {
        let neighbours = [self.next.checked_sub(1), Some(self.next)].into_iter().flatten();
        let mut endings = neighbours.filter_map(|at| self.file.get(at)).map(|line| line.ending);
        endings.find(|ending| *ending != LineEnding::Missing).unwrap_or(LineEnding::Lf)
    }

    /// Adds an ending to the last line if it has none, because another line follows.
    fn end_line(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with(b"\n") {
            let ending = self.common_ending.unwrap_or(LineEnding::Lf);
            self.out.extend_from_slice(ending.bytes());
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.copy_to(self.file.len());
        let had_no_newline = self.file.last().is_some_and(|line| line.ending == LineEnding::Missing);
        if self.last_written == LastWritten::InsertedAdapted && had_no_newline {
            let kept = self.out.strip_suffix(b"\r\n").or(self.out.strip_suffix(b"\n")).unwrap_or(&self.out).len();
            self.out.truncate(kept);
        }
        self.out
    }
}

/// Returns the content of a new file.
pub(super) fn created(hunks: &[Hunk]) -> Vec<u8> {
    let candidate = Candidate::exact(0, Endings::Same);
    let hunks: Vec<(&Hunk, &Candidate)> = hunks.iter().map(|hunk| (hunk, &candidate)).collect();
    splice(b"", &[], &hunks)
}

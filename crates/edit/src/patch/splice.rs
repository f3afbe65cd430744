//! Making the new content: what no hunk touches is copied as it stands.

use super::place::{Endings, Fault, Place, taken_apart};
use super::{Hunk, HunkLine, Role};
use crate::lines::{Ending, Line, agreed};
use std::collections::VecDeque;

/// The new content as it grows.
struct Spliced<'a> {
    text: &'a [u8],
    file: &'a [Line<'a>],
    agreed: Option<Ending>,
    out: Vec<u8>,
    /// The first line of the file not yet copied or dropped.
    next: usize,
    last: Last,
}

/// What was written last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// A line of the file, or nothing yet.
    Own,
    /// An inserted line that ends as the patch says.
    AsGiven,
    /// An inserted line that ends as the file's lines do.
    Adapted,
}

/// Applies hunks at their places, which are in order and do not overlap.
pub(super) fn splice(text: &[u8], file: &[Line], hunks: &[(&Hunk, &Place)]) -> Vec<u8> {
    let inserted: usize = hunks.iter().flat_map(|(hunk, _)| hunk.inserts()).map(|line| line.text.len() + 2).sum();
    let mut spliced = Spliced {
        text,
        file,
        agreed: agreed(file.iter().map(|line| line.ending)),
        out: Vec::with_capacity(text.len() + inserted),
        next: 0,
        last: Last::Own,
    };
    for (hunk, place) in hunks {
        spliced.apply(hunk, place);
    }
    spliced.finish()
}

impl Spliced<'_> {
    fn apply(&mut self, hunk: &Hunk, place: &Place) {
        self.copy_to(place.start);
        let mut deleted = VecDeque::new();
        let mut old = 0;
        let speaks_of_newline = hunk.speaks_of_newline();
        for line in &hunk.lines {
            if line.role == Role::Insert {
                self.insert(line, place, deleted.pop_front(), speaks_of_newline);
                continue;
            }
            if let Some(offset) = place.fault.offset(old) {
                let at = place.start + offset;
                if line.role == Role::Delete {
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
        if let Fault::Skipped(_) = place.fault {
            self.copy_to(place.start + place.fault.covered(old));
        }
    }

    /// Copies the file's lines up to this one.
    fn copy_to(&mut self, line: usize) {
        let Some(first) = self.file.get(self.next).filter(|_| self.next < line) else { return };
        let end = self.file[line - 1].end();
        self.close_line();
        self.out.extend_from_slice(&self.text[first.start..end]);
        self.next = line;
        self.last = Last::Own;
    }

    fn insert(&mut self, line: &HunkLine, place: &Place, deleted: Option<Ending>, speaks_of_newline: bool) {
        self.close_line();
        let (body, given) = taken_apart(line);
        let shifted = place.shift.line(body).unwrap_or(body.into());
        self.out.extend_from_slice(&shifted);
        let (ending, last) = match (place.endings, given) {
            (Endings::Same, given) => (given, Last::AsGiven),
            (Endings::Different, Ending::Missing) => (Ending::Missing, Last::AsGiven),
            (Endings::Different, _) => {
                let own = deleted.filter(|ending| *ending != Ending::Missing).or(self.agreed);
                let last = if speaks_of_newline { Last::AsGiven } else { Last::Adapted };
                (own.unwrap_or_else(|| self.neighbour_ending()), last)
            }
        };
        self.out.extend_from_slice(ending.bytes());
        self.last = last;
    }

    /// The ending of the line before, or of the one after.
    fn neighbour_ending(&self) -> Ending {
        let beside = [self.next.checked_sub(1), Some(self.next)].into_iter().flatten();
        let mut endings = beside.filter_map(|at| self.file.get(at)).map(|line| line.ending);
        endings.find(|ending| *ending != Ending::Missing).unwrap_or(Ending::Lf)
    }

    /// A line that was the last one and is not any more gets an ending.
    fn close_line(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with(b"\n") {
            let ending = self.agreed.unwrap_or(Ending::Lf);
            self.out.extend_from_slice(ending.bytes());
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.copy_to(self.file.len());
        let had_no_newline = self.file.last().is_some_and(|line| line.ending == Ending::Missing);
        if self.last == Last::Adapted && had_no_newline {
            let kept = self.out.strip_suffix(b"\r\n").or(self.out.strip_suffix(b"\n")).unwrap_or(&self.out).len();
            self.out.truncate(kept);
        }
        self.out
    }
}

/// The content of a new file.
pub(super) fn created(hunks: &[Hunk]) -> Vec<u8> {
    let place = Place::exact(0, Endings::Same);
    let places: Vec<(&Hunk, &Place)> = hunks.iter().map(|hunk| (hunk, &place)).collect();
    splice(b"", &[], &places)
}

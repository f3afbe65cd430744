//! The places where a hunk's lines stand, from the strictest comparison to the loosest.

use super::index::LineIndex;
use super::{Counts, Hunk, HunkLine, Newline, Role, anchor, faulty};
use crate::indent::{Shift, indent_of};
use crate::level::Level;
use crate::limits::Stop;
use crate::lines::{Ending, Line, is_solid};
use std::cell::{Cell, OnceCell};

const MOST_LOOSE_PLACES: usize = 1_000;
/// No more places of a hunk are kept than this; those nearest to its line number.
const KEPT_PLACES: usize = 200;
/// After so many steps nothing more is looked for: a second at most.
const MOST_WORK: usize = 1 << 27;
/// What keeping a place counts for, so that places do not fill the memory either.
const WORK_PER_PLACE: usize = 100;

/// A place where a hunk may be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The index of the first line it covers.
    pub start: usize,
    pub fault: Fault,
    pub level: Level,
    pub endings: Endings,
    /// What the indentation of inserted lines undergoes.
    pub shift: Shift,
}

impl Place {
    pub fn exact(start: usize, endings: Endings) -> Self {
        Self { start, fault: Fault::None, level: Level::Exact, endings, shift: Shift::None }
    }
}

/// Whether the lines of the hunk end as those of the file do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endings {
    Same,
    Different,
}

/// The one context line in which the hunk and the file differ, counted in the hunk's old lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    /// The file has another line there.
    Replaced(usize),
    /// The file lacks the line.
    Invented(usize),
    /// The file has one more line before it.
    Skipped(usize),
}

impl Fault {
    /// How far after the place's start an old line of the hunk stands in the file.
    pub fn offset(self, old: usize) -> Option<usize> {
        match self {
            Self::Invented(at) if old == at => None,
            Self::Invented(at) if old > at => Some(old - 1),
            Self::Skipped(at) if old >= at => Some(old + 1),
            _ => Some(old),
        }
    }

    /// How many lines of the file so many old lines of the hunk cover.
    pub fn covered(self, old_lines: usize) -> usize {
        match self {
            Self::None | Self::Replaced(_) => old_lines,
            Self::Invented(_) => old_lines - 1,
            Self::Skipped(_) => old_lines + 1,
        }
    }
}

/// An old line of a hunk, taken apart like a line of the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct OldLine<'a> {
    pub role: Role,
    pub body: &'a [u8],
    pub ending: Ending,
}

/// A hunk's line without its ending, and the ending.
pub(super) fn taken_apart<'a>(line: &HunkLine<'a>) -> (&'a [u8], Ending) {
    match (line.newline, line.text) {
        (Newline::Missing, body) => (body, Ending::Missing),
        (Newline::Present, [body @ .., b'\r']) => (body, Ending::CrLf),
        (Newline::Present, body) => (body, Ending::Lf),
    }
}

/// A hunk with its old lines at hand.
pub(super) struct Wanted<'h, 'a> {
    pub hunk: &'h Hunk<'a>,
    pub old: Vec<OldLine<'a>>,
}

impl<'h, 'a> Wanted<'h, 'a> {
    pub fn new(hunk: &'h Hunk<'a>) -> Self {
        let old = hunk.before().map(|line| {
            let (body, ending) = taken_apart(line);
            OldLine { role: line.role, body, ending }
        });
        Self { hunk, old: old.collect() }
    }

    pub fn bodies(&self) -> Vec<&'a [u8]> {
        self.old.iter().map(|line| line.body).collect()
    }

    /// The place at the line the hunk's header names, if every byte is as the hunk says. Where it has no old lines,
    /// there is nothing but its header to go by.
    pub fn at_claim(&self, file: &[Line]) -> Option<Place> {
        let claim = self.hunk.claim?;
        let start = claim.old_start.checked_sub(1)?;
        let end = start.checked_add(self.old.len())?;
        let here = file.get(start..end)?;
        let same = |(old, line): (&OldLine, &Line)| old.body == line.body && old.ending == line.ending;
        let is_told = !self.old.is_empty() || claim.counts == Counts::Right;
        let may_end_here = end == file.len() || !(self.hunk.speaks_of_newline() || anchor::ends_file(self));
        let may_start_here = start == 0 || !anchor::starts_file(self);
        let matches = is_told && may_start_here && may_end_here && self.old.iter().zip(here).all(same);
        matches.then(|| Place::exact(start, Endings::Same))
    }
}

/// The places of a hunk: those kept, and how many there are.
#[derive(Default)]
pub(super) struct Places {
    pub kept: Vec<Place>,
    pub total: usize,
}

/// What looking for places has cost so far. Hunks of lines that are everywhere cost as much as the file is long, each.
pub(super) struct Work<'a> {
    steps: Cell<usize>,
    pub stop: Stop<'a>,
}

impl Work<'_> {
    pub fn add(&self, steps: usize) {
        self.steps.set(self.steps.get().saturating_add(steps));
    }

    pub fn is_too_much(&self) -> bool {
        self.steps.get() > MOST_WORK || self.stop.is_set()
    }
}

/// A file with its indexes, each made when it is first needed.
pub(super) struct Indexed<'a> {
    pub lines: &'a [Line<'a>],
    pub work: Work<'a>,
    indexes: [OnceCell<LineIndex<'a>>; 4],
}

impl<'a> Indexed<'a> {
    pub fn new(lines: &'a [Line<'a>], stop: Stop<'a>) -> Self {
        let work = Work { steps: Cell::new(0), stop };
        Self { lines, work, indexes: std::array::from_fn(|_| OnceCell::new()) }
    }

    pub fn index(&self, level: Level) -> &LineIndex<'a> {
        let (slot, level) = match level {
            Level::Exact => (0, level),
            Level::TrailingWhitespace | Level::FaultyContext => (1, Level::TrailingWhitespace),
            Level::Punctuation => (2, level),
            Level::Indentation => (3, level),
        };
        self.indexes[slot].get_or_init(|| LineIndex::new(self.lines, level, self.work.stop))
    }

    /// Where these lines follow one another, as seen at a level.
    pub fn starts(&self, bodies: &[&[u8]], level: Level) -> Vec<usize> {
        let index = self.index(level);
        self.work.add(index.work_to_find(bodies));
        index.places_of(bodies)
    }

    /// The places of a hunk at one level.
    pub fn places(&self, wanted: &Wanted, level: Level) -> Places {
        if level == Level::FaultyContext {
            let kept = faulty::places(self, wanted);
            return Places { total: kept.len(), kept };
        }
        let mut starts = self.starts(&wanted.bodies(), level);
        if level == Level::Indentation {
            // Lines that are everywhere once their indentation does not count cannot be told apart.
            if starts.len() > MOST_LOOSE_PLACES {
                return Places::default();
            }
            // One that the inserted lines do not fit still makes the other ambiguous.
            starts.retain(|start| shift_at(wanted, &self.lines[*start..]).is_some());
        }
        let total = starts.len();
        let starts = nearest(&starts, wanted);
        self.work.add(starts.len() * (WORK_PER_PLACE + wanted.old.len()));
        let place = |start: &usize| {
            let here = &self.lines[*start..];
            let shift = if level == Level::Indentation { shift_at(wanted, here)? } else { Shift::None };
            let fits = |line: &HunkLine| shift.line(line.text).is_some();
            wanted.hunk.inserts().all(fits).then_some(())?;
            Some(Place { level, shift, ..Place::exact(*start, endings(wanted, here)) })
        };
        let kept: Vec<Place> = starts.iter().filter_map(place).collect();
        if kept.is_empty() {
            return Places::default();
        }
        let same = |place: &&Place| place.endings == Endings::Same;
        if level == Level::Exact && kept.len() == total && kept.iter().any(|place| same(&place)) {
            let kept: Vec<Place> = kept.iter().filter(same).cloned().collect();
            return Places { total: kept.len(), kept };
        }
        Places { kept, total }
    }
}

/// As many of the starts as are kept.
fn nearest<'s>(starts: &'s [usize], wanted: &Wanted) -> &'s [usize] {
    let Some(more) = starts.len().checked_sub(KEPT_PLACES) else { return starts };
    let claimed = wanted.hunk.claim.map_or(0, |claim| claim.old_start.saturating_sub(1));
    let from = starts.partition_point(|start| *start < claimed).saturating_sub(KEPT_PLACES / 2).min(more);
    &starts[from..from + KEPT_PLACES]
}

fn endings(wanted: &Wanted, here: &[Line]) -> Endings {
    let same = wanted.old.iter().zip(here).all(|(old, line)| old.ending == line.ending);
    if same { Endings::Same } else { Endings::Different }
}

/// The shift that explains how the hunk's indentation differs from the file's here.
fn shift_at(wanted: &Wanted, here: &[Line]) -> Option<Shift> {
    let pairs: Vec<(Role, &[u8], &[u8])> = wanted
        .old
        .iter()
        .zip(here)
        .filter(|(old, _)| is_solid(old.body))
        .map(|(old, line)| (old.role, indent_of(old.body), indent_of(line.body)))
        .collect();
    explained(wanted, &pairs)
}

fn explained(wanted: &Wanted, pairs: &[(Role, &[u8], &[u8])]) -> Option<Shift> {
    let indents: Vec<(&[u8], &[u8])> = pairs.iter().map(|(_, given, actual)| (*given, *actual)).collect();
    let uniform = Shift::explain(&indents);
    // Context lines that lost the space in front say nothing about the indentation of the rest.
    let lost_mark = pairs.iter().all(|(role, given, actual)| {
        given == actual || (*role == Role::Context && actual.strip_prefix(b" ") == Some(given))
    });
    match (uniform, lost_mark) {
        (Some(shift), false) => Some(shift),
        (None, true) => Some(Shift::None),
        (Some(shift), true) => {
            // All lines lack one space: the inserted ones tell whether these are meant to.
            let (mut like_given, mut like_file) = (0, 0);
            for line in wanted.hunk.inserts().filter(|line| is_solid(line.text)) {
                let indent = indent_of(line.text);
                let in_hunk = indents.iter().any(|(given, _)| *given == indent);
                let in_file = indents.iter().any(|(_, actual)| *actual == indent);
                match (in_hunk, in_file) {
                    (true, false) => like_given += 1,
                    (false, true) => like_file += 1,
                    _ => {}
                }
            }
            match (like_given, like_file) {
                (0, 0) if wanted.hunk.inserts().next().is_none() => Some(Shift::None),
                (0, 1..) => Some(Shift::None),
                (1.., 0) => Some(shift),
                _ => None,
            }
        }
        (None, false) => {
            // Only context differs; indented deleted lines vouch for the inserted ones.
            let mut deletes = pairs.iter().filter(|(role, _, _)| *role == Role::Delete);
            let vouched = deletes.clone().any(|(_, given, _)| !given.is_empty());
            (vouched && deletes.all(|(_, given, actual)| given == actual)).then_some(Shift::None)
        }
    }
}

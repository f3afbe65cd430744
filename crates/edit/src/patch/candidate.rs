//! Finds the positions at which a hunk may be applied, from the strictest comparison to the loosest.

use super::line_index::LineIndex;
use super::{Counts, Hunk, HunkLine, LineKind, Newline, anchor, faulty_context};
use crate::indent::{IndentChange, indent_of};
use crate::limits::StopFlag;
use crate::lines::{Line, LineEnding, has_text};
use crate::match_level::MatchLevel;
use std::cell::{Cell, OnceCell};

/// Maximum number of matches without indentation. If there are more, the lines are too common to find the right one.
const MAX_UNINDENTED_MATCHES: usize = 1_000;
/// Maximum number of candidates kept for a hunk: those nearest to its line number.
const MAX_KEPT: usize = 200;
/// Maximum number of steps spent on finding candidates for all hunks: about a second.
const MAX_WORK: usize = 1 << 27;
/// Number of steps that one candidate counts for, so that the budget also limits memory.
const WORK_PER_CANDIDATE: usize = 100;

/// A position at which a hunk may be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// Index of the first line that the hunk covers.
    pub start: usize,
    pub fault: ContextFault,
    pub level: MatchLevel,
    pub endings: Endings,
    /// How the indentation of inserted lines is changed.
    pub indent_change: IndentChange,
}

impl Candidate {
    pub fn exact(start: usize, endings: Endings) -> Self {
        Self { start, fault: ContextFault::None, level: MatchLevel::Exact, endings, indent_change: IndentChange::None }
    }
}

/// Whether the old lines of the hunk have the same endings as the lines of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endings {
    Same,
    Different,
}

/// How one context line of the hunk differs from the file, if one does. The number is an index into the hunk's old
/// lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContextFault {
    None,
    /// The file has a different line at this old line.
    Changed(usize),
    /// The file lacks this old line.
    MissingInFile(usize),
    /// The file has one more line before this old line.
    ExtraInFile(usize),
}

impl ContextFault {
    /// Returns the distance of an old line of the hunk from the candidate's start in the file; `None` if the file lacks
    /// the line.
    pub fn offset(self, old: usize) -> Option<usize> {
        match self {
            Self::MissingInFile(at) if old == at => None,
            Self::MissingInFile(at) if old > at => Some(old - 1),
            Self::ExtraInFile(at) if old >= at => Some(old + 1),
            _ => Some(old),
        }
    }

    /// Returns the number of lines of the file that this many old lines of the hunk cover.
    pub fn covered(self, old_lines: usize) -> usize {
        match self {
            Self::None | Self::Changed(_) => old_lines,
            Self::MissingInFile(_) => old_lines - 1,
            Self::ExtraInFile(_) => old_lines + 1,
        }
    }
}

/// An old line of a hunk, split like a line of the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct OldLine<'a> {
    pub kind: LineKind,
    pub body: &'a [u8],
    pub ending: LineEnding,
}

/// Splits a hunk's line into the text and the ending.
pub(super) fn split_ending<'a>(line: &HunkLine<'a>) -> (&'a [u8], LineEnding) {
    match (line.newline, line.text) {
        (Newline::Missing, body) => (body, LineEnding::Missing),
        (Newline::Present, [body @ .., b'\r']) => (body, LineEnding::CrLf),
        (Newline::Present, body) => (body, LineEnding::Lf),
    }
}

/// A hunk with its old lines split into text and ending.
pub(super) struct PreparedHunk<'h, 'a> {
    pub hunk: &'h Hunk<'a>,
    pub old: Vec<OldLine<'a>>,
}

impl<'h, 'a> PreparedHunk<'h, 'a> {
    pub fn new(hunk: &'h Hunk<'a>) -> Self {
        let old = hunk.old_lines().map(|line| {
            let (body, ending) = split_ending(line);
            OldLine { kind: line.kind, body, ending }
        });
        Self { hunk, old: old.collect() }
    }

    pub fn bodies(&self) -> Vec<&'a [u8]> {
        self.old.iter().map(|line| line.body).collect()
    }

    /// Returns the candidate at the line number in the hunk's header, if all old lines match there byte for byte. For a
    /// hunk without old lines, the line counts in the header must be right.
    pub fn at_header_position(&self, file: &[Line]) -> Option<Candidate> {
        let header = self.hunk.header_position?;
        let start = header.old_start.checked_sub(1)?;
        let end = start.checked_add(self.old.len())?;
        let here = file.get(start..end)?;
        let same = |(old, line): (&OldLine, &Line)| old.body == line.body && old.ending == line.ending;
        let is_reliable = !self.old.is_empty() || header.counts == Counts::Right;
        let may_end_here = end == file.len() || !(self.hunk.has_missing_newline() || anchor::indicates_file_end(self));
        let may_start_here = start == 0 || !anchor::indicates_file_start(self);
        let matches = is_reliable && may_start_here && may_end_here && self.old.iter().zip(here).all(same);
        matches.then(|| Candidate::exact(start, Endings::Same))
    }
}

/// The candidates of a hunk.
#[derive(Default)]
pub(super) struct Candidates {
    pub kept: Vec<Candidate>,
    /// Number of all candidates, including those not kept.
    pub total: usize,
}

/// Counts the steps spent on finding candidates. A hunk of very common lines takes as many steps as the file has lines.
pub(super) struct WorkBudget<'a> {
    steps: Cell<usize>,
    pub stop: StopFlag<'a>,
}

impl WorkBudget<'_> {
    pub fn add(&self, steps: usize) {
        self.steps.set(self.steps.get().saturating_add(steps));
    }

    pub fn is_exhausted(&self) -> bool {
        self.steps.get() > MAX_WORK || self.stop.is_set()
    }
}

/// A file with an index of its lines for each match level, built when it is first needed.
pub(super) struct IndexedFile<'a> {
    pub lines: &'a [Line<'a>],
    pub work: WorkBudget<'a>,
    indexes: [OnceCell<LineIndex<'a>>; 4],
}

impl<'a> IndexedFile<'a> {
    pub fn new(lines: &'a [Line<'a>], stop: StopFlag<'a>) -> Self {
        let work = WorkBudget { steps: Cell::new(0), stop };
        Self { lines, work, indexes: std::array::from_fn(|_| OnceCell::new()) }
    }

    pub fn index(&self, level: MatchLevel) -> &LineIndex<'a> {
        let (slot, level) = match level {
            MatchLevel::Exact => (0, level),
            MatchLevel::TrailingWhitespace | MatchLevel::FaultyContext => (1, MatchLevel::TrailingWhitespace),
            MatchLevel::Punctuation => (2, level),
            MatchLevel::Indentation => (3, level),
        };
        self.indexes[slot].get_or_init(|| LineIndex::new(self.lines, level, self.work.stop))
    }

    /// Returns the indexes in the file at which this sequence of lines begins, compared at a match level.
    pub fn starts(&self, bodies: &[&[u8]], level: MatchLevel) -> Vec<usize> {
        let index = self.index(level);
        self.work.add(index.work_to_find(bodies));
        index.find(bodies)
    }

    /// Returns the candidates of a hunk at a match level.
    pub fn candidates(&self, prepared: &PreparedHunk, level: MatchLevel) -> Candidates {
        if level == MatchLevel::FaultyContext {
            let kept = faulty_context::candidates(self, prepared);
            return Candidates { total: kept.len(), kept };
        }
        let mut starts = self.starts(&prepared.bodies(), level);
        if level == MatchLevel::Indentation {
            if starts.len() > MAX_UNINDENTED_MATCHES {
                return Candidates::default();
            }
            // Positions at which the change of indentation cannot be determined are no matches.
            starts.retain(|start| indent_change_at(prepared, &self.lines[*start..]).is_some());
        }
        // Includes the positions that the inserted lines do not fit, because they make the others ambiguous.
        let total = starts.len();
        let starts = nearest(&starts, prepared);
        self.work.add(starts.len() * (WORK_PER_CANDIDATE + prepared.old.len()));
        let candidate = |start: &usize| {
            let here = &self.lines[*start..];
            let indent_change = match level {
                MatchLevel::Indentation => indent_change_at(prepared, here)?,
                _ => IndentChange::None,
            };
            let fits = |line: &HunkLine| indent_change.apply_to_line(line.text).is_some();
            prepared.hunk.inserted_lines().all(fits).then_some(())?;
            Some(Candidate { level, indent_change, ..Candidate::exact(*start, endings(prepared, here)) })
        };
        let kept: Vec<Candidate> = starts.iter().filter_map(candidate).collect();
        if kept.is_empty() {
            return Candidates::default();
        }
        let has_same_endings = |candidate: &&Candidate| candidate.endings == Endings::Same;
        if level == MatchLevel::Exact
            && kept.len() == total
            && kept.iter().any(|candidate| has_same_endings(&candidate))
        {
            let kept: Vec<Candidate> = kept.iter().filter(has_same_endings).cloned().collect();
            return Candidates { total: kept.len(), kept };
        }
        Candidates { kept, total }
    }
}

/// Returns the [`MAX_KEPT`] starts nearest to the line number in the hunk's header, or all if there are fewer.
fn nearest<'s>(starts: &'s [usize], prepared: &PreparedHunk) -> &'s [usize] {
    let Some(excess) = starts.len().checked_sub(MAX_KEPT) else { return starts };
    let expected = prepared.hunk.header_position.map_or(0, |header| header.old_start.saturating_sub(1));
    let from = starts.partition_point(|start| *start < expected).saturating_sub(MAX_KEPT / 2).min(excess);
    &starts[from..from + MAX_KEPT]
}

fn endings(prepared: &PreparedHunk, here: &[Line]) -> Endings {
    let same = prepared.old.iter().zip(here).all(|(old, line)| old.ending == line.ending);
    if same { Endings::Same } else { Endings::Different }
}

/// Returns how the indentation of inserted lines has to change at the beginning of `here`; `None` if the hunk does not
/// match there, or the change cannot be determined.
fn indent_change_at(prepared: &PreparedHunk, here: &[Line]) -> Option<IndentChange> {
    let indents: Vec<(LineKind, &[u8], &[u8])> = prepared
        .old
        .iter()
        .zip(here)
        .filter(|(old, _)| has_text(old.body))
        .map(|(old, line)| (old.kind, indent_of(old.body), indent_of(line.body)))
        .collect();
    infer_indent_change(prepared, &indents)
}

/// Infers the change of indentation from the indentation of each old line in the hunk and in the file.
fn infer_indent_change(prepared: &PreparedHunk, old_lines: &[(LineKind, &[u8], &[u8])]) -> Option<IndentChange> {
    let indents: Vec<(&[u8], &[u8])> = old_lines.iter().map(|(_, given, actual)| (*given, *actual)).collect();
    let uniform = IndentChange::between(&indents);
    // Context lines whose diff marker (the leading space) is missing say nothing about the indentation of other lines.
    let lost_prefix = old_lines.iter().all(|(kind, given, actual)| {
        given == actual || (*kind == LineKind::Context && actual.strip_prefix(b" ") == Some(given))
    });
    match (uniform, lost_prefix) {
        (Some(change), false) => Some(change),
        (None, true) => Some(IndentChange::None),
        (Some(change), true) => {
            // All lines lack one space. The inserted lines show whether the text is indented less or the diff marker is
            // missing.
            let (mut like_given, mut like_file) = (0, 0);
            for line in prepared.hunk.inserted_lines().filter(|line| has_text(line.text)) {
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
                (0, 0) if prepared.hunk.inserted_lines().next().is_none() => Some(IndentChange::None),
                (0, 1..) => Some(IndentChange::None),
                (1.., 0) => Some(change),
                _ => None,
            }
        }
        (None, false) => {
            // If only context lines differ and indented deleted lines do not, the inserted lines are right as they are.
            let mut deleted = old_lines.iter().filter(|(kind, _, _)| *kind == LineKind::Delete);
            let has_indented = deleted.clone().any(|(_, given, _)| !given.is_empty());
            (has_indented && deleted.all(|(_, given, actual)| given == actual)).then_some(IndentChange::None)
        }
    }
}

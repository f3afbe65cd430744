//! Finds candidates at which one context line of a hunk differs from the file: the line is different
//! ([`ContextFault::Changed`]), the file lacks it ([`ContextFault::MissingInFile`]), or the file has a line that the
//! hunk lacks ([`ContextFault::ExtraInFile`]).

use super::LineKind;
use super::candidate::{Candidate, ContextFault, Endings, IndexedFile, OldLine, PreparedHunk};
use crate::indent::IndentChange;
use crate::lines::has_text;
use crate::match_level::MatchLevel;
use crate::similarity::similarity_percent;
use std::collections::HashSet;

/// Minimum number of old lines with text. With fewer lines no faulty line is ignored.
const TEXT_LINES_MIN: usize = 3;
/// Maximum number of occurrences of a line in the file that still help to find the position.
const MAX_RARE_LINE: usize = 500;
/// Minimum similarity of a mistyped line next to an insertion.
const TYPO_SIMILARITY_PERCENT: usize = 80;

/// Maximum number of faults that are considered at one start.
const MAX_FAULTS: usize = 16;

/// Where a hunk inserts lines. A fault must not make those positions ambiguous.
struct InsertionPoints {
    /// For each old line, whether lines are inserted directly before or after it.
    next_to_insertion: Vec<bool>,
    /// For each old line, and for the end, whether lines are inserted directly before it.
    insertion_before: Vec<bool>,
}

/// Returns the candidates at which all lines but one context line match, and the change does not depend on that line.
pub(super) fn candidates(file: &IndexedFile, prepared: &PreparedHunk) -> Vec<Candidate> {
    let old = &prepared.old;
    if old.iter().filter(|line| has_text(line.body)).count() < TEXT_LINES_MIN {
        return Vec::new();
    }
    let index = file.index(MatchLevel::FaultyContext);
    let ids: Vec<Option<usize>> = old.iter().map(|line| index.id(line.body)).collect();
    let missing = ids.iter().filter(|id| id.is_none()).count();
    if missing > 1 {
        return Vec::new();
    }
    let insertions = InsertionPoints::new(prepared);
    let mut seen = HashSet::new();
    let mut candidates = Vec::new();
    let starts = possible_starts(file, old, &ids);
    file.work.add(starts.len() * old.len());
    for start in starts {
        if file.work.is_exhausted() {
            return Vec::new();
        }
        for fault in faults_at(index.line_ids(), &ids, start) {
            if !is_harmless(fault, file, prepared, start, &insertions) {
                continue;
            }
            // Several faults can result in the same change at the same position, which is returned once.
            let touched: Vec<Option<usize>> =
                insertions.touched(old).map(|line| fault.offset(line).map(|offset| start + offset)).collect();
            if seen.insert(touched) {
                let endings = Endings::Different;
                candidates.push(Candidate {
                    start,
                    fault,
                    level: MatchLevel::FaultyContext,
                    endings,
                    indent_change: IndentChange::None,
                });
            }
        }
    }
    candidates
}

/// Returns the possible start lines, computed from the occurrences of the two rarest lines. At most one line is faulty,
/// so the file contains the other one. A missing or extra line before it shifts the start by one.
fn possible_starts(file: &IndexedFile, old: &[OldLine], ids: &[Option<usize>]) -> Vec<usize> {
    let index = file.index(MatchLevel::FaultyContext);
    let mut text_lines: Vec<(usize, usize)> = ids
        .iter()
        .enumerate()
        .filter(|(line, _)| has_text(old[*line].body))
        .filter_map(|(line, id)| id.map(|id| (line, id)))
        .collect();
    text_lines.sort_by_key(|(_, id)| index.count(*id));
    let mut starts: Vec<usize> = text_lines
        .iter()
        .take(2)
        .filter(|(_, id)| index.count(*id) <= MAX_RARE_LINE)
        .flat_map(|(line, id)| index.lines_with(*id).map(move |at| (at, *line)))
        .flat_map(|(at, line)| [(at + 1).checked_sub(line), at.checked_sub(line), at.checked_sub(line + 1)])
        .flatten()
        .collect();
    starts.sort_unstable();
    starts.dedup();
    starts
}

/// Returns every single fault with which the old lines match the file at `start`; nothing if there are too many.
fn faults_at(line_ids: &[usize], old_ids: &[Option<usize>], start: usize) -> Vec<ContextFault> {
    let same = |old: usize, line: usize| old_ids[old].is_some() && line_ids.get(line).copied() == old_ids[old];
    let len = old_ids.len();
    let front = (0..len).take_while(|old| same(*old, start + old)).count();
    let back = |shift: isize| {
        let line = |old: usize| (start + old).checked_add_signed(shift);
        (0..len).rev().take_while(|old| line(*old).is_some_and(|line| same(*old, line))).count()
    };
    let mut faults = Vec::new();
    if front < len && front + 1 + back(0) >= len && start + front < line_ids.len() {
        faults.push(ContextFault::Changed(front));
    }
    let last = front.min(len - 1);
    let missing_in_file = len.saturating_sub(1 + back(-1))..=last;
    let extra_in_file = len.saturating_sub(back(1)).max(1)..=last;
    // If many faults fit, the lines repeat themselves and no fault is better than another.
    if missing_in_file.clone().count() + extra_in_file.clone().count() > MAX_FAULTS {
        return Vec::new();
    }
    faults.extend(missing_in_file.map(ContextFault::MissingInFile).chain(extra_in_file.map(ContextFault::ExtraInFile)));
    faults
}

/// Returns whether the change is the same in spite of the fault.
fn is_harmless(
    fault: ContextFault,
    file: &IndexedFile,
    prepared: &PreparedHunk,
    start: usize,
    insertions: &InsertionPoints,
) -> bool {
    let old = &prepared.old;
    match fault {
        ContextFault::None => false,
        ContextFault::Changed(at) => {
            let line = file.lines[start + at].body;
            let is_typo = || line.len() >= 6 && similarity_percent(old[at].body, line) >= TYPO_SIMILARITY_PERCENT;
            old[at].kind == LineKind::Context && (!insertions.next_to_insertion[at] || is_typo())
        }
        ContextFault::MissingInFile(at) => old[at].kind == LineKind::Context && !insertions.next_to_insertion[at],
        ContextFault::ExtraInFile(at) => {
            let within_deletion = old[at - 1].kind == LineKind::Delete && old[at].kind == LineKind::Delete;
            !insertions.insertion_before[at] && !within_deletion
        }
    }
}

impl InsertionPoints {
    fn new(prepared: &PreparedHunk) -> Self {
        let len = prepared.old.len();
        let mut this = Self { next_to_insertion: vec![false; len], insertion_before: vec![false; len + 1] };
        let mut old = 0;
        for line in &prepared.hunk.lines {
            if line.kind == LineKind::Insert {
                this.insertion_before[old] = true;
            } else {
                old += 1;
            }
        }
        for gap in (0..=len).filter(|gap| this.insertion_before[*gap]) {
            for line in [gap.checked_sub(1), Some(gap)].into_iter().flatten().filter(|line| *line < len) {
                this.next_to_insertion[line] = true;
            }
        }
        this
    }

    /// Returns the old lines that are deleted or next to an insertion. Their positions in the file determine what the
    /// change does.
    fn touched<'o>(&'o self, old: &'o [OldLine]) -> impl Iterator<Item = usize> + 'o {
        (0..old.len()).filter(|line| self.next_to_insertion[*line] || old[*line].kind == LineKind::Delete)
    }
}

//! Selects one of several candidates of a hunk by what else the patch says: order, line numbers, the file's end,
//! headings.

use super::anchor::{context_around, names_line_1};
use super::candidate::{Candidate, Candidates, IndexedFile, PreparedHunk};
use super::{Counts, EndConstraint};
use crate::indent::indent_of;
use crate::lines::Line;

/// Maximum number of passes over all hunks. Each pass uses what the one before selected; more rarely select anything.
const MAX_PASSES: usize = 8;
/// Maximum distance of a heading above a candidate.
const MAX_SECTION_LINES: usize = 2_000;

/// The candidates of a hunk, and the one that was selected.
pub(super) struct Selection {
    pub candidates: Vec<Candidate>,
    /// Number of all candidates, including those not kept.
    pub total: usize,
    pub selected: Option<Candidate>,
    /// Starts of the candidates that are under the hunk's headings.
    under_headings: Vec<usize>,
    /// Why the candidate was selected, if there were several.
    pub reason: Option<&'static str>,
}

impl Selection {
    pub fn new(Candidates { kept: candidates, total }: Candidates) -> Self {
        let selected = if total == 1 { candidates.first().cloned() } else { None };
        Self { candidates, total, selected, under_headings: Vec::new(), reason: None }
    }

    /// Returns whether there are several candidates and none is selected yet.
    fn is_open(&self) -> bool {
        self.selected.is_none() && self.total > 1
    }

    fn has_all_candidates(&self) -> bool {
        self.candidates.len() == self.total
    }

    /// Selects the candidate that fits, if it is the only one.
    fn select_only(&mut self, reason: &'static str, fits: impl Fn(&Candidate) -> bool) {
        let mut fitting = self.candidates.iter().filter(|candidate| fits(candidate));
        if let (Some(candidate), None) = (fitting.next(), fitting.next()) {
            self.selected = Some(candidate.clone());
            self.reason = Some(reason);
        }
    }
}

/// The nearest hunk before or after another one whose candidate is selected.
#[derive(Clone, Copy, Default)]
struct Neighbour {
    /// The line at which it ends, if it is the one before, or starts, if it is the one after.
    edge: Option<usize>,
    /// The distance between the line number in its header and its position.
    offset: Option<i64>,
}

/// Selects a candidate for every hunk for which only one fits.
pub(super) fn select(indexed: &IndexedFile, hunks: &[PreparedHunk], all: &mut [Selection]) {
    let file = indexed.lines;
    for (hunk, selection) in hunks.iter().zip(all.iter_mut()).filter(|(_, selection)| selection.is_open()) {
        let end = |candidate: &Candidate| candidate.start + candidate.fault.covered(hunk.old.len());
        if selection.has_all_candidates() && belongs_at_file_end(hunk) {
            selection.select_only("it ends at the end of the file", |candidate| end(candidate) == file.len());
        }
        if selection.is_open() && selection.has_all_candidates() && names_line_1(hunk) {
            selection.select_only("it starts at the start of the file", |candidate| candidate.start == 0);
        }
        let headings = &hunk.hunk.headings;
        if selection.is_open() && selection.has_all_candidates() && !headings.is_empty() && !indexed.work.is_exhausted()
        {
            indexed.work.add(selection.total * MAX_SECTION_LINES.min(file.len()));
            let starts = selection.candidates.iter().map(|candidate| candidate.start);
            selection.under_headings = starts.filter(|start| is_under_headings(file, *start, headings)).collect();
        }
    }
    for _ in 0..MAX_PASSES {
        let open_before = all.iter().filter(|selection| selection.is_open()).count();
        if open_before == 0 {
            return;
        }
        let (before, after) = neighbours(hunks, all);
        let in_order = is_ascending(hunks, all);
        for (n, selection) in all.iter_mut().enumerate().filter(|(_, selection)| selection.is_open()) {
            let hunk = &hunks[n];
            let fits_order = |candidate: &Candidate| {
                let end = candidate.start + candidate.fault.covered(hunk.old.len());
                before[n].edge.is_none_or(|edge| edge <= candidate.start)
                    && after[n].edge.is_none_or(|edge| end <= edge)
            };
            if in_order && selection.has_all_candidates() {
                selection.select_only("it is the only match that keeps the order of the hunks", fits_order);
            }
            let fits_order = |candidate: &Candidate| !in_order || fits_order(candidate);
            if let (true, Some(offset)) = (selection.is_open(), common_offset(before[n], after[n])) {
                let reason = "it is as far from its line number as the neighbouring hunks";
                let fits = |candidate: &Candidate| fits_order(candidate) && offset_of(hunk, candidate) == Some(offset);
                selection.select_only(reason, fits);
            }
            if selection.is_open() {
                let under = std::mem::take(&mut selection.under_headings);
                let is_under = |candidate: &Candidate| under.binary_search(&candidate.start).is_ok();
                let fits = |candidate: &Candidate| fits_order(candidate) && is_under(candidate);
                selection.select_only("it is under the heading", fits);
                selection.under_headings = under;
            }
        }
        if all.iter().filter(|selection| selection.is_open()).count() == open_before {
            return;
        }
    }
}

/// Returns whether the patch says that a hunk belongs at the end of the file. A diff has less context after a change
/// than before it only at the end of the file.
pub(super) fn belongs_at_file_end(prepared: &PreparedHunk) -> bool {
    let (leading, trailing) = context_around(prepared);
    let has_right_counts = prepared.hunk.header_position.is_some_and(|header| header.counts == Counts::Right);
    prepared.hunk.end_constraint == EndConstraint::EndOfFile
        || prepared.hunk.has_missing_newline()
        || (has_right_counts && trailing < leading)
}

/// Returns the distance between the line number in a hunk's header and a candidate.
fn offset_of(prepared: &PreparedHunk, candidate: &Candidate) -> Option<i64> {
    let header_line = prepared.hunk.header_position?.old_start;
    Some(i64::try_from(candidate.start + 1).ok()? - i64::try_from(header_line).ok()?)
}

/// Moves hunks that have only inserted lines and a line number by the offset of the neighbouring hunks. Returns those
/// whose neighbours have different offsets.
pub(super) fn move_insertions(file: &[Line], hunks: &[PreparedHunk], all: &mut [Selection]) -> Vec<usize> {
    let (before, after) = neighbours(hunks, all);
    let mut undecided = Vec::new();
    for n in (0..all.len()).filter(|n| hunks[*n].old.is_empty() && hunks[*n].at_header_position(file).is_some()) {
        let Some(candidate) = &mut all[n].selected else { continue };
        let moved = common_offset(before[n], after[n])
            .and_then(|offset| candidate.start.checked_add_signed(isize::try_from(offset).ok()?))
            .filter(|start| *start <= file.len());
        match moved {
            Some(start) => candidate.start = start,
            None => undecided.push(n),
        }
    }
    undecided
}

/// Returns for each hunk the nearest selected one before it and after it.
fn neighbours(hunks: &[PreparedHunk], all: &[Selection]) -> (Vec<Neighbour>, Vec<Neighbour>) {
    let mut before = vec![Neighbour::default(); all.len()];
    let mut nearest = Neighbour::default();
    // A hunk that has only a line number is no evidence for the positions of others.
    let selected = |n: usize| all[n].selected.as_ref().filter(|_| !hunks[n].old.is_empty());
    for n in 0..all.len() {
        before[n] = nearest;
        if let Some(candidate) = selected(n) {
            let end = candidate.start + candidate.fault.covered(hunks[n].old.len());
            nearest = Neighbour { edge: Some(end), offset: offset_of(&hunks[n], candidate).or(nearest.offset) };
        }
    }
    let mut after = vec![Neighbour::default(); all.len()];
    nearest = Neighbour::default();
    for n in (0..all.len()).rev() {
        after[n] = nearest;
        if let Some(candidate) = selected(n) {
            let offset = offset_of(&hunks[n], candidate).or(nearest.offset);
            nearest = Neighbour { edge: Some(candidate.start), offset };
        }
    }
    (before, after)
}

/// Returns whether the hunks selected so far are in the same order as in the patch.
fn is_ascending(hunks: &[PreparedHunk], all: &[Selection]) -> bool {
    let with_old_lines = hunks.iter().zip(all).filter(|(hunk, _)| !hunk.old.is_empty());
    let selected = with_old_lines.filter_map(|(_, selection)| selection.selected.as_ref());
    selected.map(|candidate| candidate.start).is_sorted()
}

/// Returns the offset that the neighbours on both sides have; 0 if there are none, and `None` if they differ.
fn common_offset(before: Neighbour, after: Neighbour) -> Option<i64> {
    match (before.offset, after.offset) {
        (Some(before), Some(after)) => (before == after).then_some(before),
        (Some(only), None) | (None, Some(only)) => Some(only),
        (None, None) => Some(0),
    }
}

/// Returns whether a line is in the section that the headings name.
///
/// It is if it is below a line that starts with the last heading, without another line of the same kind in between, and
/// if that line is in turn below the one of the heading before.
pub(super) fn is_under_headings(file: &[Line], start: usize, headings: &[&[u8]]) -> bool {
    let mut end = start + 1;
    for (nth, heading) in headings.iter().rev().enumerate() {
        // The last heading may be the first line of the hunk itself, but two headings are never the same line.
        let above = if nth == 0 { end } else { end - 1 };
        let is_heading = |line: &Line| line.body.trim_ascii_start().starts_with(heading.trim_ascii());
        let from = above.saturating_sub(MAX_SECTION_LINES);
        let Some(at) = file[from..above].iter().rposition(is_heading).map(|at| from + at) else { return false };
        let (indent, word) = (indent_of(file[at].body).len(), first_word(file[at].body));
        let is_same_kind = |line: &Line| {
            let body = line.body;
            !word.is_empty() && indent_of(body).len() <= indent && first_word(body) == word
        };
        if file[at + 1..end.max(at + 1)].iter().any(is_same_kind) {
            return false;
        }
        end = at + 1;
    }
    true
}

fn first_word(body: &[u8]) -> &[u8] {
    let text = body.trim_ascii_start();
    let len = text.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
    &text[..len]
}

#[cfg(test)]
#[path = "select_tests.rs"]
mod tests;

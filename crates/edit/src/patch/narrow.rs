//! Choosing among several places of a hunk by what else the patch says: order, line numbers, the file's end, headings.

use super::anchor::{context_around, names_line_1};
use super::place::{Indexed, Place, Places, Wanted};
use super::{Counts, Reach};
use crate::indent::indent_of;
use crate::lines::Line;

/// Each round decides hunks by what the round before decided; more rounds than this bring nothing new in practice.
const ROUNDS: usize = 8;
/// A heading is sought this far above a place.
const SECTION_LINES: usize = 2_000;

/// The places of a hunk that are still possible.
pub(super) struct Candidates {
    pub places: Vec<Place>,
    /// How many there were before any were ruled out.
    pub total: usize,
    pub chosen: Option<Place>,
    /// The starts of the places that lie under the hunk's headings.
    under_headings: Vec<usize>,
    /// Why the chosen one was taken where there were several.
    pub reason: Option<&'static str>,
}

impl Candidates {
    pub fn new(Places { kept: places, total }: Places) -> Self {
        let chosen = if total == 1 { places.first().cloned() } else { None };
        Self { places, total, chosen, under_headings: Vec::new(), reason: None }
    }

    fn is_open(&self) -> bool {
        self.chosen.is_none() && self.total > 1
    }

    fn are_all_kept(&self) -> bool {
        self.places.len() == self.total
    }

    /// Takes the only place that fits, if there is only one.
    fn choose(&mut self, reason: &'static str, fits: impl Fn(&Place) -> bool) {
        let mut fitting = self.places.iter().filter(|place| fits(place));
        if let (Some(place), None) = (fitting.next(), fitting.next()) {
            self.chosen = Some(place.clone());
            self.reason = Some(reason);
        }
    }
}

/// What the hunks already placed allow for the others.
#[derive(Clone, Copy, Default)]
struct Neighbour {
    /// Where its place ends, or begins, on the side of the open hunk.
    edge: Option<usize>,
    /// How far from its line number it was placed.
    offset: Option<i64>,
}

/// Chooses a place for every hunk for which only one fits.
pub(super) fn narrow(indexed: &Indexed, wanted: &[Wanted], all: &mut [Candidates]) {
    let file = indexed.lines;
    for (hunk, candidates) in wanted.iter().zip(all.iter_mut()).filter(|(_, candidates)| candidates.is_open()) {
        let ends_at = |place: &Place| place.start + place.fault.covered(hunk.old.len());
        if candidates.are_all_kept() && reaches_end(hunk) {
            candidates.choose("it reaches the end of the file", |place| ends_at(place) == file.len());
        }
        if candidates.is_open() && candidates.are_all_kept() && names_line_1(hunk) {
            candidates.choose("it starts the file", |place| place.start == 0);
        }
        let headings = &hunk.hunk.headings;
        if candidates.is_open() && candidates.are_all_kept() && !headings.is_empty() && !indexed.work.is_too_much() {
            indexed.work.add(candidates.total * SECTION_LINES.min(file.len()));
            let starts = candidates.places.iter().map(|place| place.start);
            candidates.under_headings = starts.filter(|start| lies_under(file, *start, headings)).collect();
        }
    }
    for _ in 0..ROUNDS {
        let open_before = all.iter().filter(|candidates| candidates.is_open()).count();
        if open_before == 0 {
            return;
        }
        let (before, after) = neighbours(wanted, all);
        let in_order = is_ascending(wanted, all);
        for (n, candidates) in all.iter_mut().enumerate().filter(|(_, candidates)| candidates.is_open()) {
            let hunk = &wanted[n];
            let fits_order = |place: &Place| {
                let end = place.start + place.fault.covered(hunk.old.len());
                before[n].edge.is_none_or(|edge| edge <= place.start) && after[n].edge.is_none_or(|edge| end <= edge)
            };
            if in_order && candidates.are_all_kept() {
                candidates.choose("of all places it alone keeps the order of the hunks", fits_order);
            }
            let fits_order = |place: &Place| !in_order || fits_order(place);
            if let (true, Some(offset)) = (candidates.is_open(), common_offset(before[n], after[n])) {
                let reason = "it is as far from its line number as the hunks beside it";
                candidates.choose(reason, |place| fits_order(place) && offset_of(hunk, place) == Some(offset));
            }
            if candidates.is_open() {
                let under = std::mem::take(&mut candidates.under_headings);
                let lies_under = |place: &Place| under.binary_search(&place.start).is_ok();
                candidates.choose("it lies under the heading", |place| fits_order(place) && lies_under(place));
                candidates.under_headings = under;
            }
        }
        if all.iter().filter(|candidates| candidates.is_open()).count() == open_before {
            return;
        }
    }
}

/// Whether the patch says that a hunk goes to the file's end. A diff has less context after a change than before it
/// only where the file ends.
pub(super) fn reaches_end(wanted: &Wanted) -> bool {
    let (leading, trailing) = context_around(wanted);
    let cut_short = wanted.hunk.claim.is_some_and(|claim| claim.counts == Counts::Right) && trailing < leading;
    wanted.hunk.reach == Reach::EndOfFile || wanted.hunk.speaks_of_newline() || cut_short
}

fn offset_of(wanted: &Wanted, place: &Place) -> Option<i64> {
    let claimed = wanted.hunk.claim?.old_start;
    Some(i64::try_from(place.start + 1).ok()? - i64::try_from(claimed).ok()?)
}

/// Moves the insertions that nothing but a line number places as far as the hunks beside them were moved; gives those
/// that lie between hunks that were moved differently.
pub(super) fn move_insertions(file: &[Line], wanted: &[Wanted], all: &mut [Candidates]) -> Vec<usize> {
    let (before, after) = neighbours(wanted, all);
    let mut undecided = Vec::new();
    for n in (0..all.len()).filter(|n| wanted[*n].old.is_empty() && wanted[*n].at_claim(file).is_some()) {
        let Some(place) = &mut all[n].chosen else { continue };
        let moved = common_offset(before[n], after[n])
            .and_then(|offset| place.start.checked_add_signed(isize::try_from(offset).ok()?))
            .filter(|start| *start <= file.len());
        match moved {
            Some(start) => place.start = start,
            None => undecided.push(n),
        }
    }
    undecided
}

/// For each hunk, the nearest placed one before it and after it.
fn neighbours(wanted: &[Wanted], all: &[Candidates]) -> (Vec<Neighbour>, Vec<Neighbour>) {
    let mut before = vec![Neighbour::default(); all.len()];
    let mut nearest = Neighbour::default();
    // Where nothing but a line number tells the place, it is no evidence for others.
    let placed = |n: usize| all[n].chosen.as_ref().filter(|_| !wanted[n].old.is_empty());
    for n in 0..all.len() {
        before[n] = nearest;
        if let Some(place) = placed(n) {
            let end = place.start + place.fault.covered(wanted[n].old.len());
            nearest = Neighbour { edge: Some(end), offset: offset_of(&wanted[n], place).or(nearest.offset) };
        }
    }
    let mut after = vec![Neighbour::default(); all.len()];
    nearest = Neighbour::default();
    for n in (0..all.len()).rev() {
        after[n] = nearest;
        if let Some(place) = placed(n) {
            nearest = Neighbour { edge: Some(place.start), offset: offset_of(&wanted[n], place).or(nearest.offset) };
        }
    }
    (before, after)
}

/// Whether the hunks placed so far follow one another as in the patch.
fn is_ascending(wanted: &[Wanted], all: &[Candidates]) -> bool {
    let told = wanted.iter().zip(all).filter(|(wanted, _)| !wanted.old.is_empty());
    told.filter_map(|(_, candidates)| candidates.chosen.as_ref()).map(|place| place.start).is_sorted()
}

/// The offset that the placed hunks on both sides agree on; none moved if none is placed.
fn common_offset(before: Neighbour, after: Neighbour) -> Option<i64> {
    match (before.offset, after.offset) {
        (Some(before), Some(after)) => (before == after).then_some(before),
        (Some(only), None) | (None, Some(only)) => Some(only),
        (None, None) => Some(0),
    }
}

/// Whether a place lies in the section that the headings name: below a line that begins with the last of them, with no
/// line of the same kind in between, and that again below the one before.
pub(super) fn lies_under(file: &[Line], start: usize, headings: &[&[u8]]) -> bool {
    let mut end = start + 1;
    for (nth, heading) in headings.iter().rev().enumerate() {
        // The heading may be the first line of the hunk itself, but not of another heading's.
        let above = if nth == 0 { end } else { end - 1 };
        let names = |line: &Line| line.body.trim_ascii_start().starts_with(heading.trim_ascii());
        let from = above.saturating_sub(SECTION_LINES);
        let Some(at) = file[from..above].iter().rposition(names).map(|at| from + at) else { return false };
        let (indent, word) = (indent_of(file[at].body).len(), first_word(file[at].body));
        let is_rival = |line: &Line| {
            let body = line.body;
            !word.is_empty() && indent_of(body).len() <= indent && first_word(body) == word
        };
        if file[at + 1..end.max(at + 1)].iter().any(is_rival) {
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
#[path = "narrow_tests.rs"]
mod tests;

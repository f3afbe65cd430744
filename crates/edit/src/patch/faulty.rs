//! Places where one context line of a hunk is not as in the file: mistyped, left out or made up.

use super::place::{Endings, Fault, Indexed, Place, Wanted};
use super::{Role, place::OldLine};
use crate::indent::Shift;
use crate::level::Level;
use crate::lines::is_solid;
use crate::similarity::similarity_percent;
use std::collections::HashSet;

/// One faulty line is overlooked only if at least so many lines say something.
const SOLID_LINES: usize = 3;
/// A line that occurs more often than this does not help to find the place.
const FREQUENT: usize = 500;
/// A mistyped line next to an insertion must be this similar.
const TYPO_PERCENT: usize = 80;

/// No more explanations of one place than this are compared.
const MOST_FAULTS: usize = 16;

/// What a fault may not touch.
struct Bounds {
    /// For each old line, whether lines are inserted right before or after it.
    beside_insert: Vec<bool>,
    /// For each gap before an old line, whether lines are inserted there.
    insert_before: Vec<bool>,
}

/// The places where all lines but one context line match, and the change does not hang on that one.
pub(super) fn places(file: &Indexed, wanted: &Wanted) -> Vec<Place> {
    let old = &wanted.old;
    if old.iter().filter(|line| is_solid(line.body)).count() < SOLID_LINES {
        return Vec::new();
    }
    let index = file.index(Level::FaultyContext);
    let numbers: Vec<Option<usize>> = old.iter().map(|line| index.number(line.body)).collect();
    let missing = numbers.iter().filter(|number| number.is_none()).count();
    if missing > 1 {
        return Vec::new();
    }
    let bounds = Bounds::new(wanted);
    let mut seen = HashSet::new();
    let mut places = Vec::new();
    let starts = possible_starts(file, old, &numbers);
    file.work.add(starts.len() * old.len());
    for start in starts {
        if file.work.is_too_much() {
            return Vec::new();
        }
        for fault in faults_at(index.file(), &numbers, start) {
            if !is_harmless(fault, file, wanted, start, &bounds) {
                continue;
            }
            // The same change in the same place may be explained by several faults.
            let touched: Vec<Option<usize>> =
                bounds.touched(old).map(|line| fault.offset(line).map(|offset| start + offset)).collect();
            if seen.insert(touched) {
                let endings = Endings::Different;
                places.push(Place { start, fault, level: Level::FaultyContext, endings, shift: Shift::None });
            }
        }
    }
    places
}

/// The starts that the two rarest lines point at: at most one of them is the faulty one.
fn possible_starts(file: &Indexed, old: &[OldLine], numbers: &[Option<usize>]) -> Vec<usize> {
    let index = file.index(Level::FaultyContext);
    let mut solid: Vec<(usize, usize)> = numbers
        .iter()
        .enumerate()
        .filter(|(line, _)| is_solid(old[*line].body))
        .filter_map(|(line, number)| number.map(|number| (line, number)))
        .collect();
    solid.sort_by_key(|(_, number)| index.count(*number));
    let mut starts: Vec<usize> = solid
        .iter()
        .take(2)
        .filter(|(_, number)| index.count(*number) <= FREQUENT)
        .flat_map(|(line, number)| index.lines_with(*number).map(move |at| (at, *line)))
        .flat_map(|(at, line)| [(at + 1).checked_sub(line), at.checked_sub(line), at.checked_sub(line + 1)])
        .flatten()
        .collect();
    starts.sort_unstable();
    starts.dedup();
    starts
}

/// The single faults that would make the lines match from a start on.
fn faults_at(file: &[usize], wanted: &[Option<usize>], start: usize) -> Vec<Fault> {
    let same = |old: usize, line: usize| wanted[old].is_some() && file.get(line).copied() == wanted[old];
    let len = wanted.len();
    let front = (0..len).take_while(|old| same(*old, start + old)).count();
    let back = |shift: isize| {
        let line = |old: usize| (start + old).checked_add_signed(shift);
        (0..len).rev().take_while(|old| line(*old).is_some_and(|line| same(*old, line))).count()
    };
    let mut faults = Vec::new();
    if front < len && front + 1 + back(0) >= len && start + front < file.len() {
        faults.push(Fault::Replaced(front));
    }
    let last = front.min(len - 1);
    let invented = len.saturating_sub(1 + back(-1))..=last;
    let skipped = len.saturating_sub(back(1)).max(1)..=last;
    // Where many explanations fit, the lines repeat themselves and none is better than another.
    if invented.clone().count() + skipped.clone().count() > MOST_FAULTS {
        return Vec::new();
    }
    faults.extend(invented.map(Fault::Invented).chain(skipped.map(Fault::Skipped)));
    faults
}

fn is_harmless(fault: Fault, file: &Indexed, wanted: &Wanted, start: usize, bounds: &Bounds) -> bool {
    let old = &wanted.old;
    match fault {
        Fault::None => false,
        Fault::Replaced(at) => {
            let line = file.lines[start + at].body;
            let is_typo = || line.len() >= 6 && similarity_percent(old[at].body, line) >= TYPO_PERCENT;
            old[at].role == Role::Context && (!bounds.beside_insert[at] || is_typo())
        }
        Fault::Invented(at) => old[at].role == Role::Context && !bounds.beside_insert[at],
        Fault::Skipped(at) => {
            let within_deletion = old[at - 1].role == Role::Delete && old[at].role == Role::Delete;
            !bounds.insert_before[at] && !within_deletion
        }
    }
}

impl Bounds {
    fn new(wanted: &Wanted) -> Self {
        let len = wanted.old.len();
        let mut this = Self { beside_insert: vec![false; len], insert_before: vec![false; len + 1] };
        let mut old = 0;
        for line in &wanted.hunk.lines {
            if line.role == Role::Insert {
                this.insert_before[old] = true;
            } else {
                old += 1;
            }
        }
        for gap in (0..=len).filter(|gap| this.insert_before[*gap]) {
            for line in [gap.checked_sub(1), Some(gap)].into_iter().flatten().filter(|line| *line < len) {
                this.beside_insert[line] = true;
            }
        }
        this
    }

    /// The old lines whose places decide what the change does.
    fn touched<'o>(&'o self, old: &'o [OldLine]) -> impl Iterator<Item = usize> + 'o {
        (0..old.len()).filter(|line| self.beside_insert[*line] || old[*line].role == Role::Delete)
    }
}

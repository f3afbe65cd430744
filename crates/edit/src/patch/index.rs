//! The lines of a file by what they say, so that a stretch of them is found without comparing text.

use crate::level::Level;
use crate::limits::Stop;
use crate::lines::Line;
use std::borrow::Cow;
use std::collections::HashMap;

const NONE: usize = usize::MAX;

/// Lines that are the same at a level have the same number.
pub(super) struct LineIndex<'a> {
    level: Level,
    numbers: HashMap<Cow<'a, [u8]>, usize>,
    /// The number of each line of the file.
    file: Vec<usize>,
    /// For each number, how many lines have it and the first that does.
    groups: Vec<Group>,
    /// For each line, the next one with the same number.
    next: Vec<usize>,
}

struct Group {
    count: usize,
    first: usize,
}

impl<'a> LineIndex<'a> {
    /// The index of a file. If the work is stopped meanwhile, it is the one of an empty file.
    pub fn new(lines: &[Line<'a>], level: Level, stop: Stop) -> Self {
        let mut numbers = HashMap::with_capacity(lines.len());
        let mut groups: Vec<Group> = Vec::new();
        let (mut file, mut next) = (vec![0; lines.len()], vec![NONE; lines.len()]);
        for (at, line) in lines.iter().enumerate().rev() {
            if stop.is_set_at(at) {
                return Self { level, numbers: HashMap::new(), file: Vec::new(), groups: Vec::new(), next: Vec::new() };
            }
            let number = *numbers.entry(level.key(line.body)).or_insert(groups.len());
            if number == groups.len() {
                groups.push(Group { count: 0, first: NONE });
            }
            let group = &mut groups[number];
            file[at] = number;
            next[at] = group.first;
            *group = Group { count: group.count + 1, first: at };
        }
        Self { level, numbers, file, groups, next }
    }

    /// The number of a line; nothing if the file has none like it.
    pub fn number(&self, body: &[u8]) -> Option<usize> {
        self.numbers.get(&self.level.key(body)).copied()
    }

    /// The numbers of the file's lines, in order.
    pub fn file(&self) -> &[usize] {
        &self.file
    }

    pub fn count(&self, number: usize) -> usize {
        self.groups[number].count
    }

    /// The lines with a number, in order.
    pub fn lines_with(&self, number: usize) -> impl Iterator<Item = usize> {
        let first = Some(self.groups[number].first).filter(|at| *at != NONE);
        std::iter::successors(first, |at| Some(self.next[*at]).filter(|at| *at != NONE))
    }

    /// How many steps it takes to find these lines.
    pub fn work_to_find(&self, bodies: &[&[u8]]) -> usize {
        let rarest = bodies.iter().map(|body| self.number(body).map_or(0, |number| self.count(number))).min();
        bodies.len() + rarest.unwrap_or(0).saturating_mul(bodies.len()).min(self.file.len())
    }

    /// Where all these lines follow one another. Finding them takes time in proportion to the file at most.
    pub fn places_of(&self, bodies: &[&[u8]]) -> Vec<usize> {
        let Some(wanted) = bodies.iter().map(|body| self.number(body)).collect::<Option<Vec<_>>>() else {
            return Vec::new();
        };
        let Some((rarest, number)) = wanted.iter().copied().enumerate().min_by_key(|(_, number)| self.count(*number))
        else {
            return Vec::new();
        };
        if self.count(number).saturating_mul(wanted.len()) > self.file.len() + wanted.len() {
            return self.scan(&wanted);
        }
        let starts = self.lines_with(number).filter_map(|at| at.checked_sub(rarest));
        starts.filter(|start| self.file[*start..].starts_with(&wanted)).collect()
    }

    /// Finds a run of numbers that are all frequent, by Knuth, Morris and Pratt's method.
    fn scan(&self, wanted: &[usize]) -> Vec<usize> {
        let mut fallback = vec![0; wanted.len()];
        let mut matched = 0;
        for at in 1..wanted.len() {
            while matched > 0 && wanted[at] != wanted[matched] {
                matched = fallback[matched - 1];
            }
            matched += usize::from(wanted[at] == wanted[matched]);
            fallback[at] = matched;
        }
        let mut places = Vec::new();
        matched = 0;
        for (at, number) in self.file.iter().enumerate() {
            while matched > 0 && (matched == wanted.len() || *number != wanted[matched]) {
                matched = fallback[matched - 1];
            }
            matched += usize::from(*number == wanted[matched]);
            if matched == wanted.len() {
                places.push(at + 1 - matched);
            }
        }
        places
    }
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;

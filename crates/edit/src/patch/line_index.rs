//! An index of a file's lines by their text, which finds consecutive lines without comparing text.

use crate::limits::StopFlag;
use crate::lines::Line;
use crate::match_level::MatchLevel;
use std::borrow::Cow;
use std::collections::HashMap;

/// Marks the end of a chain of lines.
const NO_LINE: usize = usize::MAX;

/// The lines of a file as ids: lines that are equal at a match level have the same id.
pub(super) struct LineIndex<'a> {
    level: MatchLevel,
    ids: HashMap<Cow<'a, [u8]>, usize>,
    /// The id of each line of the file.
    line_ids: Vec<usize>,
    /// For each id, the lines that have it.
    by_id: Vec<IdLines>,
    /// For each line, the next one with the same id.
    next: Vec<usize>,
}

/// The lines with the same id.
struct IdLines {
    count: usize,
    first: usize,
}

impl<'a> LineIndex<'a> {
    /// Builds the index of a file. If the stop flag is set meanwhile, the index is empty.
    pub fn new(lines: &[Line<'a>], level: MatchLevel, stop: StopFlag) -> Self {
        let mut ids = HashMap::with_capacity(lines.len());
        let mut by_id: Vec<IdLines> = Vec::new();
        let (mut line_ids, mut next) = (vec![0; lines.len()], vec![NO_LINE; lines.len()]);
        for (at, line) in lines.iter().enumerate().rev() {
            if stop.is_set_at(at) {
                return Self { level, ids: HashMap::new(), line_ids: Vec::new(), by_id: Vec::new(), next: Vec::new() };
            }
            let id = *ids.entry(level.comparison_key(line.body)).or_insert(by_id.len());
            if id == by_id.len() {
                by_id.push(IdLines { count: 0, first: NO_LINE });
            }
            let entry = &mut by_id[id];
            line_ids[at] = id;
            next[at] = entry.first;
            *entry = IdLines { count: entry.count + 1, first: at };
        }
        Self { level, ids, line_ids, by_id, next }
    }

    /// Returns the id of a line; `None` if no line of the file is equal to it.
    pub fn id(&self, body: &[u8]) -> Option<usize> {
        self.ids.get(&self.level.comparison_key(body)).copied()
    }

    /// Returns the ids of the file's lines, in order.
    pub fn line_ids(&self) -> &[usize] {
        &self.line_ids
    }

    /// Returns the number of lines with an id.
    pub fn count(&self, id: usize) -> usize {
        self.by_id[id].count
    }

    /// Returns the lines with an id, in order.
    pub fn lines_with(&self, id: usize) -> impl Iterator<Item = usize> {
        let first = Some(self.by_id[id].first).filter(|at| *at != NO_LINE);
        std::iter::successors(first, |at| Some(self.next[*at]).filter(|at| *at != NO_LINE))
    }

    /// Returns the number of steps that `find` takes for these lines.
    pub fn work_to_find(&self, bodies: &[&[u8]]) -> usize {
        let rarest = bodies.iter().map(|body| self.id(body).map_or(0, |id| self.count(id))).min();
        bodies.len() + rarest.unwrap_or(0).saturating_mul(bodies.len()).min(self.line_ids.len())
    }

    /// Returns the starts at which these lines follow one another. Takes at most linear time in the length of the file.
    pub fn find(&self, bodies: &[&[u8]]) -> Vec<usize> {
        let Some(wanted) = bodies.iter().map(|body| self.id(body)).collect::<Option<Vec<_>>>() else {
            return Vec::new();
        };
        let Some((rarest, id)) = wanted.iter().copied().enumerate().min_by_key(|(_, id)| self.count(*id)) else {
            return Vec::new();
        };
        if self.count(id).saturating_mul(wanted.len()) > self.line_ids.len() + wanted.len() {
            return self.find_frequent(&wanted);
        }
        let starts = self.lines_with(id).filter_map(|at| at.checked_sub(rarest));
        starts.filter(|start| self.line_ids[*start..].starts_with(&wanted)).collect()
    }

    /// Finds consecutive ids that are all frequent, by the algorithm of Knuth, Morris and Pratt.
    fn find_frequent(&self, wanted: &[usize]) -> Vec<usize> {
        let mut fallback = vec![0; wanted.len()];
        let mut matched = 0;
        for at in 1..wanted.len() {
            while matched > 0 && wanted[at] != wanted[matched] {
                matched = fallback[matched - 1];
            }
            matched += usize::from(wanted[at] == wanted[matched]);
            fallback[at] = matched;
        }
        let mut starts = Vec::new();
        matched = 0;
        for (at, id) in self.line_ids.iter().enumerate() {
            while matched > 0 && (matched == wanted.len() || *id != wanted[matched]) {
                matched = fallback[matched - 1];
            }
            matched += usize::from(*id == wanted[matched]);
            if matched == wanted.len() {
                starts.push(at + 1 - matched);
            }
        }
        starts
    }
}

#[cfg(test)]
#[path = "line_index_tests.rs"]
mod tests;

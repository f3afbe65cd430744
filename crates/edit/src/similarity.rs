//! Finds the lines of a file that are most similar to a text that was not found.

use crate::limits::StopFlag;
use crate::lines::{Line, has_text};
use std::collections::HashMap;

/// Maximum number of lines of the wanted text that are compared.
const MAX_COMPARED_LINES: usize = 200;
/// Lines that occur more often than this in the file are not used to find the position.
const MAX_RARE_LINE: usize = 20;
/// Maximum size of a file that is searched for similar lines; that search compares every line.
const MAX_SCANNED_BYTES: usize = 1_000_000;

/// A range of lines of a file, by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineRange {
    pub start: usize,
    pub len: usize,
}

/// Returns the range of the file that is most similar to the wanted lines: the one with the most votes of lines that
/// are rare in the file and equal in both texts, or else the one with the most similar line.
pub(crate) fn most_similar_range(file: &[Line], wanted: &[&[u8]], stop: StopFlag) -> Option<LineRange> {
    let compared = &wanted[..wanted.len().min(MAX_COMPARED_LINES)];
    let start = start_by_equal_lines(file, compared, stop).or_else(|| start_by_similar_line(file, compared, stop))?;
    let len = wanted.len().min(file.len() - start);
    Some(LineRange { start, len })
}

/// Returns the start with the most votes: each line that is equal in both texts and rare in the file votes for the
/// start that its position implies.
fn start_by_equal_lines(file: &[Line], wanted: &[&[u8]], stop: StopFlag) -> Option<usize> {
    let mut occurrences: HashMap<&[u8], Vec<usize>> = HashMap::new();
    for line in wanted.iter().filter(|line| has_text(line)) {
        occurrences.insert(line.trim_ascii(), Vec::new());
    }
    for (at, line) in file.iter().enumerate() {
        if stop.is_set_at(at) {
            return None;
        }
        if let Some(occurrences) = occurrences.get_mut(line.body.trim_ascii())
            && occurrences.len() <= MAX_RARE_LINE
        {
            occurrences.push(at);
        }
    }
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (n, line) in wanted.iter().enumerate() {
        let occurrences = occurrences.get(line.trim_ascii()).filter(|occurrences| occurrences.len() <= MAX_RARE_LINE);
        for at in occurrences.into_iter().flatten() {
            *votes.entry(at.saturating_sub(n)).or_default() += 1;
        }
    }
    // Added or missing lines in between spread the votes, so votes for the neighbouring starts count half.
    let weight = |start: usize| {
        let at = |start: usize| votes.get(&start).copied().unwrap_or(0);
        2 * at(start) + at(start + 1) + start.checked_sub(1).map_or(0, at)
    };
    votes.keys().copied().max_by_key(|start| (weight(*start), usize::MAX - start))
}

/// Returns the start implied by the line of the file that is most similar to one of the first wanted lines.
fn start_by_similar_line(file: &[Line], wanted: &[&[u8]], stop: StopFlag) -> Option<usize> {
    const SCANNED_LINES: usize = 4;
    if file.last().is_none_or(|line| line.end() > MAX_SCANNED_BYTES) {
        return None;
    }
    let mut best = (0, 0);
    for (n, line) in wanted.iter().enumerate().filter(|(_, line)| has_text(line)).take(SCANNED_LINES) {
        for (at, candidate) in file.iter().enumerate() {
            if stop.is_set_at(at) {
                return None;
            }
            let percent = similarity_percent(line, candidate.body);
            if percent > best.0 {
                best = (percent, at.saturating_sub(n));
            }
        }
    }
    (best.0 >= 50).then_some(best.1)
}

/// Returns the length of the common prefix and suffix as a percentage of the longer line. Surrounding whitespace and
/// ASCII case are ignored.
pub(crate) fn similarity_percent(one: &[u8], other: &[u8]) -> usize {
    let (one, other) = (one.trim_ascii(), other.trim_ascii());
    let longest = one.len().max(other.len());
    if longest == 0 {
        return 100;
    }
    let same = |(a, b): &(&u8, &u8)| a.eq_ignore_ascii_case(b);
    let front = one.iter().zip(other).take_while(same).count();
    let back = one[front..].iter().rev().zip(other[front..].iter().rev()).take_while(same).count();
    (front + back) * 100 / longest
}

#[cfg(test)]
#[path = "similarity_tests.rs"]
mod tests;

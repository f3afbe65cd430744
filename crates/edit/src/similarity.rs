//! Where a text that is not there would most likely have been meant.

use crate::limits::Stop;
use crate::lines::{Line, is_solid};
use std::collections::HashMap;

/// No more lines of the wanted text are looked at than this.
const WANTED_LINES: usize = 200;
/// A line that stands in more places than this says nothing about where.
const RARE: usize = 20;
/// A file of more bytes is not searched line by line for something similar.
const SCANNED_BYTES: usize = 1_000_000;

/// A stretch of the file's lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub start: usize,
    pub len: usize,
}

/// The stretch of the file most like the wanted lines: the one most rare lines of theirs point at, else the one with the
/// most similar line.
pub(crate) fn nearest(file: &[Line], wanted: &[&[u8]], stop: Stop) -> Option<Region> {
    let looked_at = &wanted[..wanted.len().min(WANTED_LINES)];
    let start = most_pointed_at(file, looked_at, stop).or_else(|| most_similar(file, looked_at, stop))?;
    let len = wanted.len().min(file.len() - start);
    Some(Region { start, len })
}

fn most_pointed_at(file: &[Line], wanted: &[&[u8]], stop: Stop) -> Option<usize> {
    let mut places: HashMap<&[u8], Vec<usize>> = HashMap::new();
    for line in wanted.iter().filter(|line| is_solid(line)) {
        places.insert(line.trim_ascii(), Vec::new());
    }
    for (at, line) in file.iter().enumerate() {
        if stop.is_set_at(at) {
            return None;
        }
        if let Some(places) = places.get_mut(line.body.trim_ascii())
            && places.len() <= RARE
        {
            places.push(at);
        }
    }
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (n, line) in wanted.iter().enumerate() {
        let places = places.get(line.trim_ascii()).filter(|places| places.len() <= RARE);
        for at in places.into_iter().flatten() {
            *votes.entry(at.saturating_sub(n)).or_default() += 1;
        }
    }
    // A line or two more or less in between moves the votes apart; neighbours count half.
    let weight = |start: usize| {
        let at = |start: usize| votes.get(&start).copied().unwrap_or(0);
        2 * at(start) + at(start + 1) + start.checked_sub(1).map_or(0, at)
    };
    votes.keys().copied().max_by_key(|start| (weight(*start), usize::MAX - start))
}

fn most_similar(file: &[Line], wanted: &[&[u8]], stop: Stop) -> Option<usize> {
    const COMPARED_LINES: usize = 4;
    if file.last().is_none_or(|line| line.end() > SCANNED_BYTES) {
        return None;
    }
    let mut best = (0, 0);
    for (n, line) in wanted.iter().enumerate().filter(|(_, line)| is_solid(line)).take(COMPARED_LINES) {
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

/// How much of two lines is the same from their two ends inwards, whatever their indentation and case.
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

//! Three-way merges of texts.

use crate::diff::{LineChange, changes};
use crate::limits::StopFlag;

/// Two changes of a text that touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeConflict {
    /// The first line of `ours` that is in the way, counted from 1.
    pub line: usize,
    /// The lines of `ours` there; empty if they were removed.
    pub ours: Vec<String>,
    /// The lines that `theirs` has instead.
    pub theirs: Vec<String>,
}

/// Applies the change from `base` to `theirs` to the text `ours`, which was made from `base` too. Changes of regions that
/// overlap or touch are a conflict, unless they are the same.
pub fn merge(base: &str, ours: &str, theirs: &str, stop: StopFlag) -> Result<String, MergeConflict> {
    let our_changes = changes(base, ours, stop);
    let mut our_changes = our_changes.iter().peekable();
    let lines: Vec<&str> = base.split_inclusive('\n').collect();
    let mut merged = String::with_capacity(ours.len().max(theirs.len()));
    // The number of lines of `base` that are done.
    let mut done = 0;
    let apply = |merged: &mut String, done: &mut usize, change: &LineChange| {
        merged.extend(lines[*done..change.old_start].iter().copied());
        merged.extend(change.added.iter().copied());
        *done = change.old_start + change.removed.len();
    };
    for theirs in &changes(base, theirs, stop) {
        while let Some(ours) = our_changes.next_if(|ours| is_before(ours, theirs)) {
            apply(&mut merged, &mut done, ours);
        }
        if let Some(ours) = our_changes.peek().filter(|ours| !is_before(theirs, ours)) {
            if !is_same(ours, theirs) {
                return Err(conflict(ours, theirs));
            }
            our_changes.next();
        }
        apply(&mut merged, &mut done, theirs);
    }
    for ours in our_changes {
        apply(&mut merged, &mut done, ours);
    }
    merged.extend(lines[done..].iter().copied());
    Ok(merged)
}

/// Whether at least one line lies between two changes.
fn is_before(one: &LineChange, other: &LineChange) -> bool {
    one.old_start + one.removed.len() < other.old_start
}

fn is_same(one: &LineChange, other: &LineChange) -> bool {
    (one.old_start, &one.removed, &one.added) == (other.old_start, &other.removed, &other.added)
}

fn conflict(ours: &LineChange, theirs: &LineChange) -> MergeConflict {
    let owned = |lines: &[&str]| lines.iter().map(|line| line.trim_end_matches(['\n', '\r']).to_owned()).collect();
    MergeConflict { line: ours.new_start + 1, ours: owned(&ours.added), theirs: owned(&theirs.added) }
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;

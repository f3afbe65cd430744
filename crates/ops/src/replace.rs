//! Finding a text and putting another in its place.

use std::ops::Range;
use toolrest_core::{ErrorKind, Result, ToolError, WsPath};

/// Which occurrences of a text are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occurrences {
    /// The one there is. More than one is refused.
    Only,
    /// All there are.
    All,
}

/// Replaces occurrences of `old` by `new`, both taken literally; all other bytes stay. Gives the text and the count.
///
/// A difference in line endings alone does not keep `old` from being found, and every line keeps the ending it had.
pub fn replace(text: &str, old: &str, new: &str, which: Occurrences, path: &WsPath) -> Result<(String, usize)> {
    if old.is_empty() {
        return Err(ToolError::argument("old_string", "old_string is empty; give the text to replace"));
    }
    let mut found = find(text, old);
    if found.is_empty() && old.contains('\n') {
        found = find_across_endings(text, old);
    }
    match which {
        _ if found.is_empty() => return Err(not_found(old, path)),
        Occurrences::Only if found.len() > 1 => return Err(not_unique(text, &found, path)),
        Occurrences::Only => {}
        Occurrences::All => drop_overlapping(&mut found),
    }
    let own = own_ending(text);
    let mut out = String::with_capacity(text.len() + new.len() * found.len());
    let mut kept = 0;
    for range in &found {
        out.push_str(&text[kept..range.start]);
        push_lines(&mut out, new, &text[range.clone()], own);
        kept = range.end;
    }
    out.push_str(&text[kept..]);
    Ok((out, found.len()))
}

/// Every place where `old` occurs, overlapping ones too: `aa` in `aaa` is not unique.
fn find(text: &str, old: &str) -> Vec<Range<usize>> {
    let step = old.chars().next().map_or(1, char::len_utf8);
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find(old) {
        let start = from + at;
        found.push(start..start + old.len());
        from = start + step;
    }
    found
}

/// Every place where `old` occurs if `\n` and `\r\n` are the same.
fn find_across_endings(text: &str, old: &str) -> Vec<Range<usize>> {
    let lf = |text: &str| text.replace("\r\n", "\n");
    let (flat, old) = (lf(text), lf(old));
    // Where each dropped carriage return stood, counted in the text without them.
    let dropped: Vec<usize> = text.match_indices("\r\n").enumerate().map(|(n, (at, _))| at - n).collect();
    let back = |at: usize| at + dropped.partition_point(|&drop| drop < at);
    find(&flat, &old).into_iter().map(|range| back(range.start)..back(range.end)).collect()
}

fn drop_overlapping(found: &mut Vec<Range<usize>>) {
    let mut end = 0;
    found.retain(|range| {
        let keep = range.start >= end;
        if keep {
            end = range.end;
        }
        keep
    });
}

/// The endings of a text's lines, in order.
fn endings(text: &str) -> impl Iterator<Item = &'static str> {
    let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    lines.map(|line| if line.ends_with("\r\n") { "\r\n" } else { "\n" })
}

/// The ending that all lines of a text have, if they agree.
fn own_ending(text: &str) -> Option<&'static str> {
    let mut endings = endings(text);
    let first = endings.next()?;
    endings.all(|ending| ending == first).then_some(first)
}

/// Appends the new lines, each with the ending of the line whose place it takes; further ones with the file's own, or
/// as they were given if it has none.
fn push_lines(out: &mut String, new: &str, replaced: &str, own: Option<&'static str>) {
    let mut replaced = endings(replaced);
    for line in new.split_inclusive('\n') {
        let Some(bare) = line.strip_suffix('\n') else {
            out.push_str(line);
            continue;
        };
        let bare = bare.strip_suffix('\r').unwrap_or(bare);
        out.push_str(bare);
        out.push_str(replaced.next().or(own).unwrap_or(&line[bare.len()..]));
    }
}

fn not_found(old: &str, path: &WsPath) -> ToolError {
    let shown: String = old.chars().take(80).collect();
    let more = if shown.len() < old.len() { "…" } else { "" };
    let message = format!(
        "old_string not found in {path}: {shown:?}{more}. Read the file and copy the text exactly. Nothing was written"
    );
    ToolError::new(ErrorKind::FindNotFound, message).about("old_string")
}

fn not_unique(text: &str, found: &[Range<usize>], path: &WsPath) -> ToolError {
    const SHOWN: usize = 10;
    let mut lines = Vec::new();
    let (mut line, mut counted) = (1, 0);
    for range in found.iter().take(SHOWN) {
        line += text[counted..range.start].matches('\n').count();
        counted = range.start;
        lines.push(line.to_string());
    }
    let more = if found.len() > SHOWN { ", …" } else { "" };
    let message = format!(
        "old_string occurs {} times in {path} (lines {}{more}); add surrounding text until it is unique, or replace all. \
         Nothing was written",
        found.len(),
        lines.join(", ")
    );
    ToolError::new(ErrorKind::FindNotUnique, message).about("old_string")
}

#[cfg(test)]
#[path = "replace_tests.rs"]
mod tests;

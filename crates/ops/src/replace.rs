//! Finding a text and putting another in its place.

use memchr::memmem::Finder;
use std::borrow::Cow;
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

/// Replaces occurrences of `old` by `new`, both taken literally; all other bytes stay.
///
/// A difference in line endings alone does not keep `old` from being found, and every line keeps the ending it had,
/// unless changing the endings is all that `new` does. A result of more than `limit_bytes` is refused before it is made.
pub fn replace(
    text: &str,
    old: &str,
    new: &str,
    which: Occurrences,
    path: &WsPath,
    limit_bytes: usize,
) -> Result<String> {
    if old.is_empty() {
        return Err(ToolError::argument("old_string", "old_string is empty; give the text to replace"));
    }
    let searched = Searched::new(text, old);
    let found = match which {
        Occurrences::Only => vec![searched.only(path)?],
        Occurrences::All => searched.all(),
    };
    if found.is_empty() {
        return Err(not_found(old, path));
    }
    let as_given = with_lf(old) == with_lf(new);
    let own = own_ending(text);
    check_size(text, new, found.len(), path, limit_bytes)?;
    let mut out = String::with_capacity(text.len() + new.len());
    let mut kept = 0;
    for range in found {
        out.push_str(&text[kept..range.start]);
        if as_given {
            out.push_str(new);
        } else {
            push_lines(&mut out, new, &text[range.clone()], own);
        }
        kept = range.end;
    }
    out.push_str(&text[kept..]);
    Ok(out)
}

/// A text made ready to be searched, and the way back from what is found to where it stands.
struct Searched<'a> {
    text: &'a str,
    /// The text with `\n` at the end of every line, if what is sought spans lines.
    flat: Cow<'a, str>,
    old: Cow<'a, str>,
    /// Where each dropped carriage return stood, counted in the flat text.
    dropped: Vec<usize>,
}

impl<'a> Searched<'a> {
    fn new(text: &'a str, old: &'a str) -> Self {
        if !old.contains('\n') {
            return Self { text, flat: Cow::Borrowed(text), old: Cow::Borrowed(old), dropped: Vec::new() };
        }
        let dropped = text.match_indices("\r\n").enumerate().map(|(n, (at, _))| at - n).collect();
        Self { text, flat: with_lf(text), old: with_lf(old), dropped }
    }

    /// Where a place of the flat text stands in the text. Before a line's end it is before its carriage return.
    fn back(&self, at: usize) -> usize {
        at + self.dropped.partition_point(|&dropped| dropped < at)
    }

    fn range(&self, start: usize) -> Range<usize> {
        self.back(start)..self.back(start + self.old.len())
    }

    /// Every place, none overlapping the one before.
    fn all(&self) -> Vec<Range<usize>> {
        let finder = Finder::new(self.old.as_bytes());
        finder.find_iter(self.flat.as_bytes()).map(|start| self.range(start)).collect()
    }

    /// The one place there is. One that overlaps it counts: `aa` in `aaa` is not unique.
    fn only(&self, path: &WsPath) -> Result<Range<usize>> {
        let finder = Finder::new(self.old.as_bytes());
        let flat = self.flat.as_bytes();
        let first = finder.find(flat).ok_or_else(|| not_found(&self.old, path))?;
        let Some(second) = finder.find(&flat[first + 1..]).map(|at| first + 1 + at) else {
            return Ok(self.range(first));
        };
        let mut starts: Vec<usize> = self.all().iter().map(|range| range.start).collect();
        if starts.len() == 1 {
            starts.push(self.back(second));
        }
        Err(not_unique(self.text, &starts, path))
    }
}

fn with_lf(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) }
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

/// Refuses a result that could be too large, before any of it is made.
fn check_size(text: &str, new: &str, count: usize, path: &WsPath, limit_bytes: usize) -> Result<()> {
    // Each line that comes in may gain a carriage return.
    let most = new.len() + new.bytes().filter(|byte| *byte == b'\n').count();
    let size = count.checked_mul(most).and_then(|added| added.checked_add(text.len()));
    if size.is_some_and(|size| size <= limit_bytes) {
        return Ok(());
    }
    let message = format!(
        "The edited {path} could be larger than the limit of {limit_bytes} bytes ({count} replacements of {} bytes); \
         replace less at once. Nothing was written",
        new.len()
    );
    Err(ToolError::new(ErrorKind::PayloadTooLarge, message))
}

fn not_found(old: &str, path: &WsPath) -> ToolError {
    let shown: String = old.chars().take(80).collect();
    let more = if shown.len() < old.len() { "…" } else { "" };
    let message = format!(
        "old_string not found in {path}: {shown:?}{more}. Read the file and copy the text exactly. Nothing was written"
    );
    ToolError::new(ErrorKind::FindNotFound, message).about("old_string")
}

fn not_unique(text: &str, starts: &[usize], path: &WsPath) -> ToolError {
    const SHOWN: usize = 10;
    let mut lines = Vec::new();
    let (mut line, mut counted) = (1, 0);
    for &start in starts.iter().take(SHOWN) {
        line += text[counted..start].matches('\n').count();
        counted = start;
        lines.push(line.to_string());
    }
    let more = if starts.len() > SHOWN { ", …" } else { "" };
    let message = format!(
        "old_string occurs {} times in {path} (lines {}{more}); add surrounding text until it is unique, or replace all. \
         Nothing was written",
        starts.len(),
        lines.join(", ")
    );
    ToolError::new(ErrorKind::FindNotUnique, message).about("old_string")
}

#[cfg(test)]
#[path = "replace_tests.rs"]
mod tests;

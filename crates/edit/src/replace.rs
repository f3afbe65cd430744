//! Finding a text and putting another in its place.

mod fold;
mod looser;

use crate::error::EditError;
use crate::level::Level;
use crate::limits::{Limits, Stop};
use crate::lines::{Ending, Line, agreed, split_within};
use crate::similarity::Region;
use crate::{explain, near_miss};
use fold::Folded;
use memchr::memchr_iter;
use memchr::memmem::{self, Finder};
use std::borrow::Cow;
use std::ops::Range;

/// How a refusal calls what was sought.
const WHAT: &str = "the text";
/// In texts of more lines nothing is sought but the text itself: lines take more room than their bytes.
const MOST_LINES: usize = 2_000_000;

/// Which occurrences of a text are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The one there is. More than one is refused.
    Only,
    /// All there are.
    All,
}

/// Whether a text must be found exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leniency {
    Exact,
    /// Looser levels are tried one after the other; each counts only if it gives exactly one place.
    Fuzzy,
}

/// A text to find and the one to put in its place, both literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edit<'a> {
    pub old: &'a [u8],
    pub new: &'a [u8],
    pub which: Which,
    pub leniency: Leniency,
}

/// A text after an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    pub text: Vec<u8>,
    pub count: usize,
    pub level: Level,
}

/// A text after several edits, and for each how often and how strictly it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplacedInOrder {
    pub text: Vec<u8>,
    pub edits: Vec<(usize, Level)>,
}

/// A place in the text, and what goes there.
struct Found<'a> {
    range: Range<usize>,
    new: Cow<'a, [u8]>,
}

/// The places to replace.
enum Places<'t, 'a> {
    /// Where the text stands exactly. There may be as many as the text has bytes, so they are not collected.
    Exact(Exact<'t, 'a>),
    /// The only place where it stands at a looser level.
    Loose(Found<'a>),
}

/// Where a text stands exactly, none of the places overlapping the one before.
struct Exact<'t, 'a> {
    folded: Folded<'t>,
    old: Cow<'a, [u8]>,
    new: &'a [u8],
    count: usize,
}

impl Exact<'_, '_> {
    fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        let range = |start: usize| self.folded.start(start)..self.folded.end(start + self.old.len());
        memmem::find_iter(&self.folded.flat, &*self.old).map(range)
    }
}

impl Places<'_, '_> {
    fn count(&self) -> usize {
        match self {
            Self::Exact(exact) => exact.count,
            Self::Loose(_) => 1,
        }
    }

    fn for_each(&self, mut replace: impl FnMut(Range<usize>, &[u8])) {
        match self {
            Self::Exact(exact) => exact.ranges().for_each(|range| replace(range, exact.new)),
            Self::Loose(found) => replace(found.range.clone(), &found.new),
        }
    }

    /// The most bytes that a text of so many has when all places are replaced.
    fn most_bytes(&self, text_bytes: usize) -> usize {
        let (new, old_bytes) = match self {
            // A place has at least the bytes of what is sought: it may have carriage returns besides.
            Self::Exact(exact) => (exact.new, exact.old.len()),
            Self::Loose(found) => (&*found.new, found.range.len()),
        };
        // Each line that comes in may gain a carriage return.
        let new_bytes = new.len() + memchr_iter(b'\n', new).count();
        (text_bytes - self.count() * old_bytes).saturating_add(self.count().saturating_mul(new_bytes))
    }
}

/// Replaces occurrences of `old` by `new`; all other bytes stay.
///
/// A difference in line endings alone does not keep `old` from being found, and every line keeps the ending it had,
/// unless changing the endings is all that `new` does. A result that could be larger than the limit is refused before
/// it is made.
pub fn replace(text: &[u8], edit: &Edit, limits: Limits) -> Result<Replaced, EditError> {
    if edit.old.is_empty() {
        return Err(EditError::NothingToFind);
    }
    limits.stop.check()?;
    let found = find(text, edit, limits.stop);
    limits.stop.check()?;
    let (places, level) = found?;
    let most_bytes = places.most_bytes(text.len());
    if most_bytes > limits.bytes {
        return Err(EditError::TooLarge { limit_bytes: limits.bytes });
    }
    let as_given = with_lf(edit.old) == with_lf(edit.new);
    let own = if edit.new.contains(&b'\n') { agreed(endings(text)) } else { None };
    let mut out = Vec::with_capacity(most_bytes);
    let mut kept = 0;
    places.for_each(|range, new| {
        out.extend_from_slice(&text[kept..range.start]);
        kept = range.end;
        if as_given {
            out.extend_from_slice(new);
        } else {
            push_lines(&mut out, new, &text[range], own);
        }
    });
    out.extend_from_slice(&text[kept..]);
    Ok(Replaced { text: out, count: places.count(), level })
}

/// Applies several edits, each to the result of the one before: all of them or none.
pub fn replace_in_order(text: &[u8], edits: &[Edit], limits: Limits) -> Result<ReplacedInOrder, EditError> {
    let mut done = ReplacedInOrder { text: text.to_vec(), edits: Vec::with_capacity(edits.len()) };
    let count = edits.len();
    for (index, edit) in edits.iter().enumerate() {
        let replaced = replace(&done.text, edit, limits).map_err(|error| EditError::Edit {
            number: index + 1,
            count,
            error: Box::new(error),
        })?;
        done.text = replaced.text;
        done.edits.push((replaced.count, replaced.level));
    }
    Ok(done)
}

/// The places to replace and the level that found them.
fn find<'t, 'a>(text: &'t [u8], edit: &Edit<'a>, stop: Stop) -> Result<(Places<'t, 'a>, Level), EditError> {
    if let Some(exact) = exact_places(text, edit)? {
        return Ok((Places::Exact(exact), Level::Exact));
    }
    let (Some(lines), Some(wanted)) = (split_within(text, MOST_LINES), split_within(edit.old, MOST_LINES)) else {
        return Err(explain::not_found(WHAT, &[], &[], None, stop));
    };
    let wanted: Vec<&[u8]> = wanted.iter().map(|line| line.body).collect();
    for level in [Level::TrailingWhitespace, Level::Punctuation, Level::Indentation] {
        let Some(mut places) = looser::places(text, &lines, edit, level, stop) else { break };
        if let (Leniency::Fuzzy, 1) = (edit.leniency, places.len())
            && let Some(only) = places.pop()
        {
            return Ok((Places::Loose(only), level));
        }
        match (edit.leniency, places.as_slice()) {
            (_, []) => {}
            (Leniency::Fuzzy, several) => {
                let what = format!("{WHAT} is not there exactly; if {} does not count, it", level.overlooks());
                let spots = explain::spots(text, several.iter().map(|place| place.range.start));
                return Err(explain::not_unique(&what, &lines, &spots, several.len(), wanted.len()));
            }
            (Leniency::Exact, [place]) => {
                let start = line_at(&lines, place.range.start);
                let region = Region { start, len: wanted.len().min(lines.len() - start) };
                return Err(explain::not_found(WHAT, &lines, &wanted, Some((level, region)), stop));
            }
            // More places at this level are no fewer at the next.
            (Leniency::Exact, _) => break,
        }
    }
    if let Some(near) = near_miss::find(text, edit.old, stop) {
        return Err(explain::not_found_but_near(WHAT, &near, &wanted));
    }
    Err(explain::not_found(WHAT, &lines, &wanted, None, stop))
}

/// Every exact place; nothing if there is none. Where only one is wanted, one that overlaps it counts too: `aa` in `aaa`
/// is not unique.
fn exact_places<'t, 'a>(text: &'t [u8], edit: &Edit<'a>) -> Result<Option<Exact<'t, 'a>>, EditError> {
    // To overlook endings takes room for each line.
    if edit.old.contains(&b'\n') && memchr_iter(b'\n', text).count() < MOST_LINES {
        let found = places_in(Folded::new(text, Level::Exact), text, with_lf(edit.old), edit)?;
        // A text that ends between the two characters of an ending is there only as it is.
        if found.is_some() || !edit.old.ends_with(b"\r") {
            return Ok(found);
        }
    }
    places_in(Folded::unchanged(text), text, Cow::Borrowed(edit.old), edit)
}

fn places_in<'t, 'a>(
    folded: Folded<'t>,
    text: &[u8],
    old: Cow<'a, [u8]>,
    edit: &Edit<'a>,
) -> Result<Option<Exact<'t, 'a>>, EditError> {
    let finder = Finder::new(&*old);
    let Some(first) = finder.find(&folded.flat) else { return Ok(None) };
    let count = finder.find_iter(&folded.flat).count();
    if edit.which == Which::Only {
        let next = first + 1;
        let overlapping = finder.find(&folded.flat[next..]).map(|start| next + start);
        let starts: Vec<usize> = match (count, overlapping) {
            (1, None) => Vec::new(),
            (1, Some(overlapping)) => vec![first, overlapping],
            _ => finder.find_iter(&folded.flat).take(explain::SHOWN_PLACES).collect(),
        };
        if !starts.is_empty() {
            let lines = split_within(text, MOST_LINES).unwrap_or_default();
            let spots = explain::spots(text, starts.iter().map(|start| folded.start(*start)));
            let len = memchr_iter(b'\n', &old).count().max(1);
            return Err(explain::not_unique(WHAT, &lines, &spots, count.max(2), len));
        }
    }
    Ok(Some(Exact { folded, old, new: edit.new, count }))
}

/// The index of the line that an offset is on.
fn line_at(lines: &[Line], offset: usize) -> usize {
    lines.partition_point(|line| line.start <= offset).saturating_sub(1)
}

/// The text with `\n` at the end of each line that ends in `\r\n`.
fn with_lf(text: &[u8]) -> Cow<'_, [u8]> {
    let mut crlf = memmem::find_iter(text, b"\r\n").peekable();
    if crlf.peek().is_none() {
        return Cow::Borrowed(text);
    }
    let mut flat = Vec::with_capacity(text.len());
    let mut kept = 0;
    for at in crlf {
        flat.extend_from_slice(&text[kept..at]);
        kept = at + 1;
    }
    flat.extend_from_slice(&text[kept..]);
    Cow::Owned(flat)
}

/// The endings of a text's lines, in order.
fn endings(text: &[u8]) -> impl Iterator<Item = Ending> {
    text.split_inclusive(|byte| *byte == b'\n').map(|line| Line::new(line, 0).ending)
}

/// Appends the new lines, each with the ending of the line whose place it takes; further ones with the file's own, or
/// as they were given if it has none.
fn push_lines(out: &mut Vec<u8>, new: &[u8], replaced: &[u8], own: Option<Ending>) {
    let mut replaced = endings(replaced);
    for line in new.split_inclusive(|byte| *byte == b'\n') {
        let line = Line::new(line, 0);
        out.extend_from_slice(line.body);
        if line.ending != Ending::Missing {
            out.extend_from_slice(
                replaced.next().filter(|ending| *ending != Ending::Missing).or(own).unwrap_or(line.ending).bytes(),
            );
        }
    }
}

#[cfg(test)]
#[path = "replace_tests.rs"]
mod tests;

//! Creates unified diffs.

use crate::limits::StopFlag;
use crate::lines::lines;
use crate::patch::quoted_name;
use memchr::{memchr, memchr_iter, memrchr};
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline, group_diff_ops};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Default maximum size of a diff. A longer one is truncated.
pub const LIMIT_BYTES: usize = 256 * 1024;

/// Number of unchanged lines before and after each change.
const CONTEXT_LINES: usize = 3;
/// Maximum time to search for the shortest diff. After that a longer one is returned, which is correct as well.
const MAX_DIFF_TIME: Duration = Duration::from_millis(300);
/// Maximum number of lines that are compared; a longer differing part is omitted from the diff.
const MAX_LINES: usize = 400_000;
/// Number of bytes at the start of a content in which a NUL byte means that it is binary.
const SNIFFED_BYTES: usize = 8_000;

/// Returns the unified diff that turns `old` into `new`, with three lines of context; empty if they are equal.
///
/// `None` means that the file does not exist: the diff then creates or deletes it. For binary contents the diff is one
/// line that says so. A diff longer than [`LIMIT_BYTES`] is truncated after a hunk and says how much is omitted.
pub fn unified(path: &[u8], old: Option<&[u8]>, new: Option<&[u8]>, stop: StopFlag) -> String {
    let side = |content| Side { path, content, mode: None };
    FileChange { old: old.map(side), new: new.map(side), origin: Origin::Renamed }.unified(LIMIT_BYTES, stop)
}

/// A file before or after a change.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    pub path: &'a [u8],
    pub content: &'a [u8],
    /// The file mode, as git writes it (`100644`); `None` to leave it out of the diff.
    pub mode: Option<u32>,
}

/// How a file with a new name came from the file with the old name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Renamed,
    Copied,
}

/// The change of the content, the name and the mode of one file.
#[derive(Clone, Copy, Debug)]
pub struct FileChange<'a> {
    /// `None` if the file is created.
    pub old: Option<Side<'a>>,
    /// `None` if the file is deleted.
    pub new: Option<Side<'a>>,
    /// Used only if the names differ.
    pub origin: Origin,
}

impl FileChange<'_> {
    /// Returns the change as a unified diff, truncated after `limit_bytes`. Changes of the name and the mode are in
    /// git's extended header.
    pub fn unified(&self, limit_bytes: usize, stop: StopFlag) -> String {
        let mut diff = self.extended_header();
        let is_same = match (self.old, self.new) {
            (Some(old), Some(new)) => old.content == new.content,
            (None, None) => true,
            _ => false,
        };
        if is_same {
            return diff;
        }
        let name = |side: Option<Side>, prefix| {
            side.map_or_else(|| "/dev/null".to_owned(), |side| quoted_name(prefix, side.path))
        };
        let (old_name, new_name) = (name(self.old, "a/"), name(self.new, "b/"));
        let old = self.old.map(|old| old.content).unwrap_or_default();
        let new = self.new.map(|new| new.content).unwrap_or_default();
        let (Some(old), Some(new)) = (as_text(old), as_text(new)) else {
            _ = writeln!(diff, "Binary files {} and {} differ", old_name.trim_end(), new_name.trim_end());
            return diff;
        };
        _ = write!(diff, "--- {old_name}\n+++ {new_name}\n");
        push_hunks(&mut diff, old, new, limit_bytes, stop);
        diff
    }

    /// Returns git's header lines about names and modes; empty if neither changes.
    fn extended_header(&self) -> String {
        let (old_mode, new_mode) = (self.old.and_then(|old| old.mode), self.new.and_then(|new| new.mode));
        let path = |side: Option<Side>, other: Option<Side>, prefix| {
            side.or(other).map(|side| quoted_name(prefix, side.path).trim_end().to_owned()).unwrap_or_default()
        };
        let renamed = match (self.old, self.new) {
            (Some(old), Some(new)) if old.path != new.path => Some((old.path, new.path)),
            _ => None,
        };
        if renamed.is_none() && old_mode == new_mode {
            return String::new();
        }
        let mut header = format!("diff --git {} {}\n", path(self.old, self.new, "a/"), path(self.new, self.old, "b/"));
        _ = match (self.old, self.new, old_mode, new_mode) {
            (None, _, _, Some(mode)) => writeln!(header, "new file mode {mode:06o}"),
            (_, None, Some(mode), _) => writeln!(header, "deleted file mode {mode:06o}"),
            (_, _, Some(old), Some(new)) if old != new => writeln!(header, "old mode {old:06o}\nnew mode {new:06o}"),
            _ => Ok(()),
        };
        if let Some((from, to)) = renamed {
            let verb = if self.origin == Origin::Copied { "copy" } else { "rename" };
            let (from, to) = (quoted_name("", from), quoted_name("", to));
            _ = writeln!(
                header,
                "{verb} from {}\n{verb} to {}",
                from.trim_end_matches('\t'),
                to.trim_end_matches('\t')
            );
        }
        header
    }
}

/// Consecutive lines that differ between two texts. Lines have their endings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineChange<'t> {
    /// The index of the first old line, or of the line before which new ones are inserted, counted from 0.
    pub old_start: usize,
    /// The index of the first new line, or of the line before which old ones were removed, counted from 0.
    pub new_start: usize,
    /// The old lines.
    pub removed: Vec<&'t str>,
    /// The new lines.
    pub added: Vec<&'t str>,
}

/// Returns the lines that differ between two texts, in order.
pub fn changes<'t>(old: &'t str, new: &'t str, stop: StopFlag) -> Vec<LineChange<'t>> {
    let DifferingPart { old, new, lines_before, .. } = DifferingPart::new(old, new);
    let (old, new) = (lines_of(old), lines_of(new));
    let change = |old_range: Range<usize>, new_range: Range<usize>| LineChange {
        old_start: lines_before + old_range.start,
        new_start: lines_before + new_range.start,
        removed: old[old_range].to_vec(),
        added: new[new_range].to_vec(),
    };
    if old.len().max(new.len()) > MAX_LINES {
        return vec![change(0..old.len(), 0..new.len())];
    }
    let differs = |op: &DiffOp| !matches!(op, DiffOp::Equal { .. });
    let ops = diff_lines(&old, &new, stop);
    ops.iter().filter(|op| differs(op)).map(|op| change(op.old_range(), op.new_range())).collect()
}

/// Appends the hunks that turn `old` into `new`.
fn push_hunks(diff: &mut String, old: &str, new: &str, limit_bytes: usize, stop: StopFlag) {
    if stop.is_set() {
        return;
    }
    let DifferingPart { old, new, lines_before, context } = DifferingPart::new(old, new);
    let mut omitted = OmittedCounts::default();
    let line_count = |text: &str| memchr_iter(b'\n', text.as_bytes()).count();
    let (old_count, new_count) = (line_count(old), line_count(new));
    if old_count.max(new_count) > MAX_LINES {
        omitted = OmittedCounts { hunks: 1, lines: old_count + new_count };
    } else {
        let (old, new) = (lines_of(old), lines_of(new));
        for ops in &group_diff_ops(diff_with_context(&old, &new, &context, stop), CONTEXT_LINES) {
            if stop.is_set() {
                return;
            }
            let header = hunk_header(ops, lines_before);
            let HunkSize { bytes, lines } = HunkSize::of(&header, ops, &old, &new);
            if omitted.hunks > 0 || diff.len() + bytes > limit_bytes {
                omitted.hunks += 1;
                omitted.lines += lines;
            } else {
                push_hunk(diff, &header, ops, &old, &new);
            }
        }
    }
    if omitted.hunks > 0 {
        _ = writeln!(diff, "# the diff is cut: {} more hunks of {} lines are left out", omitted.hunks, omitted.lines);
    }
}

/// The part of two texts in which they differ: without the lines that they share at their starts and ends, except for
/// the context lines.
struct DifferingPart<'t> {
    old: &'t str,
    new: &'t str,
    /// Number of lines before this part.
    lines_before: usize,
    context: SharedContext,
}

/// Number of context lines at the start and at the end of a differing part; they are the same in both texts.
struct SharedContext {
    before: usize,
    after: usize,
}

impl<'t> DifferingPart<'t> {
    fn new(old: &'t str, new: &'t str) -> Self {
        let (old_bytes, new_bytes) = (old.as_bytes(), new.as_bytes());
        let mut context = SharedContext { before: 0, after: 0 };
        let same = common_prefix_len(old_bytes, new_bytes);
        let first_difference = memrchr(b'\n', &old_bytes[..same]).map_or(0, |newline| newline + 1);
        let mut start = first_difference;
        while start > 0 && context.before < CONTEXT_LINES {
            start = memrchr(b'\n', &old_bytes[..start - 1]).map_or(0, |newline| newline + 1);
            context.before += 1;
        }
        let same = common_suffix_len(&old_bytes[first_difference..], &new_bytes[first_difference..]);
        // A line is shared only if the newline before it is shared too.
        let shared = &old_bytes[old_bytes.len() - same..];
        let mut shared = memchr(b'\n', shared).map_or(&[][..], |newline| &shared[newline + 1..]);
        while !shared.is_empty() && context.after < CONTEXT_LINES {
            shared = memchr(b'\n', shared).map_or(&[], |newline| &shared[newline + 1..]);
            context.after += 1;
        }
        let end = shared.len();
        Self {
            old: &old[start..old.len() - end],
            new: &new[start..new.len() - end],
            lines_before: memchr_iter(b'\n', &old_bytes[..start]).count(),
            context,
        }
    }
}

/// Returns the number of equal bytes at the start.
fn common_prefix_len(one: &[u8], other: &[u8]) -> usize {
    const CHUNK_BYTES: usize = 4_096;
    let chunks = one.chunks_exact(CHUNK_BYTES).zip(other.chunks_exact(CHUNK_BYTES));
    let whole = CHUNK_BYTES * chunks.take_while(|(one, other)| one == other).count();
    whole + one[whole..].iter().zip(&other[whole..]).take_while(|(one, other)| one == other).count()
}

/// Returns the number of equal bytes at the end.
fn common_suffix_len(one: &[u8], other: &[u8]) -> usize {
    const CHUNK_BYTES: usize = 4_096;
    let chunks = one.rchunks_exact(CHUNK_BYTES).zip(other.rchunks_exact(CHUNK_BYTES));
    let whole = CHUNK_BYTES * chunks.take_while(|(one, other)| one == other).count();
    let rest = |text: &'_ [u8]| text.len() - whole;
    let (one, other) = (&one[..rest(one)], &other[..rest(other)]);
    whole + one.iter().rev().zip(other.iter().rev()).take_while(|(one, other)| one == other).count()
}

/// What a truncated diff lacks.
#[derive(Default)]
struct OmittedCounts {
    hunks: usize,
    lines: usize,
}

/// Returns the content as text; `None` if it is binary.
fn as_text(content: &[u8]) -> Option<&str> {
    let start = &content[..content.len().min(SNIFFED_BYTES)];
    if start.contains(&0) { None } else { str::from_utf8(content).ok() }
}

/// Returns the lines with their endings.
fn lines_of(text: &str) -> Vec<&str> {
    lines(text.as_bytes()).map(|line| &text[line.start..line.end()]).collect()
}

/// Returns the changes between two differing parts, including the context lines around them.
fn diff_with_context<'t>(old: &[&'t str], new: &[&'t str], context: &SharedContext, stop: StopFlag) -> Vec<DiffOp> {
    let between = |lines: &[&'t str]| context.before..lines.len() - context.after;
    let found = diff_lines(&old[between(old)], &new[between(new)], stop);
    let mut all = vec![DiffOp::Equal { old_index: 0, new_index: 0, len: context.before }];
    let after = DiffOp::Equal {
        old_index: between(old).end - context.before,
        new_index: between(new).end - context.before,
        len: context.after,
    };
    for op in found.into_iter().chain([after]) {
        match (all.last_mut(), shifted(op, context.before)) {
            (Some(DiffOp::Equal { len, .. }), DiffOp::Equal { len: more, .. }) => *len += more,
            (_, op) => all.push(op),
        }
    }
    all
}

/// Returns the same change, this many lines further down.
fn shifted(op: DiffOp, lines: usize) -> DiffOp {
    let (old, new) = (op.old_range(), op.new_range());
    let (old_index, new_index) = (old.start + lines, new.start + lines);
    match op {
        DiffOp::Equal { len, .. } => DiffOp::Equal { old_index, new_index, len },
        DiffOp::Delete { old_len, .. } => DiffOp::Delete { old_index, old_len, new_index },
        DiffOp::Insert { new_len, .. } => DiffOp::Insert { old_index, new_index, new_len },
        DiffOp::Replace { old_len, new_len, .. } => DiffOp::Replace { old_index, old_len, new_index, new_len },
    }
}

/// Returns the changes between two lists of lines. Each distinct line is replaced by a number, which is fast to
/// compare.
fn diff_lines<'t>(old: &[&'t str], new: &[&'t str], stop: StopFlag) -> Vec<DiffOp> {
    let mut numbers: HashMap<&'t str, usize> = HashMap::with_capacity(old.len());
    let mut numbered = |lines: &[&'t str]| -> Vec<usize> {
        let mut number = |line| {
            let next = numbers.len();
            *numbers.entry(line).or_insert(next)
        };
        let lines = lines.iter().enumerate().take_while(|(step, _)| !stop.is_set_at(*step));
        lines.map(|(_, line)| number(*line)).collect()
    };
    let (old, new) = (numbered(old), numbered(new));
    if stop.is_set() {
        return Vec::new();
    }
    capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(Instant::now() + MAX_DIFF_TIME))
}

/// The size of a hunk, counted before it is written.
struct HunkSize {
    bytes: usize,
    lines: usize,
}

impl HunkSize {
    /// Counts what [`push_hunk`] appends.
    fn of(header: &str, ops: &[DiffOp], old: &[&str], new: &[&str]) -> Self {
        let mut size = Self { bytes: header.len(), lines: 1 };
        for op in ops {
            size.add(&old[op.old_range()]);
            if !matches!(op, DiffOp::Equal { .. }) {
                size.add(&new[op.new_range()]);
            }
        }
        size
    }

    fn add(&mut self, lines: &[&str]) {
        for line in lines {
            self.bytes += 1 + line.len();
            self.lines += 1;
            if !line.ends_with('\n') {
                self.bytes += NO_NEWLINE.len();
                self.lines += 1;
            }
        }
    }
}

/// What follows a line without a newline.
const NO_NEWLINE: &str = "\n\\ No newline at end of file\n";

/// Returns the first line of a hunk.
fn hunk_header(ops: &[DiffOp], lines_before: usize) -> String {
    let span = |range: fn(&DiffOp) -> Range<usize>| {
        let (first, last) = (ops.first().map(range), ops.last().map(range));
        first.map_or(0, |range| range.start)..last.map_or(0, |range| range.end)
    };
    let (old_span, new_span) = (span(DiffOp::old_range), span(DiffOp::new_range));
    format!("@@ -{} +{} @@\n", header_range(&old_span, lines_before), header_range(&new_span, lines_before))
}

/// Appends a hunk.
fn push_hunk(diff: &mut String, header: &str, ops: &[DiffOp], old: &[&str], new: &[&str]) {
    diff.push_str(header);
    for op in ops {
        if let DiffOp::Equal { .. } = op {
            push_lines(diff, ' ', &old[op.old_range()]);
        } else {
            push_lines(diff, '-', &old[op.old_range()]);
            push_lines(diff, '+', &new[op.new_range()]);
        }
    }
}

/// Returns a range of lines as the header of a hunk has it.
fn header_range(span: &Range<usize>, lines_before: usize) -> String {
    let start = lines_before + span.start;
    match span.len() {
        // For an empty range the header has the number of the line before it.
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        len => format!("{},{len}", start + 1),
    }
}

fn push_lines(hunk: &mut String, mark: char, lines: &[&str]) {
    for line in lines {
        hunk.push(mark);
        hunk.push_str(line);
        if !line.ends_with('\n') {
            hunk.push_str(NO_NEWLINE);
        }
    }
}

#[cfg(test)]
#[path = "diff_tests.rs"]
mod tests;

//! Unified diffs of two contents.

use crate::limits::Stop;
use crate::lines::lines;
use crate::patch::quoted_name;
use memchr::{memchr, memchr_iter, memrchr};
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline, group_diff_ops};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::time::{Duration, Instant};

/// A diff is cut after this many bytes, unless another limit is given.
pub const LIMIT_BYTES: usize = 256 * 1024;

const CONTEXT_LINES: usize = 3;
/// How long the shortest diff is searched for; a longer one that is right does as well.
const SEARCHED_FOR: Duration = Duration::from_millis(300);
/// Texts that differ in more lines than this are not compared line by line.
const MOST_LINES: usize = 400_000;
/// Contents with a NUL byte among their first bytes are binary.
const SNIFFED_BYTES: usize = 8_000;

/// The unified diff that turns `old` into `new`, with three lines of context; empty if they are equal.
///
/// Nothing in place of a content means that the file is not there: the diff then creates or deletes it. Contents that
/// are no text give one line that says so. A diff beyond [`LIMIT_BYTES`] is cut after a hunk and says what is missing.
pub fn unified(path: &[u8], old: Option<&[u8]>, new: Option<&[u8]>, stop: Stop) -> String {
    let side = |content| Side { path, content, mode: None };
    FileChange { old: old.map(side), new: new.map(side), origin: Origin::Renamed }.unified(LIMIT_BYTES, stop)
}

/// A file before or after a change.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    pub path: &'a [u8],
    pub content: &'a [u8],
    /// The file mode, as git writes it (`100644`), where it matters.
    pub mode: Option<u32>,
}

/// What a file with another name before was made from that file by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Renamed,
    Copied,
}

/// The change of one file: of its content, its name and its mode.
#[derive(Clone, Copy, Debug)]
pub struct FileChange<'a> {
    /// Nothing if the file is new.
    pub old: Option<Side<'a>>,
    /// Nothing if the file is deleted.
    pub new: Option<Side<'a>>,
    /// Says how the new file came from the old one, where their names differ.
    pub origin: Origin,
}

impl FileChange<'_> {
    /// The change as a unified diff, cut after `limit_bytes`. Another name and another mode are told in git's extended
    /// header.
    pub fn unified(&self, limit_bytes: usize, stop: Stop) -> String {
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

    /// Git's lines about names and modes; nothing where neither changes.
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

/// Appends the hunks that turn one text into the other.
fn push_hunks(diff: &mut String, old: &str, new: &str, limit_bytes: usize, stop: Stop) {
    if stop.is_set() {
        return;
    }
    let Middle { old, new, lines_before, context } = Middle::of(old, new);
    let mut left_out = LeftOut::default();
    let line_count = |text: &str| memchr_iter(b'\n', text.as_bytes()).count();
    let (old_count, new_count) = (line_count(old), line_count(new));
    if old_count.max(new_count) > MOST_LINES {
        left_out = LeftOut { hunks: 1, lines: old_count + new_count };
    } else {
        let (old, new) = (lines_of(old), lines_of(new));
        for ops in &group_diff_ops(changes(&old, &new, &context, stop), CONTEXT_LINES) {
            if stop.is_set() {
                return;
            }
            let header = header(ops, lines_before);
            let HunkSize { bytes, lines } = HunkSize::of(&header, ops, &old, &new);
            if left_out.hunks > 0 || diff.len() + bytes > limit_bytes {
                left_out.hunks += 1;
                left_out.lines += lines;
            } else {
                push_hunk(diff, &header, ops, &old, &new);
            }
        }
    }
    if left_out.hunks > 0 {
        _ = writeln!(diff, "# the diff is cut: {} more hunks of {} lines are left out", left_out.hunks, left_out.lines);
    }
}

/// What is left of two texts without the lines that they share at their starts and ends, but for the context.
struct Middle<'t> {
    old: &'t str,
    new: &'t str,
    /// How many lines stand before it.
    lines_before: usize,
    context: Context,
}

/// How many lines at the start and at the end of two texts are shared context.
struct Context {
    before: usize,
    after: usize,
}

impl<'t> Middle<'t> {
    fn of(old: &'t str, new: &'t str) -> Self {
        let (old_bytes, new_bytes) = (old.as_bytes(), new.as_bytes());
        let mut context = Context { before: 0, after: 0 };
        let same = shared_start(old_bytes, new_bytes);
        let first_difference = memrchr(b'\n', &old_bytes[..same]).map_or(0, |newline| newline + 1);
        let mut start = first_difference;
        while start > 0 && context.before < CONTEXT_LINES {
            start = memrchr(b'\n', &old_bytes[..start - 1]).map_or(0, |newline| newline + 1);
            context.before += 1;
        }
        let same = shared_end(&old_bytes[first_difference..], &new_bytes[first_difference..]);
        // A shared line begins behind a newline that is shared too.
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

/// How many bytes are the same from the start on.
fn shared_start(one: &[u8], other: &[u8]) -> usize {
    const CHUNK_BYTES: usize = 4_096;
    let chunks = one.chunks_exact(CHUNK_BYTES).zip(other.chunks_exact(CHUNK_BYTES));
    let whole = CHUNK_BYTES * chunks.take_while(|(one, other)| one == other).count();
    whole + one[whole..].iter().zip(&other[whole..]).take_while(|(one, other)| one == other).count()
}

/// How many bytes are the same from the end back.
fn shared_end(one: &[u8], other: &[u8]) -> usize {
    const CHUNK_BYTES: usize = 4_096;
    let chunks = one.rchunks_exact(CHUNK_BYTES).zip(other.rchunks_exact(CHUNK_BYTES));
    let whole = CHUNK_BYTES * chunks.take_while(|(one, other)| one == other).count();
    let rest = |text: &'_ [u8]| text.len() - whole;
    let (one, other) = (&one[..rest(one)], &other[..rest(other)]);
    whole + one.iter().rev().zip(other.iter().rev()).take_while(|(one, other)| one == other).count()
}

#[derive(Default)]
struct LeftOut {
    hunks: usize,
    lines: usize,
}

fn as_text(content: &[u8]) -> Option<&str> {
    let start = &content[..content.len().min(SNIFFED_BYTES)];
    if start.contains(&0) { None } else { str::from_utf8(content).ok() }
}

/// The lines with their endings.
fn lines_of(text: &str) -> Vec<&str> {
    lines(text.as_bytes()).map(|line| &text[line.start..line.end()]).collect()
}

/// What changed between the lines of context.
fn changes<'t>(old: &[&'t str], new: &[&'t str], context: &Context, stop: Stop) -> Vec<DiffOp> {
    let between = |lines: &[&'t str]| context.before..lines.len() - context.after;
    let found = changes_of_all(&old[between(old)], &new[between(new)], stop);
    let mut all = vec![DiffOp::Equal { old_index: 0, new_index: 0, len: context.before }];
    let after = DiffOp::Equal {
        old_index: between(old).end - context.before,
        new_index: between(new).end - context.before,
        len: context.after,
    };
    for op in found.into_iter().chain([after]) {
        match (all.last_mut(), moved(op, context.before)) {
            (Some(DiffOp::Equal { len, .. }), DiffOp::Equal { len: more, .. }) => *len += more,
            (_, op) => all.push(op),
        }
    }
    all
}

/// The same change so many lines further down.
fn moved(op: DiffOp, lines: usize) -> DiffOp {
    let (old, new) = (op.old_range(), op.new_range());
    let (old_index, new_index) = (old.start + lines, new.start + lines);
    match op {
        DiffOp::Equal { len, .. } => DiffOp::Equal { old_index, new_index, len },
        DiffOp::Delete { old_len, .. } => DiffOp::Delete { old_index, old_len, new_index },
        DiffOp::Insert { new_len, .. } => DiffOp::Insert { old_index, new_index, new_len },
        DiffOp::Replace { old_len, new_len, .. } => DiffOp::Replace { old_index, old_len, new_index, new_len },
    }
}

/// What changed, found on numbers that stand for lines: comparing them costs nothing.
fn changes_of_all<'t>(old: &[&'t str], new: &[&'t str], stop: Stop) -> Vec<DiffOp> {
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
    capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(Instant::now() + SEARCHED_FOR))
}

/// How long a hunk is, told before it is written.
struct HunkSize {
    bytes: usize,
    lines: usize,
}

impl HunkSize {
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

/// Follows a line that has no newline.
const NO_NEWLINE: &str = "\n\\ No newline at end of file\n";

/// The line that a hunk begins with.
fn header(ops: &[DiffOp], lines_before: usize) -> String {
    let span = |range: fn(&DiffOp) -> Range<usize>| {
        let (first, last) = (ops.first().map(range), ops.last().map(range));
        first.map_or(0, |range| range.start)..last.map_or(0, |range| range.end)
    };
    let (old_span, new_span) = (span(DiffOp::old_range), span(DiffOp::new_range));
    format!("@@ -{} +{} @@\n", numbers(&old_span, lines_before), numbers(&new_span, lines_before))
}

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

fn numbers(span: &Range<usize>, lines_before: usize) -> String {
    let start = lines_before + span.start;
    match span.len() {
        // A span without lines is named by the line before it.
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

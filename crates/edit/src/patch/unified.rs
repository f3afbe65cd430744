//! Parses unified diffs, with git's extended headers or without.

use super::parse::PatchLines;
use super::{Blanks, Change, Content, Counts, FilePatch, Hunk, begin_patch, binary, hunk_body, hunk_header, names};
use crate::error::{EditError, truncated};

/// Suffixes of backup files, which `diff -u` is often given as the old state of a file.
const BACKUP_SUFFIXES: [&[u8]; 4] = [b".orig", b".old", b".bak", b"~"];

/// Maximum number of bytes of a refused line that a message quotes.
const MAX_QUOTED_BYTES: usize = 160;

/// The header lines of a file, before its first hunk.
#[derive(Clone, Default)]
struct FileHeader {
    old: Option<Vec<u8>>,
    new: Option<Vec<u8>>,
    renamed: (Option<Vec<u8>>, Option<Vec<u8>>),
    copied: (Option<Vec<u8>>, Option<Vec<u8>>),
    old_mode: Option<u32>,
    new_mode: Option<u32>,
}

/// Parses the files of a unified diff from a line on; returns the line at which a block of the other format starts.
pub(super) fn parse<'a>(
    lines: &PatchLines<'a>,
    start: usize,
    files: &mut Vec<FilePatch<'a>>,
) -> Result<usize, EditError> {
    let first = files.len();
    let (mut at, mut step) = (start, next_step(files));
    while let Some(line) = lines.get(at) {
        if begin_patch::starts(lines, at) {
            break;
        }
        if line.starts_with(b"@@@") {
            return Err(EditError::syntax(at + 1, "a combined diff of a merge cannot be applied; give a plain diff"));
        }
        if line.starts_with(b"diff --git ") || lines.is_file_header(at) {
            let (mut file, end) = parse_file_header(lines, at)?;
            at = end;
            file.step = step;
            if let (Content::Text(hunks), true) = (&mut file.content, lines.is_file_header(end.saturating_sub(2))) {
                at = parse_first_hunk(lines, end, hunks)?;
            }
            files.push(file);
        } else if let Some(header) = hunk_header::parse(line) {
            let Some(file) = files[first..].last_mut() else {
                return Err(EditError::syntax(at + 1, "a hunk comes before any `--- a/path`, `+++ b/path` header"));
            };
            let Content::Text(hunks) = &mut file.content else {
                return Err(EditError::syntax(at + 1, "a text hunk follows a binary patch of the same file"));
            };
            let (hunk, end) = hunk_body::parse(lines, at, &header)?;
            if hunk.lines.is_empty() {
                return Err(EditError::syntax(at + 1, "the hunk has no lines"));
            }
            check_no_lone_header(lines, &hunk, end)?;
            hunks.push(hunk);
            at = end;
        } else {
            refuse_named_only(line, at)?;
            step += usize::from(starts_commit(line) && files.len() > first);
            at += 1;
        }
    }
    Ok(at)
}

/// Returns the number of the step after those parsed so far.
pub(super) fn next_step(files: &[FilePatch]) -> usize {
    files.last().map_or(0, |file| file.step + 1)
}

/// Returns whether the next commit of a series starts here: a mail, or the output of `git log`.
fn starts_commit(line: &[u8]) -> bool {
    let id = line.strip_prefix(b"From ").or(line.strip_prefix(b"commit ")).unwrap_or_default();
    id.len() >= 40 && id[..40].iter().all(u8::is_ascii_hexdigit)
}

/// Parses the first hunk if it has no header. Refuses a file header that is not followed by a hunk.
fn parse_first_hunk<'a>(lines: &PatchLines<'a>, at: usize, hunks: &mut Vec<Hunk<'a>>) -> Result<usize, EditError> {
    match lines.get(at) {
        Some([b'@', b'@', ..]) => Ok(at),
        Some([b' ' | b'+' | b'-', ..]) if !lines.starts_file(at) => {
            let (hunk, end) = hunk_body::parse_without_header(lines, at);
            check_no_lone_header(lines, &hunk, end)?;
            hunks.push(hunk);
            Ok(end)
        }
        _ => Err(EditError::syntax(at + 1, "expected a hunk, which begins with `@@ -line,count +line,count @@`")),
    }
}

/// Refuses a hunk whose last line is half of the next file's header, because the other half is missing.
fn check_no_lone_header(lines: &PatchLines, hunk: &Hunk, end: usize) -> Result<(), EditError> {
    let is_counted = hunk.header_position.is_some_and(|header_position| header_position.counts == Counts::Right);
    if is_counted || !lines.is_lone_header(end - 1) {
        return Ok(());
    }
    Err(EditError::syntax(end, "a file is named by two lines, `--- a/path` and `+++ b/path`; one of them is missing"))
}

/// Refuses a line that names a change without giving it: the other files would be applied and this one dropped.
fn refuse_named_only(line: &[u8], at: usize) -> Result<(), EditError> {
    let shown = || truncated(&String::from_utf8_lossy(line), MAX_QUOTED_BYTES);
    if line.starts_with(b"Binary files ") && line.trim_ascii_end().ends_with(b" differ") {
        let problem = format!(
            "`{}`: the change of a binary file is named but not given; make the diff with `git diff --binary`",
            shown()
        );
        return Err(EditError::syntax(at + 1, problem));
    }
    if names_submodule(line) {
        let problem = format!(
            "`{}`: a submodule cannot be changed by a patch; leave it out (`git diff --ignore-submodules`)",
            shown()
        );
        return Err(EditError::syntax(at + 1, problem));
    }
    Ok(())
}

/// Whether this is a line of `git diff --submodule=log`: `Submodule path 1234567..89abcde:`.
fn names_submodule(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"Submodule ") else { return false };
    let is_commit = |text: &[u8]| text.len() >= 7 && text.iter().all(u8::is_ascii_hexdigit);
    let is_range = |word: &[u8]| {
        let word = word.strip_suffix(b":").unwrap_or(word);
        let ends = memchr::memmem::find(word, b"..").map(|dots| (&word[..dots], &word[dots + 2..]));
        ends.is_some_and(|(old, new)| is_commit(old) && is_commit(new.strip_prefix(b".").unwrap_or(new)))
    };
    rest.trim_ascii_end().ends_with(b" contains modified content") || rest.split(|byte| *byte == b' ').any(is_range)
}

/// Parses the header lines of a file, and the change of a binary file.
fn parse_file_header<'a>(lines: &PatchLines<'a>, start: usize) -> Result<(FilePatch<'a>, usize), EditError> {
    let mut header = FileHeader::default();
    let mut at = start;
    // Without a rename both names in the `diff --git` line are the same, which shows the prefixes of all names.
    let mut named = None;
    if let Some(rest) = lines.get(at).and_then(|line| line.strip_prefix(b"diff --git ")) {
        if let Some((old, new)) = names::from_git_line(rest) {
            named =
                if old == new { Some(old.clone()) } else { names::name_below_roots(&old, &new).map(<[u8]>::to_vec) };
            (header.old, header.new) = match &named {
                Some(name) => (Some(name.clone()), Some(name.clone())),
                None => names::without_prefixes(Some(old), Some(new)),
            };
        }
        at += 1;
        while lines.get(at).is_some_and(|line| header.parse_extended(line)) {
            at += 1;
        }
    }
    let mut with_blanks = None;
    if lines.is_file_header(at) {
        let mut kept = header.clone();
        kept.parse_names(lines, at, named.clone(), Blanks::PartOfName);
        with_blanks = kept.change();
        header.parse_names(lines, at, named, Blanks::MaybePadding);
        at += 2;
    }
    let line = lines.get(at).unwrap_or_default();
    let content = if line.starts_with(b"GIT binary patch") {
        let (change, end) = binary::parse(lines, at)?;
        at = end;
        Content::Binary(change)
    } else {
        refuse_named_only(line, at)?;
        Content::Text(Vec::new())
    };
    let (old_mode, new_mode) = (header.old_mode, header.new_mode);
    let trimmed = header.change().ok_or_else(|| EditError::syntax(start + 1, "the header names no file"))?;
    let (change, blanks) = match with_blanks {
        Some(change) if change != trimmed && change.trimmed() == trimmed => (change, Blanks::MaybePadding),
        _ => (trimmed, Blanks::PartOfName),
    };
    Ok((FilePatch { change, old_mode, new_mode, content, patch_line: start + 1, step: 0, blanks }, at))
}

impl FileHeader {
    /// Parses the `---` and the `+++` line.
    fn parse_names(&mut self, lines: &PatchLines, at: usize, named: Option<Vec<u8>>, blanks: Blanks) {
        let rest = |at: usize| lines.get(at).map(|line| &line[4..]).unwrap_or_default();
        let (old, new) = (names::from_header(rest(at), blanks), names::from_header(rest(at + 1), blanks));
        let (old_timestamp, new_timestamp) = (names::timestamp(rest(at)), names::timestamp(rest(at + 1)));
        let is_named = |name: &Vec<u8>| [&old, &new].into_iter().flatten().all(|side| names::is_below_root(side, name));
        // Only a tool that compares two folders writes timestamps.
        let compared = match (&old, &new, old_timestamp, new_timestamp) {
            (Some(old), Some(new), Some(_), Some(_)) => names::name_below_roots(old, new).map(<[u8]>::to_vec),
            _ => None,
        };
        (self.old, self.new) = match named.filter(is_named).or(compared) {
            Some(name) => (old.map(|_| name.clone()), new.map(|_| name)),
            None => names::without_prefixes(old, new),
        };
        // A file that exists on one side only has the timestamp 0 and no lines on the other side.
        let ranges = lines.get(at + 2).and_then(hunk_header::parse).and_then(|header| header.ranges);
        let Some(ranges) = ranges.filter(|_| self.old.is_some() && self.new.is_some()) else { return };
        if old_timestamp.is_some_and(names::is_epoch) && (ranges.old_start, ranges.old_count) == (0, 0) {
            self.old = None;
        } else if new_timestamp.is_some_and(names::is_epoch) && (ranges.new_start, ranges.new_count) == (0, 0) {
            self.new = None;
        }
    }

    /// Parses a line of git's extended header; returns false for other lines.
    fn parse_extended(&mut self, line: &[u8]) -> bool {
        let mode =
            |rest: &[u8]| str::from_utf8(rest.trim_ascii()).ok().and_then(|mode| u32::from_str_radix(mode, 8).ok());
        let name = |rest: &[u8]| Some(names::from_extended(rest));
        if let Some(rest) = line.strip_prefix(b"old mode ") {
            self.old_mode = mode(rest);
        } else if let Some(rest) = line.strip_prefix(b"new mode ") {
            self.new_mode = mode(rest);
        } else if let Some(rest) = line.strip_prefix(b"new file mode ") {
            self.new_mode = mode(rest);
            self.old = None;
        } else if let Some(rest) = line.strip_prefix(b"deleted file mode ") {
            self.old_mode = mode(rest);
            self.new = None;
        } else if let Some(rest) = line.strip_prefix(b"rename from ") {
            self.renamed.0 = name(rest);
        } else if let Some(rest) = line.strip_prefix(b"rename to ") {
            self.renamed.1 = name(rest);
        } else if let Some(rest) = line.strip_prefix(b"copy from ") {
            self.copied.0 = name(rest);
        } else if let Some(rest) = line.strip_prefix(b"copy to ") {
            self.copied.1 = name(rest);
        } else if let Some(rest) = line.strip_prefix(b"index ") {
            // An unchanged mode is given after the hashes.
            let kept = rest.split(|byte| *byte == b' ').nth(1).and_then(mode);
            (self.old_mode, self.new_mode) = (self.old_mode.or(kept), self.new_mode.or(kept));
        } else {
            return [&b"similarity index "[..], b"dissimilarity index "].iter().any(|known| line.starts_with(known));
        }
        true
    }

    fn change(self) -> Option<Change> {
        if let (Some(from), Some(to)) = self.renamed {
            return Some(Change::Rename { from, to });
        }
        if let (Some(from), Some(to)) = self.copied {
            return Some(Change::Copy { from, to });
        }
        Some(match (self.old, self.new) {
            (None, None) => return None,
            (None, Some(new)) => Change::Create(new),
            (Some(old), None) => Change::Delete(old),
            (Some(old), Some(new)) if old == new || is_backup_of(&old, &new) => Change::Modify(new),
            (Some(from), Some(to)) => Change::Rename { from, to },
        })
    }
}

fn is_backup_of(old: &[u8], new: &[u8]) -> bool {
    old.strip_prefix(new).is_some_and(|end| BACKUP_SUFFIXES.contains(&end))
}

//! Parses a patch in any supported format, also with prose around it, in a code fence, or with other line endings.

use super::{FilePatch, begin_patch, unified};
use crate::error::EditError;
use std::ops::Range;

/// The lines of a patch.
pub(super) struct PatchLines<'a> {
    lines: Vec<&'a [u8]>,
    /// Whether the patch is in a code fence, so that the closing fence ends it.
    fenced: bool,
    /// The delimiter of the here-document that contains the patch, as in `apply_patch <<'EOF'`.
    delimiter: Option<Vec<u8>>,
}

/// Parses a patch: a unified diff, with or without git's extended headers, the `*** Begin Patch` format, or several of
/// them one after the other.
///
/// These mistakes are accepted: wrong line numbers, counts that are too small, missing numbers and prefixes, prose and
/// code fences around the patch, and context lines without their leading space. A line that cannot be parsed is refused
/// with its number. A patch that seems to be truncated is refused too: a hunk with fewer lines than its header
/// announces, or a block without `*** End Patch`.
pub fn parse(patch: &[u8]) -> Result<Vec<FilePatch<'_>>, EditError> {
    let lines = PatchLines::new(patch.strip_prefix("\u{FEFF}".as_bytes()).unwrap_or(patch));
    let mut files = Vec::new();
    let (mut at, mut follows_block) = (0, false);
    while at < lines.len() {
        if begin_patch::starts(&lines, at) {
            at = begin_patch::parse(&lines, at, &mut files)?;
            follows_block = true;
            continue;
        }
        let (start, before) = (at, files.len());
        at = unified::parse(&lines, start, &mut files)?;
        if follows_block && files.len() == before {
            return Err(begin_patch::no_patch_follows(&lines, start));
        }
    }
    if files.is_empty() {
        let problem = "no file header found; a patch names its files by `--- a/path` and `+++ b/path` lines, \
                       or by `*** Update File: path` between `*** Begin Patch` and `*** End Patch`";
        return Err(EditError::syntax(1, problem));
    }
    Ok(files)
}

impl<'a> PatchLines<'a> {
    fn new(patch: &'a [u8]) -> Self {
        let mut lines: Vec<&[u8]> = patch.split(|byte| *byte == b'\n').collect();
        if lines.last().is_some_and(|last| last.is_empty()) {
            lines.pop();
        }
        let mut this = Self { lines, fenced: false, delimiter: None };
        this.strip_carriage_returns();
        let first_header = (0..this.lines.len()).find(|at| this.starts_file(*at)).unwrap_or(this.lines.len());
        this.fenced = this.lines[..first_header].iter().any(|line| is_fence(line));
        this.delimiter = this.lines[..first_header].iter().find_map(|line| {
            let word = &line[memchr::memmem::find(line, b"<<")? + 2..];
            Some(word.iter().copied().filter(u8::is_ascii_alphanumeric).collect())
                .filter(|word: &Vec<u8>| !word.is_empty())
        });
        this
    }

    /// Removes carriage returns if all file headers end in one: then the whole patch was converted to CRLF, and they
    /// are no part of its lines.
    fn strip_carriage_returns(&mut self) {
        let mut headers = (0..self.lines.len()).filter(|at| self.starts_file(*at)).peekable();
        if headers.peek().is_none() || !headers.all(|at| self.lines[at].ends_with(b"\r")) {
            return;
        }
        for line in &mut self.lines {
            *line = line.strip_suffix(b"\r").unwrap_or(line);
        }
    }

    pub fn get(&self, at: usize) -> Option<&'a [u8]> {
        self.lines.get(at).copied()
    }

    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Returns whether a `---` line is here, followed by its `+++` line.
    pub fn is_file_header(&self, at: usize) -> bool {
        let starts = |at: usize, with: &[u8]| self.get(at).is_some_and(|line| line.starts_with(with));
        starts(at, b"--- ") && starts(at + 1, b"+++ ")
    }

    /// Returns whether the part of the patch for a file starts here.
    pub fn starts_file(&self, at: usize) -> bool {
        let line = self.get(at).unwrap_or_default();
        line.starts_with(b"diff --git ") || line.starts_with(b"*** ") || self.is_file_header(at)
    }

    /// Returns whether a hunk ends before this line, whatever its counts are.
    pub fn ends_hunk(&self, at: usize) -> bool {
        let Some(line) = self.get(at) else { return true };
        line.starts_with(b"@@") || line.starts_with(b"diff --git ") || self.is_file_header(at)
    }

    /// Returns whether a diff ends before this line: at a closing fence, the signature of a mail, a marker of the
    /// `*** Begin Patch` format, or the end of the patch.
    pub fn ends_diff(&self, at: usize) -> bool {
        let Some(line) = self.get(at) else { return true };
        let names_version = self.get(at + 1).is_none_or(|next| next.first().is_none_or(u8::is_ascii_digit));
        let signature = line == b"-- " && names_version;
        signature || (self.fenced && is_fence(line)) || begin_patch::is_marker(line)
    }

    /// Returns whether a range of lines has only blank lines, fences, and the delimiter of the here-document.
    pub fn is_blank(&self, between: Range<usize>) -> bool {
        self.lines[between].iter().map(|line| line.trim_ascii()).all(|line| {
            line.is_empty() || is_fence(line) || self.delimiter.as_deref().is_some_and(|delimiter| delimiter == line)
        })
    }

    /// Returns whether this line, after a complete hunk, starts text that tools write between the diffs of files: a
    /// mail, its signature, or a description of the next diff.
    pub fn is_between_diffs(&self, at: usize) -> bool {
        const STARTS: [&[u8]; 5] = [b"From ", b"Index: ", b"Property changes on: ", b"Only in ", b"diff "];
        let line = self.get(at).unwrap_or_default();
        line == b"-- " || STARTS.iter().any(|start| line.starts_with(start))
    }

    /// Returns whether one of the two lines that name a file is here without the other, before a hunk or at the end.
    pub fn is_lone_header(&self, at: usize) -> bool {
        const STARTS: [&[u8]; 4] = [b"--- a/", b"+++ b/", b"--- /dev/null", b"+++ /dev/null"];
        let starts = |at: usize, with: &[u8]| self.get(at).is_some_and(|line| line.starts_with(with));
        STARTS.iter().any(|start| starts(at, start)) && (at + 1 == self.len() || starts(at + 1, b"@@"))
    }
}

fn is_fence(line: &[u8]) -> bool {
    line.starts_with(b"```") || line.starts_with(b"~~~")
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;

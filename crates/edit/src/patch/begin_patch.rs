//! Parses the `*** Begin Patch` format.

use super::hunk_header::{self, HeaderRanges};
use super::parse::PatchLines;
use super::unified::next_step;
use super::{Blanks, Change, Content, Counts, EndConstraint, FilePatch, HeaderPosition, Hunk, LineKind, hunk_body};
use crate::error::{EditError, truncated};
use std::collections::BTreeMap;

const BEGIN: &[u8] = b"*** Begin Patch";
const END: &[u8] = b"*** End Patch";
const END_OF_FILE: &[u8] = b"*** End of File";
const MOVE: &[u8] = b"*** Move to: ";
const UPDATE: &[u8] = b"*** Update File: ";
const FILE_MARKERS: [&[u8]; 3] = [b"*** Add File: ", UPDATE, b"*** Delete File: "];

/// Maximum length of a line quoted in an error.
const MAX_QUOTED_BYTES: usize = 80;

/// Returns whether a line is a marker of this format, which ends everything before it.
pub(super) fn is_marker(line: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    line == BEGIN || line == END || names_file(line)
}

/// Returns whether a block of this format starts here, outside of any hunk.
pub(super) fn starts(lines: &PatchLines, at: usize) -> bool {
    let line = lines.get(at).unwrap_or_default().trim_ascii();
    line == BEGIN || names_file(line)
}

fn names_file(line: &[u8]) -> bool {
    FILE_MARKERS.iter().any(|marker| line.starts_with(marker))
}

/// Parses a block; returns the line at which the next patch starts.
pub(super) fn parse<'a>(
    lines: &PatchLines<'a>,
    start: usize,
    files: &mut Vec<FilePatch<'a>>,
) -> Result<usize, EditError> {
    let mut block = BlockParser { lines, first: files.len(), files, announced: BTreeMap::new() };
    let is_begin = lines.get(start).is_some_and(|line| line.trim_ascii() == BEGIN);
    let mut at = start + usize::from(is_begin);
    loop {
        let Some(line) = lines.get(at) else {
            let problem = "the patch ends without `*** End Patch`, so it may be cut off; send all of it";
            return Err(EditError::syntax(lines.len(), problem));
        };
        if block.is_end(at) {
            break;
        }
        block.parse_line(line, at)?;
        at += 1;
    }
    block.finish()?;
    next_patch(lines, at + 1)
}

/// Returns the line at which the patch after a block starts. Any other text is refused, because it would be ignored.
fn next_patch(lines: &PatchLines, after: usize) -> Result<usize, EditError> {
    let is_blank = |at: &usize| lines.is_blank(*at..*at + 1);
    let Some(at) = (after..lines.len()).find(|at| !is_blank(at)) else { return Ok(lines.len()) };
    if starts(lines, at) || lines.starts_file(at) || lines.is_between_diffs(at) {
        return Ok(at);
    }
    Err(no_patch_follows(lines, at))
}

/// Returns the error for text after a block that is not a patch.
pub(super) fn no_patch_follows(lines: &PatchLines, at: usize) -> EditError {
    let line = truncated(&String::from_utf8_lossy(lines.get(at).unwrap_or_default()), MAX_QUOTED_BYTES);
    let problem = format!(
        "`{line}` follows `*** End Patch`; only another patch may: `*** Begin Patch`, or a diff with its file header"
    );
    EditError::syntax(at + 1, problem)
}

/// Parses the lines of one block.
struct BlockParser<'l, 'a> {
    lines: &'l PatchLines<'a>,
    files: &'l mut Vec<FilePatch<'a>>,
    /// Number of files before this block.
    first: usize,
    /// The ranges in hunk headers, by the line of the patch at which the hunk starts.
    announced: BTreeMap<usize, HeaderRanges>,
}

impl<'a> BlockParser<'_, 'a> {
    /// Returns whether the current file can have hunk lines here. Then a marker after a space is text of the file.
    fn is_in_hunk(&self) -> bool {
        self.files[self.first..].last().is_some_and(|file| match (&file.change, &file.content) {
            (Change::Modify(_) | Change::Rename { .. }, Content::Text(hunks)) => !hunks.is_empty(),
            _ => false,
        })
    }

    fn is_end(&self, at: usize) -> bool {
        let line = self.lines.get(at).unwrap_or_default();
        let is_last = || self.lines.is_blank(at + 1..self.lines.len());
        line.trim_ascii_end() == END || (line.trim_ascii() == END && (!self.is_in_hunk() || is_last()))
    }

    /// Returns the line as it is compared with the markers: without whitespace before it, unless it may be text of the
    /// file. Whitespace after it may be part of a name.
    fn as_marker(&self, line: &'a [u8], at: usize) -> &'a [u8] {
        let next = self.lines.get(at + 1).unwrap_or_default();
        let begins_section = || line.trim_ascii_start().starts_with(UPDATE) && next.starts_with(b"@@");
        if !self.is_in_hunk() || begins_section() { line.trim_ascii_start() } else { line }
    }

    fn parse_line(&mut self, line: &'a [u8], at: usize) -> Result<(), EditError> {
        let marker = self.as_marker(line, at);
        if marker.trim_ascii_end() == BEGIN {
            return Err(EditError::syntax(at + 1, "the block before has no `*** End Patch`, so it may be cut off"));
        }
        if let Some(change) = parse_file_marker(marker, at)? {
            let (patch_line, step, content) = (at + 1, next_step(self.files), Content::Text(Vec::new()));
            let (old_mode, new_mode, blanks) = (None, None, Blanks::MaybePadding);
            self.files.push(FilePatch { change, old_mode, new_mode, content, patch_line, step, blanks });
            return Ok(());
        }
        let Some(file) = self.files[self.first..].last_mut() else {
            if marker.is_empty() {
                return Ok(());
            }
            let problem = "expected `*** Add File: `, `*** Update File: ` or `*** Delete File: `";
            return Err(EditError::syntax(at + 1, problem));
        };
        let ranges = parse_file_line(file, line, marker, at)?;
        if let (Some(ranges), Content::Text(hunks)) = (ranges, &file.content) {
            self.announced.extend(hunks.last().map(|hunk| (hunk.patch_line, ranges)));
        }
        Ok(())
    }

    fn finish(self) -> Result<(), EditError> {
        for file in &mut self.files[self.first..] {
            if let Content::Text(hunks) = &file.content {
                for hunk in hunks {
                    if let Some(ranges) = self.announced.get(&hunk.patch_line) {
                        hunk_body::check_is_complete(&hunk.lines, *ranges, hunk.patch_line)?;
                    }
                }
            }
            finish(file)?;
        }
        Ok(())
    }
}

fn parse_file_marker(line: &[u8], at: usize) -> Result<Option<Change>, EditError> {
    let Some((marker, name)) = FILE_MARKERS.iter().find_map(|marker| Some((*marker, line.strip_prefix(*marker)?)))
    else {
        return Ok(None);
    };
    let name = file_name(name, at)?;
    Ok(Some(match marker {
        b"*** Add File: " => Change::Create(name),
        b"*** Delete File: " => Change::Delete(name),
        _ => Change::Modify(name),
    }))
}

/// Returns the name after a marker, with the whitespace around it.
fn file_name(name: &[u8], at: usize) -> Result<Vec<u8>, EditError> {
    if name.trim_ascii().is_empty() {
        return Err(EditError::syntax(at + 1, "the file's name is missing"));
    }
    Ok(name.to_vec())
}

/// Parses a line that belongs to a file; returns the ranges if it is a hunk header that has them.
fn parse_file_line<'a>(
    file: &mut FilePatch<'a>,
    line: &'a [u8],
    marker: &'a [u8],
    at: usize,
) -> Result<Option<HeaderRanges>, EditError> {
    let Content::Text(hunks) = &mut file.content else { return Ok(None) };
    if let Some(to) = marker.strip_prefix(MOVE) {
        let Change::Modify(from) = &file.change else {
            return Err(EditError::syntax(at + 1, "`*** Move to: ` must follow `*** Update File: `"));
        };
        file.change = Change::Rename { from: from.clone(), to: file_name(to, at)? };
        return Ok(None);
    }
    if marker.trim_ascii_end() == END_OF_FILE {
        if let Some(hunk) = hunks.last_mut() {
            hunk.end_constraint = EndConstraint::EndOfFile;
        }
        return Ok(None);
    }
    let is_update = matches!(file.change, Change::Modify(_) | Change::Rename { .. });
    if let (true, Some(header)) = (is_update, hunk_header::parse(line)) {
        // Consecutive headings are nested.
        if hunks.last().is_none_or(|hunk| !hunk.lines.is_empty()) {
            hunks.push(Hunk { patch_line: at + 1, ..Hunk::default() });
        }
        if let Some(hunk) = hunks.last_mut() {
            hunk.headings.extend(header.heading);
            hunk.header_position = header.ranges.map(|ranges| HeaderPosition {
                old_start: ranges.old_start,
                new_start: ranges.new_start,
                counts: Counts::Wrong,
            });
        }
        return Ok(header.ranges);
    }
    match (&file.change, marker.first()) {
        (Change::Delete(_), Some(_)) => {
            return Err(EditError::syntax(at + 1, "only the next file may follow `*** Delete File: `"));
        }
        (Change::Create(_), Some(_)) if !line.starts_with(b"+") && !line.is_empty() => {
            return Err(EditError::syntax(at + 1, "every line of a new file begins with `+`"));
        }
        (Change::Delete(_), None) => return Ok(None),
        _ => {}
    }
    if hunks.is_empty() {
        hunks.push(Hunk { patch_line: at + 1, ..Hunk::default() });
    }
    let Some(hunk) = hunks.last_mut() else { return Ok(None) };
    if !hunk_body::mark_missing_newline(line, &mut hunk.lines) {
        hunk.lines.push(hunk_body::parse_line(line));
    }
    Ok(None)
}

/// Removes the empty lines that separate files and hunks, and refuses an update that changes nothing.
fn finish(file: &mut FilePatch) -> Result<(), EditError> {
    let Content::Text(hunks) = &mut file.content else { return Ok(()) };
    for hunk in hunks.iter_mut() {
        while hunk.lines.last().is_some_and(|last| last.text.is_empty() && last.kind == LineKind::Context) {
            hunk.lines.pop();
        }
        if let Change::Create(_) = file.change {
            // Empty lines in between are lines of the new file that lost their `+`.
            hunk.lines.iter_mut().for_each(|line| line.kind = LineKind::Insert);
        }
    }
    for hunk in hunks.iter_mut().filter(|hunk| hunk.old_lines().next().is_none() && hunk.headings.is_empty()) {
        // In this format, lines without context and heading are inserted at the end of the file.
        hunk.end_constraint = EndConstraint::EndOfFile;
    }
    hunks.retain(|hunk| !hunk.lines.is_empty());
    let changes_something = |hunk: &Hunk| hunk.lines.iter().any(|line| line.kind != LineKind::Context);
    if !hunks.iter().any(changes_something) && matches!(file.change, Change::Modify(_)) {
        return Err(EditError::syntax(file.patch_line, "the update changes nothing"));
    }
    Ok(())
}

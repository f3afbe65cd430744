//! The `*** Begin Patch` format.

use super::hunk_header::{self, Numbers};
use super::parse::PatchLines;
use super::unified::next_step;
use super::{Blanks, Change, Claim, Content, Counts, FilePatch, Hunk, Reach, Role, hunk_body};
use crate::error::{EditError, cut};
use std::collections::BTreeMap;

const BEGIN: &[u8] = b"*** Begin Patch";
const END: &[u8] = b"*** End Patch";
const END_OF_FILE: &[u8] = b"*** End of File";
const MOVE: &[u8] = b"*** Move to: ";
const UPDATE: &[u8] = b"*** Update File: ";
const FILE_MARKS: [&[u8]; 3] = [b"*** Add File: ", UPDATE, b"*** Delete File: "];

/// How much of a line is shown that does not belong into a patch.
const SHOWN_BYTES: usize = 80;

/// Whether a line is one of the format's own that ends whatever stands before it.
pub(super) fn is_mark(line: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    line == BEGIN || line == END || names_file(line)
}

/// Whether a block of this format begins here, outside of any hunk.
pub(super) fn starts(lines: &PatchLines, at: usize) -> bool {
    let line = lines.get(at).unwrap_or_default().trim_ascii();
    line == BEGIN || names_file(line)
}

fn names_file(line: &[u8]) -> bool {
    FILE_MARKS.iter().any(|mark| line.starts_with(mark))
}

/// Reads a block, and gives where what follows it begins.
pub(super) fn parse<'a>(
    lines: &PatchLines<'a>,
    start: usize,
    files: &mut Vec<FilePatch<'a>>,
) -> Result<usize, EditError> {
    let mut block = Block { lines, first: files.len(), files, announced: BTreeMap::new() };
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
        block.read(line, at)?;
        at += 1;
    }
    block.finish()?;
    next_patch(lines, at + 1)
}

/// Finds the patch that follows a block. Anything else than a patch would be lost, so it is refused.
fn next_patch(lines: &PatchLines, after: usize) -> Result<usize, EditError> {
    let is_blank = |at: &usize| lines.is_blank(*at..*at + 1);
    let Some(at) = (after..lines.len()).find(|at| !is_blank(at)) else { return Ok(lines.len()) };
    if starts(lines, at) || lines.starts_file(at) || lines.is_between_diffs(at) {
        return Ok(at);
    }
    Err(no_patch_follows(lines, at))
}

/// The refusal of text after a block that is no patch.
pub(super) fn no_patch_follows(lines: &PatchLines, at: usize) -> EditError {
    let line = cut(&String::from_utf8_lossy(lines.get(at).unwrap_or_default()), SHOWN_BYTES);
    let problem = format!(
        "`{line}` follows `*** End Patch`; only another patch may: `*** Begin Patch`, or a diff with its file header"
    );
    EditError::syntax(at + 1, problem)
}

/// A block that is being read.
struct Block<'l, 'a> {
    lines: &'l PatchLines<'a>,
    files: &'l mut Vec<FilePatch<'a>>,
    /// The number of files that were read before the block.
    first: usize,
    /// The counts in headers of hunks, by the hunks' lines in the patch.
    announced: BTreeMap<usize, Numbers>,
}

impl<'a> Block<'_, 'a> {
    /// Whether lines of a hunk may stand here: then a mark behind a space is text of the file.
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

    /// The line as it is compared with the marks: without blanks before it, if it cannot be text of the file. Blanks
    /// after it may be part of a name.
    fn as_mark(&self, line: &'a [u8], at: usize) -> &'a [u8] {
        let next = self.lines.get(at + 1).unwrap_or_default();
        let begins_section = || line.trim_ascii_start().starts_with(UPDATE) && next.starts_with(b"@@");
        if !self.is_in_hunk() || begins_section() { line.trim_ascii_start() } else { line }
    }

    fn read(&mut self, line: &'a [u8], at: usize) -> Result<(), EditError> {
        let mark = self.as_mark(line, at);
        if mark.trim_ascii_end() == BEGIN {
            return Err(EditError::syntax(at + 1, "the block before has no `*** End Patch`, so it may be cut off"));
        }
        if let Some(change) = file_mark(mark, at)? {
            let (patch_line, step, content) = (at + 1, next_step(self.files), Content::Text(Vec::new()));
            let (old_mode, new_mode, blanks) = (None, None, Blanks::MaybePadding);
            self.files.push(FilePatch { change, old_mode, new_mode, content, patch_line, step, blanks });
            return Ok(());
        }
        let Some(file) = self.files[self.first..].last_mut() else {
            if mark.is_empty() {
                return Ok(());
            }
            let problem = "expected `*** Add File: `, `*** Update File: ` or `*** Delete File: `";
            return Err(EditError::syntax(at + 1, problem));
        };
        let numbers = read_line(file, line, mark, at)?;
        if let (Some(numbers), Content::Text(hunks)) = (numbers, &file.content) {
            self.announced.extend(hunks.last().map(|hunk| (hunk.patch_line, numbers)));
        }
        Ok(())
    }

    fn finish(self) -> Result<(), EditError> {
        for file in &mut self.files[self.first..] {
            if let Content::Text(hunks) = &file.content {
                for hunk in hunks {
                    if let Some(numbers) = self.announced.get(&hunk.patch_line) {
                        hunk_body::refuse_short(&hunk.lines, *numbers, hunk.patch_line)?;
                    }
                }
            }
            finish(file)?;
        }
        Ok(())
    }
}

fn file_mark(line: &[u8], at: usize) -> Result<Option<Change>, EditError> {
    let Some((mark, name)) = FILE_MARKS.iter().find_map(|mark| Some((*mark, line.strip_prefix(*mark)?))) else {
        return Ok(None);
    };
    let name = file_name(name, at)?;
    Ok(Some(match mark {
        b"*** Add File: " => Change::Create(name),
        b"*** Delete File: " => Change::Delete(name),
        _ => Change::Modify(name),
    }))
}

/// The name after a mark, with the blanks around it.
fn file_name(name: &[u8], at: usize) -> Result<Vec<u8>, EditError> {
    if name.trim_ascii().is_empty() {
        return Err(EditError::syntax(at + 1, "the file's name is missing"));
    }
    Ok(name.to_vec())
}

/// Takes in a line that belongs to a file; gives the numbers of the hunk's header that it may be.
fn read_line<'a>(
    file: &mut FilePatch<'a>,
    line: &'a [u8],
    mark: &'a [u8],
    at: usize,
) -> Result<Option<Numbers>, EditError> {
    let Content::Text(hunks) = &mut file.content else { return Ok(None) };
    if let Some(to) = mark.strip_prefix(MOVE) {
        let Change::Modify(from) = &file.change else {
            return Err(EditError::syntax(at + 1, "`*** Move to: ` must follow `*** Update File: `"));
        };
        file.change = Change::Rename { from: from.clone(), to: file_name(to, at)? };
        return Ok(None);
    }
    if mark.trim_ascii_end() == END_OF_FILE {
        if let Some(hunk) = hunks.last_mut() {
            hunk.reach = Reach::EndOfFile;
        }
        return Ok(None);
    }
    let is_update = matches!(file.change, Change::Modify(_) | Change::Rename { .. });
    if let (true, Some(header)) = (is_update, hunk_header::read(line)) {
        // Headings that follow one another nest.
        if hunks.last().is_none_or(|hunk| !hunk.lines.is_empty()) {
            hunks.push(Hunk { patch_line: at + 1, ..Hunk::default() });
        }
        if let Some(hunk) = hunks.last_mut() {
            hunk.headings.extend(header.heading);
            hunk.claim = header.numbers.map(|numbers| Claim {
                old_start: numbers.old_start,
                new_start: numbers.new_start,
                counts: Counts::Wrong,
            });
        }
        return Ok(header.numbers);
    }
    match (&file.change, mark.first()) {
        (Change::Delete(_), Some(_)) => {
            return Err(EditError::syntax(at + 1, "nothing follows `*** Delete File: ` but the next file"));
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
        hunk.lines.push(hunk_body::read_line(line));
    }
    Ok(None)
}

/// Drops the empty lines that part files and hunks, and refuses an update that changes nothing.
fn finish(file: &mut FilePatch) -> Result<(), EditError> {
    let Content::Text(hunks) = &mut file.content else { return Ok(()) };
    for hunk in hunks.iter_mut() {
        while hunk.lines.last().is_some_and(|last| last.text.is_empty() && last.role == Role::Context) {
            hunk.lines.pop();
        }
        if let Change::Create(_) = file.change {
            // Empty lines in between are lines of the new file that lost their mark.
            hunk.lines.iter_mut().for_each(|line| line.role = Role::Insert);
        }
    }
    for hunk in hunks.iter_mut().filter(|hunk| hunk.before().next().is_none() && hunk.headings.is_empty()) {
        // Lines that nothing is said about go to the end in this format.
        hunk.reach = Reach::EndOfFile;
    }
    hunks.retain(|hunk| !hunk.lines.is_empty());
    let changes_something = |hunk: &Hunk| hunk.lines.iter().any(|line| line.role != Role::Context);
    if !hunks.iter().any(changes_something) && matches!(file.change, Change::Modify(_)) {
        return Err(EditError::syntax(file.patch_line, "the update changes nothing"));
    }
    Ok(())
}

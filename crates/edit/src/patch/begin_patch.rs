//! The `*** Begin Patch` format.

use super::parse::PatchLines;
use super::{Change, Claim, Content, Counts, FilePatch, Hunk, Reach, Role, hunk_body, hunk_header};
use crate::error::EditError;

const FILE_MARKS: [&[u8]; 3] = [b"*** Add File: ", b"*** Update File: ", b"*** Delete File: "];

/// Whether a patch is written in this format: it has one of its marks before any header of a diff.
pub(super) fn is_begin_patch(lines: &PatchLines) -> bool {
    for at in 0..lines.len() {
        let line = lines.get(at).unwrap_or_default().trim_ascii();
        if line == b"*** Begin Patch" || FILE_MARKS.iter().any(|mark| line.starts_with(mark)) {
            return true;
        }
        if line.starts_with(b"diff --git ") || lines.is_file_header(at) {
            return false;
        }
    }
    false
}

/// Reads all files of a patch.
pub(super) fn parse<'a>(lines: &PatchLines<'a>) -> Result<Vec<FilePatch<'a>>, EditError> {
    let mut files: Vec<FilePatch> = Vec::new();
    let begins = (0..lines.len()).find(|at| lines.get(*at).is_some_and(|line| line.trim_ascii() == b"*** Begin Patch"));
    for at in begins.map_or(0, |at| at + 1)..lines.len() {
        let line = lines.get(at).unwrap_or_default();
        // Marks stand at the line's start: behind a space they are text of the file.
        if line.trim_ascii_end() == b"*** End Patch" {
            break;
        }
        if let Some(change) = file_mark(line, at)? {
            let content = Content::Text(Vec::new());
            let (patch_line, step) = (at + 1, files.len());
            files.push(FilePatch { change, old_mode: None, new_mode: None, content, patch_line, step });
            continue;
        }
        match files.last_mut() {
            Some(file) => read_line(file, line, at)?,
            None if begins.is_none() || line.trim_ascii().is_empty() => {}
            None => {
                return Err(EditError::syntax(
                    at + 1,
                    "expected `*** Add File: `, `*** Update File: ` or `*** Delete File: `",
                ));
            }
        }
    }
    files.iter_mut().try_for_each(finish)?;
    Ok(files)
}

fn file_mark(line: &[u8], at: usize) -> Result<Option<Change>, EditError> {
    let Some((mark, name)) = FILE_MARKS.iter().find_map(|mark| Some((*mark, line.strip_prefix(*mark)?))) else {
        return Ok(None);
    };
    let name = name.trim_ascii().to_vec();
    if name.is_empty() {
        return Err(EditError::syntax(at + 1, "the file's name is missing"));
    }
    Ok(Some(match mark {
        b"*** Add File: " => Change::Create(name),
        b"*** Delete File: " => Change::Delete(name),
        _ => Change::Modify(name),
    }))
}

/// Takes in a line that belongs to a file.
fn read_line<'a>(file: &mut FilePatch<'a>, line: &'a [u8], at: usize) -> Result<(), EditError> {
    let Content::Text(hunks) = &mut file.content else { return Ok(()) };
    if let Some(to) = line.strip_prefix(b"*** Move to: ") {
        let Change::Modify(from) = &file.change else {
            return Err(EditError::syntax(at + 1, "`*** Move to: ` must follow `*** Update File: `"));
        };
        file.change = Change::Rename { from: from.clone(), to: to.trim_ascii().to_vec() };
        return Ok(());
    }
    if line.trim_ascii_end() == b"*** End of File" {
        if let Some(hunk) = hunks.last_mut() {
            hunk.reach = Reach::EndOfFile;
        }
        return Ok(());
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
        return Ok(());
    }
    match (&file.change, line.first()) {
        (Change::Delete(_), Some(_)) => {
            return Err(EditError::syntax(at + 1, "nothing follows `*** Delete File: ` but the next file"));
        }
        (Change::Create(_), Some(byte)) if *byte != b'+' => {
            return Err(EditError::syntax(at + 1, "every line of a new file begins with `+`"));
        }
        (Change::Delete(_), None) => return Ok(()),
        _ => {}
    }
    if hunks.is_empty() {
        hunks.push(Hunk { patch_line: at + 1, ..Hunk::default() });
    }
    let Some(hunk) = hunks.last_mut() else { return Ok(()) };
    if !hunk_body::mark_missing_newline(line, &mut hunk.lines) {
        hunk.lines.push(hunk_body::read_line(line));
    }
    Ok(())
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

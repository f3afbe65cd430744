//! A text with what a level overlooks taken out, and the way back from places in it.

use crate::level::{Level, ascii_form};
use crate::lines::{Line, lines};
use std::borrow::Cow;

/// A text made ready to be searched at a level: every line ends in `\n`.
pub(super) struct Folded<'a> {
    text: &'a [u8],
    pub flat: Cow<'a, [u8]>,
    seams: Vec<Seam>,
    ends_in_blanks: bool,
}

/// A place in the flat text around which the text is longer or shorter.
struct Seam {
    flat: usize,
    /// The offset in the text before what was taken out here.
    before: usize,
    /// The offset in the text after it.
    after: usize,
}

impl<'a> Folded<'a> {
    /// The text as it is.
    pub fn unchanged(text: &'a [u8]) -> Self {
        Self { text, flat: Cow::Borrowed(text), seams: Vec::new(), ends_in_blanks: false }
    }

    /// The text as seen at a level. Indentation is no matter of folding.
    pub fn new(text: &'a [u8], level: Level) -> Self {
        if level == Level::Exact && memchr::memmem::find(text, b"\r\n").is_none() {
            return Self::unchanged(text);
        }
        let mut flat = Vec::with_capacity(text.len());
        let mut seams = Vec::new();
        let mut ends_in_blanks = false;
        for line in lines(text) {
            let kept = without_trailing_blanks(line.body, level);
            push_body(&mut flat, &mut seams, kept, &line, level);
            let before = line.start + kept.len();
            ends_in_blanks = kept.len() < line.body.len();
            if line.end() > line.body_end() {
                let after = line.end() - 1;
                if before < after {
                    seams.push(Seam { flat: flat.len(), before, after });
                }
                flat.push(b'\n');
                ends_in_blanks = false;
            }
        }
        Self { text, flat: Cow::Owned(flat), seams, ends_in_blanks }
    }

    /// Whether blanks were taken off the end of a last line that has no newline.
    pub fn ends_in_blanks(&self) -> bool {
        self.ends_in_blanks
    }

    /// Where a match that starts here starts in the text: at a line's end it takes in the carriage return.
    pub fn start(&self, flat: usize) -> usize {
        match self.seam(flat) {
            Some(seam) if seam.flat == flat && self.text[seam.before..seam.after].ends_with(b"\r") => seam.after - 1,
            Some(seam) => seam.after + flat - seam.flat,
            None => flat,
        }
    }

    /// Where a match that ends here ends in the text: before anything that was taken out.
    pub fn end(&self, flat: usize) -> usize {
        match self.seam(flat) {
            Some(seam) if seam.flat == flat => seam.before,
            Some(seam) => seam.after + flat - seam.flat,
            None => flat,
        }
    }

    fn seam(&self, flat: usize) -> Option<&Seam> {
        self.seams[..self.seams.partition_point(|seam| seam.flat <= flat)].last()
    }
}

fn without_trailing_blanks(body: &[u8], level: Level) -> &[u8] {
    match level {
        Level::Exact => body,
        Level::Punctuation => {
            let mut kept = body.trim_ascii_end();
            // The last character may be a space that is not ASCII: at most three bytes long.
            while let Some((start, ' ')) = last_character(kept) {
                kept = kept[..start].trim_ascii_end();
            }
            kept
        }
        _ => body.trim_ascii_end(),
    }
}

/// Where the last character starts, and what it is in ASCII if it is typographic.
fn last_character(body: &[u8]) -> Option<(usize, char)> {
    let start =
        (body.len().saturating_sub(3)..body.len()).rev().find(|start| str::from_utf8(&body[*start..]).is_ok())?;
    let character = str::from_utf8(&body[start..]).ok()?.chars().next()?;
    let form = ascii_form(character)?;
    Some((start, form.chars().next()?))
}

fn push_body(flat: &mut Vec<u8>, seams: &mut Vec<Seam>, kept: &[u8], line: &Line, level: Level) {
    if level != Level::Punctuation || kept.is_ascii() {
        flat.extend_from_slice(kept);
        return;
    }
    let mut at = line.start;
    for chunk in kept.utf8_chunks() {
        for character in chunk.valid().chars() {
            at += character.len_utf8();
            if let Some(form) = ascii_form(character) {
                flat.extend_from_slice(form.as_bytes());
                seams.push(Seam { flat: flat.len(), before: at, after: at });
            } else {
                flat.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        flat.extend_from_slice(chunk.invalid());
        at += chunk.invalid().len();
    }
}

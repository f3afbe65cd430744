//! Folds a text: removes the differences that a match level ignores, and maps offsets back to the original text.

use crate::lines::{Line, lines};
use crate::match_level::{MatchLevel, ascii_form};
use std::borrow::Cow;

/// A text without the differences that a match level ignores. Every line ends in `\n`.
pub(super) struct FoldedText<'a> {
    text: &'a [u8],
    pub bytes: Cow<'a, [u8]>,
    sync_points: Vec<SyncPoint>,
    ends_in_whitespace: bool,
}

/// An offset in the folded text and the corresponding offsets in the original text. After a sync point
/// both texts are equal up to the next difference.
struct SyncPoint {
    folded: usize,
    /// The offset in the original text before the removed bytes.
    before: usize,
    /// The offset in the original text after the removed bytes.
    after: usize,
}

impl<'a> FoldedText<'a> {
    /// Returns the text without folding.
    pub fn unchanged(text: &'a [u8]) -> Self {
        Self { text, bytes: Cow::Borrowed(text), sync_points: Vec::new(), ends_in_whitespace: false }
    }

    /// Folds a text for a level. Indentation stays; `loose_match` handles it.
    pub fn new(text: &'a [u8], level: MatchLevel) -> Self {
        if level == MatchLevel::Exact && memchr::memmem::find(text, b"\r\n").is_none() {
            return Self::unchanged(text);
        }
        let mut folded = Vec::with_capacity(text.len());
        let mut sync_points = Vec::new();
        let mut ends_in_whitespace = false;
        for line in lines(text) {
            let kept = without_trailing_whitespace(line.body, level);
            push_body(&mut folded, &mut sync_points, kept, &line, level);
            let before = line.start + kept.len();
            ends_in_whitespace = kept.len() < line.body.len();
            if line.end() > line.body_end() {
                let after = line.end() - 1;
                if before < after {
                    sync_points.push(SyncPoint { folded: folded.len(), before, after });
                }
                folded.push(b'\n');
                ends_in_whitespace = false;
            }
        }
        Self { text, bytes: Cow::Owned(folded), sync_points, ends_in_whitespace }
    }

    /// Returns whether whitespace was removed from the end of a last line that has no newline.
    pub fn ends_in_whitespace(&self) -> bool {
        self.ends_in_whitespace
    }

    /// Maps the start of a match to the original text. A match that starts at a line ending includes the carriage
    /// return.
    pub fn start(&self, folded: usize) -> usize {
        match self.sync_point_before(folded) {
            Some(point) if point.folded == folded && self.text[point.before..point.after].ends_with(b"\r") => {
                point.after - 1
            }
            Some(point) => point.after + folded - point.folded,
            None => folded,
        }
    }

    /// Maps the end of a match to the original text. If bytes were removed at this offset, the match ends before them.
    pub fn end(&self, folded: usize) -> usize {
        match self.sync_point_before(folded) {
            Some(point) if point.folded == folded => point.before,
            Some(point) => point.after + folded - point.folded,
            None => folded,
        }
    }

    fn sync_point_before(&self, folded: usize) -> Option<&SyncPoint> {
        self.sync_points[..self.sync_points.partition_point(|point| point.folded <= folded)].last()
    }
}

fn without_trailing_whitespace(body: &[u8], level: MatchLevel) -> &[u8] {
    match level {
        MatchLevel::Exact => body,
        MatchLevel::Punctuation => {
            let mut kept = body.trim_ascii_end();
            // The last character may be a space that is not ASCII, which takes at most three bytes.
            while let Some((start, ' ')) = last_character(kept) {
                kept = kept[..start].trim_ascii_end();
            }
            kept
        }
        _ => body.trim_ascii_end(),
    }
}

/// Returns the start of the last character and its ASCII form, if it is a typographic character.
fn last_character(body: &[u8]) -> Option<(usize, char)> {
    let start =
        (body.len().saturating_sub(3)..body.len()).rev().find(|start| str::from_utf8(&body[*start..]).is_ok())?;
    let character = str::from_utf8(&body[start..]).ok()?.chars().next()?;
    let form = ascii_form(character)?;
    Some((start, form.chars().next()?))
}

fn push_body(folded: &mut Vec<u8>, sync_points: &mut Vec<SyncPoint>, kept: &[u8], line: &Line, level: MatchLevel) {
    if level != MatchLevel::Punctuation || kept.is_ascii() {
        folded.extend_from_slice(kept);
        return;
    }
    let mut at = line.start;
    for chunk in kept.utf8_chunks() {
        for character in chunk.valid().chars() {
            at += character.len_utf8();
            if let Some(form) = ascii_form(character) {
                folded.extend_from_slice(form.as_bytes());
                sync_points.push(SyncPoint { folded: folded.len(), before: at, after: at });
            } else {
                folded.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        folded.extend_from_slice(chunk.invalid());
        at += chunk.invalid().len();
    }
}

//! Reading files as text to be searched, large ones piece by piece.

use super::utf16::{Endianness, Utf16};
use crate::search::Piece;
use std::io::{self, Read};
use toolrest_core::Result;
use toolrest_directory::Reader;

/// Larger files are searched in parts of this size. Every thread of every search may hold as much.
const WINDOW_BYTES: usize = 4 << 20;

/// A line that does not fit into this, with what is shown around it, is too long.
const LARGEST_WINDOW_BYTES: usize = 64 << 20;

/// A file that has a NUL among its first bytes is no text.
const LOOKED_AT_BYTES: usize = 8000;

/// Most files of source code are smaller.
const FIRST_BYTES: usize = 64 << 10;

const UTF8_MARK: &[u8] = "\u{feff}".as_bytes();

/// Room for the content of one file after the other.
pub(super) struct Contents {
    buffer: Vec<u8>,
    window_bytes: usize,
    largest_window_bytes: usize,
}

impl Default for Contents {
    fn default() -> Self {
        Self { buffer: Vec::new(), window_bytes: WINDOW_BYTES, largest_window_bytes: LARGEST_WINDOW_BYTES }
    }
}

/// What a file turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Text,
    Binary,
    TooLarge,
    Unreadable,
}

impl Contents {
    /// Shows the text of a file piece by piece, until told that it is enough. Around each piece as many lines are at
    /// hand as are asked for, as far as there are any.
    ///
    /// As ripgrep does, it takes for text what has no NUL near its beginning, or begins with a mark of UTF-16.
    pub(super) fn in_pieces(
        &mut self,
        mut file: Reader,
        context: usize,
        mut each: impl FnMut(Piece<'_>) -> Result<bool>,
    ) -> Result<Outcome> {
        let size = usize::try_from(file.metadata().size_bytes).unwrap_or(usize::MAX);
        if size == 0 {
            return Ok(Outcome::Text);
        }
        if self.buffer.len() > self.window_bytes {
            // What one long line needed is not kept for the files that follow.
            self.buffer.truncate(self.window_bytes);
            self.buffer.shrink_to_fit();
        }
        let room = size.min(self.window_bytes);
        if self.buffer.len() < room {
            self.buffer.resize(room.max(FIRST_BYTES.min(self.window_bytes)), 0);
        }
        let Ok(read) = fill(&mut file, &mut self.buffer[..room]) else { return Ok(Outcome::Unreadable) };
        let begin = &self.buffer[..read];
        if let Some(endianness) = Endianness::of(begin) {
            let mut text = Utf16::new(begin[2..].to_vec(), file, endianness);
            return self.in_windows(&mut text, 0, context, &mut each);
        }
        if memchr::memchr(0, &begin[..read.min(LOOKED_AT_BYTES)]).is_some() {
            return Ok(Outcome::Binary);
        }
        if size <= self.window_bytes {
            each(Piece::whole(begin.strip_prefix(UTF8_MARK).unwrap_or(begin)))?;
            return Ok(Outcome::Text);
        }
        self.in_windows(&mut file, read, context, &mut each)
    }

    /// Shows a text of which the beginning is in the buffer already.
    fn in_windows(
        &mut self,
        text: &mut impl Read,
        mut filled: usize,
        context: usize,
        each: &mut dyn FnMut(Piece<'_>) -> Result<bool>,
    ) -> Result<Outcome> {
        let mut first_line = 1;
        let mut searched = 0;
        let mut is_beginning = true;
        loop {
            match fill(text, &mut self.buffer[filled..]) {
                Ok(read) => filled += read,
                // Marked as UTF-16, but something else.
                Err(error) if error.kind() == io::ErrorKind::InvalidData => return Ok(Outcome::Binary),
                Err(_) => return Ok(Outcome::Unreadable),
            }
            let is_last = filled < self.buffer.len();
            let window = &self.buffer[..filled];
            if std::mem::take(&mut is_beginning) {
                if memchr::memchr(0, &window[..filled.min(LOOKED_AT_BYTES)]).is_some() {
                    return Ok(Outcome::Binary);
                }
                if window.starts_with(UTF8_MARK) {
                    self.buffer.copy_within(UTF8_MARK.len()..filled, 0);
                    filled -= UTF8_MARK.len();
                    continue;
                }
            }
            // The lines that are shown after a match have to be at hand, and what is last has to be something.
            let whole_lines = if is_last { filled } else { start_of_line(window, 0) };
            let end = if is_last { filled } else { start_of_line(window, context.max(1)) };
            if end <= searched && !is_last {
                if self.buffer.len() >= self.largest_window_bytes {
                    return Ok(Outcome::TooLarge);
                }
                let more = (self.buffer.len() * 4).min(self.largest_window_bytes);
                self.buffer.resize(more, 0);
                continue;
            }
            if !each(Piece { text: &window[..whole_lines], part: searched..end, first_line, is_last })? || is_last {
                return Ok(Outcome::Text);
            }
            first_line += memchr::memchr_iter(b'\n', &window[searched..end]).count() as u64;
            let kept = start_of_line(&window[..end], context);
            self.buffer.copy_within(kept..filled, 0);
            filled -= kept;
            searched = end - kept;
            if self.buffer.len() < self.window_bytes {
                self.buffer.resize(self.window_bytes, 0);
            }
        }
    }
}

/// Where the line begins that has so many whole lines after it, up to the last newline.
fn start_of_line(text: &[u8], lines_after: usize) -> usize {
    memchr::memrchr_iter(b'\n', text).nth(lines_after).map_or(0, |newline| newline + 1)
}

/// Reads on, until the buffer is full or the file ends.
fn fill(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
#[path = "contents_tests.rs"]
mod tests;

//! Reads files as text for searches, large ones in parts.

use super::decoded::DecodingReader;
use std::io::{self, Read, Seek};
use toolrest_core::{Encoding, EncodingDetector, Interrupt, Result};
use toolrest_directory::Reader;
use toolrest_store::search::{Piece, stopped, without_mark};

/// Size of the parts in which larger files are searched. Every thread of every search may hold one.
const WINDOW_BYTES: usize = 4 << 20;

/// Maximum size of a line together with the lines that are shown around it.
const LARGEST_WINDOW_BYTES: usize = 64 << 20;

/// Number of bytes that are read at a time to detect the encoding of a larger file.
const PIECE_BYTES: usize = 256 << 10;

/// Initial size of the buffer. Most source files are smaller.
const FIRST_BYTES: usize = 64 << 10;

/// A buffer that is used for one file after the other.
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

/// The kind of content of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Text,
    Binary,
    TooLarge,
    Unreadable,
}

impl Contents {
    /// Passes the text of a file to a callback in parts, until the callback stops. Each part includes as many lines before
    /// and after it as are requested.
    ///
    /// Whether a file is text is decided by the whole file, so a larger one is read once before.
    pub(super) fn in_pieces(
        &mut self,
        mut file: Reader,
        context: usize,
        interrupt: &Interrupt,
        mut each: impl FnMut(Piece<'_>) -> Result<bool>,
    ) -> Result<Outcome> {
        let size = usize::try_from(file.metadata().size_bytes).unwrap_or(usize::MAX);
        if size == 0 {
            return Ok(Outcome::Text);
        }
        if self.buffer.len() > self.window_bytes {
            // Release the memory that one long line needed.
            self.buffer.truncate(self.window_bytes);
            self.buffer.shrink_to_fit();
        }
        let room = size.min(self.window_bytes);
        if self.buffer.len() < room {
            self.buffer.resize(room.max(FIRST_BYTES.min(self.window_bytes)), 0);
        }
        let Ok(read) = fill(&mut file, &mut self.buffer[..room]) else { return Ok(Outcome::Unreadable) };
        let begin = &self.buffer[..read];
        if size <= self.window_bytes {
            let text = Encoding::of(begin).and_then(|encoding| encoding.decode(begin).ok());
            let Some(text) = text else { return Ok(Outcome::Binary) };
            each(Piece::whole(without_mark(text.as_bytes())))?;
            return Ok(Outcome::Text);
        }
        let encoding = match encoding_of(begin, &mut file, interrupt) {
            Ok(Some(encoding)) => encoding,
            Ok(None) => return Ok(Outcome::Binary),
            Err(_) if interrupt.is_due() => return Err(stopped()),
            Err(_) => return Ok(Outcome::Unreadable),
        };
        if file.rewind().is_err() {
            return Ok(Outcome::Unreadable);
        }
        match encoding {
            Encoding::Utf8 => self.in_windows(&mut file, context, &mut each),
            other => self.in_windows(&mut DecodingReader::new(file, other), context, &mut each),
        }
    }

    /// Passes a text from its beginning on.
    fn in_windows(
        &mut self,
        text: &mut impl Read,
        context: usize,
        each: &mut dyn FnMut(Piece<'_>) -> Result<bool>,
    ) -> Result<Outcome> {
        let mut filled = 0;
        let mut first_line = 1;
        let mut searched = 0;
        let mut is_beginning = true;
        loop {
            match fill(text, &mut self.buffer[filled..]) {
                Ok(read) => filled += read,
                // The file was changed since its encoding was detected.
                Err(error) if error.kind() == io::ErrorKind::InvalidData => return Ok(Outcome::Binary),
                Err(_) => return Ok(Outcome::Unreadable),
            }
            let is_last = filled < self.buffer.len();
            let window = &self.buffer[..filled];
            if std::mem::take(&mut is_beginning) {
                let mark_bytes = filled - without_mark(window).len();
                if mark_bytes > 0 {
                    self.buffer.copy_within(mark_bytes..filled, 0);
                    filled -= mark_bytes;
                    continue;
                }
            }
            // Keep the lines that are shown after a match; the last part must not be empty.
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

/// Reads the rest of a file after its beginning, and returns its encoding; none if it is binary.
fn encoding_of(begin: &[u8], file: &mut impl Read, interrupt: &Interrupt) -> io::Result<Option<Encoding>> {
    let mut detector = EncodingDetector::new(begin);
    let mut may_be_text = detector.feed(begin);
    let mut piece = vec![0; PIECE_BYTES];
    while may_be_text {
        if interrupt.is_due() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let read = fill(file, &mut piece)?;
        if read == 0 {
            return Ok(detector.finish());
        }
        may_be_text = detector.feed(&piece[..read]);
    }
    Ok(None)
}

/// Returns the start of the line that has so many whole lines after it, up to the last newline.
fn start_of_line(text: &[u8], lines_after: usize) -> usize {
    memchr::memrchr_iter(b'\n', text).nth(lines_after).map_or(0, |newline| newline + 1)
}

/// Reads until the buffer is full or the file ends.
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

//! Splits a text into lines and their endings.

use memchr::memchr_iter;

/// How a line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LineEnding {
    Lf,
    CrLf,
    /// The last line of a text that has no final newline.
    Missing,
}

impl LineEnding {
    pub fn bytes(self) -> &'static [u8] {
        match self {
            Self::Lf => b"\n",
            Self::CrLf => b"\r\n",
            Self::Missing => b"",
        }
    }
}

/// A line of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// The line without its ending.
    pub body: &'a [u8],
    pub ending: LineEnding,
    /// Offset of the first byte of the line in the text.
    pub start: usize,
}

impl<'a> Line<'a> {
    /// Splits the ending off a line. `start` is its offset in the text.
    pub fn new(bytes: &'a [u8], start: usize) -> Self {
        let (body, ending) = match bytes {
            [body @ .., b'\r', b'\n'] => (body, LineEnding::CrLf),
            [body @ .., b'\n'] => (body, LineEnding::Lf),
            body => (body, LineEnding::Missing),
        };
        Self { body, ending, start }
    }

    /// Returns the offset after the body.
    pub fn body_end(&self) -> usize {
        self.start + self.body.len()
    }

    /// Returns the offset after the ending.
    pub fn end(&self) -> usize {
        self.body_end() + self.ending.bytes().len()
    }
}

/// Returns an iterator over the lines of a text. A final newline does not start one more line.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let mut start = 0;
    let ends = memchr_iter(b'\n', text).map(|newline| newline + 1).chain([text.len()]);
    ends.filter_map(move |end| {
        let line = (start < end).then(|| Line::new(&text[start..end], start));
        start = end;
        line
    })
}

/// Returns the lines of a text. A final newline does not start one more line.
pub(crate) fn split(text: &[u8]) -> Vec<Line<'_>> {
    let mut all = Vec::with_capacity(text.len() / 32 + 1);
    all.extend(lines(text));
    all
}

/// Returns the lines of a text; `None` if it has more than `max_lines`.
pub(crate) fn split_limited(text: &[u8], max_lines: usize) -> Option<Vec<Line<'_>>> {
    (count(text) <= max_lines).then(|| split(text))
}

/// Returns the number of lines of a text.
pub(crate) fn count(text: &[u8]) -> usize {
    let has_open_line = text.last().is_some_and(|last| *last != b'\n');
    memchr_iter(b'\n', text).count() + usize::from(has_open_line)
}

/// Returns the ending that all lines have; `None` if they differ. Missing endings are not counted.
pub(crate) fn common_ending(endings: impl Iterator<Item = LineEnding>) -> Option<LineEnding> {
    let mut endings = endings.filter(|ending| *ending != LineEnding::Missing);
    let first = endings.next()?;
    endings.all(|ending| ending == first).then_some(first)
}

/// Returns whether a line has anything but whitespace. Blank lines do not help to identify a position.
pub(crate) fn has_text(body: &[u8]) -> bool {
    !body.trim_ascii().is_empty()
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;

//! A text as lines, each with the ending it has.

use memchr::memchr_iter;

/// How a line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ending {
    Lf,
    CrLf,
    /// The last line of a text that has no final newline.
    Missing,
}

impl Ending {
    pub fn bytes(self) -> &'static [u8] {
        match self {
            Self::Lf => b"\n",
            Self::CrLf => b"\r\n",
            Self::Missing => b"",
        }
    }
}

/// A line and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// The line without its ending.
    pub body: &'a [u8],
    pub ending: Ending,
    /// The offset of its first byte in the text.
    pub start: usize,
}

impl<'a> Line<'a> {
    /// Takes a line apart that may end in a newline.
    pub fn new(bytes: &'a [u8], start: usize) -> Self {
        let (body, ending) = match bytes {
            [body @ .., b'\r', b'\n'] => (body, Ending::CrLf),
            [body @ .., b'\n'] => (body, Ending::Lf),
            body => (body, Ending::Missing),
        };
        Self { body, ending, start }
    }

    /// The offset just after its body.
    pub fn body_end(&self) -> usize {
        self.start + self.body.len()
    }

    /// The offset just after its ending.
    pub fn end(&self) -> usize {
        self.body_end() + self.ending.bytes().len()
    }
}

/// The lines of a text, one after the other. A final newline does not count as one more line.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let mut start = 0;
    let ends = memchr_iter(b'\n', text).map(|newline| newline + 1).chain([text.len()]);
    ends.filter_map(move |end| {
        let line = (start < end).then(|| Line::new(&text[start..end], start));
        start = end;
        line
    })
}

/// The lines of a text. A final newline does not count as one more line.
pub(crate) fn split(text: &[u8]) -> Vec<Line<'_>> {
    let mut all = Vec::with_capacity(text.len() / 32 + 1);
    all.extend(lines(text));
    all
}

/// The lines of a text; nothing if there are more than so many.
pub(crate) fn split_within(text: &[u8], most_lines: usize) -> Option<Vec<Line<'_>>> {
    (memchr_iter(b'\n', text).count() < most_lines).then(|| split(text))
}

/// The ending that all lines agree on, if they do.
pub(crate) fn agreed(endings: impl Iterator<Item = Ending>) -> Option<Ending> {
    let mut endings = endings.filter(|ending| *ending != Ending::Missing);
    let first = endings.next()?;
    endings.all(|ending| ending == first).then_some(first)
}

/// Whether a line says anything: blank lines are no evidence of a place.
pub(crate) fn is_solid(body: &[u8]) -> bool {
    !body.trim_ascii().is_empty()
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;

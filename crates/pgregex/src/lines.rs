//! Walks over the lines of a text that match.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use regex_automata::Input;

use crate::engine::Engine;
use crate::error::MatchError;
use crate::regex::{Finder, Regex};

/// The ranges of the lines that match, without their newlines.
///
/// After [`MatchError::StepLimit`], which concerns one line only, the next call goes on behind that line. An
/// interruption ends the walk.
#[derive(Debug)]
pub struct MatchingLines<'r, 't> {
    regex: &'r Regex,
    text: &'t [u8],
    interrupt: Option<&'r AtomicBool>,
    /// Where the next line begins; none behind the last one.
    next: Option<usize>,
    /// What is being searched.
    piece: Option<Piece<'r>>,
}

/// Some whole lines that are searched in one go, up to the newline at the end, or to that of the text.
#[derive(Debug, Clone, Copy)]
struct Piece<'r> {
    end: usize,
    search: Search<'r>,
}

/// How a piece is searched.
#[derive(Debug, Clone, Copy)]
enum Search<'r> {
    With(&'r Engine, Extent, Certainty),
    /// As one line, by what every line can be decided with.
    Slow,
}

/// Whether an engine may search a piece in one go, or has to look at the flag meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    Lines,
    LongLine,
}

/// Whether a line that an engine found is sure to match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Certainty {
    Sure,
    ToVerify,
}

impl<'r, 't> MatchingLines<'r, 't> {
    pub(crate) fn new(regex: &'r Regex, text: &'t [u8]) -> Self {
        Self { regex, text, interrupt: None, next: (!text.is_empty()).then_some(0), piece: None }
    }

    /// Goes on at the line that begins at `offset`, or that holds it.
    #[must_use]
    pub fn starting_at(mut self, offset: usize) -> Self {
        self.next = (offset <= self.text.len() && !self.text.is_empty()).then(|| self.line_around(offset).start);
        self.piece = None;
        self
    }

    /// Ends with [`MatchError::Interrupted`] soon after the flag is set, whatever the pattern and the text.
    #[must_use]
    pub fn interrupted_by(mut self, flag: &'r AtomicBool) -> Self {
        self.interrupt = Some(flag);
        self.piece = None;
        self
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    fn line_around(&self, place: usize) -> Range<usize> {
        let (before, after) = self.text.split_at(place);
        let start = memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
        let end = memchr::memchr(b'\n', after).map_or(self.text.len(), |newline| place + newline);
        start..end
    }

    /// Gives the piece that holds the line at `from`, which goes on as far as it can be searched in one go.
    fn piece(&self, from: usize) -> Piece<'r> {
        let finder = self.regex.finder();
        let (Finder::Exact(engine) | Finder::Filter(Some(engine)) | Finder::Words { filter: Some(engine), .. }) =
            finder
        else {
            return Piece { end: self.line_around(from).end, search: Search::Slow };
        };
        let rest = &self.text[from..];
        let (length, extent) = match self.interrupt {
            Some(_) if rest.len() > engine.text_in_one_go => {
                match memchr::memrchr(b'\n', &rest[..engine.text_in_one_go]) {
                    Some(newline) => (newline, Extent::Lines),
                    None => (self.line_around(from).len(), Extent::LongLine),
                }
            }
            _ => (rest.len(), Extent::Lines),
        };
        let (engine, certainty) = match finder {
            Finder::Exact(_) => (engine, Certainty::Sure),
            Finder::Words { ascii: Some(ascii), .. } if rest[..length].is_ascii() => (ascii, Certainty::Sure),
            _ => (engine, Certainty::ToVerify),
        };
        Piece { end: from + length, search: Search::With(engine, extent, certainty) }
    }

    /// Searches a piece from one of its lines on; gives the next line that matches or, in the error, that fails.
    fn search(&self, piece: Piece, from: usize) -> Result<Option<Range<usize>>, (MatchError, Range<usize>)> {
        let mut from = from;
        loop {
            let line = match piece.search {
                Search::With(engine, Extent::Lines, _) => {
                    match engine.find(Input::new(self.text).range(from..piece.end)) {
                        Some(place) => self.line_around(place),
                        None => return Ok(None),
                    }
                }
                Search::With(_, Extent::LongLine, _) | Search::Slow => from..piece.end,
            };
            if self.decide(piece.search, &self.text[line.clone()]).map_err(|error| (error, line.clone()))? {
                return Ok(Some(line));
            }
            if line.end >= piece.end {
                return Ok(None);
            }
            from = line.end + 1;
        }
    }

    /// Tells whether a line matches that a search has found.
    fn decide(&self, search: Search, line: &[u8]) -> Result<bool, MatchError> {
        match (search, self.interrupt) {
            (Search::With(_, Extent::Lines, Certainty::Sure), _) => return Ok(true),
            (Search::With(engine, Extent::LongLine, certainty), Some(flag)) => {
                match engine.is_match_steady(line, flag) {
                    Some(Ok(true)) if certainty == Certainty::ToVerify => {}
                    Some(answer) => return answer,
                    None => {}
                }
            }
            _ if self.is_interrupted() => return Err(MatchError::Interrupted),
            _ => {}
        }
        self.regex.verify(line, self.interrupt)
    }
}

impl Iterator for MatchingLines<'_, '_> {
    type Item = Result<Range<usize>, MatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(from) = self.next.take() {
            if self.is_interrupted() {
                return Some(Err(MatchError::Interrupted));
            }
            let piece = match self.piece {
                Some(piece) if from <= piece.end => piece,
                _ => *self.piece.insert(self.piece(from)),
            };
            let found = self.search(piece, from);
            let end = match &found {
                Err((MatchError::Interrupted, _)) => self.text.len(),
                Ok(Some(line)) | Err((_, line)) => line.end,
                Ok(None) => piece.end,
            };
            self.next = (end < self.text.len()).then_some(end + 1);
            match found {
                Ok(Some(line)) => return Some(Ok(line)),
                Ok(None) => {}
                Err((error, _)) => return Some(Err(error)),
            }
        }
        None
    }
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;

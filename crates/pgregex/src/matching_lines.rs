//! The iterator over the matching lines of a text.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use regex_automata::Input;

use crate::automaton::Automaton;
use crate::error::MatchError;
use crate::regex::{FastPath, Regex};

/// An iterator over the ranges of matching lines, without their newlines.
///
/// [`MatchError::StepLimit`] concerns one line only: the iterator continues with the line after it.
/// [`MatchError::Interrupted`] is the last item.
#[derive(Debug)]
pub struct MatchingLines<'r, 't> {
    regex: &'r Regex,
    text: &'t [u8],
    interrupt: Option<&'r AtomicBool>,
    /// Offset at which the next line starts; `None` after the last line.
    next: Option<usize>,
    /// The chunk that is being searched.
    chunk: Option<Chunk<'r>>,
}

/// Whole lines that are searched between two checks of the interrupt flag.
#[derive(Debug, Clone, Copy)]
struct Chunk<'r> {
    /// Offset of the newline after the last line, or the length of the text.
    end: usize,
    search: Search<'r>,
}

/// How a chunk is searched.
#[derive(Debug, Clone, Copy)]
enum Search<'r> {
    Automaton(&'r Automaton, ChunkKind, Accuracy),
    /// The chunk is one line, which `Regex::verify` decides.
    ExactMatcher,
}

/// What a chunk consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChunkKind {
    /// Lines that can be searched without checking the interrupt flag.
    Lines,
    /// One line that is so long that the flag has to be checked while it is searched.
    LongLine,
}

/// Whether every line that an automaton finds matches, or has to be verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Accuracy {
    Exact,
    NeedsVerification,
}

impl<'r, 't> MatchingLines<'r, 't> {
    pub(crate) fn new(regex: &'r Regex, text: &'t [u8]) -> Self {
        Self { regex, text, interrupt: None, next: (!text.is_empty()).then_some(0), chunk: None }
    }

    /// Starts the iteration at the line that contains `offset`.
    #[must_use]
    pub fn starting_at(mut self, offset: usize) -> Self {
        self.next = (offset <= self.text.len() && !self.text.is_empty()).then(|| self.line_around(offset).start);
        self.chunk = None;
        self
    }

    /// Sets the interrupt flag. Soon after it becomes true, the iteration ends with [`MatchError::Interrupted`],
    /// whatever the pattern and the text.
    #[must_use]
    pub fn interrupted_by(mut self, flag: &'r AtomicBool) -> Self {
        self.interrupt = Some(flag);
        self.chunk = None;
        self
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// Returns the line that contains a position.
    fn line_around(&self, position: usize) -> Range<usize> {
        let (before, after) = self.text.split_at(position);
        let start = memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
        let end = memchr::memchr(b'\n', after).map_or(self.text.len(), |newline| position + newline);
        start..end
    }

    /// Returns the chunk that starts with the line at `from`: as many lines as can be searched without checking the
    /// interrupt flag.
    fn chunk_at(&self, from: usize) -> Chunk<'r> {
        let fast_path = self.regex.fast_path();
        let (FastPath::Exact(automaton)
        | FastPath::Filter(Some(automaton))
        | FastPath::WordBoundaries { filter: Some(automaton), .. }) = fast_path
        else {
            return Chunk { end: self.line_around(from).end, search: Search::ExactMatcher };
        };
        let rest = &self.text[from..];
        let (length, kind) = match self.interrupt {
            Some(_) if rest.len() > automaton.chunk_bytes => {
                match memchr::memrchr(b'\n', &rest[..automaton.chunk_bytes]) {
                    Some(newline) => (newline, ChunkKind::Lines),
                    None => (self.line_around(from).len(), ChunkKind::LongLine),
                }
            }
            _ => (rest.len(), ChunkKind::Lines),
        };
        let (automaton, accuracy) = match fast_path {
            FastPath::Exact(_) => (automaton, Accuracy::Exact),
            FastPath::WordBoundaries { ascii: Some(ascii), .. } if rest[..length].is_ascii() => {
                (ascii, Accuracy::Exact)
            }
            _ => (automaton, Accuracy::NeedsVerification),
        };
        Chunk { end: from + length, search: Search::Automaton(automaton, kind, accuracy) }
    }

    /// Searches a chunk from the line at `from` on. Returns the next line that matches; an error comes with the line on
    /// which it occurred.
    fn search(&self, chunk: Chunk, from: usize) -> Result<Option<Range<usize>>, (MatchError, Range<usize>)> {
        let mut from = from;
        loop {
            let line = match chunk.search {
                Search::Automaton(automaton, ChunkKind::Lines, _) => {
                    match automaton.find(Input::new(self.text).range(from..chunk.end)) {
                        Some(position) => self.line_around(position),
                        None => return Ok(None),
                    }
                }
                Search::Automaton(_, ChunkKind::LongLine, _) | Search::ExactMatcher => from..chunk.end,
            };
            if self.is_match(chunk.search, &self.text[line.clone()]).map_err(|error| (error, line.clone()))? {
                return Ok(Some(line));
            }
            if line.end >= chunk.end {
                return Ok(None);
            }
            from = line.end + 1;
        }
    }

    /// Returns whether a line matches that a search has found, or that has not been searched yet.
    fn is_match(&self, search: Search, line: &[u8]) -> Result<bool, MatchError> {
        match (search, self.interrupt) {
            (Search::Automaton(_, ChunkKind::Lines, Accuracy::Exact), _) => return Ok(true),
            (Search::Automaton(automaton, ChunkKind::LongLine, accuracy), Some(flag)) => {
                match automaton.is_match_interruptible(line, flag) {
                    Some(Ok(true)) if accuracy == Accuracy::NeedsVerification => {}
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
            let chunk = match self.chunk {
                Some(chunk) if from <= chunk.end => chunk,
                _ => *self.chunk.insert(self.chunk_at(from)),
            };
            let found = self.search(chunk, from);
            let end = match &found {
                Err((MatchError::Interrupted, _)) => self.text.len(),
                Ok(Some(line)) | Err((_, line)) => line.end,
                Ok(None) => chunk.end,
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
#[path = "matching_lines_tests.rs"]
mod tests;

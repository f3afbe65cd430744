//! A cursor over the characters of a pattern.

use crate::error::ErrorKind;

/// The kind of a syntax error and the index of the character at which it was found.
pub(crate) type SyntaxError = (ErrorKind, usize);

pub(crate) type ParseResult<T> = Result<T, SyntaxError>;

/// Reads a pattern character by character.
#[derive(Debug)]
pub(crate) struct Cursor<'p> {
    pattern: &'p [char],
    pub(crate) position: usize,
}

impl<'p> Cursor<'p> {
    pub(crate) fn new(pattern: &'p [char], position: usize) -> Self {
        Self { pattern, position }
    }

    /// Returns the characters that have not been read yet.
    pub(crate) fn rest(&self) -> &'p [char] {
        self.pattern.get(self.position..).unwrap_or_default()
    }

    /// Returns the next character without reading it.
    pub(crate) fn peek(&self) -> Option<char> {
        self.rest().first().copied()
    }

    /// Reads the next character.
    pub(crate) fn take(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.position += 1;
        Some(character)
    }

    /// Returns whether the text comes next.
    pub(crate) fn is_at(&self, text: &str) -> bool {
        let mut rest = self.rest().iter();
        text.chars().all(|expected| rest.next() == Some(&expected))
    }

    /// Reads the text if it comes next; returns whether it does.
    pub(crate) fn eat(&mut self, text: &str) -> bool {
        let found = self.is_at(text);
        if found {
            self.position += text.chars().count();
        }
        found
    }

    /// Reads up to and including the next `end`, or everything if there is none.
    pub(crate) fn skip_past(&mut self, end: char) {
        while self.take().is_some_and(|character| character != end) {}
    }

    /// Reads one digit in this base, if one comes next.
    pub(crate) fn digit(&mut self, base: u32) -> Option<u32> {
        let digit = self.peek()?.to_digit(base)?;
        self.position += 1;
        Some(digit)
    }
}

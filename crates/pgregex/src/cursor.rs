//! A place in a pattern, and the ways to move it on.

use crate::error::ErrorKind;

/// What is wrong with a pattern, and at which character.
pub(crate) type Fault = (ErrorKind, usize);

pub(crate) type Parsed<T> = Result<T, Fault>;

/// Reads a pattern character by character.
#[derive(Debug)]
pub(crate) struct Cursor<'p> {
    pattern: &'p [char],
    pub(crate) place: usize,
}

impl<'p> Cursor<'p> {
    pub(crate) fn new(pattern: &'p [char], place: usize) -> Self {
        Self { pattern, place }
    }

    /// Gives what has not been read yet.
    pub(crate) fn rest(&self) -> &'p [char] {
        self.pattern.get(self.place..).unwrap_or_default()
    }

    pub(crate) fn peek(&self) -> Option<char> {
        self.rest().first().copied()
    }

    pub(crate) fn take(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.place += 1;
        Some(character)
    }

    pub(crate) fn is_at(&self, text: &str) -> bool {
        let mut rest = self.rest().iter();
        text.chars().all(|expected| rest.next() == Some(&expected))
    }

    /// Moves behind the text if it stands here.
    pub(crate) fn eat(&mut self, text: &str) -> bool {
        let found = self.is_at(text);
        if found {
            self.place += text.chars().count();
        }
        found
    }

    /// Moves behind the next such character, or to the end.
    pub(crate) fn skip_past(&mut self, end: char) {
        while self.take().is_some_and(|character| character != end) {}
    }

    /// Takes one digit of a number in this base.
    pub(crate) fn digit(&mut self, base: u32) -> Option<u32> {
        let digit = self.peek()?.to_digit(base)?;
        self.place += 1;
        Some(digit)
    }
}

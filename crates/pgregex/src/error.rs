//! What can go wrong: a pattern that PostgreSQL refuses, or a search that takes too long.

use thiserror::Error;

/// Why a pattern is refused, in PostgreSQL's own words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// `***?`, which asks for the version of the library.
    #[error("invalid regexp (reg version 0.8)")]
    Version,
    /// `[[.name.]]` or `[[=name=]]` with a name that is not one of a character.
    #[error("invalid collating element")]
    CollatingElement,
    /// `[[:name:]]` with an unknown name.
    #[error("invalid character class")]
    CharacterClass,
    /// A backslash at the end, or one with a letter or digits that mean nothing.
    #[error("invalid escape \\ sequence")]
    Escape,
    /// A back-reference to a group that is not complete, or one inside look-around.
    #[error("invalid backreference number")]
    BackReference,
    /// A bracket expression without its end.
    #[error("brackets [] not balanced")]
    Brackets,
    /// A group without its end, or an end without its group.
    #[error("parentheses () not balanced")]
    Parentheses,
    /// A bound without its end.
    #[error("braces {{}} not balanced")]
    Braces,
    /// A bound above 255, with its numbers in the wrong order, or with other characters in it.
    #[error("invalid repetition count(s)")]
    RepetitionCount,
    /// A range with its ends in the wrong order, or with an end that is a class.
    #[error("invalid character range")]
    CharacterRange,
    /// A quantifier with nothing that it could repeat.
    #[error("quantifier operand invalid")]
    QuantifierOperand,
    /// An unknown letter in `(?letters)` at the start.
    #[error("invalid embedded option")]
    EmbeddedOption,
    /// Nested or repeated too much.
    #[error("regular expression is too complex")]
    TooComplex,
}

/// A pattern that PostgreSQL would refuse, or that exceeds a limit of this crate.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid regular expression: {kind} (at character {character})")]
pub struct Error {
    kind: ErrorKind,
    offset: usize,
    character: usize,
}

impl Error {
    /// Makes the error for a place counted in characters from zero.
    pub(crate) fn at(kind: ErrorKind, pattern: &[char], index: usize) -> Self {
        let index = index.min(pattern.len());
        let offset = pattern[..index].iter().map(|character| character.len_utf8()).sum();
        Self { kind, offset, character: index + 1 }
    }

    /// Gives the reason; its `Display` is PostgreSQL's message without the leading "invalid regular expression".
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Gives the byte offset in the pattern at which the reading stopped.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Gives the number of the character at which the reading stopped, counted from one.
    pub fn character(&self) -> usize {
        self.character
    }
}

/// A search that was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MatchError {
    /// Look-around or back-references needed more steps than the options allow for one line.
    #[error("the search took more than {limit} steps on one line; simplify the look-around or back-references")]
    StepLimit {
        /// The limit that was reached.
        limit: u64,
    },
    /// The caller's flag was set.
    #[error("the search was interrupted")]
    Interrupted,
}

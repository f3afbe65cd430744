//! The errors of this crate: a pattern is refused, or a search is given up.

use thiserror::Error;

/// Why a pattern is refused. The messages are PostgreSQL's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// `***?`, by which the regular expression library is asked for its version.
    #[error("invalid regexp (reg version 0.8)")]
    Version,
    /// `[[.name.]]` or `[[=name=]]` with a name that is not the name of a character.
    #[error("invalid collating element")]
    CollatingElement,
    /// `[[:name:]]` with an unknown name.
    #[error("invalid character class")]
    CharacterClass,
    /// A backslash at the end, or before a letter or digits that have no meaning.
    #[error("invalid escape \\ sequence")]
    Escape,
    /// A back-reference to a group that is not closed yet, or a back-reference inside look-around.
    #[error("invalid backreference number")]
    BackReference,
    /// A bracket expression without `]`.
    #[error("brackets [] not balanced")]
    Brackets,
    /// A group without `)`, or a `)` without a group.
    #[error("parentheses () not balanced")]
    Parentheses,
    /// A bound without `}`.
    #[error("braces {{}} not balanced")]
    Braces,
    /// A bound above 255, with its numbers in the wrong order, or with other characters in it.
    #[error("invalid repetition count(s)")]
    RepetitionCount,
    /// A range with its ends in the wrong order, or with an end that is a class.
    #[error("invalid character range")]
    CharacterRange,
    /// A quantifier that has nothing to repeat.
    #[error("quantifier operand invalid")]
    QuantifierOperand,
    /// An unknown letter in `(?letters)` at the start.
    #[error("invalid embedded option")]
    EmbeddedOption,
    /// The pattern has too many nested groups or too many repetitions.
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
    /// Creates the error for the character with this index, counted from zero.
    pub(crate) fn at(kind: ErrorKind, pattern: &[char], index: usize) -> Self {
        let index = index.min(pattern.len());
        let offset = pattern[..index].iter().map(|character| character.len_utf8()).sum();
        Self { kind, offset, character: index + 1 }
    }

    /// Returns the reason. Its `Display` is PostgreSQL's message without "invalid regular expression: " at the start.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the byte offset in the pattern at which parsing stopped.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the number of the character at which parsing stopped, counted from one.
    pub fn character(&self) -> usize {
        self.character
    }
}

/// Why a search was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MatchError {
    /// Look-around or back-references needed more steps than the options allow for one line.
    #[error("the search took more than {limit} steps on one line; simplify the look-around or back-references")]
    StepLimit {
        /// The limit that was exceeded.
        limit: u64,
    },
    /// The caller set the interrupt flag.
    #[error("the search was interrupted")]
    Interrupted,
}

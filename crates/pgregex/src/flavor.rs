//! The start of a pattern: `***=`, `***:` and `(?letters)` choose the flavour and the options.

use crate::classes::Class;
use crate::error::ErrorKind;

/// The language a pattern is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavor {
    Advanced,
    Extended,
    Basic,
    Literal,
}

/// What the start of a pattern decides.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    pub(crate) flavor: Flavor,
    pub(crate) case_insensitive: bool,
    /// Whether white space and comments are left out.
    pub(crate) expanded: bool,
    /// How many characters were read.
    pub(crate) length: usize,
}

/// Reads the start of a pattern; the error comes with its place in characters.
pub(crate) fn head(pattern: &[char], case_insensitive: bool) -> Result<Head, (ErrorKind, usize)> {
    let mut head = Head { flavor: Flavor::Advanced, case_insensitive, expanded: false, length: 0 };
    if let ['*', '*', '*', director, ..] = pattern {
        match director {
            '?' => return Err((ErrorKind::Version, 3)),
            '=' => return Ok(Head { flavor: Flavor::Literal, length: 4, ..head }),
            ':' => head.length = 4,
            _ => return Err((ErrorKind::QuantifierOperand, 0)),
        }
    }
    if let ['(', '?', letter, ..] = &pattern[head.length..]
        && is_letter(*letter)
    {
        embedded_options(pattern, &mut head)?;
    }
    Ok(head)
}

fn embedded_options(pattern: &[char], head: &mut Head) -> Result<(), (ErrorKind, usize)> {
    // The letters act one after the other on independent flags: what counts is what is left at the end.
    let (mut extended, mut advanced, mut literal) = (true, true, false);
    let mut place = head.length + 2;
    while let Some(letter) = pattern.get(place).filter(|letter| is_letter(**letter)) {
        match letter {
            'b' => (extended, advanced, literal) = (false, false, false),
            'c' => head.case_insensitive = false,
            'e' => (extended, advanced, literal) = (true, false, false),
            'i' => head.case_insensitive = true,
            // How newlines are treated makes no difference within one line.
            'm' | 'n' | 'p' | 's' | 'w' => {}
            'q' => (extended, advanced, literal) = (false, false, true),
            't' => head.expanded = false,
            'x' => head.expanded = true,
            _ => return Err((ErrorKind::EmbeddedOption, place)),
        }
        place += 1;
    }
    if pattern.get(place) != Some(&')') {
        return Err((ErrorKind::EmbeddedOption, place));
    }
    head.length = place + 1;
    head.flavor = match (literal, extended, advanced) {
        (true, ..) => Flavor::Literal,
        (_, false, _) => Flavor::Basic,
        (_, true, false) => Flavor::Extended,
        (_, true, true) => Flavor::Advanced,
    };
    head.expanded &= !literal;
    Ok(())
}

/// Any letter of any alphabet: those that are no option are refused as one.
fn is_letter(character: char) -> bool {
    Class::Alpha.contains(character.into())
}

//! The prefix of a pattern (`***=`, `***:`, `(?letters)`), which selects the flavour and the options.

use crate::classes::Class;
use crate::cursor::ParseResult;
use crate::error::ErrorKind;

/// The regular expression language in which a pattern is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavor {
    Advanced,
    Extended,
    Basic,
    Literal,
}

/// The flavour and options that the prefix of a pattern selects.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prefix {
    pub(crate) flavor: Flavor,
    pub(crate) case_insensitive: bool,
    /// Whether the parser skips white space and comments, as `(?x)` asks for.
    pub(crate) expanded: bool,
    /// Length of the prefix in characters.
    pub(crate) length: usize,
}

/// Parses the prefix; without one the pattern is in the advanced flavour.
pub(crate) fn parse(pattern: &[char], case_insensitive: bool) -> ParseResult<Prefix> {
    let mut prefix = Prefix { flavor: Flavor::Advanced, case_insensitive, expanded: false, length: 0 };
    if let ['*', '*', '*', director, ..] = pattern {
        match director {
            '?' => return Err((ErrorKind::Version, 3)),
            '=' => return Ok(Prefix { flavor: Flavor::Literal, length: 4, ..prefix }),
            ':' => prefix.length = 4,
            _ => return Err((ErrorKind::QuantifierOperand, 0)),
        }
    }
    if let ['(', '?', letter, ..] = &pattern[prefix.length..]
        && is_letter(*letter)
    {
        embedded_options(pattern, &mut prefix)?;
    }
    Ok(prefix)
}

/// Parses `(?letters)`.
fn embedded_options(pattern: &[char], prefix: &mut Prefix) -> ParseResult<()> {
    // Each letter sets or clears these flags; only their final values count.
    let (mut extended, mut advanced, mut literal) = (true, true, false);
    let mut position = prefix.length + 2;
    while let Some(letter) = pattern.get(position).filter(|letter| is_letter(**letter)) {
        match letter {
            'b' => (extended, advanced, literal) = (false, false, false),
            'c' => prefix.case_insensitive = false,
            'e' => (extended, advanced, literal) = (true, false, false),
            'i' => prefix.case_insensitive = true,
            // How newlines are treated makes no difference within one line.
            'm' | 'n' | 'p' | 's' | 'w' => {}
            'q' => (extended, advanced, literal) = (false, false, true),
            't' => prefix.expanded = false,
            'x' => prefix.expanded = true,
            _ => return Err((ErrorKind::EmbeddedOption, position)),
        }
        position += 1;
    }
    if pattern.get(position) != Some(&')') {
        return Err((ErrorKind::EmbeddedOption, position));
    }
    prefix.length = position + 1;
    prefix.flavor = match (literal, extended, advanced) {
        (true, ..) => Flavor::Literal,
        (_, false, _) => Flavor::Basic,
        (_, true, false) => Flavor::Extended,
        (_, true, true) => Flavor::Advanced,
    };
    prefix.expanded &= !literal;
    Ok(())
}

/// Returns whether a character is a letter of any script. Letters that are not options are refused as invalid options.
fn is_letter(character: char) -> bool {
    Class::Alpha.contains(character.into())
}

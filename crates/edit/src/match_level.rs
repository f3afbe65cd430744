//! Match levels: how strictly a text is compared, and which differences each level ignores.

use std::borrow::Cow;
use std::fmt;

/// How strictly two texts are compared, from the strictest level to the loosest. All levels ignore differences in line
/// endings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MatchLevel {
    /// Compares the lines byte for byte.
    Exact,
    /// Ignores whitespace at the ends of lines.
    TrailingWhitespace,
    /// Ignores whitespace at the ends of lines, and treats typographic quotes, dashes, spaces and the ellipsis as their
    /// ASCII forms.
    Punctuation,
    /// Ignores whitespace at the ends of lines, and indentation that differs in the same way on all lines: by the same
    /// amount, or tabs instead of spaces or the reverse. Does not ignore punctuation.
    Indentation,
    /// Ignores whitespace at the ends of lines, and one different, missing or extra context line of a hunk. Deleted
    /// lines must match.
    FaultyContext,
}

impl MatchLevel {
    /// Returns the name of the level in tool results (`matched_with`).
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::TrailingWhitespace => "trailing_whitespace",
            Self::Punctuation => "punctuation",
            Self::Indentation => "indentation",
            Self::FaultyContext => "faulty_context",
        }
    }

    /// Describes the differences that this level ignores, for messages.
    pub(crate) fn ignores(self) -> &'static str {
        match self {
            Self::Exact => "nothing but line endings",
            Self::TrailingWhitespace => "whitespace at the ends of lines",
            Self::Punctuation => "typographic quotes, dashes and spaces",
            Self::Indentation => "indentation",
            Self::FaultyContext => "one context line",
        }
    }

    /// Returns the normalised form of a line that is compared at this level: two lines match if their keys are equal.
    pub(crate) fn comparison_key(self, body: &[u8]) -> Cow<'_, [u8]> {
        match self {
            Self::Exact => Cow::Borrowed(body),
            Self::TrailingWhitespace | Self::FaultyContext => Cow::Borrowed(body.trim_ascii_end()),
            Self::Punctuation => match plain_punctuation(body) {
                Cow::Borrowed(plain) => Cow::Borrowed(plain.trim_ascii_end()),
                Cow::Owned(plain) => Cow::Owned(plain.trim_ascii_end().to_vec()),
            },
            Self::Indentation => Cow::Borrowed(body.trim_ascii()),
        }
    }
}

impl fmt::Display for MatchLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Returns the ASCII form of a typographic character; `None` for other characters.
pub(crate) fn ascii_form(character: char) -> Option<&'static str> {
    Some(match character {
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{FE58}' | '\u{FE63}' | '\u{FF0D}' => "-",
        '\u{2018}'..='\u{201B}' | '\u{2032}' => "'",
        '\u{201C}'..='\u{201F}' | '\u{2033}' => "\"",
        '\u{2026}' => "...",
        '\u{A0}' | '\u{2000}'..='\u{200A}' | '\u{202F}' | '\u{205F}' | '\u{3000}' => " ",
        _ => return None,
    })
}

/// Replaces typographic characters by their ASCII forms. Bytes that are not UTF-8 stay.
fn plain_punctuation(text: &[u8]) -> Cow<'_, [u8]> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut plain = Vec::with_capacity(text.len());
    for chunk in text.utf8_chunks() {
        for character in chunk.valid().chars() {
            match ascii_form(character) {
                Some(form) => plain.extend_from_slice(form.as_bytes()),
                None => plain.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        plain.extend_from_slice(chunk.invalid());
    }
    Cow::Owned(plain)
}

#[cfg(test)]
#[path = "match_level_tests.rs"]
mod tests;

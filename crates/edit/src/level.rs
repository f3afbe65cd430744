//! How strictly a text was compared when it was found, and what each level overlooks.

use std::borrow::Cow;
use std::fmt;

/// How strictly a text had to be compared to be found. A difference in line endings alone is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Byte for byte.
    Exact,
    /// Blanks at the ends of lines do not count.
    TrailingWhitespace,
    /// Also, typographic quotes, dashes, spaces and the ellipsis count as their ASCII forms.
    Punctuation,
    /// All lines are indented by the same amount more or less, or with tabs for spaces or the reverse.
    Indentation,
    /// One context line of a patch differs; deleted lines never do.
    FaultyContext,
}

impl Level {
    /// The level's name in replies (`matched_with`).
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::TrailingWhitespace => "trailing_whitespace",
            Self::Punctuation => "punctuation",
            Self::Indentation => "indentation",
            Self::FaultyContext => "faulty_context",
        }
    }

    /// What this level overlooks, in words.
    pub(crate) fn overlooks(self) -> &'static str {
        match self {
            Self::Exact => "nothing but line endings",
            Self::TrailingWhitespace => "whitespace at the ends of lines",
            Self::Punctuation => "typographic quotes, dashes and spaces",
            Self::Indentation => "indentation",
            Self::FaultyContext => "one context line",
        }
    }

    /// What is left of a line to compare at this level.
    pub(crate) fn key(self, body: &[u8]) -> Cow<'_, [u8]> {
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

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The ASCII form of a typographic character, if it has one.
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

/// A text with its typographic characters in their ASCII forms. Bytes that are no UTF-8 stay.
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
#[path = "level_tests.rs"]
mod tests;

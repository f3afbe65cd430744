//! Character classes and case conversion of PostgreSQL with the locale C.UTF-8.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use crate::tables;

/// A character class: `[[:name:]]`, `\d`, `\s` or `\w`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Alnum,
    Alpha,
    Ascii,
    Blank,
    Cntrl,
    Digit,
    Graph,
    Lower,
    Print,
    Punct,
    Space,
    Upper,
    Word,
    Xdigit,
}

impl Class {
    /// Returns the class of `[[:name:]]`.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "alnum" => Self::Alnum,
            "alpha" => Self::Alpha,
            "ascii" => Self::Ascii,
            "blank" => Self::Blank,
            "cntrl" => Self::Cntrl,
            "digit" => Self::Digit,
            "graph" => Self::Graph,
            "lower" => Self::Lower,
            "print" => Self::Print,
            "punct" => Self::Punct,
            "space" => Self::Space,
            "upper" => Self::Upper,
            "word" => Self::Word,
            "xdigit" => Self::Xdigit,
            _ => return None,
        })
    }

    fn ranges(self) -> &'static [(u32, u32)] {
        match self {
            Self::Alnum => tables::ALNUM,
            Self::Alpha => tables::ALPHA,
            Self::Ascii => tables::ASCII,
            Self::Blank => tables::BLANK,
            Self::Cntrl => tables::CNTRL,
            Self::Digit => tables::DIGIT,
            Self::Graph => tables::GRAPH,
            Self::Lower => tables::LOWER,
            Self::Print => tables::PRINT,
            Self::Punct => tables::PUNCT,
            Self::Space => tables::SPACE,
            Self::Upper => tables::UPPER,
            Self::Word => tables::WORD,
            Self::Xdigit => tables::XDIGIT,
        }
    }

    pub(crate) fn contains(self, code: u32) -> bool {
        let ranges = self.ranges();
        let index = ranges.partition_point(|&(_, end)| end < code);
        ranges.get(index).is_some_and(|&(start, _)| start <= code)
    }

    /// Returns the members. If case is ignored, `lower` and `upper` contain all letters.
    pub(crate) fn set(self, case_insensitive: bool) -> ClassUnicode {
        let class = match self {
            Self::Lower | Self::Upper if case_insensitive => Self::Alpha,
            class => class,
        };
        let mut set = ClassUnicode::empty();
        for &(start, end) in class.ranges() {
            push_range(&mut set, start, end);
        }
        set
    }
}

/// Returns whether a code point is a word character.
pub(crate) fn is_word(code: u32) -> bool {
    if let Ok(byte) = u8::try_from(code)
        && byte.is_ascii()
    {
        return byte.is_ascii_alphanumeric() || byte == b'_';
    }
    Class::Word.contains(code)
}

/// Adds a range of code points. Surrogates and code points beyond Unicode are left out, as no text contains them.
fn push_range(set: &mut ClassUnicode, start: u32, end: u32) {
    const SURROGATES: std::ops::RangeInclusive<u32> = 0xd800..=0xdfff;
    let start = if SURROGATES.contains(&start) { 0xe000 } else { start };
    let end = if SURROGATES.contains(&end) { 0xd7ff } else { end.min(u32::from(char::MAX)) };
    if let (Some(first), Some(last)) = (char::from_u32(start), char::from_u32(end))
        && first <= last
    {
        set.push(ClassUnicodeRange::new(first, last));
    }
}

/// Returns the set of all characters.
pub(crate) fn any_character() -> ClassUnicode {
    ClassUnicode::new([ClassUnicodeRange::new('\0', char::MAX)])
}

/// Returns the set that one character of a pattern matches.
///
/// If case is ignored, the set has the lower and upper case forms only, and so not a title case letter itself, as in
/// PostgreSQL.
pub(crate) fn character_set(code: u32, case_insensitive: bool) -> ClassUnicode {
    let mut set = ClassUnicode::empty();
    for code in if case_insensitive { [lower(code), upper(code)] } else { [code; 2] } {
        push_range(&mut set, code, code);
    }
    set
}

/// Returns the set that a range matches. If case is ignored, it also has the lower and upper case forms of all
/// characters in the range.
pub(crate) fn range_set(start: u32, end: u32, case_insensitive: bool) -> ClassUnicode {
    let mut set = ClassUnicode::empty();
    push_range(&mut set, start, end);
    if case_insensitive {
        for &(first, last, step, to_lower, to_upper) in tables::CASES {
            if last < start || end < first {
                continue;
            }
            for code in (first..=last).step_by(step as usize).filter(|code| (start..=end).contains(code)) {
                for code in [code.wrapping_add_signed(to_lower), code.wrapping_add_signed(to_upper)] {
                    push_range(&mut set, code, code);
                }
            }
        }
    }
    set
}

/// Returns the lower case form of a code point, or the code point itself if it has none.
pub(crate) fn lower(code: u32) -> u32 {
    code.wrapping_add_signed(case_distances(code).0)
}

fn upper(code: u32) -> u32 {
    code.wrapping_add_signed(case_distances(code).1)
}

/// Returns the distances from a code point to its lower and its upper case form.
fn case_distances(code: u32) -> (i32, i32) {
    // A run of step two may overlap the next run, so the code point may be in the last run that starts before it or in
    // the one before that.
    let index = tables::CASES.partition_point(|&(first, ..)| first <= code);
    for &(first, last, step, to_lower, to_upper) in tables::CASES[..index].iter().rev().take(2) {
        if code <= last && (code - first).is_multiple_of(step) {
            return (to_lower, to_upper);
        }
    }
    (0, 0)
}

/// Returns the character of `[[.name.]]`: `name` is a single character or a POSIX name.
pub(crate) fn collating_element(name: &str) -> Option<u32> {
    let mut characters = name.chars();
    if let (Some(only), None) = (characters.next(), characters.next()) {
        return Some(only.into());
    }
    CHARACTER_NAMES.iter().find(|(known, _)| *known == name).map(|&(_, character)| character.into())
}

/// The POSIX names of ASCII characters.
const CHARACTER_NAMES: [(&str, char); 95] = [
    ("NUL", '\0'),
    ("SOH", '\x01'),
    ("STX", '\x02'),
    ("ETX", '\x03'),
    ("EOT", '\x04'),
    ("ENQ", '\x05'),
    ("ACK", '\x06'),
    ("BEL", '\x07'),
    ("alert", '\x07'),
    ("BS", '\x08'),
    ("backspace", '\x08'),
    ("HT", '\t'),
    ("tab", '\t'),
    ("LF", '\n'),
    ("newline", '\n'),
    ("VT", '\x0b'),
    ("vertical-tab", '\x0b'),
    ("FF", '\x0c'),
    ("form-feed", '\x0c'),
    ("CR", '\r'),
    ("carriage-return", '\r'),
    ("SO", '\x0e'),
    ("SI", '\x0f'),
    ("DLE", '\x10'),
    ("DC1", '\x11'),
    ("DC2", '\x12'),
    ("DC3", '\x13'),
    ("DC4", '\x14'),
    ("NAK", '\x15'),
    ("SYN", '\x16'),
    ("ETB", '\x17'),
    ("CAN", '\x18'),
    ("EM", '\x19'),
    ("SUB", '\x1a'),
    ("ESC", '\x1b'),
    ("IS4", '\x1c'),
    ("FS", '\x1c'),
    ("IS3", '\x1d'),
    ("GS", '\x1d'),
    ("IS2", '\x1e'),
    ("RS", '\x1e'),
    ("IS1", '\x1f'),
    ("US", '\x1f'),
    ("space", ' '),
    ("exclamation-mark", '!'),
    ("quotation-mark", '"'),
    ("number-sign", '#'),
    ("dollar-sign", '$'),
    ("percent-sign", '%'),
    ("ampersand", '&'),
    ("apostrophe", '\''),
    ("left-parenthesis", '('),
    ("right-parenthesis", ')'),
    ("asterisk", '*'),
    ("plus-sign", '+'),
    ("comma", ','),
    ("hyphen", '-'),
    ("hyphen-minus", '-'),
    ("period", '.'),
    ("full-stop", '.'),
    ("slash", '/'),
    ("solidus", '/'),
    ("zero", '0'),
    ("one", '1'),
    ("two", '2'),
    ("three", '3'),
    ("four", '4'),
    ("five", '5'),
    ("six", '6'),
    ("seven", '7'),
    ("eight", '8'),
    ("nine", '9'),
    ("colon", ':'),
    ("semicolon", ';'),
    ("less-than-sign", '<'),
    ("equals-sign", '='),
    ("greater-than-sign", '>'),
    ("question-mark", '?'),
    ("commercial-at", '@'),
    ("left-square-bracket", '['),
    ("backslash", '\\'),
    ("reverse-solidus", '\\'),
    ("right-square-bracket", ']'),
    ("circumflex", '^'),
    ("circumflex-accent", '^'),
    ("underscore", '_'),
    ("low-line", '_'),
    ("grave-accent", '`'),
    ("left-brace", '{'),
    ("left-curly-bracket", '{'),
    ("vertical-line", '|'),
    ("right-brace", '}'),
    ("right-curly-bracket", '}'),
    ("tilde", '~'),
    ("DEL", '\x7f'),
];

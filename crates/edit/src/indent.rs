//! How the indentation of a given text differs from that of the file, and the same change for inserted text.

use std::borrow::Cow;
use std::iter::repeat_n;

/// Tab widths to try, the most common one first: a file does not say which one it uses.
const TAB_WIDTHS: [usize; 4] = [4, 2, 8, 3];

/// The change that turns the indentation of a given text into that of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IndentChange {
    None,
    /// The file has these bytes before each line in addition.
    Add(Vec<u8>),
    /// The file lacks these bytes before each line.
    Remove(Vec<u8>),
    /// The file has a tab where the text has this many spaces.
    ToTabs(usize),
    /// The file has this many spaces where the text has a tab.
    ToSpaces(usize),
}

impl IndentChange {
    /// Returns the change that turns the first indentation of each pair, the given one, into the second, the file's;
    /// `None` if no single change does it for all pairs.
    pub fn between(pairs: &[(&[u8], &[u8])]) -> Option<Self> {
        let (given, actual) = *pairs.first()?;
        let fits = |change: &Self| {
            pairs.iter().all(|(given, actual)| change.apply_to_indent(given).as_deref() == Some(actual))
        };
        let mut changes = vec![Self::None];
        if let Some(more) = actual.strip_suffix(given) {
            changes.push(Self::Add(more.to_vec()));
        }
        if let Some(less) = given.strip_suffix(actual) {
            changes.push(Self::Remove(less.to_vec()));
        }
        changes.extend(TAB_WIDTHS.into_iter().flat_map(|width| [Self::ToTabs(width), Self::ToSpaces(width)]));
        changes.into_iter().find(fits)
    }

    /// Returns whether this converts tabs to spaces or the reverse. A conversion applies to a whole patch, not to one
    /// hunk only.
    pub fn is_conversion(&self) -> bool {
        matches!(self, Self::ToTabs(_) | Self::ToSpaces(_))
    }

    /// Returns whether the change leaves this indentation as it is.
    pub fn keeps(&self, indent: &[u8]) -> bool {
        self.apply_to_indent(indent).as_deref() == Some(indent)
    }

    /// Returns the line with the file's indentation; `None` if it lacks the bytes that would have to be removed.
    pub fn apply_to_line<'a>(&self, line: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        let (indent, rest) = line.split_at(indent_of(line).len());
        let blank = rest.is_empty();
        match self {
            Self::None => Some(Cow::Borrowed(line)),
            Self::Add(_) | Self::Remove(_) if blank => Some(Cow::Borrowed(line)),
            _ => {
                let mut changed = self.apply_to_indent(indent)?.into_owned();
                changed.extend_from_slice(rest);
                Some(Cow::Owned(changed))
            }
        }
    }

    fn apply_to_indent<'a>(&self, indent: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        Some(match self {
            Self::None => Cow::Borrowed(indent),
            Self::Add(more) => Cow::Owned([more.as_slice(), indent].concat()),
            Self::Remove(less) => Cow::Borrowed(indent.strip_prefix(less.as_slice())?),
            Self::ToSpaces(width) => Cow::Owned(tabs_to_spaces(indent, *width)),
            Self::ToTabs(width) => {
                let columns = tabs_to_spaces(indent, *width).len();
                Cow::Owned(repeat_n(b'\t', columns / width).chain(repeat_n(b' ', columns % width)).collect())
            }
        })
    }
}

/// Returns the whitespace at the start of a line.
pub(crate) fn indent_of(line: &[u8]) -> &[u8] {
    &line[..line.len() - line.trim_ascii_start().len()]
}

fn tabs_to_spaces(indent: &[u8], width: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(indent.len());
    for &byte in indent {
        if byte == b'\t' { out.extend(repeat_n(b' ', width)) } else { out.push(byte) }
    }
    out
}

#[cfg(test)]
#[path = "indent_tests.rs"]
mod tests;

//! How the indentation of a text differs from that of the file, and how what is put in follows it.

use std::borrow::Cow;
use std::iter::repeat_n;

/// The width of a tab is not written anywhere; these are tried, the usual one first.
const TAB_WIDTHS: [usize; 4] = [4, 2, 8, 3];

/// The change that turns the indentation of a given text into that of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shift {
    None,
    /// Every line has this in front.
    Add(Vec<u8>),
    /// Every line lacks this in front.
    Remove(Vec<u8>),
    /// So many spaces are a tab.
    ToTabs(usize),
    /// A tab is so many spaces.
    ToSpaces(usize),
}

impl Shift {
    /// The one change that explains all pairs of a given indentation and the file's.
    pub fn explain(pairs: &[(&[u8], &[u8])]) -> Option<Self> {
        let (given, actual) = *pairs.first()?;
        let fits = |shift: &Self| pairs.iter().all(|(given, actual)| shift.indent(given).as_deref() == Some(actual));
        let mut shifts = vec![Self::None];
        if let Some(more) = actual.strip_suffix(given) {
            shifts.push(Self::Add(more.to_vec()));
        }
        if let Some(less) = given.strip_suffix(actual) {
            shifts.push(Self::Remove(less.to_vec()));
        }
        shifts.extend(TAB_WIDTHS.into_iter().flat_map(|width| [Self::ToTabs(width), Self::ToSpaces(width)]));
        shifts.into_iter().find(fits)
    }

    /// Whether this turns tabs into spaces or the reverse, which holds for a whole patch and not for one hunk only.
    pub fn is_conversion(&self) -> bool {
        matches!(self, Self::ToTabs(_) | Self::ToSpaces(_))
    }

    /// Whether the change leaves this indentation as it is.
    pub fn keeps(&self, indent: &[u8]) -> bool {
        self.indent(indent).as_deref() == Some(indent)
    }

    /// The line as the file would have it, or nothing if it lacks what must go.
    pub fn line<'a>(&self, line: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        let (indent, rest) = line.split_at(indent_of(line).len());
        let blank = rest.is_empty();
        match self {
            Self::None => Some(Cow::Borrowed(line)),
            Self::Add(_) | Self::Remove(_) if blank => Some(Cow::Borrowed(line)),
            _ => {
                let mut shifted = self.indent(indent)?.into_owned();
                shifted.extend_from_slice(rest);
                Some(Cow::Owned(shifted))
            }
        }
    }

    fn indent<'a>(&self, indent: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        Some(match self {
            Self::None => Cow::Borrowed(indent),
            Self::Add(more) => Cow::Owned([more.as_slice(), indent].concat()),
            Self::Remove(less) => Cow::Borrowed(indent.strip_prefix(less.as_slice())?),
            Self::ToSpaces(width) => Cow::Owned(spaces(indent, *width)),
            Self::ToTabs(width) => {
                let columns = spaces(indent, *width).len();
                Cow::Owned(repeat_n(b'\t', columns / width).chain(repeat_n(b' ', columns % width)).collect())
            }
        })
    }
}

/// The blanks a line begins with.
pub(crate) fn indent_of(line: &[u8]) -> &[u8] {
    &line[..line.len() - line.trim_ascii_start().len()]
}

fn spaces(indent: &[u8], width: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(indent.len());
    for &byte in indent {
        if byte == b'\t' { out.extend(repeat_n(b' ', width)) } else { out.push(byte) }
    }
    out
}

#[cfg(test)]
#[path = "indent_tests.rs"]
mod tests;

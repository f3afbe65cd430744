//! Parses and formats file names in diffs.

use super::Blanks;
use memchr::memchr;
use std::fmt::Write as _;

/// The single letters that git writes before names: `a/x` and `b/x` are the same file.
const PREFIXES: &[u8] = b"abciow";

/// Maximum length of a `diff --git` line that is split: longer than any two names that a file system accepts.
const MAX_GIT_LINE_BYTES: usize = 10_000;

/// Returns the name in a `---` or `+++` line, unquoted and without a timestamp; `None` for `/dev/null`. Whitespace around
/// the name is kept if it is part of it, and trimmed if it is padding, unless quotes or a tab set it off.
pub(super) fn from_header(rest: &[u8], blanks: Blanks) -> Option<Vec<u8>> {
    let name = match rest.trim_ascii_start() {
        quoted @ [b'"', ..] => unquote(quoted).0,
        plain => match (memchr(b'\t', plain), blanks) {
            (Some(tab), _) => plain[..tab].to_vec(),
            (None, Blanks::PartOfName) => rest.to_vec(),
            (None, Blanks::MaybePadding) => plain.trim_ascii_end().to_vec(),
        },
    };
    (name.trim_ascii() != b"/dev/null").then_some(name)
}

/// Returns the timestamp of a `---` or `+++` line, if it has one.
pub(super) fn timestamp(rest: &[u8]) -> Option<&[u8]> {
    let timestamp = rest[memchr(b'\t', rest)? + 1..].trim_ascii();
    (!timestamp.is_empty()).then_some(timestamp)
}

/// Returns whether a timestamp is the Unix epoch in some time zone, which stands for a file that does not exist.
pub(super) fn is_epoch(timestamp: &[u8]) -> bool {
    timestamp.starts_with(b"1970-01-01 ") || timestamp.starts_with(b"1969-12-31 ")
}

/// Returns the name in a line of git's extended header, such as `rename from`. It has no prefix.
pub(super) fn from_extended(rest: &[u8]) -> Vec<u8> {
    match rest {
        [b'"', ..] => unquote(rest).0,
        plain => plain.to_vec(),
    }
}

/// Returns the two names in a `diff --git` line; `None` if it is not clear where the first one ends.
pub(super) fn from_git_line(rest: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    if rest.len() > MAX_GIT_LINE_BYTES {
        return None;
    }
    if rest.starts_with(b"\"") {
        let (old, used) = unquote(rest);
        return Some((old, from_extended(rest[used..].trim_ascii())));
    }
    if let Some(quote) = rest.windows(2).position(|pair| pair == b" \"") {
        return Some((rest[..quote].to_vec(), unquote(&rest[quote + 1..]).0));
    }
    // Names may contain spaces. Without a rename both names are the same except for the prefix.
    let spaces = rest.iter().enumerate().filter(|(_, byte)| **byte == b' ').map(|(at, _)| at);
    let splits: Vec<_> = spaces.map(|at| (&rest[..at], &rest[at + 1..])).collect();
    let same = |(old, new): &&(&[u8], &[u8])| match (prefix_of(old), prefix_of(new)) {
        (Some(_), Some(_)) => old[2..] == new[2..],
        _ => old == new,
    };
    let below_roots = |(old, new): &&(&[u8], &[u8])| name_below_roots(old, new).is_some();
    let only = if splits.len() == 1 { splits.first() } else { None };
    let found = splits.iter().find(same).or_else(|| splits.iter().find(below_roots)).or(only)?;
    Some((found.0.to_vec(), found.1.to_vec()))
}

/// Returns the name that two names share below different first folders: `x` for `old/x` and `new/x`.
pub(super) fn name_below_roots<'a>(old: &[u8], new: &'a [u8]) -> Option<&'a [u8]> {
    let (old_root, old_name) = old.split_at(memchr(b'/', old)?);
    let (new_root, new_name) = new.split_at(memchr(b'/', new)?);
    (old_root != new_root && old_name == new_name && new_name.len() > 1).then(|| &new_name[1..])
}

/// Returns whether a name is the expected one, with or without one more folder before it.
pub(super) fn is_below_root(name: &[u8], expected: &[u8]) -> bool {
    let below = memchr(b'/', name).map(|slash| &name[slash + 1..]);
    name == expected || below == Some(expected)
}

fn prefix_of(name: &[u8]) -> Option<u8> {
    match name {
        [letter, b'/', _, ..] if PREFIXES.contains(letter) => Some(*letter),
        _ => None,
    }
}

/// Removes the prefixes of a pair of names if both have one and these are different, and `a/` or `b/` of a single name.
pub(super) fn without_prefixes(old: Option<Vec<u8>>, new: Option<Vec<u8>>) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
    let stripped = match (old.as_deref().map(prefix_of), new.as_deref().map(prefix_of)) {
        (Some(Some(old)), Some(Some(new))) => old != new,
        (Some(Some(b'a')), None) | (None, Some(Some(b'b'))) => true,
        _ => false,
    };
    let strip = |name: Option<Vec<u8>>| name.map(|name| if stripped { name[2..].to_vec() } else { name });
    (strip(old), strip(new))
}

/// Returns a quoted name without its quotes and escapes, and the number of bytes that it takes.
fn unquote(quoted: &[u8]) -> (Vec<u8>, usize) {
    let mut name = Vec::with_capacity(quoted.len());
    let mut at = 1;
    while let Some(&byte) = quoted.get(at) {
        at += 1;
        match byte {
            b'"' => break,
            b'\\' => {
                let (escaped, used) = unescape(&quoted[at..]);
                name.push(escaped);
                at += used;
            }
            byte => name.push(byte),
        }
    }
    (name, at)
}

fn unescape(rest: &[u8]) -> (u8, usize) {
    match rest {
        [high @ b'0'..=b'3', middle @ b'0'..=b'7', low @ b'0'..=b'7', ..] => {
            ((high - b'0') * 64 + (middle - b'0') * 8 + (low - b'0'), 3)
        }
        [b'n', ..] => (b'\n', 1),
        [b't', ..] => (b'\t', 1),
        [b'r', ..] => (b'\r', 1),
        [b'a', ..] => (7, 1),
        [b'b', ..] => (8, 1),
        [b'v', ..] => (11, 1),
        [b'f', ..] => (12, 1),
        [other, ..] => (*other, 1),
        [] => (b'\\', 0),
    }
}

/// Formats a name as git does in a header: quoted if it contains quotes, backslashes, control characters or bytes that
/// are not UTF-8.
pub(crate) fn quoted(prefix: &str, name: &[u8]) -> String {
    let plain = str::from_utf8(name).ok();
    if let Some(plain) = plain.filter(|name| !name.chars().any(|c| c.is_control() || c == '"' || c == '\\')) {
        // As git does, write a tab after a name with a space, so that nothing after it is read as a part of the name.
        let tab = if plain.contains(' ') { "\t" } else { "" };
        return format!("{prefix}{plain}{tab}");
    }
    let mut out = format!("\"{prefix}");
    for &byte in name {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            0x20..=0x7E => out.push(char::from(byte)),
            byte => _ = write!(out, "\\{byte:03o}"),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;

//! File names as diffs write them.

use super::Blanks;
use memchr::memchr;
use std::fmt::Write as _;

/// The single letters that git puts before names, so that `a/x` and `b/x` are the same file.
const PREFIXES: &[u8] = b"abciow";

/// Names longer than a file system takes are not told apart.
const LONGEST_GIT_LINE: usize = 10_000;

/// A name from a `---` or `+++` line: unquoted, without a time stamp. Nothing for `/dev/null`. Blanks around the name are
/// kept if they are part of it, and trimmed if they are padding, unless quotes or a tab set them off.
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

/// The time stamp of a `---` or `+++` line, if it has one.
pub(super) fn stamp_of(rest: &[u8]) -> Option<&[u8]> {
    let stamp = rest[memchr(b'\t', rest)? + 1..].trim_ascii();
    (!stamp.is_empty()).then_some(stamp)
}

/// Whether a time stamp is that of a file that is not there: the first moment of 1970, in some time zone.
pub(super) fn is_epoch(stamp: &[u8]) -> bool {
    stamp.starts_with(b"1970-01-01 ") || stamp.starts_with(b"1969-12-31 ")
}

/// A name as `rename from` and its like give it: it has no prefix.
pub(super) fn from_extended(rest: &[u8]) -> Vec<u8> {
    match rest {
        [b'"', ..] => unquote(rest).0,
        plain => plain.to_vec(),
    }
}

/// The two names of a `diff --git` line, if it can be told where one ends.
pub(super) fn from_git_line(rest: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    if rest.len() > LONGEST_GIT_LINE {
        return None;
    }
    if rest.starts_with(b"\"") {
        let (old, used) = unquote(rest);
        return Some((old, from_extended(rest[used..].trim_ascii())));
    }
    if let Some(quote) = rest.windows(2).position(|pair| pair == b" \"") {
        return Some((rest[..quote].to_vec(), unquote(&rest[quote + 1..]).0));
    }
    // Names may hold spaces. Where nothing is renamed, both halves are the same but for the prefix.
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

/// The name that two names have in common below different folders, as `old/x` and `new/x` have `x`.
pub(super) fn name_below_roots<'a>(old: &[u8], new: &'a [u8]) -> Option<&'a [u8]> {
    let (old_root, old_name) = old.split_at(memchr(b'/', old)?);
    let (new_root, new_name) = new.split_at(memchr(b'/', new)?);
    (old_root != new_root && old_name == new_name && new_name.len() > 1).then(|| &new_name[1..])
}

/// Whether a name is this one, with one more folder before it or not.
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

/// Takes the prefixes off a pair of names, if they have them: both, and different ones.
pub(super) fn without_prefixes(old: Option<Vec<u8>>, new: Option<Vec<u8>>) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
    let stripped = match (old.as_deref().map(prefix_of), new.as_deref().map(prefix_of)) {
        (Some(Some(old)), Some(Some(new))) => old != new,
        (Some(Some(b'a')), None) | (None, Some(Some(b'b'))) => true,
        _ => false,
    };
    let strip = |name: Option<Vec<u8>>| name.map(|name| if stripped { name[2..].to_vec() } else { name });
    (strip(old), strip(new))
}

/// A quoted name without its quotes and escapes, and how many bytes it took.
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

/// A name as git writes it in a header: quoted if it holds quotes, backslashes, control characters or no UTF-8.
pub(crate) fn quoted(prefix: &str, name: &[u8]) -> String {
    let plain = str::from_utf8(name).ok();
    if let Some(plain) = plain.filter(|name| !name.chars().any(|c| c.is_control() || c == '"' || c == '\\')) {
        // A name with a space is set off by a tab, as git does, so that no time stamp is read into it.
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

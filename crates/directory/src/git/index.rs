//! Checks the paths in a git index. `git checkout` writes files to them without checking where they lead.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use super::{ObjectFormat, is_git};

/// Size of the fields before the hash of an entry: times, identity, mode, owner and size.
const STAT_BYTES: usize = 40;
const LENGTH: u16 = 0x0fff;
const EXTENDED: u16 = 0x4000;

/// Whether no path of an index leads out of the folder or into a repository. An index does not contain the length of
/// its hashes, and can be crafted to have other paths with another length. Git uses the length from the configuration,
/// so this does too.
pub(super) fn is_harmless(index: &[u8], format: ObjectFormat) -> bool {
    has_harmless_paths(index, format.hash_bytes()).unwrap_or(false)
}

/// Checks the paths with one hash length. Returns `None` if the index cannot be parsed.
fn has_harmless_paths(index: &[u8], hash_bytes: usize) -> Option<bool> {
    let mut is_harmless = true;
    for path in Entries::of(index, hash_bytes)? {
        let path = path?;
        // A folder entry of a sparse index ends with a slash.
        let path = path.strip_suffix(b"/").unwrap_or(&path);
        let is_harmless_name = |name: &[u8]| !matches!(name, b"" | b"." | b"..") && !is_git(OsStr::from_bytes(name));
        is_harmless &= path.split(|byte| *byte == b'/').all(is_harmless_name);
    }
    Some(is_harmless)
}

/// Iterates over the paths of an index. An item is `None` if the index cannot be parsed.
struct Entries<'a> {
    rest: &'a [u8],
    left: u32,
    version: u32,
    hash_bytes: usize,
    /// The previous path. Paths of version 4 share a prefix with it.
    before: Vec<u8>,
}

impl<'a> Entries<'a> {
    fn of(index: &'a [u8], hash_bytes: usize) -> Option<Self> {
        let rest = index.strip_prefix(b"DIRC")?;
        let (version, rest) = number(rest)?;
        let (left, rest) = number(rest)?;
        (2..=4).contains(&version).then_some(Self { rest, left, version, hash_bytes, before: Vec::new() })
    }

    fn read(&mut self) -> Option<Vec<u8>> {
        let entry = self.rest;
        let rest = entry.get(STAT_BYTES + self.hash_bytes..)?;
        let (flags, mut rest) = rest.split_first_chunk().map(|(flags, rest)| (u16::from_be_bytes(*flags), rest))?;
        if flags & EXTENDED != 0 {
            rest = rest.get(2..)?;
        }
        if self.version == 4 {
            let (dropped, suffix) = varint(rest)?;
            let end = suffix.iter().position(|byte| *byte == 0)?;
            let kept = self.before.len().checked_sub(dropped)?;
            self.before.truncate(kept);
            self.before.extend_from_slice(&suffix[..end]);
            self.rest = &suffix[end + 1..];
            return Some(self.before.clone());
        }
        let length = match usize::from(flags & LENGTH) {
            length if length < usize::from(LENGTH) => length,
            _ => rest.iter().position(|byte| *byte == 0)?,
        };
        // Like in git, a path ends at the first NUL, wherever its entry ends.
        let path = rest.get(..length)?.split(|byte| *byte == 0).next()?;
        // An entry is padded with one to eight NULs.
        let fixed = entry.len() - rest.len();
        self.rest = entry.get((fixed + length + 8) & !7..)?;
        Some(path.to_vec())
    }
}

impl Iterator for Entries<'_> {
    type Item = Option<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let path = self.read();
        if path.is_none() {
            self.left = 0;
        }
        Some(path)
    }
}

fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    bytes.split_first_chunk().map(|(number, rest)| (u32::from_be_bytes(*number), rest))
}

/// Decodes a number of seven bits per byte, the highest first, with an offset of one per continuation byte.
fn varint(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0_usize;
    for (index, byte) in bytes.iter().enumerate() {
        value = value.checked_mul(128)?.checked_add(usize::from(byte & 127))?;
        if byte & 128 == 0 {
            return Some((value, &bytes[index + 1..]));
        }
        value = value.checked_add(1)?;
    }
    None
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;

//! Git's binary patches: the whole new content or a delta, compressed and encoded in base 85.

use super::parse::PatchLines;
use crate::error::EditError;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;

const ALPHABET: &[u8; 85] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

const INVALID_DIGIT: u8 = u8::MAX;

/// The value of each base 85 digit, by its byte.
const DIGITS: [u8; 256] = {
    let mut digits = [INVALID_DIGIT; 256];
    let mut value = 0_u8;
    while (value as usize) < ALPHABET.len() {
        digits[ALPHABET[value as usize] as usize] = value;
        value += 1;
    }
    digits
};

/// The change of a binary file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinaryChange<'a> {
    forward: BinaryBlock<'a>,
    /// The reverse change. It must turn the result back into the base, which proves that the patch was made for the
    /// base.
    reverse: Option<BinaryBlock<'a>>,
}

/// One direction of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
struct BinaryBlock<'a> {
    kind: BlockKind,
    /// Size of the uncompressed data.
    size: usize,
    lines: Vec<&'a [u8]>,
    patch_line: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockKind {
    Literal,
    Delta,
}

/// Parses the blocks after the line `GIT binary patch`; returns the change and the line at which it ends.
pub(super) fn parse<'a>(lines: &PatchLines<'a>, at: usize) -> Result<(BinaryChange<'a>, usize), EditError> {
    let (forward, end) = parse_block(lines, at + 1)
        .ok_or_else(|| EditError::syntax(at + 2, "expected `literal SIZE` or `delta SIZE` and its data"))?;
    Ok(match parse_block(lines, end) {
        Some((reverse, end)) => (BinaryChange { forward, reverse: Some(reverse) }, end),
        None => (BinaryChange { forward, reverse: None }, end),
    })
}

fn parse_block<'a>(lines: &PatchLines<'a>, at: usize) -> Option<(BinaryBlock<'a>, usize)> {
    let line = lines.get(at)?;
    let (kind, size) = match line.strip_prefix(b"literal ") {
        Some(size) => (BlockKind::Literal, size),
        None => (BlockKind::Delta, line.strip_prefix(b"delta ")?),
    };
    let size = str::from_utf8(size.trim_ascii()).ok()?.parse().ok()?;
    let start = at + 1;
    let end = (start..lines.len()).find(|at| lines.get(*at).is_none_or(<[u8]>::is_empty)).unwrap_or(lines.len());
    let data = (start..end).filter_map(|at| lines.get(at)).collect();
    // An empty line ends the block.
    Some((BinaryBlock { kind, size, lines: data, patch_line: at + 1 }, end + 1))
}

impl BinaryChange<'_> {
    /// Returns the new content; fails if the patch was not made for `base`.
    pub(super) fn apply(&self, base: &[u8], limit_bytes: usize) -> Result<Vec<u8>, EditError> {
        let new = self.forward.apply(base, limit_bytes)?;
        let Some(reverse) = &self.reverse else { return Ok(new) };
        if reverse.apply(&new, limit_bytes.max(base.len())).is_ok_and(|old| old == base) {
            return Ok(new);
        }
        if new == base {
            return Err(EditError::AlreadyApplied { line: 1 });
        }
        Err(EditError::BaseMismatch { message: base_mismatch(base.len(), None) })
    }

    pub(super) fn reversed(&self) -> Self {
        match &self.reverse {
            Some(reverse) => Self { forward: reverse.clone(), reverse: Some(self.forward.clone()) },
            None => self.clone(),
        }
    }
}

impl BinaryBlock<'_> {
    fn apply(&self, base: &[u8], limit_bytes: usize) -> Result<Vec<u8>, EditError> {
        if self.size > limit_bytes {
            return Err(EditError::TooLarge { limit_bytes });
        }
        let damaged = || EditError::syntax(self.patch_line, "the binary data is damaged");
        let data = self.decode().ok_or_else(damaged)?;
        // Decompress no more than the size that the block announces.
        let data = decompress_to_vec_zlib_with_limit(&data, self.size).map_err(|_| damaged())?;
        if data.len() != self.size {
            return Err(damaged());
        }
        match self.kind {
            BlockKind::Literal => Ok(data),
            BlockKind::Delta => {
                let mut delta = data.as_slice();
                let base_size = read_size(&mut delta).ok_or_else(damaged)?;
                let size = read_size(&mut delta).ok_or_else(damaged)?;
                if size > limit_bytes {
                    return Err(EditError::TooLarge { limit_bytes });
                }
                if base_size != base.len() {
                    return Err(EditError::BaseMismatch { message: base_mismatch(base.len(), Some(base_size)) });
                }
                apply_delta(base, delta, size).ok_or_else(damaged)
            }
        }
    }

    fn decode(&self) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(self.lines.len() * 52);
        for line in &self.lines {
            let (mark, digits) = line.split_first()?;
            let len = match mark {
                b'A'..=b'Z' => mark - b'A' + 1,
                b'a'..=b'z' => mark - b'a' + 27,
                _ => return None,
            };
            let end = out.len() + usize::from(len);
            for group in digits.trim_ascii_end().chunks(5) {
                out.extend_from_slice(&decode_group(group)?);
            }
            if out.len() < end || out.len() - end > 3 {
                return None;
            }
            out.truncate(end);
        }
        Some(out)
    }
}

fn base_mismatch(have: usize, want: Option<usize>) -> String {
    let want = want.map(|want| format!(" of {want} bytes")).unwrap_or_default();
    format!("the binary patch was made for another content{want} than the file's {have} bytes; make a new patch")
}

fn decode_group(group: &[u8]) -> Option<[u8; 4]> {
    if group.len() != 5 {
        return None;
    }
    let mut value: u32 = 0;
    for digit in group {
        let digit = DIGITS[usize::from(*digit)];
        if digit == INVALID_DIGIT {
            return None;
        }
        value = value.checked_mul(85)?.checked_add(u32::from(digit))?;
    }
    Some(value.to_be_bytes())
}

/// Reads a variable-length number: seven bits per byte, the lowest first.
fn read_size(delta: &mut &[u8]) -> Option<usize> {
    let (mut size, mut shift) = (0_usize, 0);
    loop {
        let byte = take_byte(delta)?;
        size |= usize::from(byte & 0x7F).checked_shl(shift)?;
        shift += 7;
        if byte & 0x80 == 0 {
            return Some(size);
        }
    }
}

fn take_byte(delta: &mut &[u8]) -> Option<u8> {
    let (byte, rest) = delta.split_first()?;
    *delta = rest;
    Some(*byte)
}

/// Builds the new content from parts of the base and inserted bytes.
fn apply_delta(base: &[u8], mut delta: &[u8], size: usize) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    while let Some(op) = take_byte(&mut delta) {
        if op & 0x80 == 0 {
            // The instruction 0 is reserved.
            let (inserted, rest) = delta.split_at_checked(usize::from(op)).filter(|_| op > 0)?;
            out.extend_from_slice(inserted);
            delta = rest;
        } else {
            let offset = read_packed(&mut delta, op, 4)?;
            let len = match read_packed(&mut delta, op >> 4, 3)? {
                0 => 0x1_0000,
                len => len,
            };
            out.extend_from_slice(base.get(offset..offset.checked_add(len)?)?);
        }
        if out.len() > size {
            return None;
        }
    }
    (out.len() == size).then_some(out)
}

/// Reads a number of which only some bytes are present, those whose flag is set. The others are zero.
fn read_packed(delta: &mut &[u8], flags: u8, bytes: u32) -> Option<usize> {
    let mut number = 0;
    for byte in (0..bytes).filter(|byte| flags & (1 << byte) != 0) {
        number |= usize::from(take_byte(delta)?) << (8 * byte);
    }
    Some(number)
}

#[cfg(test)]
#[path = "binary_tests.rs"]
mod tests;

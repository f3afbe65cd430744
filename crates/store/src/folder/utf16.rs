//! Reading UTF-16 as UTF-8.

use std::io::{self, Read};

/// How much is read at a time.
const CHUNK_BYTES: usize = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endianness {
    Little,
    Big,
}

impl Endianness {
    /// Tells by the mark at the beginning of a file.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0xff, 0xfe, ..] => Some(Self::Little),
            [0xfe, 0xff, ..] => Some(Self::Big),
            _ => None,
        }
    }

    fn unit(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }
}

/// Reads UTF-16 as UTF-8. What is not UTF-16 is an error.
pub(super) struct Utf16<R> {
    /// What was read and not understood yet.
    raw: Vec<u8>,
    file: R,
    endianness: Endianness,
    /// What was understood and not given yet.
    text: String,
    given: usize,
    has_ended: bool,
}

impl<R: Read> Utf16<R> {
    /// What follows the mark, of which some was read already.
    pub(super) fn new(read: Vec<u8>, file: R, endianness: Endianness) -> Self {
        Self { raw: read, file, endianness, text: String::new(), given: 0, has_ended: false }
    }

    fn decode(&mut self) -> io::Result<()> {
        self.text.clear();
        self.given = 0;
        let mut whole = self.raw.len() & !1;
        let unit = |at: usize| self.endianness.unit([self.raw[at], self.raw[at + 1]]);
        // The first half of a pair waits for the second.
        if !self.has_ended && whole >= 2 && matches!(unit(whole - 2), 0xd800..0xdc00) {
            whole -= 2;
        }
        for decoded in char::decode_utf16((0..whole).step_by(2).map(unit)) {
            self.text.push(decoded.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?);
        }
        self.raw.drain(..whole);
        if self.has_ended && !self.raw.is_empty() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(())
    }
}

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.given == self.text.len() {
            if self.raw.len() < 4 && !self.has_ended {
                let read = (&mut self.file).take(CHUNK_BYTES as u64).read_to_end(&mut self.raw)?;
                self.has_ended = read < CHUNK_BYTES;
            }
            self.decode()?;
            if self.text.is_empty() && self.has_ended {
                return Ok(0);
            }
        }
        let rest = &self.text.as_bytes()[self.given..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.given += count;
        Ok(count)
    }
}

//! Texts that are not in UTF-8: recognised, shown as text, and put back as they were.

use std::fmt;

/// How a text is written as bytes, where not in UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-16, the lower byte first, after a byte order mark.
    Utf16Le,
    /// UTF-16, the higher byte first, after a byte order mark.
    Utf16Be,
    /// A byte for each of the first 256 characters.
    Latin1,
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Utf16Le | Self::Utf16Be => "UTF-16",
            Self::Latin1 => "Latin-1",
        })
    }
}

/// How files begin that are no texts, though all of their bytes might be letters.
const MAGIC: [&[u8]; 8] =
    [b"%PDF-", b"\x89PNG", b"GIF8", b"PK\x03\x04", b"\x1f\x8b", b"\xff\xd8\xff", b"\x7fELF", b"\xca\xfe\xba\xbe"];

/// Tells whether bytes that are not UTF-8 are a text all the same, and which. A byte order mark stays part of it.
pub fn recognise(bytes: &[u8]) -> Option<(Encoding, String)> {
    let utf16 = |encoding: Encoding, unit: fn([u8; 2]) -> u16| {
        let (pairs, []) = bytes.as_chunks::<2>() else { return None };
        let units = pairs.iter().map(|pair| unit(*pair));
        let text = char::decode_utf16(units).collect::<Result<String, _>>().ok()?;
        (!text.contains('\0')).then_some((encoding, text))
    };
    match bytes {
        [0xff, 0xfe, ..] => utf16(Encoding::Utf16Le, u16::from_le_bytes),
        [0xfe, 0xff, ..] => utf16(Encoding::Utf16Be, u16::from_be_bytes),
        _ if MAGIC.iter().any(|magic| bytes.starts_with(magic)) => None,
        _ if bytes.iter().all(|byte| is_latin1(*byte)) && str::from_utf8(bytes).is_err() => {
            Some((Encoding::Latin1, bytes.iter().map(|byte| char::from(*byte)).collect()))
        }
        _ => None,
    }
}

/// Whether a byte stands in Latin-1 texts: printable, or white space.
fn is_latin1(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c | 0x20..=0x7e | 0xa0..=0xff)
}

impl Encoding {
    /// Writes a text so that it is recognised as what it is; else tells what stands in the way.
    pub fn write(self, text: &str) -> Result<Vec<u8>, String> {
        let bytes: Vec<u8> = match self {
            Self::Utf16Le => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            Self::Utf16Be => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
            Self::Latin1 => {
                let byte = |c: char| u8::try_from(c).ok().filter(|byte| is_latin1(*byte)).ok_or(c);
                let bytes: Result<_, char> = text.chars().map(byte).collect();
                bytes.map_err(|c| format!("{c:?} is not in that encoding"))?
            }
        };
        // A text of ASCII alone is the same in UTF-8 and Latin-1.
        let is_same = match self {
            Self::Latin1 if text.is_ascii() => true,
            _ => recognise(&bytes).is_some_and(|(encoding, read)| encoding == self && read == text),
        };
        if is_same { Ok(bytes) } else { Err("it would be read as another text afterwards".to_owned()) }
    }
}

#[cfg(test)]
#[path = "encoding_tests.rs"]
mod tests;

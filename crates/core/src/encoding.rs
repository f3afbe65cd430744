//! What is text, and in which encoding. This is the only place that decides it: for reading, listing, searching,
//! editing and patching, in databases and in folders.
//!
//! Text is UTF-8 without NUL, UTF-16 with a byte order mark, or else single bytes without control characters, read as
//! Windows-1252, which holds all of Latin-1. Everything else is binary.

use std::{borrow::Cow, fmt};

/// How a text is written as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8, with or without a byte order mark.
    Utf8,
    /// UTF-16, the lower byte first, after a byte order mark.
    Utf16Le,
    /// UTF-16, the higher byte first, after a byte order mark.
    Utf16Be,
    /// A byte for each character: Latin-1 and, where that has control characters, Windows-1252. Texts in other such
    /// encodings are shown with the wrong letters, but every byte stays what it was.
    Windows1252,
}

/// The byte order mark, as a character at the beginning of a text.
pub const BYTE_ORDER_MARK: char = '\u{feff}';

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Utf8 => "UTF-8",
            Self::Utf16Le | Self::Utf16Be => "UTF-16",
            Self::Windows1252 => "Latin-1 (Windows-1252)",
        })
    }
}

/// How files begin that are not text, though all of their bytes might be letters.
const MAGIC: [&[u8]; 8] =
    [b"%PDF-", b"\x89PNG", b"GIF8", b"PK\x03\x04", b"\x1f\x8b", b"\xff\xd8\xff", b"\x7fELF", b"\xca\xfe\xba\xbe"];

/// The characters of Windows-1252 for the bytes from 0x80 to 0x9f. The five that it leaves out stand for themselves.
const WINDOWS_1252: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘', '’',
    '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// Bytes that are not a text in the encoding in which they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotText;

impl Encoding {
    /// The encoding of a text, of which all bytes are given; none if it is binary.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        // Nearly every text is UTF-8, and this is the fastest way to see it.
        if str::from_utf8(bytes).is_ok() && !bytes.contains(&0) {
            return Some(Self::Utf8);
        }
        let mut detector = EncodingDetector::new(bytes);
        detector.feed(bytes);
        detector.finish()
    }

    /// Reads bytes as text, a byte order mark included.
    pub fn decode(self, bytes: &[u8]) -> Result<Cow<'_, str>, NotText> {
        if self == Self::Utf8 {
            let text = str::from_utf8(bytes).map_err(|_| NotText)?;
            return if text.contains('\0') { Err(NotText) } else { Ok(Cow::Borrowed(text)) };
        }
        let mut text = String::with_capacity(bytes.len() + bytes.len() / 2);
        let mut decoder = Decoder::new(self);
        decoder.feed(bytes, &mut |part| text.push_str(part))?;
        decoder.finish()?;
        Ok(Cow::Owned(text))
    }

    /// Writes a text so that it is read back as the same text; else says what stands in the way.
    pub fn encode(self, text: &str) -> Result<Vec<u8>, String> {
        let bytes: Vec<u8> = match self {
            Self::Utf8 => text.as_bytes().to_vec(),
            Self::Utf16Le => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            Self::Utf16Be => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
            Self::Windows1252 => {
                let bytes: Result<_, char> = text.chars().map(|c| windows_1252(c).ok_or(c)).collect();
                bytes.map_err(|c| format!("{c:?} is not in that encoding"))?
            }
        };
        // A text of ASCII alone is the same in UTF-8 and Windows-1252.
        let is_same = match Self::of(&bytes) {
            Some(Self::Utf8) if self == Self::Windows1252 => text.is_ascii(),
            found => found == Some(self) && self.decode(&bytes).is_ok_and(|read| read == text),
        };
        if is_same { Ok(bytes) } else { Err("it would be read as another text afterwards".to_owned()) }
    }
}

/// The byte that stands for a character in Windows-1252.
fn windows_1252(c: char) -> Option<u8> {
    let high = || WINDOWS_1252.iter().position(|known| *known == c).and_then(|place| u8::try_from(place + 0x80).ok());
    u8::try_from(c).ok().filter(|byte| !(0x80..0xa0).contains(byte)).or_else(high).filter(|byte| !is_control(*byte))
}

/// Whether a byte stands in no text of single bytes: control characters other than white space.
fn is_control(byte: u8) -> bool {
    matches!(byte, 0..=0x08 | 0x0b | 0x0e..=0x1f | 0x7f)
}

/// Finds the encoding of a text that comes in pieces.
#[derive(Debug)]
pub struct EncodingDetector {
    /// The encoding that the byte order mark or the bytes so far speak for; none once they are binary.
    unicode: Option<Decoder>,
    /// Whether it may still be a text of single bytes.
    may_be_single_bytes: bool,
}

impl EncodingDetector {
    /// Begins with the first piece, or with as much of it as there is, which has to be fed as well.
    pub fn new(first: &[u8]) -> Self {
        let (encoding, may_be_single_bytes) = match first {
            [0xff, 0xfe, ..] => (Encoding::Utf16Le, false),
            [0xfe, 0xff, ..] => (Encoding::Utf16Be, false),
            _ => (Encoding::Utf8, !MAGIC.iter().any(|magic| first.starts_with(magic))),
        };
        Self { unicode: Some(Decoder::new(encoding)), may_be_single_bytes }
    }

    /// Takes the next piece; tells whether the text can still be one.
    pub fn feed(&mut self, bytes: &[u8]) -> bool {
        if self.unicode.as_mut().is_some_and(|decoder| decoder.feed(bytes, &mut |_| ()).is_err()) {
            self.unicode = None;
        }
        // Without an early end the compiler looks at many bytes at once.
        let has_controls = bytes.iter().fold(false, |found, byte| found | is_control(*byte));
        self.may_be_single_bytes &= !has_controls;
        self.unicode.is_some() || self.may_be_single_bytes
    }

    /// The encoding of all that was fed; none if it is binary.
    pub fn finish(mut self) -> Option<Encoding> {
        match self.unicode.take() {
            Some(decoder) if decoder.finish().is_ok() => Some(decoder.encoding),
            _ => self.may_be_single_bytes.then_some(Encoding::Windows1252),
        }
    }

    /// The encoding of a text of which only the beginning was fed, which may have cut a character in two.
    pub fn finish_beginning(self) -> Option<Encoding> {
        match &self.unicode {
            Some(decoder) => Some(decoder.encoding),
            None => self.may_be_single_bytes.then_some(Encoding::Windows1252),
        }
    }
}

/// Reads a text that comes in pieces.
#[derive(Clone, Debug)]
pub struct Decoder {
    encoding: Encoding,
    /// The beginning of a character whose rest has not come yet.
    held: Vec<u8>,
}

impl Decoder {
    /// A decoder for a text in this encoding.
    pub fn new(encoding: Encoding) -> Self {
        Self { encoding, held: Vec::new() }
    }

    /// Takes the next piece and shows the text in it.
    pub fn feed(&mut self, bytes: &[u8], show: &mut dyn FnMut(&str)) -> Result<(), NotText> {
        match self.encoding {
            Encoding::Utf8 => self.feed_utf8(bytes, show),
            Encoding::Utf16Le => self.feed_utf16(bytes, u16::from_le_bytes, show),
            Encoding::Utf16Be => self.feed_utf16(bytes, u16::from_be_bytes, show),
            Encoding::Windows1252 => {
                if bytes.iter().any(|byte| is_control(*byte)) {
                    return Err(NotText);
                }
                let high = |byte: u8| WINDOWS_1252.get(usize::from(byte).wrapping_sub(0x80)).copied();
                let text: String = bytes.iter().map(|byte| high(*byte).unwrap_or(char::from(*byte))).collect();
                show(&text);
                Ok(())
            }
        }
    }

    /// Ends the text.
    pub fn finish(&self) -> Result<(), NotText> {
        if self.held.is_empty() { Ok(()) } else { Err(NotText) }
    }

    fn feed_utf8(&mut self, mut bytes: &[u8], show: &mut dyn FnMut(&str)) -> Result<(), NotText> {
        if bytes.contains(&0) {
            return Err(NotText);
        }
        while let (false, [next, rest @ ..]) = (self.held.is_empty(), bytes) {
            self.held.push(*next);
            bytes = rest;
            match str::from_utf8(&self.held) {
                Ok(character) => {
                    show(character);
                    self.held.clear();
                }
                Err(error) if error.error_len().is_none() => {}
                Err(_) => return Err(NotText),
            }
        }
        let whole = match str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) if error.error_len().is_none() => {
                let (whole, cut) = bytes.split_at(error.valid_up_to());
                self.held.extend_from_slice(cut);
                str::from_utf8(whole).map_err(|_| NotText)?
            }
            Err(_) => return Err(NotText),
        };
        show(whole);
        Ok(())
    }

    fn feed_utf16(
        &mut self,
        bytes: &[u8],
        unit: fn([u8; 2]) -> u16,
        show: &mut dyn FnMut(&str),
    ) -> Result<(), NotText> {
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(bytes);
        let (pairs, _) = all.as_chunks::<2>();
        // The first half of a surrogate pair waits for the second.
        let waits = pairs.last().is_some_and(|last| matches!(unit(*last), 0xd800..0xdc00));
        let count = pairs.len() - usize::from(waits);
        let units = pairs[..count].iter().map(|pair| unit(*pair));
        let text = char::decode_utf16(units).collect::<Result<String, _>>().map_err(|_| NotText)?;
        if text.contains('\0') {
            return Err(NotText);
        }
        show(&text);
        self.held = all.split_off(count * 2);
        Ok(())
    }
}

#[cfg(test)]
#[path = "encoding_tests.rs"]
mod tests;

//! What is text, and in which encoding. This is the only place that decides it: for reading, listing, searching,
//! editing and patching, in databases and in folders.
//!
//! Text is UTF-8 without NUL, UTF-16 with a byte order mark, or else single bytes without control characters, read as
//! Windows-1252, which holds all of Latin-1. Everything else is binary.

use encoding_rs::{DecoderResult, EncoderResult};
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
        Decoder::new(self).decode(bytes, true).map(Cow::Owned)
    }

    /// Writes a text so that it is read back as the same text; else says what stands in the way.
    pub fn encode(self, text: &str) -> Result<Vec<u8>, String> {
        let bytes: Vec<u8> = match self {
            Self::Utf8 => text.as_bytes().to_vec(),
            Self::Utf16Le => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            Self::Utf16Be => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
            Self::Windows1252 => encode_windows_1252(text).map_err(|c| format!("{c:?} is not in that encoding"))?,
        };
        // A text of ASCII alone is the same in UTF-8 and Windows-1252.
        let is_same = match Self::of(&bytes) {
            Some(Self::Utf8) if self == Self::Windows1252 => text.is_ascii(),
            found => found == Some(self) && self.decode(&bytes).is_ok_and(|read| read == text),
        };
        if is_same { Ok(bytes) } else { Err("it would be read as another text afterwards".to_owned()) }
    }
}

/// Writes a text in Windows-1252; the error is a character that has no byte there, or that no text contains.
fn encode_windows_1252(text: &str) -> Result<Vec<u8>, char> {
    if let Some(control) = text.bytes().find(|byte| is_control(*byte)) {
        return Err(char::from(control));
    }
    // Every character that can be encoded takes one byte.
    let mut bytes = Vec::with_capacity(text.len());
    match encoding_rs::WINDOWS_1252.new_encoder().encode_from_utf8_to_vec_without_replacement(text, &mut bytes, true) {
        (EncoderResult::Unmappable(character), _) => Err(character),
        _ => Ok(bytes),
    }
}

/// Whether a byte stands in no text of single bytes: control characters other than white space.
fn is_control(byte: u8) -> bool {
    matches!(byte, 0..=0x08 | 0x0b | 0x0e..=0x1f | 0x7f)
}

/// Finds the encoding of a text that comes in pieces.
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
    pub fn finish(self) -> Option<Encoding> {
        let unicode = self.unicode.and_then(|mut decoder| decoder.finish().ok().map(|()| decoder.encoding));
        unicode.or(self.may_be_single_bytes.then_some(Encoding::Windows1252))
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
pub struct Decoder {
    encoding: Encoding,
    decoder: encoding_rs::Decoder,
}

impl Decoder {
    /// A decoder for a text in this encoding.
    pub fn new(encoding: Encoding) -> Self {
        let standard = match encoding {
            Encoding::Utf8 => encoding_rs::UTF_8,
            Encoding::Utf16Le => encoding_rs::UTF_16LE,
            Encoding::Utf16Be => encoding_rs::UTF_16BE,
            Encoding::Windows1252 => encoding_rs::WINDOWS_1252,
        };
        Self { encoding, decoder: standard.new_decoder_without_bom_handling() }
    }

    /// Takes the next piece and shows the text in it.
    pub fn feed(&mut self, bytes: &[u8], show: &mut dyn FnMut(&str)) -> Result<(), NotText> {
        let text = self.decode(bytes, false)?;
        show(&text);
        Ok(())
    }

    /// Ends the text, which must not end within a character.
    pub fn finish(&mut self) -> Result<(), NotText> {
        self.decode(&[], true).map(drop)
    }

    fn decode(&mut self, bytes: &[u8], is_last: bool) -> Result<String, NotText> {
        if self.encoding == Encoding::Windows1252 && bytes.iter().any(|byte| is_control(*byte)) {
            return Err(NotText);
        }
        let capacity = self.decoder.max_utf8_buffer_length_without_replacement(bytes.len()).ok_or(NotText)?;
        let mut text = String::with_capacity(capacity);
        match self.decoder.decode_to_string_without_replacement(bytes, &mut text, is_last) {
            (DecoderResult::InputEmpty, _) if !text.contains('\0') => Ok(text),
            _ => Err(NotText),
        }
    }
}

#[cfg(test)]
#[path = "encoding_tests.rs"]
mod tests;

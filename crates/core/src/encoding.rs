//! Detection of text and its encoding, for all operations on databases and folders.
//!
//! Text is UTF-8 without NUL, UTF-16 with a byte order mark, or else single bytes without control characters, decoded
//! as Windows-1252, which contains Latin-1. Everything else is binary.

use encoding_rs::{DecoderResult, EncoderResult};
use std::{borrow::Cow, fmt};

/// The encoding of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8, with or without a byte order mark.
    Utf8,
    /// UTF-16, little-endian, with a byte order mark.
    Utf16Le,
    /// UTF-16, big-endian, with a byte order mark.
    Utf16Be,
    /// One byte for each character: Windows-1252, which is Latin-1 except for its control characters. Text in another
    /// such encoding is shown with wrong letters, but its bytes are preserved.
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

/// First bytes of binary formats whose bytes might all be letters.
const MAGIC: [&[u8]; 8] =
    [b"%PDF-", b"\x89PNG", b"GIF8", b"PK\x03\x04", b"\x1f\x8b", b"\xff\xd8\xff", b"\x7fELF", b"\xca\xfe\xba\xbe"];

/// The error for bytes that are not valid text in an encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotText;

impl Encoding {
    /// Returns the encoding of a whole text, or `None` if it is binary.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        // Most texts are UTF-8, and this is the fastest check.
        if str::from_utf8(bytes).is_ok() && !bytes.contains(&0) {
            return Some(Self::Utf8);
        }
        let mut detector = EncodingDetector::new(bytes);
        detector.feed(bytes);
        detector.finish()
    }

    /// Decodes bytes. A byte order mark becomes a part of the text.
    pub fn decode(self, bytes: &[u8]) -> Result<Cow<'_, str>, NotText> {
        if self == Self::Utf8 {
            let text = str::from_utf8(bytes).map_err(|_| NotText)?;
            return if text.contains('\0') { Err(NotText) } else { Ok(Cow::Borrowed(text)) };
        }
        Decoder::new(self).decode(bytes, true).map(Cow::Owned)
    }

    /// Encodes a text. Returns an explanation if the bytes would be decoded as another text.
    pub fn encode(self, text: &str) -> Result<Vec<u8>, String> {
        let bytes: Vec<u8> = match self {
            Self::Utf8 => text.as_bytes().to_vec(),
            Self::Utf16Le => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            Self::Utf16Be => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
            Self::Windows1252 => encode_windows_1252(text).map_err(|c| format!("{c:?} is not in that encoding"))?,
        };
        // ASCII text is the same in UTF-8 and Windows-1252.
        let is_same = match Self::of(&bytes) {
            Some(Self::Utf8) if self == Self::Windows1252 => text.is_ascii(),
            found => found == Some(self) && self.decode(&bytes).is_ok_and(|read| read == text),
        };
        if is_same { Ok(bytes) } else { Err("it would be read as another text afterwards".to_owned()) }
    }
}

/// Encodes a text in Windows-1252. The error is a character that has no byte there, or a control character.
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

/// Whether a byte is a control character other than white space. Text of single bytes has none.
fn is_control(byte: u8) -> bool {
    matches!(byte, 0..=0x08 | 0x0b | 0x0e..=0x1f | 0x7f)
}

/// Detects the encoding of a text in pieces.
pub struct EncodingDetector {
    /// The decoder for the Unicode encoding that the bytes so far are valid in, if there is one.
    unicode: Option<Decoder>,
    /// Whether the bytes so far are valid text of single bytes.
    may_be_single_bytes: bool,
}

impl EncodingDetector {
    /// Creates a detector for a text that begins with `first`. The bytes of `first` must be fed too.
    pub fn new(first: &[u8]) -> Self {
        let (encoding, may_be_single_bytes) = match first {
            [0xff, 0xfe, ..] => (Encoding::Utf16Le, false),
            [0xfe, 0xff, ..] => (Encoding::Utf16Be, false),
            _ => (Encoding::Utf8, !MAGIC.iter().any(|magic| first.starts_with(magic))),
        };
        Self { unicode: Some(Decoder::new(encoding)), may_be_single_bytes }
    }

    /// Adds the next piece. Returns whether the bytes so far may be text.
    pub fn feed(&mut self, bytes: &[u8]) -> bool {
        if self.unicode.as_mut().is_some_and(|decoder| decoder.feed(bytes, &mut |_| ()).is_err()) {
            self.unicode = None;
        }
        // A loop without an early exit is vectorised.
        let has_controls = bytes.iter().fold(false, |found, byte| found | is_control(*byte));
        self.may_be_single_bytes &= !has_controls;
        self.unicode.is_some() || self.may_be_single_bytes
    }

    /// Returns the encoding of all bytes, or `None` if they are binary.
    pub fn finish(self) -> Option<Encoding> {
        let unicode = self.unicode.and_then(|mut decoder| decoder.finish().ok().map(|()| decoder.encoding));
        unicode.or(self.may_be_single_bytes.then_some(Encoding::Windows1252))
    }

    /// Returns the encoding of a text of which only the beginning was fed. The last character may be incomplete.
    pub fn finish_beginning(self) -> Option<Encoding> {
        match &self.unicode {
            Some(decoder) => Some(decoder.encoding),
            None => self.may_be_single_bytes.then_some(Encoding::Windows1252),
        }
    }
}

/// Decodes a text in pieces.
pub struct Decoder {
    encoding: Encoding,
    decoder: encoding_rs::Decoder,
}

impl Decoder {
    /// Creates a decoder.
    pub fn new(encoding: Encoding) -> Self {
        let standard = match encoding {
            Encoding::Utf8 => encoding_rs::UTF_8,
            Encoding::Utf16Le => encoding_rs::UTF_16LE,
            Encoding::Utf16Be => encoding_rs::UTF_16BE,
            Encoding::Windows1252 => encoding_rs::WINDOWS_1252,
        };
        Self { encoding, decoder: standard.new_decoder_without_bom_handling() }
    }

    /// Decodes the next piece and passes its text to `show`.
    pub fn feed(&mut self, bytes: &[u8], show: &mut dyn FnMut(&str)) -> Result<(), NotText> {
        let text = self.decode(bytes, false)?;
        show(&text);
        Ok(())
    }

    /// Ends the text. It is an error if the last character is incomplete.
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

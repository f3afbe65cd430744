//! Reads a text in any encoding as UTF-8.

use std::io::{self, Read};
use toolrest_core::{Decoder, Encoding};

/// Number of bytes that are read at a time.
const CHUNK_BYTES: u64 = 64 << 10;

/// A reader that decodes a text to UTF-8. Invalid bytes are an error.
pub(super) struct DecodingReader<R> {
    file: R,
    decoder: Decoder,
    raw: Vec<u8>,
    /// The decoded text, and how much of it was returned already.
    text: Vec<u8>,
    given: usize,
    has_ended: bool,
}

impl<R: Read> DecodingReader<R> {
    pub(super) fn new(file: R, encoding: Encoding) -> Self {
        let decoder = Decoder::new(encoding);
        Self { file, decoder, raw: Vec::new(), text: Vec::new(), given: 0, has_ended: false }
    }

    fn decode_more(&mut self) -> io::Result<()> {
        let invalid = |_| io::Error::from(io::ErrorKind::InvalidData);
        self.raw.clear();
        self.text.clear();
        self.given = 0;
        self.has_ended = (&mut self.file).take(CHUNK_BYTES).read_to_end(&mut self.raw)? == 0;
        let text = &mut self.text;
        self.decoder.feed(&self.raw, &mut |part| text.extend_from_slice(part.as_bytes())).map_err(invalid)?;
        if self.has_ended { self.decoder.finish().map_err(invalid) } else { Ok(()) }
    }
}

impl<R: Read> Read for DecodingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.given == self.text.len() && !self.has_ended {
            self.decode_more()?;
        }
        let rest = &self.text[self.given..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.given += count;
        Ok(count)
    }
}

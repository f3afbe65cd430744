//! Reads the content of a response, decompresses it, and keeps it within a limit.

use super::HttpError;
use brotli_decompressor::DecompressorWriter;
use flate2::write::MultiGzDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use http::{HeaderMap, header};
use std::io::{self, Write};

/// Size of the buffer of the decompressor.
const BUFFER_BYTES: usize = 8 << 10;

/// Reads the content of a response.
pub(super) struct BodyReader {
    decoder: Decoder,
    received: usize,
    limit: usize,
}

enum Decoder {
    Plain(Sink),
    Gzip(MultiGzDecoder<Sink>),
    /// Nothing was received yet, and hosts mean two different formats by `deflate`.
    DeflateUnknown(usize),
    Deflate(Inflater),
    Brotli(Box<DecompressorWriter<Sink>>),
}

/// Decompresses a stream of `deflate`, and knows whether it has reached its end.
struct Inflater {
    state: Decompress,
    sink: Sink,
    has_ended: bool,
}

impl Inflater {
    fn new(has_zlib_header: bool, sink: Sink) -> Self {
        Self { state: Decompress::new(has_zlib_header), sink, has_ended: false }
    }

    fn write_all(&mut self, mut part: &[u8]) -> io::Result<()> {
        let mut buffer = vec![0; BUFFER_BYTES];
        while !self.has_ended {
            let (read, written) = (self.state.total_in(), self.state.total_out());
            let status = self.state.decompress(part, &mut buffer, FlushDecompress::None)?;
            let consumed = usize::try_from(self.state.total_in() - read).map_err(io::Error::other)?;
            let produced = usize::try_from(self.state.total_out() - written).map_err(io::Error::other)?;
            self.sink.write_all(&buffer[..produced])?;
            part = &part[consumed..];
            self.has_ended = status == Status::StreamEnd;
            if consumed == 0 && produced == 0 {
                break;
            }
        }
        Ok(())
    }

    fn finish(&self) -> io::Result<()> {
        if self.has_ended { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

/// A vector that refuses to exceed its limit.
#[derive(Default)]
struct Sink {
    content: Vec<u8>,
    limit: usize,
    is_full: bool,
}

impl Sink {
    fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.content.len() + bytes.len() > self.limit {
            self.is_full = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.content.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl BodyReader {
    /// Creates a reader for a response with this head.
    pub(super) fn new(fields: &HeaderMap, limit: usize) -> Result<Self, HttpError> {
        let length = fields.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        if length.is_some_and(|length| usize::try_from(length).map_or(true, |length| length > limit)) {
            return Err(HttpError::TooLarge { limit });
        }
        let encodings: Vec<String> = fields
            .get_all(header::CONTENT_ENCODING)
            .iter()
            .flat_map(|value| value.to_str().unwrap_or("?").split(','))
            .map(|name| name.trim().to_ascii_lowercase())
            .filter(|name| !name.is_empty() && name != "identity")
            .collect();
        let sink = Sink::new(limit);
        let decoder = match encodings.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [] => Decoder::Plain(sink),
            ["gzip" | "x-gzip"] => Decoder::Gzip(MultiGzDecoder::new(sink)),
            ["deflate"] => Decoder::DeflateUnknown(limit),
            ["br"] => Decoder::Brotli(Box::new(DecompressorWriter::new(sink, BUFFER_BYTES))),
            _ => return Err(HttpError::UnknownEncoding { encoding: encodings.join(", ") }),
        };
        Ok(Self { decoder, received: 0, limit })
    }

    /// Whether the content is not sent as it is.
    pub(super) fn is_encoded(&self) -> bool {
        !matches!(self.decoder, Decoder::Plain(_))
    }

    /// Adds a part of the content.
    pub(super) fn push(&mut self, part: &[u8]) -> Result<(), HttpError> {
        self.received += part.len();
        // Compressed data that decompresses to nothing is endless too.
        if self.received > self.limit {
            return Err(HttpError::TooLarge { limit: self.limit });
        }
        if let (Decoder::DeflateUnknown(limit), Some(first)) = (&self.decoder, part.first()) {
            let sink = Sink::new(*limit);
            // The first byte of the zlib format names the method 8; in a raw stream of compressors it never does.
            self.decoder = Decoder::Deflate(Inflater::new(first & 0x0f == 8, sink));
        }
        let (written, is_full) = match &mut self.decoder {
            Decoder::Plain(sink) => (sink.write_all(part), sink.is_full),
            Decoder::Gzip(decoder) => (decoder.write_all(part), decoder.get_ref().is_full),
            Decoder::Deflate(decoder) => (decoder.write_all(part), decoder.sink.is_full),
            Decoder::Brotli(decoder) => (decoder.write_all(part), decoder.get_ref().is_full),
            // Only an empty part arrives here.
            Decoder::DeflateUnknown(_) => (Ok(()), false),
        };
        self.result(&written, is_full)
    }

    fn result(&self, written: &io::Result<()>, is_full: bool) -> Result<(), HttpError> {
        match written {
            Ok(()) => Ok(()),
            Err(_) if is_full => Err(HttpError::TooLarge { limit: self.limit }),
            Err(_) => Err(HttpError::BadCompression),
        }
    }

    /// Returns the whole content. Fails if compressed data ended too early.
    pub(super) fn finish(mut self) -> Result<Vec<u8>, HttpError> {
        let (ended, is_full) = match &mut self.decoder {
            Decoder::Plain(_) | Decoder::DeflateUnknown(_) => (Ok(()), false),
            // A response without content, as for HEAD, has no end of its compressed data either.
            _ if self.received == 0 => return Ok(Vec::new()),
            Decoder::Gzip(decoder) => (decoder.try_finish(), decoder.get_ref().is_full),
            Decoder::Deflate(decoder) => (decoder.finish(), decoder.sink.is_full),
            Decoder::Brotli(decoder) => (decoder.close(), decoder.get_ref().is_full),
        };
        self.result(&ended, is_full)?;
        Ok(match &mut self.decoder {
            Decoder::Plain(sink) => std::mem::take(&mut sink.content),
            Decoder::Gzip(decoder) => std::mem::take(&mut decoder.get_mut().content),
            Decoder::Deflate(decoder) => std::mem::take(&mut decoder.sink.content),
            Decoder::Brotli(decoder) => std::mem::take(&mut decoder.get_mut().content),
            Decoder::DeflateUnknown(_) => Vec::new(),
        })
    }
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod body_tests;

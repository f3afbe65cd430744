use super::*;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use http::HeaderValue;

/// "grüße " twenty times, compressed with Brotli.
const BROTLI: &str = "G58A+I2UbuqtHD4raxC5T16hWzhAWisA";
/// 64 MiB of zeros, compressed with Brotli.
const BROTLI_BOMB: &str = "y///P/gnAOKxQCD3/o///3/wTwDEYRGA7v0f////4J8AiMMCAN37P/7//8E/ARCHBQC693/8//+DfwIgDgsAdO//+P//B/8EQBwWAOje//H//w/+CYA4LADQvf/L//8//BMAcVgAoHv/Bw==";

fn fields(encoding: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(header::CONTENT_ENCODING, HeaderValue::from_static(encoding))])
}

/// Reads a body that arrives in parts of some bytes.
fn read(encoding: &'static str, body: &[u8], limit: usize) -> Result<Vec<u8>, HttpError> {
    let mut reader = BodyReader::new(&fields(encoding), limit)?;
    for part in body.chunks(7) {
        reader.push(part)?;
    }
    reader.finish()
}

fn compressed(encoding: &str, content: &[u8]) -> Vec<u8> {
    let level = Compression::best();
    match encoding {
        "gzip" => {
            let mut encoder = GzEncoder::new(Vec::new(), level);
            encoder.write_all(content).unwrap();
            encoder.finish().unwrap()
        }
        "zlib" => {
            let mut encoder = ZlibEncoder::new(Vec::new(), level);
            encoder.write_all(content).unwrap();
            encoder.finish().unwrap()
        }
        _ => {
            let mut encoder = DeflateEncoder::new(Vec::new(), level);
            encoder.write_all(content).unwrap();
            encoder.finish().unwrap()
        }
    }
}

#[test]
fn every_encoding_is_decoded() {
    let text = "grüße ".repeat(20).into_bytes();
    assert_eq!(read("identity", &text, 1000).unwrap(), text);
    assert_eq!(read("gzip", &compressed("gzip", &text), 1000).unwrap(), text);
    assert_eq!(read("x-gzip", &compressed("gzip", &text), 1000).unwrap(), text);
    assert_eq!(read("deflate", &compressed("zlib", &text), 1000).unwrap(), text);
    assert_eq!(read("deflate", &compressed("raw", &text), 1000).unwrap(), text);
    assert_eq!(read("br", &BASE64_STANDARD.decode(BROTLI).unwrap(), 1000).unwrap(), text);
}

#[test]
fn what_is_decompressed_counts_against_the_limit() {
    let zeros = vec![0; 1 << 20];
    for (encoding, format) in [("gzip", "gzip"), ("deflate", "zlib"), ("deflate", "raw")] {
        let bomb = compressed(format, &zeros);
        assert!(bomb.len() < 10_000);
        let error = read(encoding, &bomb, 100_000).unwrap_err();
        assert!(matches!(error, HttpError::TooLarge { limit: 100_000 }), "{format}: {error}");
    }
    let error = read("br", &BASE64_STANDARD.decode(BROTLI_BOMB).unwrap(), 100_000).unwrap_err();
    assert!(matches!(error, HttpError::TooLarge { .. }), "{error}");
}

#[test]
fn a_limit_holds_to_the_byte() {
    let text = vec![b'x'; 1000];
    for encoding in ["identity", "gzip"] {
        let body = if encoding == "gzip" { compressed("gzip", &text) } else { text.clone() };
        assert_eq!(read(encoding, &body, 1000).unwrap().len(), 1000);
        assert!(matches!(read(encoding, &body, 999), Err(HttpError::TooLarge { .. })), "{encoding}");
    }
}

#[test]
fn compressed_data_that_ends_early_or_is_damaged_is_refused() {
    let text = "grüße ".repeat(200).into_bytes();
    let gzip = compressed("gzip", &text);
    let zlib = compressed("zlib", &text);
    let brotli = BASE64_STANDARD.decode(BROTLI).unwrap();
    for (encoding, body) in [("gzip", &gzip), ("deflate", &zlib), ("br", &brotli)] {
        let cut = read(encoding, &body[..body.len() - 3], 10_000);
        assert!(matches!(cut, Err(HttpError::BadCompression)), "{encoding}");
    }
    assert!(matches!(read("gzip", b"not compressed at all", 10_000), Err(HttpError::BadCompression)));
    assert!(matches!(read("zstd", b"x", 10_000), Err(HttpError::UnknownEncoding { .. })));
    assert!(matches!(read("gzip, br", b"x", 10_000), Err(HttpError::UnknownEncoding { .. })));
}

#[test]
fn an_announced_length_over_the_limit_is_refused_before_the_body() {
    let long = HeaderMap::from_iter([(header::CONTENT_LENGTH, HeaderValue::from_static("1001"))]);
    assert!(matches!(BodyReader::new(&long, 1000), Err(HttpError::TooLarge { .. })));
    let absurd = HeaderMap::from_iter([(header::CONTENT_LENGTH, HeaderValue::from_static("18446744073709551615"))]);
    assert!(matches!(BodyReader::new(&absurd, 1000), Err(HttpError::TooLarge { .. })));
}

#[test]
fn a_compressed_response_without_content_is_empty() {
    assert_eq!(read("gzip", b"", 10).unwrap(), b"");
    assert_eq!(read("deflate", b"", 10).unwrap(), b"");
}

//! Pictures for models: recognised, and scaled down to what models see.

use crate::heavy;
use image::{DynamicImage, ImageFormat, ImageReader, Limits};
use std::io::Cursor;
use toolrest_core::{CallCx, ErrorKind, Result, ToolError};

/// Maximum size of a side, in pixels. Models scale larger pictures down themselves.
const MAX_SIDE: u32 = 1568;
/// Maximum size of a picture that is given as it is.
const MAX_BYTES: usize = 1 << 20;
/// Maximum memory that decoding may take.
const MAX_DECODED_BYTES: u64 = 256 << 20;
/// Qualities with which a picture is compressed, until it is small enough.
const QUALITIES: [u8; 3] = [85, 70, 50];

/// A picture.
#[derive(Debug)]
pub struct Picture {
    /// Its media type.
    pub media_type: &'static str,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its width and height in the file.
    pub original: (u32, u32),
    /// Its width and height here.
    pub shown: (u32, u32),
}

/// Whether bytes begin like a picture that models see: PNG, JPEG, GIF or WebP.
pub fn is_picture(bytes: &[u8]) -> bool {
    format_of(bytes).is_some()
}

fn format_of(bytes: &[u8]) -> Option<(ImageFormat, &'static str)> {
    match image::guess_format(bytes).ok()? {
        ImageFormat::Png => Some((ImageFormat::Png, "image/png")),
        ImageFormat::Jpeg => Some((ImageFormat::Jpeg, "image/jpeg")),
        ImageFormat::Gif => Some((ImageFormat::Gif, "image/gif")),
        ImageFormat::WebP => Some((ImageFormat::WebP, "image/webp")),
        _ => None,
    }
}

/// Returns a picture as models see it. A small one stays as it is.
pub async fn picture(cx: &CallCx, bytes: Vec<u8>) -> Result<Picture> {
    heavy::run(cx, usize::MAX, move |_| scaled(bytes)).await
}

fn scaled(bytes: Vec<u8>) -> Result<Picture> {
    let Some((format, media_type)) = format_of(&bytes) else {
        return Err(ToolError::new(ErrorKind::Binary, "The file is not a picture"));
    };
    let mut reader = ImageReader::with_format(Cursor::new(&bytes), format);
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_DECODED_BYTES);
    reader.limits(limits);
    let decoded = reader
        .decode()
        .map_err(|error| ToolError::new(ErrorKind::Binary, format!("The picture cannot be decoded: {error}")))?;
    let original = (decoded.width(), decoded.height());
    if original.0.max(original.1) <= MAX_SIDE && bytes.len() <= MAX_BYTES {
        return Ok(Picture { media_type, bytes, original, shown: original });
    }
    let (width, height) = (original.0.min(MAX_SIDE), original.1.min(MAX_SIDE));
    let mut smaller = if original.0.max(original.1) > MAX_SIDE { decoded.thumbnail(width, height) } else { decoded };
    loop {
        if let Some((media_type, bytes)) = encoded(&smaller)? {
            let shown = (smaller.width(), smaller.height());
            return Ok(Picture { media_type, bytes, original, shown });
        }
        smaller = smaller.thumbnail((smaller.width() / 2).max(1), (smaller.height() / 2).max(1));
    }
}

/// Encodes a picture: as PNG, or as JPEG if that is too large. None if both are.
fn encoded(picture: &DynamicImage) -> Result<Option<(&'static str, Vec<u8>)>> {
    let mut bytes = Vec::new();
    picture.write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png).map_err(ToolError::internal)?;
    if bytes.len() <= MAX_BYTES {
        return Ok(Some(("image/png", bytes)));
    }
    let opaque = DynamicImage::ImageRgb8(picture.to_rgb8());
    for quality in QUALITIES {
        bytes.clear();
        let encoder = image::codecs::jpeg::JpegEncoder::new_with_quality(&mut bytes, quality);
        opaque.write_with_encoder(encoder).map_err(ToolError::internal)?;
        if bytes.len() <= MAX_BYTES {
            return Ok(Some(("image/jpeg", bytes)));
        }
    }
    Ok(None)
}

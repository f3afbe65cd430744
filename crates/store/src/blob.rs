//! The stored form of contents: hashing, compression, decoding.

use crate::error::{Result, StoreError};
use crate::signature::Signature;
use std::{borrow::Cow, cell::RefCell, io::Read};
use toolrest_core::{Change, Changeset, Content, ContentHash, ErrorKind, Form};
use zstd::bulk::{Compressor, Decompressor};

/// How the bytes of a blob are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Raw,
    Zstd,
    /// Not stored: only the size and the hash are known.
    Dropped,
}

impl Encoding {
    pub fn code(self) -> i16 {
        match self {
            Self::Raw => 0,
            Self::Zstd => 1,
            Self::Dropped => 2,
        }
    }

    pub fn from_code(code: i16) -> Option<Self> {
        [Self::Raw, Self::Zstd, Self::Dropped].into_iter().find(|encoding| encoding.code() == code)
    }
}

/// A content ready to be stored: hashed, and compressed if requested and worthwhile.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The hash that the API reports.
    pub hash: ContentHash,
    pub form: Form,
    /// The SHA-256 of the bytes.
    pub key: ContentHash,
    /// The number of bytes before compression.
    pub size: i64,
    /// The size of the file as programs see it.
    pub shown_size: i64,
    pub encoding: Encoding,
    pub data: Vec<u8>,
    /// The signature of the text; none for bytes that are not text.
    pub(crate) signature: Option<Signature>,
}

/// Whether current contents are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not compressed, so that searches read them in place. For SQLite.
    Off,
    /// Compressed if that saves enough, to send and write less. For PostgreSQL.
    WherePays,
}

/// Contents of at least this size are worth compressing.
const COMPRESS_FROM_BYTES: usize = 512;
/// Contents of at least this size are prepared on a blocking thread.
const HEAVY_FROM_BYTES: usize = 128 << 10;

impl Prepared {
    pub fn of(content: &Content, compression: Compression) -> Result<Self> {
        let bytes = content.stored();
        let hash = content.hash()?;
        // For text and bytes, the hash of the API is that of the stored bytes.
        let key = if content.form() == Form::Json { ContentHash::of(&bytes) } else { hash };
        let size = i64::try_from(bytes.len()).map_err(StoreError::internal)?;
        let signature = match content {
            Content::Bytes(_) => None,
            Content::Encoded(text) => Some(Signature::of(text.text().as_bytes())),
            Content::Text(_) | Content::Json(_) => Some(Signature::of(&bytes)),
        };
        let smaller = if compression == Compression::WherePays { compressed(&bytes)? } else { None };
        let (encoding, data) = match smaller {
            Some(data) => (Encoding::Zstd, data),
            None => (Encoding::Raw, bytes.into_owned()),
        };
        Ok(Self { hash, form: content.form(), key, size, shown_size: size, encoding, data, signature })
    }

    /// Creates a content whose bytes are not stored.
    pub fn dropped(hash: ContentHash, form: Form, size: i64) -> Self {
        Self {
            hash,
            form,
            key: hash,
            size,
            shown_size: size,
            encoding: Encoding::Dropped,
            data: Vec::new(),
            signature: None,
        }
    }
}

fn weight(content: &Content) -> usize {
    match content {
        Content::Text(text) => text.len(),
        Content::Json(json) => json.as_str().len(),
        Content::Encoded(text) => text.as_bytes().len(),
        Content::Bytes(bytes) => bytes.len(),
    }
}

/// Compresses bytes; none if that does not save enough.
pub fn compressed(bytes: &[u8]) -> Result<Option<Vec<u8>>> {
    if bytes.len() < COMPRESS_FROM_BYTES {
        return Ok(None);
    }
    let data = COMPRESSOR.with_borrow_mut(|zstd| match zstd {
        Ok(zstd) => zstd.compress(bytes).map_err(StoreError::internal),
        Err(error) => Err(StoreError::internal(error.to_string())),
    })?;
    Ok((data.len() < bytes.len() - bytes.len() / 8).then_some(data))
}

thread_local! {
    // Reused, because creating one takes longer than compressing a small file.
    static COMPRESSOR: RefCell<std::io::Result<Compressor<'static>>> = RefCell::new(Compressor::new(1));
    static DECOMPRESSOR: RefCell<std::io::Result<Decompressor<'static>>> = RefCell::new(Decompressor::new());
}

/// Prepares the contents of all changes.
pub async fn prepare(changes: Changeset, compression: Compression) -> Result<(Changeset, Vec<Option<Prepared>>)> {
    let heavy: usize =
        changes.changes.iter().map(|change| if let Change::Put(put) = change { weight(&put.content) } else { 0 }).sum();
    let work = move || {
        let contents = changes
            .changes
            .iter()
            .map(|change| match change {
                Change::Put(put) => {
                    let shown_size = i64::try_from(put.content.shown_bytes(put.file_type)).unwrap_or(i64::MAX);
                    Prepared::of(&put.content, compression).map(|content| Some(Prepared { shown_size, ..content }))
                }
                Change::Touch(_) => Prepared::of(&Content::Text(String::new()), compression).map(Some),
                _ => Ok(None),
            })
            .collect::<Result<_>>()?;
        Ok((changes, contents))
    };
    if heavy < HEAVY_FROM_BYTES {
        return work();
    }
    tokio::task::spawn_blocking(work).await.map_err(StoreError::internal)?
}

/// Decompresses bytes.
pub fn decompressed(data: &[u8], size: usize) -> Result<Vec<u8>> {
    DECOMPRESSOR.with_borrow_mut(|zstd| match zstd {
        Ok(zstd) => zstd.decompress(data, size).map_err(StoreError::internal),
        Err(error) => Err(StoreError::internal(error.to_string())),
    })
}

/// Returns the stored bytes of a content, decompressed.
pub fn stored_bytes(encoding: i16, size: i64, data: &[u8]) -> Result<Cow<'_, [u8]>> {
    match Encoding::from_code(encoding) {
        Some(Encoding::Raw) => Ok(Cow::Borrowed(data)),
        Some(Encoding::Zstd) => {
            Ok(Cow::Owned(decompressed(data, usize::try_from(size).map_err(StoreError::internal)?)?))
        }
        Some(Encoding::Dropped) => Err(not_kept(size)),
        None => Err(StoreError::internal(format!("unknown encoding {encoding}"))),
    }
}

/// Decodes the first bytes of a content. `data` is at least the beginning of the stored bytes.
pub(crate) fn decoded_beginning(encoding: i16, data: &[u8]) -> Result<[u8; 3]> {
    let mut beginning = [0; 3];
    let read = match Encoding::from_code(encoding) {
        Some(Encoding::Zstd) => {
            let mut decoder = zstd::stream::read::Decoder::new(data).map_err(StoreError::internal)?;
            decoder.read(&mut beginning)
        }
        _ => (&mut &*data).read(&mut beginning),
    };
    read.map_err(StoreError::internal)?;
    Ok(beginning)
}

/// Decodes a stored content.
pub fn decode(form: i16, encoding: i16, size: i64, data: &[u8]) -> Result<Content> {
    let form = Form::from_code(form).ok_or_else(|| StoreError::internal(format!("unknown form {form}")))?;
    Ok(Content::from_stored(form, stored_bytes(encoding, size, data)?.into_owned())?)
}

/// Returns the error for a content that was not stored because of the limits of a folder's history.
fn not_kept(size: i64) -> StoreError {
    let message = format!("This content of {size} bytes was not kept: it is over the limits of the folder's history");
    StoreError::refused(ErrorKind::NotFound, message)
}

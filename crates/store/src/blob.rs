//! How contents are stored.

use crate::error::{Result, StoreError};
use crate::signature::Signature;
use std::{borrow::Cow, cell::RefCell, io::Read};
use toolrest_core::{Change, Changeset, Content, ContentHash, ErrorKind, Form};
use zstd::bulk::{Compressor, Decompressor};

/// How the bytes of a blob are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Raw,
    Zstd,
    /// Not kept: only its size and hash are known.
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

/// A content made ready for the database: hashed, and compressed where that was asked for and pays.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The hash that the API reports.
    pub hash: ContentHash,
    pub form: Form,
    /// The SHA-256 of the bytes.
    pub key: ContentHash,
    /// How many bytes are stored, uncompressed.
    pub size: i64,
    /// How many bytes the file has, as programs see it.
    pub shown_size: i64,
    pub encoding: Encoding,
    pub data: Vec<u8>,
    /// What searches can tell of the text without reading it; bytes that are no text have none.
    pub(crate) signature: Option<Signature>,
}

/// Whether heads are kept compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Fast to search: for the embedded database.
    Off,
    /// Less to send and to write: for PostgreSQL.
    WherePays,
}

/// Contents from here on are worth compressing.
const COMPRESS_FROM_BYTES: usize = 512;
/// Contents from here on are prepared away from the threads that serve requests.
const HEAVY_FROM_BYTES: usize = 128 << 10;

impl Prepared {
    pub fn of(content: &Content, compression: Compression) -> Result<Self> {
        let bytes = content.stored();
        let hash = content.hash()?;
        // Of text and bytes the API's hash is the one of the stored bytes.
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

    /// A content of which only so much is known.
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

/// The bytes compressed, if that pays.
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
    // Making one takes longer than compressing a small file.
    static COMPRESSOR: RefCell<std::io::Result<Compressor<'static>>> = RefCell::new(Compressor::new(1));
    static DECOMPRESSOR: RefCell<std::io::Result<Decompressor<'static>>> = RefCell::new(Decompressor::new());
}

/// Prepares the content of each change, where it has one.
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

/// Gives back bytes that were compressed.
pub fn decompressed(data: &[u8], size: usize) -> Result<Vec<u8>> {
    DECOMPRESSOR.with_borrow_mut(|zstd| match zstd {
        Ok(zstd) => zstd.decompress(data, size).map_err(StoreError::internal),
        Err(error) => Err(StoreError::internal(error.to_string())),
    })
}

/// Gives back the bytes that were stored.
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

/// The first bytes of a content, of which at least the beginning is given as it is stored.
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

/// Gives back the content that was stored.
pub fn decode(form: i16, encoding: i16, size: i64, data: &[u8]) -> Result<Content> {
    let form = Form::from_code(form).ok_or_else(|| StoreError::internal(format!("unknown form {form}")))?;
    Ok(Content::from_stored(form, stored_bytes(encoding, size, data)?.into_owned())?)
}

/// The refusal to show a content that history has no room for.
fn not_kept(size: i64) -> StoreError {
    let message = format!("This content of {size} bytes was not kept: it is over the limits of the folder's history");
    StoreError::refused(ErrorKind::NotFound, message)
}

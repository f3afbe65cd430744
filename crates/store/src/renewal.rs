//! Versions that earlier releases have written, brought to what this one writes.
//!
//! Earlier releases took texts in Latin-1 and UTF-16 for bytes, texts with a byte order mark for plain ones, and the
//! size of JSON as it is stored for the one that it has when it is laid out. Migrations cannot tell: it takes the
//! contents. So versions are gone through after the migration, some at a time, while the server works.

use crate::blob::{decode, decoded_beginning, stored_bytes};
use crate::error::Result;
use toolrest_core::{Content, ContentHash, FileType, Form};
use uuid::Uuid;

/// The most versions that are looked at in one go.
pub(crate) const BATCH: i64 = 500;
/// The most bytes of contents that are read in one go, unless a single one has more.
pub(crate) const BATCH_BYTES: i64 = 8 << 20;
/// As much of a stored content as tells how it begins: the first block of zstd is no larger.
pub(crate) const BEGINNING_BYTES: i64 = (128 << 10) + 64;

/// Where a version stands in the order of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub ws: Uuid,
    pub file: Uuid,
    pub seq: i64,
}

/// A version as it is recorded.
pub(crate) struct OldVersion {
    pub at: Position,
    pub form: Form,
    /// How many bytes the file has, as programs see it.
    pub size: i64,
    pub file_type: FileType,
    pub blob: ContentHash,
    /// How its content is stored, and how many bytes that takes.
    pub encoding: i16,
    pub stored_bytes: i64,
}

/// What a version is to become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Renewed {
    pub at: Position,
    pub form: Form,
    pub size: i64,
}

impl OldVersion {
    /// Whether all of the content is needed to judge it; if not, its beginning is enough.
    pub(crate) fn needs_whole(&self) -> bool {
        matches!(self.form, Form::Bytes | Form::Json)
    }

    /// How many bytes have to be read of it.
    pub(crate) fn read_bytes(&self) -> i64 {
        if self.needs_whole() { self.stored_bytes } else { self.stored_bytes.min(BEGINNING_BYTES) }
    }

    /// What it is by the rules of today, if that differs. Its content is given as it is stored: with how it is encoded,
    /// and its size before that.
    pub(crate) fn renewed(&self, encoding: i16, size: i64, data: &[u8]) -> Option<Renewed> {
        match self.judged(encoding, size, data) {
            Ok((form, size)) if (form, size) != (self.form, self.size) => Some(Renewed { at: self.at, form, size }),
            Ok(_) => None,
            Err(error) => {
                tracing::warn!(%error, "a version of an earlier release cannot be read; it stays as it is");
                None
            }
        }
    }

    fn judged(&self, encoding: i16, size: i64, data: &[u8]) -> Result<(Form, i64)> {
        Ok(match self.form {
            Form::Text => {
                let begins_with_mark = decoded_beginning(encoding, data)? == *b"\xef\xbb\xbf";
                (if begins_with_mark { Form::Encoded } else { Form::Text }, self.size)
            }
            Form::Bytes => {
                let content = Content::of_bytes(stored_bytes(encoding, size, data)?.into_owned());
                (content.form(), self.size)
            }
            Form::Json => {
                let shown = decode(Form::Json.code(), encoding, size, data)?.shown_bytes(self.file_type);
                (Form::Json, i64::try_from(shown).unwrap_or(i64::MAX))
            }
            Form::Encoded => (Form::Encoded, self.size),
        })
    }
}

/// How many of the versions are looked at in one go.
pub(crate) fn batch(versions: &[OldVersion]) -> usize {
    let mut bytes = 0;
    let fits = |version: &&OldVersion| {
        let is_first = bytes == 0;
        bytes += version.read_bytes().max(1);
        is_first || bytes <= BATCH_BYTES
    };
    versions.iter().take_while(fits).count()
}

//! Updates the recorded form and size of versions that earlier releases wrote.
//!
//! Earlier releases recorded texts in Latin-1 and UTF-16 as bytes, texts with a byte order mark as plain text, and the
//! stored size of JSON instead of its formatted size. A migration cannot correct this in SQL, because the contents have
//! to be decoded. So versions are checked in batches after the migration, while the server runs.

use crate::blob::{decode, decoded_beginning, stored_bytes};
use crate::error::Result;
use toolrest_core::{Content, ContentHash, FileType, Form};
use uuid::Uuid;

/// Maximum number of versions in a batch.
pub(crate) const BATCH: i64 = 500;
/// Maximum bytes of contents in a batch, unless a single content has more.
pub(crate) const BATCH_BYTES: i64 = 8 << 20;
/// How much of a stored content is read to decode its beginning: the first block of zstd is no larger.
pub(crate) const BEGINNING_BYTES: i64 = (128 << 10) + 64;

/// The key of a version, in the order in which versions are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub ws: Uuid,
    pub file: Uuid,
    pub seq: i64,
}

/// A version as an earlier release recorded it.
pub(crate) struct OldVersion {
    pub at: Position,
    pub form: Form,
    /// How many bytes the file has, as programs see it.
    pub size: i64,
    pub file_type: FileType,
    pub blob: ContentHash,
    /// The encoding of its content, and the number of bytes stored.
    pub encoding: i16,
    pub stored_bytes: i64,
}

/// The corrected form and size of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CorrectedVersion {
    pub at: Position,
    pub form: Form,
    pub size: i64,
}

impl OldVersion {
    /// Whether the check needs the whole content; if not, the beginning is enough.
    pub(crate) fn needs_whole(&self) -> bool {
        matches!(self.form, Form::Bytes | Form::Json)
    }

    /// The number of bytes that the check reads.
    pub(crate) fn read_bytes(&self) -> i64 {
        if self.needs_whole() { self.stored_bytes } else { self.stored_bytes.min(BEGINNING_BYTES) }
    }

    /// Returns the form and size by the current rules, if they differ. The content is passed as it is stored, with its
    /// encoding and its uncompressed size.
    pub(crate) fn renewed(&self, encoding: i16, size: i64, data: &[u8]) -> Option<CorrectedVersion> {
        match self.current_form_and_size(encoding, size, data) {
            Ok((form, size)) if (form, size) != (self.form, self.size) => {
                Some(CorrectedVersion { at: self.at, form, size })
            }
            Ok(_) => None,
            Err(error) => {
                tracing::warn!(%error, "a version of an earlier release cannot be read; it stays unchanged");
                None
            }
        }
    }

    fn current_form_and_size(&self, encoding: i16, size: i64, data: &[u8]) -> Result<(Form, i64)> {
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

/// Returns how many of the versions fit into one batch.
pub(crate) fn batch(versions: &[OldVersion]) -> usize {
    let mut bytes = 0;
    let fits = |version: &&OldVersion| {
        let is_first = bytes == 0;
        bytes += version.read_bytes().max(1);
        is_first || bytes <= BATCH_BYTES
    };
    versions.iter().take_while(fits).count()
}

//! Results and the commits of sessions: what both databases share.

use crate::blob::{Encoding, compressed, stored_bytes};
use crate::error::{Result, StoreError};
use toolrest_core::{MAX_RESULT_BYTES, RESULT_LIFETIME, Timestamp, now};
use uuid::Uuid;

/// Size of a part of a result, which is one write.
const PART_BYTES: usize = 1 << 20;

/// How many commits a look-up by their last digits returns.
pub(crate) const MAX_SAME_SUFFIX: i64 = 20;

/// A part of a result.
pub(crate) struct ResultPart {
    pub(crate) n: i32,
    pub(crate) size: i64,
    pub(crate) encoding: i16,
    pub(crate) data: Vec<u8>,
}

/// Splits a result into parts, and compresses them on a blocking thread.
pub(crate) async fn parts_of(bytes: Vec<u8>) -> Result<Vec<ResultPart>> {
    if bytes.len() > MAX_RESULT_BYTES {
        return Err(StoreError::internal("a result is larger than the limit"));
    }
    let split = move || {
        let part = |(n, part): (usize, &[u8])| {
            let packed = compressed(part)?;
            let encoding = if packed.is_some() { Encoding::Zstd } else { Encoding::Raw };
            Ok(ResultPart {
                n: i32::try_from(n).map_err(StoreError::internal)?,
                size: i64::try_from(part.len()).map_err(StoreError::internal)?,
                encoding: encoding.code(),
                data: packed.unwrap_or_else(|| part.to_vec()),
            })
        };
        bytes.chunks(PART_BYTES).enumerate().map(part).collect()
    };
    tokio::task::spawn_blocking(split).await.map_err(StoreError::internal)?
}

/// Joins the parts of a result, which are in order.
pub(crate) fn joined(parts: &[ResultPart]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend_from_slice(&stored_bytes(part.encoding, part.size, &part.data)?);
    }
    Ok(bytes)
}

/// Returns when a result that is kept now expires.
pub(crate) fn expiry() -> Result<Timestamp> {
    now().checked_add(RESULT_LIFETIME).map_err(StoreError::internal)
}

/// Returns the last four bytes of the ids that end in these digits, and the digits before those.
pub(crate) fn suffix(digits: &str) -> Option<(Vec<u8>, String)> {
    let digits: String = digits.chars().filter(|c| *c != '-').flat_map(char::to_lowercase).collect();
    let start = digits.len().checked_sub(8).filter(|start| digits.is_char_boundary(*start))?;
    let last = u32::from_str_radix(&digits[start..], 16).ok()?;
    Some((last.to_be_bytes().to_vec(), digits))
}

/// Whether an id ends in these digits.
pub(crate) fn ends_in(id: Uuid, digits: &str) -> bool {
    id.simple().to_string().ends_with(digits)
}

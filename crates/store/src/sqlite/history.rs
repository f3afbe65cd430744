//! Compresses contents that are no longer current.

use super::Sqlite;
use super::row::{collect, find, run};
use crate::blob::{Encoding, compressed};
use crate::error::{Result, StoreError};
use rusqlite::Connection;

use uuid::Uuid;

/// Batches are small, so that writers do not wait noticeably.
const BATCH: u32 = 100;
const BATCH_BYTES: usize = 4 << 20;
/// Maximum number of batches in one run. After a burst of writes it takes several runs to catch up.
const BATCHES_PER_TURN: usize = 4;

/// A content to compress.
struct PendingCompression {
    /// Its position in the queue.
    place: i64,
    ws: Uuid,
    key: [u8; 32],
    /// Its bytes, if there is still something to compress: raw at first, then compressed.
    data: Option<Vec<u8>>,
}

impl Sqlite {
    /// Compresses some pending contents on a blocking thread. The writer only replaces the bytes.
    pub(super) async fn compress_history(&self) -> Result<()> {
        for _ in 0..BATCHES_PER_TURN {
            let pending = self.read(pending).await?;
            if pending.is_empty() {
                return Ok(());
            }
            let done = tokio::task::spawn_blocking(|| compress(pending)).await.map_err(StoreError::internal)??;
            self.write(move |db| swap(db, done)).await?;
        }
        Ok(())
    }
}

fn pending(db: &Connection) -> Result<Vec<PendingCompression>> {
    let sql = "SELECT place, ws, key FROM superseded ORDER BY place LIMIT ?1";
    let keys: Vec<(i64, Uuid, [u8; 32])> =
        collect(db, sql, [BATCH], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let mut pending = Vec::with_capacity(keys.len());
    let mut bytes = 0;
    for (place, ws, key) in keys {
        let sql = "SELECT data FROM blobs WHERE ws = ?1 AND key = ?2 AND encoding = ?3";
        let data: Option<Vec<u8>> = find(db, sql, (ws, key, Encoding::Raw.code()), |row| row.get(0))?;
        bytes += data.as_ref().map_or(0, Vec::len);
        pending.push(PendingCompression { place, ws, key, data });
        if bytes > BATCH_BYTES {
            break;
        }
    }
    Ok(pending)
}

/// Replaces raw bytes by compressed ones; by none if compression does not save enough.
fn compress(mut pending: Vec<PendingCompression>) -> Result<Vec<PendingCompression>> {
    for content in &mut pending {
        content.data = content.data.take().map_or(Ok(None), |raw| compressed(&raw))?;
    }
    Ok(pending)
}

fn swap(db: &Connection, done: Vec<PendingCompression>) -> Result<()> {
    for PendingCompression { place, ws, key, data } in done {
        if let Some(data) = data {
            let sql = "UPDATE blobs SET data = ?3, encoding = ?4 WHERE ws = ?1 AND key = ?2";
            run(db, sql, (ws, key, data, Encoding::Zstd.code()))?;
        }
        run(db, "DELETE FROM superseded WHERE place = ?1", [place])?;
    }
    Ok(())
}

//! Compressing contents that are no longer current.

use super::Sqlite;
use super::row::{collect, find, run};
use crate::blob::{Encoding, compressed};
use crate::error::{Result, StoreError};
use rusqlite::Connection;

use uuid::Uuid;

/// How much is compressed at a time: little enough that writers do not notice.
const BATCH: u32 = 100;
const BATCH_BYTES: usize = 4 << 20;
/// How many batches one turn takes. What a storm of writes leaves behind is caught up with when it is over.
const BATCHES_PER_TURN: usize = 4;

/// A content that waits to be compressed.
struct Waiting {
    /// Its place in the queue.
    place: i64,
    ws: Uuid,
    key: [u8; 32],
    /// Its bytes, if there is still something to do: raw at first, then compressed.
    data: Option<Vec<u8>>,
}

impl Sqlite {
    /// Compresses some of what waits for it, away from the writer, which only swaps the bytes.
    pub(super) async fn compress_history(&self) -> Result<()> {
        for _ in 0..BATCHES_PER_TURN {
            let waiting = self.read(waiting).await?;
            if waiting.is_empty() {
                return Ok(());
            }
            let done = tokio::task::spawn_blocking(|| compress(waiting)).await.map_err(StoreError::internal)??;
            self.write(move |db| swap(db, done)).await?;
        }
        Ok(())
    }
}

fn waiting(db: &Connection) -> Result<Vec<Waiting>> {
    let sql = "SELECT place, ws, key FROM superseded ORDER BY place LIMIT ?1";
    let keys: Vec<(i64, Uuid, [u8; 32])> =
        collect(db, sql, [BATCH], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let mut waiting = Vec::with_capacity(keys.len());
    let mut bytes = 0;
    for (place, ws, key) in keys {
        let sql = "SELECT data FROM blobs WHERE ws = ?1 AND key = ?2 AND encoding = ?3";
        let data: Option<Vec<u8>> = find(db, sql, (ws, key, Encoding::Raw.code()), |row| row.get(0))?;
        bytes += data.as_ref().map_or(0, Vec::len);
        waiting.push(Waiting { place, ws, key, data });
        if bytes > BATCH_BYTES {
            break;
        }
    }
    Ok(waiting)
}

/// Puts the compressed bytes in place of the raw ones where that pays, and nothing where it does not.
fn compress(mut waiting: Vec<Waiting>) -> Result<Vec<Waiting>> {
    for content in &mut waiting {
        content.data = content.data.take().map_or(Ok(None), |raw| compressed(&raw))?;
    }
    Ok(waiting)
}

fn swap(db: &Connection, done: Vec<Waiting>) -> Result<()> {
    for Waiting { place, ws, key, data } in done {
        if let Some(data) = data {
            let sql = "UPDATE blobs SET data = ?3, encoding = ?4 WHERE ws = ?1 AND key = ?2";
            run(db, sql, (ws, key, data, Encoding::Zstd.code()))?;
        }
        run(db, "DELETE FROM superseded WHERE place = ?1", [place])?;
    }
    Ok(())
}

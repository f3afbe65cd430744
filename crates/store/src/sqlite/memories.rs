//! Memories.

use super::row::{authorised, collect, find, micros, optional_time, run, time};
use super::{Sqlite, storage};
use crate::error::{Result, StoreError};
use crate::memories::{
    COUNTED_TAGS, IndexedWords, MAX_MEMORIES, SearchResults, SearchWords, fetched, key_uuid, page_of, size_of,
    too_many_memories,
};
use crate::quota::{self, cost};
use async_trait::async_trait;
use rusqlite::{Connection, Row, types::FromSqlError};
use toolrest_core::{
    Access, KeyId, Memories, Memory, MemoryFilter, MemoryPage, NewMemory, Result as ToolResult, Timestamp, UserId,
    WordMatch, no_such_memory, now,
};
use uuid::Uuid;

/// The columns that [`memory`] reads.
const COLUMNS: &str = "m.key, m.tags, m.created_at, m.updated_at, m.expires_at, m.user_id, m.agent_key, \
     octet_length(m.value), m.value";

/// The columns that [`memory`] reads, without the value.
const COLUMNS_OF_LIST: &str = "m.key, m.tags, m.created_at, m.updated_at, m.expires_at, m.user_id, m.agent_key, \
     octet_length(m.value), ''";

/// Whether a memory has not expired at the time `?2`.
const IS_LIVE: &str = "(m.expires_at IS NULL OR m.expires_at > ?2)";

/// Whether the memory has all tags of the JSON array `?3`. `CROSS JOIN` keeps the order of the tables: with the other one,
/// all tags of the workspace would be read for each memory.
const HAS_TAGS: &str = "(SELECT count(*) FROM json_each(?3) j CROSS JOIN memory_tags o
     ON o.ws = ?1 AND o.tag = j.value AND o.key = m.key) = json_array_length(?3)";

/// The tag of the JSON array `?3` that the fewest memories have, as far as they are counted.
fn rarest_tag() -> String {
    format!(
        "(SELECT value FROM json_each(?3) ORDER BY (SELECT count(*) FROM (
             SELECT 1 FROM memory_tags c WHERE c.ws = ?1 AND c.tag = value LIMIT {COUNTED_TAGS})) LIMIT 1)"
    )
}

fn memory(row: &Row<'_>) -> rusqlite::Result<Memory> {
    let tags = serde_json::from_str(row.get_ref(1)?.as_str()?).map_err(|error| FromSqlError::Other(error.into()))?;
    Ok(Memory {
        key: row.get(0)?,
        tags,
        created_at: time(row, 2)?,
        updated_at: time(row, 3)?,
        expires_at: optional_time(row, 4)?,
        user: UserId(row.get(5)?),
        agent_key: row.get::<_, Option<Uuid>>(6)?.map(KeyId),
        value_bytes: usize::try_from(row.get::<_, i64>(7)?).unwrap_or_default(),
        value: row.get(8)?,
    })
}

fn json(tags: &[String]) -> Result<String> {
    serde_json::to_string(tags).map_err(StoreError::internal)
}

#[async_trait]
impl Memories for Sqlite {
    async fn save_memory(&self, access: Access, memory: NewMemory, agent_key: Option<KeyId>) -> ToolResult<()> {
        let size = cost(size_of(&memory), 1);
        let reserved = quota::reserve(self, access, size).await?;
        let words = IndexedWords::of(access.workspace, &memory);
        let save = move |db: &Connection| {
            authorised(db, access)?;
            save(db, access, &memory, key_uuid(agent_key), &words, size)
        };
        let count = move |saved: &Result<i64>| {
            if let Ok(replaced) = saved {
                reserved.count_written(size - replaced);
            }
        };
        self.write_then(save, count).await?;
        Ok(())
    }

    async fn memories(&self, access: Access, filter: MemoryFilter, limit: usize) -> ToolResult<MemoryPage> {
        let tags = json(&filter.tags)?;
        let by_key =
            format!("SELECT {COLUMNS} FROM memories m WHERE m.ws = ?1 AND m.key = ?4 AND {IS_LIVE} AND {HAS_TAGS}");
        let by_tags = format!(
            "SELECT {COLUMNS} FROM memory_tags t INDEXED BY memory_tags_by_time
                 CROSS JOIN memories m ON m.ws = t.ws AND m.key = t.key
             WHERE t.ws = ?1 AND t.tag = {} AND {IS_LIVE} AND {HAS_TAGS} ORDER BY t.updated_at DESC, t.key LIMIT ?4",
            rarest_tag()
        );
        let found = self
            .read_inline(move |db| {
                authorised(db, access)?;
                let (ws, now) = (access.workspace.0, micros(now()));
                match &filter.key {
                    Some(key) => collect(db, &by_key, (ws, now, &tags, key), memory),
                    None => collect(db, &by_tags, (ws, now, &tags, fetched(limit)), memory),
                }
            })
            .await?;
        Ok(page_of(found, limit))
    }

    async fn delete_memory(&self, access: Access, key: String) -> ToolResult<()> {
        let delete = move |db: &Connection| {
            authorised(db, access)?;
            let ws = access.workspace.0;
            match delete(db, ws, &key, now())? {
                Some((bytes, Some(_))) => storage::add(db, ws, -bytes),
                _ => Err(no_such_memory(&key).into()),
            }
        };
        Ok(self.write(delete).await?)
    }

    async fn search_memories(
        &self,
        access: Access,
        words: String,
        tags: Vec<String>,
        limit: usize,
    ) -> ToolResult<(MemoryPage, WordMatch)> {
        let words = SearchWords::of(access.workspace, &words);
        let tags = json(&tags)?;
        // The best are found in the index alone; only those are read. A match in the key counts most, then one in the tags.
        let has_tags = if tags == "[]" {
            String::new()
        } else {
            format!("AND EXISTS (SELECT 1 FROM memories m WHERE m.id = memory_words.rowid AND {HAS_TAGS})")
        };
        let sql = format!(
            "SELECT {COLUMNS} FROM (
                 SELECT rowid AS id, rank FROM memory_words
                 WHERE memory_words MATCH ?4 AND rank MATCH 'bm25(8.0, 4.0, 1.0)'
                     AND rowid NOT IN (SELECT id FROM memories WHERE expires_at <= ?2) {has_tags}
                 ORDER BY rank LIMIT ?5
             ) w CROSS JOIN memories m ON m.id = w.id
             WHERE m.ws = ?1 AND json_type(?3) = 'array' ORDER BY w.rank, m.updated_at DESC"
        );
        let search = move |db: &Connection| {
            authorised(db, access)?;
            let (ws, now) = (access.workspace.0, micros(now()));
            let mut results = SearchResults::default();
            for attempt in words.attempts() {
                if results.need(attempt, limit) {
                    let query = words.fts5(attempt);
                    results.add(attempt, collect(db, &sql, (ws, now, &tags, query, fetched(limit)), memory)?);
                }
            }
            Ok(results.into_page(limit))
        };
        Ok(self.read(search).await?)
    }

    async fn list_memories(
        &self,
        access: Access,
        tags: Vec<String>,
        after: Option<String>,
        limit: usize,
    ) -> ToolResult<MemoryPage> {
        let sql = if tags.is_empty() {
            format!(
                "SELECT {COLUMNS_OF_LIST} FROM memories m
                 WHERE m.ws = ?1 AND m.key > ?4 AND {IS_LIVE} AND json_array_length(?3) = 0 ORDER BY m.key LIMIT ?5"
            )
        } else {
            format!(
                "SELECT {COLUMNS_OF_LIST} FROM memory_tags t CROSS JOIN memories m ON m.ws = t.ws AND m.key = t.key
                 WHERE t.ws = ?1 AND t.tag = {} AND t.key > ?4 AND {IS_LIVE} AND {HAS_TAGS} ORDER BY t.key LIMIT ?5",
                rarest_tag()
            )
        };
        let (tags, after) = (json(&tags)?, after.unwrap_or_default());
        let list = move |db: &Connection| {
            authorised(db, access)?;
            collect(db, &sql, (access.workspace.0, micros(now()), &tags, &after, fetched(limit)), memory)
        };
        Ok(page_of(self.read(list).await?, limit))
    }
}

/// Saves a memory; returns the size of the one that it replaced.
fn save(
    db: &Connection,
    access: Access,
    memory: &NewMemory,
    agent_key: Option<Uuid>,
    words: &IndexedWords,
    bytes: i64,
) -> Result<i64> {
    let (ws, at) = (access.workspace.0, now());
    let replaced = delete(db, ws, memory.key(), at)?;
    if replaced.is_none() && count(db, ws)? >= MAX_MEMORIES {
        let expired = delete_expired(db, Some(ws), at)?;
        if expired == 0 {
            return Err(too_many_memories());
        }
    }
    let (replaced_bytes, created_at) = replaced.unwrap_or_default();
    let sql =
        "INSERT INTO memories (ws, key, value, tags, created_at, updated_at, expires_at, user_id, agent_key, bytes)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    run(
        db,
        sql,
        (
            ws,
            memory.key(),
            memory.value(),
            json(memory.tags())?,
            created_at.unwrap_or(micros(at)),
            micros(at),
            memory.expires_at().map(micros),
            access.person.0,
            agent_key,
            bytes,
        ),
    )?;
    let [key, tags, value] = words.columns();
    let sql = "INSERT INTO memory_words (rowid, key, tags, value) VALUES (?1, ?2, ?3, ?4)";
    run(db, sql, (db.last_insert_rowid(), key, tags, value))?;
    Ok(replaced_bytes)
}

/// Deletes a memory. Returns its counted size and, if it had not expired, when it was created.
fn delete(db: &Connection, ws: Uuid, key: &str, at: Timestamp) -> Result<Option<(i64, Option<i64>)>> {
    let sql = "DELETE FROM memories WHERE ws = ?1 AND key = ?2
               RETURNING bytes, created_at, expires_at";
    let deleted = find(db, sql, (ws, key), |row| {
        let (bytes, created_at, expires_at): (i64, i64, Option<i64>) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok((bytes, expires_at.is_none_or(|expires_at| expires_at > micros(at)).then_some(created_at)))
    })?;
    Ok(deleted)
}

fn count(db: &Connection, ws: Uuid) -> Result<i64> {
    let sql = "SELECT memories FROM memory_counts WHERE ws = ?1";
    Ok(find(db, sql, [ws], |row| row.get(0))?.unwrap_or(0))
}

/// Maximum number of expired memories that one transaction deletes.
const BATCH_ROWS: i64 = 500;

/// Deletes a batch of memories that have expired, of one workspace or of all. Returns how many there were.
pub(super) fn delete_expired(db: &Connection, ws: Option<Uuid>, at: Timestamp) -> Result<usize> {
    let sql = "DELETE FROM memories WHERE id IN (
                   SELECT id FROM memories WHERE expires_at <= ?1 AND (?2 IS NULL OR ws = ?2) LIMIT ?3
               ) RETURNING ws, bytes";
    let deleted: Vec<(Uuid, i64)> =
        collect(db, sql, (micros(at), ws, BATCH_ROWS), |row| Ok((row.get(0)?, row.get(1)?)))?;
    for (ws, bytes) in &deleted {
        storage::add(db, *ws, -bytes)?;
    }
    Ok(deleted.len())
}

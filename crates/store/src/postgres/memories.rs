//! Memories.
//!
//! Every change locks the membership of its caller, so that the rights hold until it commits, and then the count of the
//! workspace.

use super::Postgres;
use super::row::authorised;
use super::storage::ADD_USE;
use super::transaction::Transaction;
use crate::error::{Result, StoreError};
use crate::files::FileStore;
use crate::memories::{
    COUNTED_TAGS, IndexedWords, MAX_MEMORIES, SearchResults, SearchWords, fetched, key_uuid, page_of, size_of,
    too_many_memories,
};
use crate::quota::{self, cost};
use async_trait::async_trait;
use tokio_postgres::{Row, types::ToSql};
use toolrest_core::{
    Access, KeyId, Memories, Memory, MemoryFilter, MemoryPage, NewMemory, Result as ToolResult, Timestamp, UserId,
    WordMatch, no_such_memory, now,
};
use uuid::Uuid;

/// The columns that [`found`] reads after the rights.
const COLUMNS: &str = "m.key, m.tags, m.created_at, m.updated_at, m.expires_at, m.user_id, m.agent_key, \
     octet_length(m.value) AS value_bytes, m.value";

/// The columns that [`found`] reads after the rights, without the value.
const COLUMNS_OF_LIST: &str = "m.key, m.tags, m.created_at, m.updated_at, m.expires_at, m.user_id, m.agent_key, \
     octet_length(m.value) AS value_bytes, '' AS value";

/// Whether a memory has not expired at the time `$3`, and has all tags of `$4`.
const IS_WANTED: &str = "(m.expires_at IS NULL OR m.expires_at > $3) AND m.tags @> $4::text[]";

/// The tag of `$4` that the fewest memories have, as far as they are counted.
fn rarest_tag() -> String {
    format!(
        "(SELECT tag FROM unnest($4::text[]) AS given (tag) ORDER BY (SELECT count(*) FROM (
             SELECT 1 FROM memory_tags c WHERE c.ws = $1 AND c.tag = given.tag LIMIT {COUNTED_TAGS}) counted) LIMIT 1)"
    )
}

/// Returns a query for memories that also returns the rights of the caller, who is `$2`.
fn with_rights(query: &str, order: &str) -> String {
    format!(
        "SELECT me.rights, found.* FROM members me LEFT JOIN LATERAL ({query}) found ON true
         WHERE me.ws = $1 AND me.user_id = $2 ORDER BY {order}"
    )
}

/// Checks the rights of the caller and reads the memories of a query of [`with_rights`].
fn found(access: Access, rows: &[Row]) -> Result<Vec<Memory>> {
    authorised(access, rows, 0)?;
    rows.iter().filter(|row| row.get::<_, Option<&str>>(1).is_some()).map(memory).collect()
}

fn memory(row: &Row) -> Result<Memory> {
    Ok(Memory {
        key: row.get(1),
        tags: row.get(2),
        created_at: row.get(3),
        updated_at: row.get(4),
        expires_at: row.get(5),
        user: UserId(row.get(6)),
        agent_key: row.get::<_, Option<Uuid>>(7).map(KeyId),
        value_bytes: usize::try_from(row.get::<_, i32>(8)).map_err(StoreError::internal)?,
        value: row.get(9),
    })
}

#[async_trait]
impl Memories for Postgres {
    async fn save_memory(&self, access: Access, memory: NewMemory, agent_key: Option<KeyId>) -> ToolResult<()> {
        let size = cost(size_of(&memory), 1);
        let reserved = quota::reserve(self, access, size).await?;
        let words = IndexedWords::of(access.workspace, &memory).tsvector();
        let mut transaction = self.transaction().await?;
        transaction.begin().await?;
        let replaced = save(&transaction, access, &memory, key_uuid(agent_key), &words, size).await?;
        transaction.commit().await?;
        transaction.finished();
        reserved.count_written(size - replaced);
        Ok(())
    }

    async fn memories(&self, access: Access, filter: MemoryFilter, limit: usize) -> ToolResult<MemoryPage> {
        let (ws, user, now) = (access.workspace.0, access.user.0, now());
        let rows = if let Some(key) = &filter.key {
            let sql = format!("SELECT {COLUMNS} FROM memories m WHERE m.ws = $1 AND m.key = $5 AND {IS_WANTED}");
            self.fetch(&with_rights(&sql, "1"), &[&ws, &user, &now, &filter.tags, key]).await?
        } else {
            let sql = format!(
                "SELECT {COLUMNS} FROM memory_tags t JOIN memories m ON m.ws = t.ws AND m.key = t.key
                 WHERE t.ws = $1 AND t.tag = {} AND {IS_WANTED} ORDER BY t.updated_at DESC, t.key LIMIT $5",
                rarest_tag()
            );
            let sql = with_rights(&sql, "found.updated_at DESC, found.key");
            self.fetch(&sql, &[&ws, &user, &now, &filter.tags, &fetched(limit)]).await?
        };
        Ok(page_of(found(access, &rows)?, limit))
    }

    async fn delete_memory(&self, access: Access, key: String) -> ToolResult<()> {
        let (ws, at) = (access.workspace.0, now());
        let mut transaction = self.transaction().await?;
        transaction.begin().await?;
        lock(&transaction, access).await?;
        let Some((bytes, Some(_))) = delete(&transaction, ws, &key, at).await? else {
            return Err(no_such_memory(&key));
        };
        transaction.query(ADD_TO_COUNT, &[&ws, &-1_i64]).await?;
        transaction.query(ADD_USE, &[&vec![ws], &vec![-bytes]]).await?;
        transaction.commit().await?;
        transaction.finished();
        Ok(())
    }

    async fn search_memories(
        &self,
        access: Access,
        words: String,
        tags: Vec<String>,
        limit: usize,
    ) -> ToolResult<(MemoryPage, WordMatch)> {
        let words = SearchWords::of(access.workspace, &words);
        if words.attempts().is_empty() {
            self.authorise(access).await?;
        }
        // A match in the key (A) counts most, then one in the tags (B).
        let sql = format!(
            "SELECT {COLUMNS}, ts_rank('{{0.1, 0.1, 0.5, 1.0}}', m.words, $5::text::tsquery) AS rank FROM memories m
             WHERE m.words @@ $5::text::tsquery AND m.ws = $1 AND {IS_WANTED}
             ORDER BY rank DESC, m.updated_at DESC, m.key LIMIT $6"
        );
        let sql = with_rights(&sql, "found.rank DESC, found.updated_at DESC, found.key");
        let (ws, user, now) = (access.workspace.0, access.user.0, now());
        let mut results = SearchResults::default();
        for attempt in words.attempts() {
            if results.need(attempt, limit) {
                let (query, limit) = (words.tsquery(attempt), fetched(limit));
                let params: [&(dyn ToSql + Sync); 6] = [&ws, &user, &now, &tags, &query, &limit];
                results.add(attempt, found(access, &self.fetch(&sql, &params).await?)?);
            }
        }
        Ok(results.into_page(limit))
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
                "SELECT {COLUMNS_OF_LIST} FROM memories m WHERE m.ws = $1 AND m.key > $5 AND {IS_WANTED}
                 ORDER BY m.key LIMIT $6"
            )
        } else {
            format!(
                "SELECT {COLUMNS_OF_LIST} FROM memory_tags t JOIN memories m ON m.ws = t.ws AND m.key = t.key
                 WHERE t.ws = $1 AND t.tag = {} AND t.key > $5 AND {IS_WANTED} ORDER BY t.key LIMIT $6",
                rarest_tag()
            )
        };
        let (ws, user, now) = (access.workspace.0, access.user.0, now());
        let after = after.unwrap_or_default();
        let params: [&(dyn ToSql + Sync); 6] = [&ws, &user, &now, &tags, &after, &fetched(limit)];
        let rows = self.fetch(&with_rights(&sql, "found.key"), &params).await?;
        Ok(page_of(found(access, &rows)?, limit))
    }
}

/// Adds to the count of a workspace, whose row is locked.
const ADD_TO_COUNT: &str = "UPDATE memory_counts SET memories = memories + $2 WHERE ws = $1";

/// Locks the membership of the caller, checks its rights, and locks the count. Returns the number of memories.
async fn lock(transaction: &Transaction, access: Access) -> Result<i64> {
    let ws = access.workspace.0;
    let sql = "SELECT rights FROM members WHERE ws = $1 AND user_id = $2 FOR SHARE";
    authorised(access, &transaction.query(sql, &[&ws, &access.user.0]).await?, 0)?;
    lock_count(transaction, ws).await
}

async fn lock_count(transaction: &Transaction, ws: Uuid) -> Result<i64> {
    let sql = "INSERT INTO memory_counts AS c (ws, memories) VALUES ($1, 0)
               ON CONFLICT (ws) DO UPDATE SET memories = c.memories RETURNING memories";
    Ok(transaction.query(sql, &[&ws]).await?.first().map_or(0, |row| row.get(0)))
}

/// Saves a memory; returns the size of the one that it replaced.
async fn save(
    transaction: &Transaction,
    access: Access,
    memory: &NewMemory,
    agent_key: Option<Uuid>,
    words: &str,
    bytes: i64,
) -> Result<i64> {
    let (ws, at) = (access.workspace.0, now());
    let count = lock(transaction, access).await?;
    let replaced = delete(transaction, ws, memory.key(), at).await?;
    if replaced.is_none() {
        if count >= MAX_MEMORIES && delete_expired(transaction, ws, at).await? == 0 {
            return Err(too_many_memories());
        }
        transaction.query(ADD_TO_COUNT, &[&ws, &1_i64]).await?;
    }
    let (replaced_bytes, created_at) = replaced.unwrap_or_default();
    let insert = "INSERT INTO memories
            (ws, key, value, tags, created_at, updated_at, expires_at, user_id, agent_key, bytes, words)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::text::tsvector)";
    let params: [&(dyn ToSql + Sync); 11] = [
        &ws,
        &memory.key(),
        &memory.value(),
        &memory.tags(),
        &created_at.unwrap_or(at),
        &at,
        &memory.expires_at(),
        &access.person.0,
        &agent_key,
        &bytes,
        &words,
    ];
    transaction.query(insert, &params).await?;
    let tags = "INSERT INTO memory_tags (ws, tag, key, updated_at) SELECT $1, tag, $3, $4 FROM unnest($2::text[]) AS given (tag)";
    transaction.query(tags, &[&ws, &memory.tags(), &memory.key(), &at]).await?;
    Ok(replaced_bytes)
}

/// Deletes a memory. Returns its counted size and, if it had not expired, when it was created.
async fn delete(
    transaction: &Transaction,
    ws: Uuid,
    key: &str,
    at: Timestamp,
) -> Result<Option<(i64, Option<Timestamp>)>> {
    let sql = "WITH gone AS (
            DELETE FROM memories WHERE ws = $1 AND key = $2 RETURNING tags, bytes, created_at, expires_at
        ), tags AS (
            DELETE FROM memory_tags t USING gone WHERE t.ws = $1 AND t.tag = ANY(gone.tags) AND t.key = $2
        )
        SELECT bytes, created_at, expires_at FROM gone";
    let rows = transaction.query(sql, &[&ws, &key]).await?;
    Ok(rows.first().map(|row| {
        let expires_at: Option<Timestamp> = row.get(2);
        (row.get(0), expires_at.is_none_or(|expires_at| expires_at > at).then(|| row.get(1)))
    }))
}

/// Maximum number of expired memories that one transaction deletes.
const BATCH_ROWS: i64 = 500;

/// Deletes a batch of memories of a workspace that have expired. The count is locked. Returns how many there were.
async fn delete_expired(transaction: &Transaction, ws: Uuid, at: Timestamp) -> Result<usize> {
    let sql = "WITH gone AS (
            DELETE FROM memories WHERE ws = $1 AND key IN (
                SELECT key FROM memories WHERE ws = $1 AND expires_at <= $2 LIMIT $3
            ) RETURNING key, tags, bytes
        ), tags AS (
            DELETE FROM memory_tags t USING gone WHERE t.ws = $1 AND t.tag = ANY(gone.tags) AND t.key = gone.key
        )
        SELECT bytes FROM gone";
    let rows = transaction.query(sql, &[&ws, &at, &BATCH_ROWS]).await?;
    let deleted = i64::try_from(rows.len()).map_err(StoreError::internal)?;
    if deleted > 0 {
        let bytes: i64 = rows.iter().map(|row| row.get::<_, i64>(0)).sum();
        transaction.query(ADD_TO_COUNT, &[&ws, &-deleted]).await?;
        transaction.query(ADD_USE, &[&vec![ws], &vec![-bytes]]).await?;
    }
    Ok(rows.len())
}

impl Postgres {
    /// Deletes the memories that have expired.
    pub(super) async fn delete_expired_memories(&self) -> Result<()> {
        let now = now();
        let sql = "SELECT ws FROM memories WHERE expires_at <= $1 LIMIT 1";
        while let Some(row) = self.fetch(sql, &[&now]).await?.first() {
            let ws: Uuid = row.get(0);
            let mut transaction = self.transaction().await?;
            transaction.begin().await?;
            lock_count(&transaction, ws).await?;
            delete_expired(&transaction, ws, now).await?;
            transaction.commit().await?;
            transaction.finished();
        }
        Ok(())
    }
}

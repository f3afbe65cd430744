//! Maintenance and purging.

use super::storage::ADD_USE;
use super::{Postgres, to_store_error};
use crate::approvals::IS_OPEN;
use crate::error::Result;
use crate::feed::Source;
use crate::keys::KeyStore;
use crate::quota;
use crate::store::{PoolLoad, Purge, Purged, Store, StoreLoad};
use async_trait::async_trait;
use std::collections::BTreeMap;
use tokio_postgres::types::ToSql;
use toolrest_core::{Timestamp, now};
use uuid::Uuid;

/// Maximum number of rows that one transaction of a purge deletes, so that nobody waits long.
const BATCH_ROWS: i64 = 500;

/// The advisory lock of the replica that purges.
const PURGE_LOCK: i64 = 0x746f_6f6c_7075_7267;

/// The tables that grow with use.
const TABLES: [&str; 20] = [
    "users",
    "sessions",
    "workspaces",
    "members",
    "keys",
    "files",
    "versions",
    "blobs",
    "changes",
    "commits",
    "calls",
    "calls_running",
    "chat_messages",
    "grants",
    "approvals",
    "approval_events",
    "memories",
    "memory_tags",
    "results",
    "session_commits",
];

#[async_trait]
impl Store for Postgres {
    async fn ready(&self) -> Result<()> {
        self.fetch("SELECT 1", &[]).await.map(drop)
    }

    fn load(&self) -> StoreLoad {
        let status = self.pool.status();
        let pool =
            PoolLoad { limit: status.max_size, open: status.size, idle: status.available, waiting: status.waiting };
        StoreLoad { database: "postgres", pool: Some(pool), ..self.searcher.load() }
    }

    async fn stored_bytes(&self) -> Result<u64> {
        let rows = self.fetch("SELECT coalesce(sum(bytes), 0)::bigint FROM storage_used", &[]).await?;
        Ok(rows.first().map_or(0, |row| row.get::<_, i64>(0)).unsigned_abs())
    }

    async fn synchronise(&self) -> Result<()> {
        quota::synchronise(self).await
    }

    /// Updates the planner's statistics of tables that have outgrown them.
    ///
    /// Autovacuum does this too, but only once a minute. Until then a new table is queried by plans made for an empty
    /// table, which are many times slower.
    async fn maintain(&self) -> Result<()> {
        self.synchronise().await?;
        let sql = "SELECT relname::text FROM pg_stat_user_tables
                   WHERE schemaname = current_schema() AND relname = ANY($1)
                     AND n_mod_since_analyze > 300 + n_live_tup * 0.3";
        for row in self.fetch(sql, &[&&TABLES[..]]).await? {
            let table: &str = row.get(0);
            // The name is one of [`TABLES`].
            self.client()
                .await?
                .batch_execute(&format!("ANALYZE (SKIP_LOCKED) {table}"))
                .await
                .map_err(to_store_error)?;
        }
        Ok(())
    }

    async fn renew_versions(&self) -> Result<bool> {
        self.renew_some().await
    }

    async fn purge(&self, purge: Purge) -> Result<Purged> {
        let mut purged = Purged::default();
        self.execute("DELETE FROM sessions WHERE expires_at < $1", &[&now()]).await?;
        // Sign-in attempts are counted in windows of at most a day.
        self.execute("DELETE FROM sign_in_attempts WHERE window_start < $1::timestamptz - interval '1 day'", &[&now()])
            .await?;
        self.end_expired_keys(Timestamp::UNIX_EPOCH).await?;
        self.delete_expired_memories().await?;
        self.execute("DELETE FROM results WHERE expires_at <= $1", &[&now()]).await?;
        self.execute("DELETE FROM grants WHERE expires_at < $1", &[&now()]).await?;
        if let Some(before) = purge.calls_before {
            self.execute("DELETE FROM session_commits WHERE at < $1", &[&before]).await?;
            // The records of their calls are deleted too.
            self.execute("DELETE FROM keys WHERE least(expires_at, revoked_at) < $1", &[&before]).await?;
            // Readers of the feed learn of the gap from `feed_purged`. Sorted, so that replicas cannot deadlock.
            let sql = "WITH deleted AS (
                    DELETE FROM calls WHERE (ws, id) IN (
                        SELECT ws, id FROM calls WHERE started_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED
                    ) RETURNING ws, xid
                ), noted AS (
                    INSERT INTO feed_purged AS p (ws, source, upto)
                    SELECT ws, $3, max(xid::text::bigint) FROM deleted GROUP BY ws ORDER BY ws
                    ON CONFLICT (ws, source) DO UPDATE SET upto = greatest(p.upto, excluded.upto)
                )
                SELECT 1 FROM deleted";
            purged.calls = self.in_batches(sql, &[&before, &BATCH_ROWS, &Source::Call.code()]).await?;
            let sql = format!(
                "WITH ended AS (
                     DELETE FROM approvals WHERE (ws, id) IN (
                         SELECT ws, id FROM approvals WHERE changed_at < $1 AND NOT {IS_OPEN} LIMIT $2
                         FOR UPDATE SKIP LOCKED
                     ) RETURNING ws, id
                 ), deleted AS (
                     DELETE FROM approval_events e USING ended
                     WHERE e.ws = ended.ws AND e.approval_id = ended.id RETURNING e.ws, e.xid
                 ), noted AS (
                     INSERT INTO feed_purged AS p (ws, source, upto)
                     SELECT ws, $3, max(xid::text::bigint) FROM deleted GROUP BY ws ORDER BY ws
                     ON CONFLICT (ws, source) DO UPDATE SET upto = greatest(p.upto, excluded.upto)
                 )
                 SELECT 1 FROM ended"
            );
            self.in_batches(&sql, &[&before, &BATCH_ROWS, &Source::Approval.code()]).await?;
        }
        if let Some(before) = purge.trash_before {
            while let Some((files, blobs)) = self.purge_trash(before).await? {
                purged.files += files;
                purged.blobs += blobs;
            }
        }
        if let Some(limit_bytes) = purge.folder_history_bytes {
            purged.dropped = self.limit_folder_history(limit_bytes).await?;
        }
        self.forget_changes().await?;
        self.mark_restored_events().await?;
        purged.workspaces = self.purge_workspaces().await?;
        Ok(purged)
    }
}

impl Postgres {
    /// Repeats a deletion of a few rows, in a transaction each, until none is left.
    async fn in_batches(&self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<u64> {
        let mut total = 0;
        loop {
            match self.execute(sql, params).await?.len() {
                0 => return Ok(total),
                deleted => total += deleted as u64,
            }
        }
    }

    /// Deletes the changes that were recorded before the previous purge. An index that is further behind is rebuilt
    /// from the whole list.
    async fn forget_changes(&self) -> Result<()> {
        let mut transaction = self.transaction().await?;
        transaction.begin().await?;
        // Replicas purge at the same time; one of them is enough.
        let turn = transaction.query("SELECT pg_try_advisory_xact_lock($1)", &[&PURGE_LOCK]).await?;
        if turn.first().is_some_and(|row| row.get(0)) {
            // Transaction ids in the future belong to another database that this one was copied from.
            let sql = "WITH now AS (
                    SELECT pg_snapshot_xmin(pg_current_snapshot()) AS xmin, pg_snapshot_xmax(pg_current_snapshot()) AS xmax
                ), turn AS (
                    UPDATE changes_kept SET next = now.xmin, kept = CASE WHEN kept > now.xmax THEN now.xmin
                        ELSE greatest(kept, least(next, now.xmin)) END
                    FROM now RETURNING kept
                )
                DELETE FROM changes USING now, turn WHERE changes.xid < turn.kept OR changes.xid > now.xmax";
            transaction.query(sql, &[]).await?;
        }
        transaction.commit().await?;
        transaction.finished();
        Ok(())
    }

    /// Marks events with transaction ids of the future as old. Such events come from a dump of another cluster; the feed
    /// would report them as new when this cluster reaches their ids.
    async fn mark_restored_events(&self) -> Result<()> {
        for table in ["commits", "calls", "approval_events"] {
            let restored = format!(
                "SELECT w.id FROM workspaces w WHERE EXISTS (SELECT 1 FROM {table} t WHERE t.ws = w.id
                     AND t.xid >= (SELECT pg_snapshot_xmax(pg_current_snapshot())))"
            );
            let mark = format!(
                "UPDATE {table} SET xid = '0' WHERE ws = $1 AND xid >= (SELECT pg_snapshot_xmax(pg_current_snapshot()))"
            );
            for row in self.fetch(&restored, &[]).await? {
                self.execute(&mark, &[&row.get::<_, Uuid>(0)]).await?;
            }
        }
        let purged = "DELETE FROM feed_purged WHERE upto >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint";
        self.execute(purged, &[]).await.map(drop)
    }

    /// Deletes a batch of files from the trash permanently, with their versions and the contents that nothing else
    /// refers to.
    async fn purge_trash(&self, before: Timestamp) -> Result<Option<(u64, u64)>> {
        let mut transaction = self.transaction().await?;
        transaction.begin().await?;
        let turn = transaction.query("SELECT pg_try_advisory_xact_lock($1)", &[&PURGE_LOCK]).await?;
        if !turn.first().is_some_and(|row| row.get(0)) {
            transaction.rollback().await?;
            return Ok(None);
        }
        // A write that refers to an existing content does not lock it. So no write may run while unused contents are
        // determined: this lock waits for pending writes, and blocks new ones.
        transaction.query("LOCK TABLE versions IN SHARE ROW EXCLUSIVE MODE", &[]).await?;
        let files = transaction
            .query(
                "DELETE FROM files WHERE (ws, id) IN (
                     SELECT ws, id FROM files WHERE deleted_at IS NOT NULL AND deleted_at < $1 LIMIT $2
                     FOR UPDATE SKIP LOCKED
                 ) RETURNING ws, id",
                &[&before, &BATCH_ROWS],
            )
            .await?;
        if files.is_empty() {
            transaction.rollback().await?;
            return Ok(None);
        }
        let (workspaces, ids): (Vec<Uuid>, Vec<Uuid>) =
            files.iter().map(|row| (row.get::<_, Uuid>(0), row.get::<_, Uuid>(1))).unzip();
        let pairs: [&(dyn ToSql + Sync); 2] = [&workspaces, &ids];
        let versions = "DELETE FROM versions v USING unnest($1::uuid[], $2::uuid[]) AS gone (ws, id)
                        WHERE v.ws = gone.ws AND v.file_id = gone.id";
        let messages = "DELETE FROM chat_messages t USING unnest($1::uuid[], $2::uuid[]) AS gone (ws, id)
                        WHERE t.ws = gone.ws AND t.chat_id = gone.id RETURNING t.ws, octet_length(t.content)::bigint";
        transaction.query(versions, &pairs).await?;
        let messages = transaction.query(messages, &pairs).await?;
        // One pass over the versions of these workspaces; an index only for this would slow down every write.
        let blobs = transaction
            .query(
                // Contents of folders do not count.
                "DELETE FROM blobs b USING workspaces w WHERE b.ws = ANY($1) AND w.id = b.ws
                 AND NOT EXISTS (SELECT 1 FROM versions v WHERE v.ws = b.ws AND v.blob = b.key)
                 RETURNING b.ws, CASE w.kind WHEN 0 THEN b.size ELSE 0 END",
                &[&workspaces],
            )
            .await?;
        let mut freed: BTreeMap<Uuid, i64> = BTreeMap::new();
        for row in messages.iter().chain(&blobs) {
            *freed.entry(row.get(0)).or_default() -= row.get::<_, i64>(1);
        }
        let (ids, bytes): (Vec<Uuid>, Vec<i64>) = freed.into_iter().unzip();
        transaction.query(ADD_USE, &[&ids, &bytes]).await?;
        transaction.commit().await?;
        transaction.finished();
        Ok(Some((files.len() as u64, blobs.len() as u64)))
    }

    async fn purge_workspaces(&self) -> Result<u64> {
        let mut workspaces = 0;
        let dead = "SELECT id FROM workspaces WHERE deleted_at IS NOT NULL LIMIT 1";
        while let Some(row) = self.fetch(dead, &[]).await?.first() {
            let ws: Uuid = row.get(0);
            for table in [
                "files",
                "versions",
                "blobs",
                "changes",
                "commits",
                "calls",
                "calls_running",
                "chat_messages",
                "suspended_members",
                "keys",
                "feed_purged",
                "rules",
                "grants",
                "approvals",
                "approval_events",
                "memories",
                "memory_tags",
                "memory_counts",
                "workspace_secrets",
                "results",
                "session_commits",
            ] {
                let sql = format!(
                    "DELETE FROM {table} WHERE ctid IN (SELECT ctid FROM {table} WHERE ws = $1 LIMIT $2) RETURNING 1"
                );
                self.in_batches(&sql, &[&ws, &BATCH_ROWS]).await?;
            }
            self.execute("DELETE FROM storage_used WHERE ws = $1", &[&ws]).await?;
            self.execute("DELETE FROM workspaces WHERE id = $1", &[&ws]).await?;
            workspaces += 1;
        }
        Ok(workspaces)
    }
}

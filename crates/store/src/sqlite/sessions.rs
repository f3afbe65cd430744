//! Results and the commits of sessions.

use super::Sqlite;
use super::row::{authorised, collect, find, micros, run};
use crate::error::{Result, StoreError};
use crate::sessions::{MAX_SAME_SUFFIX, ResultPart, ends_in, expiry, joined, parts_of, suffix};
use async_trait::async_trait;
use rusqlite::Connection;
use std::collections::HashMap;
use toolrest_core::{
    Access, CommitId, MAX_RESULTS_OF_ACCOUNT, MAX_RESULTS_OF_WORKSPACE, Result as ToolResult, SessionCommit, Sessions,
    Timestamp, UserId, now,
};
use uuid::Uuid;

#[async_trait]
impl Sessions for Sqlite {
    async fn keep_result(&self, access: Access, id: String, bytes: Vec<u8>) -> ToolResult<()> {
        let size = i64::try_from(bytes.len()).map_err(StoreError::internal)?;
        let (parts, expires_at, name) = (parts_of(bytes).await?, micros(expiry()?), id.clone());
        self.write(move |db| {
            authorised(db, access)?;
            begin(db, access, &name, size, expires_at)
        })
        .await?;
        for part in parts {
            let id = id.clone();
            self.write(move |db| {
                let sql = "INSERT INTO result_parts (ws, principal, result, n, size, encoding, data)
                           SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7
                           WHERE EXISTS (SELECT 1 FROM results WHERE ws = ?1 AND principal = ?2 AND id = ?3)";
                let place = (access.workspace.0, access.user.0, &id, part.n);
                run(db, sql, (place.0, place.1, place.2, place.3, part.size, part.encoding, &part.data))
            })
            .await?;
        }
        Ok(())
    }

    async fn result_bytes(&self, access: Access, id: String) -> ToolResult<Option<u64>> {
        let size = move |db: &Connection| {
            authorised(db, access)?;
            let sql = "SELECT bytes FROM results WHERE ws = ?1 AND principal = ?2 AND id = ?3 AND expires_at > ?4";
            find(db, sql, (access.workspace.0, access.user.0, &id, micros(now())), |row| row.get::<_, i64>(0))
        };
        Ok(self.read(size).await?.map(i64::unsigned_abs))
    }

    async fn kept_result(&self, access: Access, id: String) -> ToolResult<Option<Vec<u8>>> {
        let parts = self
            .read(move |db| {
                authorised(db, access)?;
                let sql = "SELECT p.n, p.size, p.encoding, p.data FROM results r
                           JOIN result_parts p ON p.ws = r.ws AND p.principal = r.principal AND p.result = r.id
                           WHERE r.ws = ?1 AND r.principal = ?2 AND r.id = ?3 AND r.expires_at > ?4 ORDER BY p.n";
                collect(db, sql, (access.workspace.0, access.user.0, &id, micros(now())), |row| {
                    Ok(ResultPart { n: row.get(0)?, size: row.get(1)?, encoding: row.get(2)?, data: row.get(3)? })
                })
            })
            .await?;
        Ok(if parts.is_empty() { None } else { Some(joined(&parts)?) })
    }

    async fn note_session_commit(&self, access: Access, commit: SessionCommit) -> ToolResult<()> {
        let note = move |db: &Connection| {
            authorised(db, access)?;
            let sql = "INSERT INTO session_commits (ws, commit_id, principal, session, label, at)
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING";
            let SessionCommit { commit, session, label } = &commit;
            run(db, sql, (access.workspace.0, commit.0, access.user.0, session, label, micros(now()))).map(drop)
        };
        Ok(self.write(note).await?)
    }

    async fn session_commits(
        &self,
        access: Access,
        session: String,
        since: Timestamp,
        limit: u32,
    ) -> ToolResult<Vec<CommitId>> {
        let list = move |db: &Connection| {
            authorised(db, access)?;
            let sql = "SELECT commit_id FROM session_commits
                       WHERE ws = ?1 AND principal = ?2 AND at >= ?3 AND (?4 = '' OR session = ?4)
                       ORDER BY commit_id DESC LIMIT ?5";
            collect(db, sql, (access.workspace.0, access.user.0, micros(since), &session, limit), |row| {
                row.get(0).map(CommitId)
            })
        };
        Ok(self.read(list).await?)
    }

    async fn commit_labels(&self, access: Access, commits: Vec<CommitId>) -> ToolResult<HashMap<CommitId, String>> {
        let read = move |db: &Connection| {
            authorised(db, access)?;
            let mut labels = HashMap::new();
            for commit in &commits {
                let sql = "SELECT label FROM session_commits WHERE ws = ?1 AND commit_id = ?2";
                let found = collect(db, sql, (access.workspace.0, commit.0), |row| row.get::<_, String>(0))?;
                labels.extend(found.into_iter().map(|label| (*commit, label)));
            }
            Ok(labels)
        };
        Ok(self.read(read).await?)
    }

    async fn commits_ending_in(&self, access: Access, digits: String) -> ToolResult<Vec<CommitId>> {
        let find = move |db: &Connection| {
            authorised(db, access)?;
            let Some((last, digits)) = suffix(&digits) else { return Ok(Vec::new()) };
            let sql = "SELECT id FROM commits WHERE ws = ?1 AND substr(id, 13) = ?2 LIMIT ?3";
            let found: Vec<Uuid> = collect(db, sql, (access.workspace.0, last, MAX_SAME_SUFFIX), |row| row.get(0))?;
            Ok(found.into_iter().filter(|id| ends_in(*id, &digits)).map(CommitId).collect())
        };
        Ok(self.read(find).await?)
    }

    async fn addresses(&self, users: Vec<UserId>) -> ToolResult<HashMap<UserId, String>> {
        let read = move |db: &Connection| {
            let mut addresses = HashMap::new();
            for user in &users {
                let found = collect(db, "SELECT email FROM users WHERE id = ?1", [user.0], |row| row.get(0))?;
                addresses.extend(found.into_iter().map(|email: String| (*user, email)));
            }
            Ok(addresses)
        };
        Ok(self.read(read).await?)
    }
}

/// Makes room for a result, and stores that there is one.
fn begin(db: &Connection, access: Access, id: &str, bytes: i64, expires_at: i64) -> Result<()> {
    let (ws, principal, person) = (access.workspace.0, access.user.0, access.person.0);
    run(db, "DELETE FROM results WHERE ws = ?1 AND principal = ?2 AND id = ?3", (ws, principal, id))?;
    for (column, value, limit) in [("ws", ws, MAX_RESULTS_OF_WORKSPACE), ("person", person, MAX_RESULTS_OF_ACCOUNT)] {
        let sql = format!(
            "DELETE FROM results WHERE (ws, principal, id) IN (SELECT ws, principal, id FROM (
                 SELECT ws, principal, id, sum(bytes) OVER (ORDER BY created_at DESC, id ROWS UNBOUNDED PRECEDING) AS kept
                 FROM results WHERE {column} = ?1
             ) WHERE kept > ?2)"
        );
        run(db, &sql, (value, limit.cast_signed() - bytes))?;
    }
    let sql = "INSERT INTO results (ws, principal, id, person, bytes, created_at, expires_at)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    run(db, sql, (ws, principal, id, person, bytes, micros(now()), expires_at)).map(drop)
}

/// Maximum number of results that one transaction deletes; each has up to 16 MiB.
const BATCH_RESULTS: i64 = 4;

/// Deletes a batch of results that have expired. Returns how many there were.
pub(super) fn delete_expired(db: &Connection) -> Result<usize> {
    let sql = "DELETE FROM results WHERE (ws, principal, id) IN (
                   SELECT ws, principal, id FROM results WHERE expires_at <= ?1 LIMIT ?2)";
    run(db, sql, (micros(now()), BATCH_RESULTS))
}

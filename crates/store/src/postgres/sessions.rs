//! Results and the commits of sessions.

use super::Postgres;
use super::row::authorised;
use crate::error::StoreError;
use crate::files::FileStore;
use crate::sessions::{MAX_SAME_SUFFIX, ResultPart, ends_in, expiry, joined, parts_of, suffix};
use async_trait::async_trait;
use std::collections::HashMap;
use tokio_postgres::types::ToSql;
use toolrest_core::{
    Access, CommitId, MAX_RESULTS_OF_ACCOUNT, MAX_RESULTS_OF_WORKSPACE, Result, SessionCommit, Sessions, Timestamp,
    UserId, hex, now,
};
use uuid::Uuid;

#[async_trait]
impl Sessions for Postgres {
    async fn keep_result(&self, access: Access, id: String, bytes: Vec<u8>) -> Result<()> {
        self.authorise(access).await?;
        let size = i64::try_from(bytes.len()).map_err(StoreError::internal)?;
        let (parts, at, expires_at) = (parts_of(bytes).await?, now(), expiry()?);
        let (ws, principal, person) = (access.workspace.0, access.user.0, access.person.0);
        let mut transaction = self.transaction().await?;
        transaction.begin().await?;
        let same = "DELETE FROM results WHERE ws = $1 AND principal = $2 AND id = $3";
        transaction.query(same, &[&ws, &principal, &id]).await?;
        for (column, value, limit) in [("ws", ws, MAX_RESULTS_OF_WORKSPACE), ("person", person, MAX_RESULTS_OF_ACCOUNT)]
        {
            // In one order, so that two callers cannot deadlock.
            let sql = format!(
                "DELETE FROM results WHERE (ws, principal, id) IN (
                     SELECT r.ws, r.principal, r.id FROM results r JOIN (
                         SELECT ws, principal, id, sum(bytes) OVER (ORDER BY created_at DESC, id) AS kept
                         FROM results WHERE {column} = $1
                     ) k USING (ws, principal, id) WHERE k.kept > $2::bigint
                     ORDER BY r.ws, r.principal, r.id FOR UPDATE OF r)"
            );
            transaction.query(&sql, &[&value, &(limit.cast_signed() - size)]).await?;
        }
        let sql = "INSERT INTO results (ws, principal, id, person, bytes, created_at, expires_at)
                   VALUES ($1, $2, $3, $4, $5, $6, $7)";
        let params: [&(dyn ToSql + Sync); 7] = [&ws, &principal, &id, &person, &size, &at, &expires_at];
        transaction.query(sql, &params).await?;
        for part in &parts {
            let sql = "INSERT INTO result_parts (ws, principal, result, n, size, encoding, data)
                       VALUES ($1, $2, $3, $4, $5, $6, $7)";
            let ResultPart { n, size, encoding, data } = part;
            let params: [&(dyn ToSql + Sync); 7] = [&ws, &principal, &id, n, size, encoding, data];
            transaction.query(sql, &params).await?;
        }
        transaction.commit().await?;
        transaction.finished();
        Ok(())
    }

    async fn result_bytes(&self, access: Access, id: String) -> Result<Option<u64>> {
        let sql = "SELECT m.rights, r.bytes FROM members m
                   LEFT JOIN results r ON r.ws = m.ws AND r.principal = m.user_id AND r.id = $3 AND r.expires_at > $4
                   WHERE m.ws = $1 AND m.user_id = $2";
        let rows = self.fetch(sql, &[&access.workspace.0, &access.user.0, &id, &now()]).await?;
        authorised(access, &rows, 0)?;
        Ok(rows.first().and_then(|row| row.get::<_, Option<i64>>(1)).map(i64::unsigned_abs))
    }

    async fn kept_result(&self, access: Access, id: String) -> Result<Option<Vec<u8>>> {
        let sql = "SELECT m.rights, p.n, p.size, p.encoding, p.data FROM members m
                   LEFT JOIN results r ON r.ws = m.ws AND r.principal = m.user_id AND r.id = $3 AND r.expires_at > $4
                   LEFT JOIN result_parts p ON p.ws = r.ws AND p.principal = r.principal AND p.result = r.id
                   WHERE m.ws = $1 AND m.user_id = $2 ORDER BY p.n";
        let rows = self.fetch(sql, &[&access.workspace.0, &access.user.0, &id, &now()]).await?;
        authorised(access, &rows, 0)?;
        let parts: Vec<ResultPart> = rows
            .iter()
            .filter_map(|row| {
                let n = row.get::<_, Option<i32>>(1)?;
                Some(ResultPart { n, size: row.get(2), encoding: row.get(3), data: row.get(4) })
            })
            .collect();
        Ok(if parts.is_empty() { None } else { Some(joined(&parts)?) })
    }

    async fn note_session_commit(&self, access: Access, commit: SessionCommit) -> Result<()> {
        let sql = "WITH me AS (SELECT rights FROM members WHERE ws = $1 AND user_id = $2), noted AS (
                       INSERT INTO session_commits (ws, commit_id, principal, session, label, at)
                       SELECT $1, $3, $2, $4, $5, $6 FROM me ON CONFLICT DO NOTHING
                   ) SELECT rights FROM me";
        let SessionCommit { commit, session, label } = &commit;
        let params: [&(dyn ToSql + Sync); 6] = [&access.workspace.0, &access.user.0, &commit.0, session, label, &now()];
        authorised(access, &self.execute(sql, &params).await?, 0)?;
        Ok(())
    }

    async fn session_commits(
        &self,
        access: Access,
        session: String,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<CommitId>> {
        let sql = "SELECT m.rights, s.commit_id FROM members m
                   LEFT JOIN session_commits s ON s.ws = m.ws AND s.principal = m.user_id AND s.at >= $3
                       AND ($4 = '' OR s.session = $4)
                   WHERE m.ws = $1 AND m.user_id = $2 ORDER BY s.commit_id DESC NULLS LAST LIMIT $5";
        let params: [&(dyn ToSql + Sync); 5] =
            [&access.workspace.0, &access.user.0, &since, &session, &i64::from(limit)];
        let rows = self.fetch(sql, &params).await?;
        authorised(access, &rows, 0)?;
        Ok(rows.iter().filter_map(|row| row.get::<_, Option<Uuid>>(1).map(CommitId)).collect())
    }

    async fn commit_labels(&self, access: Access, commits: Vec<CommitId>) -> Result<HashMap<CommitId, String>> {
        let sql = "SELECT m.rights, s.commit_id, s.label FROM members m
                   LEFT JOIN session_commits s ON s.ws = m.ws AND s.commit_id = ANY($3)
                   WHERE m.ws = $1 AND m.user_id = $2";
        let ids: Vec<Uuid> = commits.iter().map(|commit| commit.0).collect();
        let rows = self.fetch(sql, &[&access.workspace.0, &access.user.0, &ids]).await?;
        authorised(access, &rows, 0)?;
        let label = |row: &tokio_postgres::Row| Some((CommitId(row.get::<_, Option<Uuid>>(1)?), row.get(2)));
        Ok(rows.iter().filter_map(label).collect())
    }

    async fn commits_ending_in(&self, access: Access, digits: String) -> Result<Vec<CommitId>> {
        let Some((last, digits)) = suffix(&digits) else {
            self.authorise(access).await?;
            return Ok(Vec::new());
        };
        let sql = "SELECT m.rights, c.id FROM members m
                   LEFT JOIN commits c ON c.ws = m.ws AND right(c.id::text, 8) = $3
                   WHERE m.ws = $1 AND m.user_id = $2 LIMIT $4";
        let params: [&(dyn ToSql + Sync); 4] = [&access.workspace.0, &access.user.0, &hex(&last), &MAX_SAME_SUFFIX];
        let rows = self.fetch(sql, &params).await?;
        authorised(access, &rows, 0)?;
        let ids = rows.iter().filter_map(|row| row.get::<_, Option<Uuid>>(1));
        Ok(ids.filter(|id| ends_in(*id, &digits)).map(CommitId).collect())
    }

    async fn addresses(&self, users: Vec<UserId>) -> Result<HashMap<UserId, String>> {
        let ids: Vec<Uuid> = users.iter().map(|user| user.0).collect();
        let rows = self.fetch("SELECT id, email FROM users WHERE id = ANY($1)", &[&ids]).await?;
        Ok(rows.iter().map(|row| (UserId(row.get(0)), row.get(1))).collect())
    }
}

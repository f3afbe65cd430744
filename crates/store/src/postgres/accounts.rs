//! Accounts, sessions and sign-in attempts.

use super::Postgres;
use crate::accounts::{AccountStore, Attempt, Credentials, NewUser, Rotation, Session, User};
use crate::error::{Result, StoreError};
use async_trait::async_trait;
use std::time::Duration;
use tokio_postgres::{Row, types::ToSql};
use toolrest_core::{Timestamp, UserId, now};
use uuid::Uuid;

pub(super) const USER_COLUMNS: &str = "id, email, full_name, created_at, updated_at, disabled_at, token_epoch";

pub(super) fn user(row: &Row) -> User {
    User {
        id: UserId(row.get(0)),
        email: row.get(1),
        full_name: row.get(2),
        created_at: row.get(3),
        updated_at: row.get(4),
        disabled_at: row.get(5),
        token_epoch: row.get(6),
    }
}

#[async_trait]
impl AccountStore for Postgres {
    async fn create_user(&self, new: NewUser) -> Result<User> {
        let sql = format!(
            "INSERT INTO users (id, email, password_hash, full_name, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $5) ON CONFLICT DO NOTHING RETURNING {USER_COLUMNS}"
        );
        let rows =
            self.execute(&sql, &[&UserId::new().0, &new.email, &new.password_hash, &new.full_name, &now()]).await?;
        rows.first().map(user).ok_or_else(|| StoreError::EmailTaken(new.email))
    }

    async fn credentials(&self, email: &str) -> Result<Option<Credentials>> {
        let sql = format!("SELECT {USER_COLUMNS}, password_hash FROM users WHERE email = $1");
        let rows = self.fetch(&sql, &[&email]).await?;
        Ok(rows.first().map(|row| Credentials { user: user(row), password_hash: row.get(7) }))
    }

    async fn user(&self, id: UserId) -> Result<Option<User>> {
        let sql = format!("SELECT {USER_COLUMNS} FROM users WHERE id = $1");
        Ok(self.fetch(&sql, &[&id.0]).await?.first().map(user))
    }

    async fn open_session(&self, user: UserId, token_epoch: i64, session: Session) -> Result<bool> {
        let sql = "WITH account AS (
                SELECT id FROM users WHERE id = $3 AND token_epoch = $5 AND disabled_at IS NULL FOR SHARE
            )
            INSERT INTO sessions (token_hash, family, user_id, expires_at) SELECT $1, $2, id, $4 FROM account
            RETURNING 1";
        let params: [&(dyn ToSql + Sync); 5] =
            [&&session.token_hash[..], &Uuid::now_v7(), &user.0, &session.expires_at, &token_epoch];
        Ok(!self.execute(sql, &params).await?.is_empty())
    }

    async fn rotate_session(&self, token_hash: [u8; 32], next: Session) -> Result<Rotation> {
        let sql = "WITH found AS (
                SELECT token_hash, family, user_id, spent_at IS NOT NULL AS spent FROM sessions
                WHERE token_hash = $1 AND (spent_at IS NOT NULL OR expires_at > $2)
            ), revoked AS (
                DELETE FROM sessions s USING found f WHERE f.spent AND s.family = f.family
            ), used AS (
                UPDATE sessions s SET spent_at = $2 FROM found f WHERE s.token_hash = f.token_hash AND NOT f.spent
            ), kept AS (
                INSERT INTO sessions (token_hash, family, user_id, expires_at)
                SELECT $3, family, user_id, $4 FROM found WHERE NOT spent
            )
            SELECT user_id, spent FROM found";
        let params: [&(dyn ToSql + Sync); 4] = [&&token_hash[..], &now(), &&next.token_hash[..], &next.expires_at];
        let Some(rows) = self.in_family(token_hash, sql, &params).await? else { return Ok(Rotation::Invalid) };
        Ok(match rows.first() {
            None => Rotation::Invalid,
            Some(row) if row.get(1) => Rotation::Reused,
            Some(row) => Rotation::Rotated(UserId(row.get(0))),
        })
    }

    async fn session(&self, token_hash: [u8; 32]) -> Result<Option<(UserId, Timestamp)>> {
        let sql = "SELECT user_id, expires_at FROM sessions
                   WHERE token_hash = $1 AND spent_at IS NULL AND expires_at > $2";
        let rows = self.fetch(sql, &[&&token_hash[..], &now()]).await?;
        Ok(rows.first().map(|row| (UserId(row.get(0)), row.get(1))))
    }

    async fn close_session(&self, token_hash: [u8; 32]) -> Result<bool> {
        let sql = "DELETE FROM sessions WHERE family = (SELECT family FROM sessions WHERE token_hash = $1)
                   RETURNING 1";
        let ended = self.in_family(token_hash, sql, &[&&token_hash[..]]).await?;
        Ok(ended.is_some_and(|rows| !rows.is_empty()))
    }

    async fn count_attempts(&self, attempts: Vec<Attempt>, window: Duration) -> Result<Option<Duration>> {
        let now = now();
        let begun = now.checked_sub(window).map_err(StoreError::internal)?;
        let keys: Vec<&str> = attempts.iter().map(|attempt| attempt.key.as_str()).collect();
        let sql = "INSERT INTO sign_in_attempts AS a (key, window_start, count)
                   SELECT key, $2, 1 FROM unnest($1::text[]) AS key ORDER BY key
                   ON CONFLICT (key) DO UPDATE SET
                       count = CASE WHEN a.window_start <= $3 THEN 1 ELSE a.count + 1 END,
                       window_start = CASE WHEN a.window_start <= $3 THEN $2 ELSE a.window_start END
                   RETURNING key, count, window_start";
        let mut wait = None;
        for row in self.execute(sql, &[&keys, &now, &begun]).await? {
            let (key, count, start): (&str, i32, Timestamp) = (row.get(0), row.get(1), row.get(2));
            let limit = attempts.iter().find(|attempt| attempt.key == key).map_or(0, |attempt| attempt.limit);
            if i64::from(count) > i64::from(limit) {
                let passed = Duration::try_from(now.duration_since(start)).unwrap_or_default();
                wait = wait.max(Some(window.saturating_sub(passed)));
            }
        }
        Ok(wait)
    }

    async fn forgive_attempts(&self, keys: Vec<String>) -> Result<()> {
        let sql = "UPDATE sign_in_attempts SET count = greatest(count - 1, 0) WHERE key = ANY($1)";
        self.execute(sql, &[&keys]).await.map(drop)
    }

    async fn secret(&self, name: &str, candidate: &str) -> Result<String> {
        let known = self.fetch("SELECT value FROM secrets WHERE name = $1", &[&name]).await?;
        if let Some(row) = known.first() {
            return Ok(row.get(0));
        }
        // The update changes nothing; it returns the row if another replica inserted it meanwhile.
        let sql = "INSERT INTO secrets AS s (name, value) VALUES ($1, $2)
                   ON CONFLICT (name) DO UPDATE SET value = s.value RETURNING value";
        let rows = self.execute(sql, &[&name, &candidate]).await?;
        rows.first().map(|row| row.get(0)).ok_or_else(|| StoreError::internal("a secret was not kept"))
    }
}

impl Postgres {
    /// Runs a statement about a session while no other transaction changes the tokens of the same sign-in. Returns none
    /// if the token does not exist.
    ///
    /// The lock is taken by a separate statement, so that the next one sees the tokens of the transactions that it
    /// waited for. Otherwise a concurrent rotation could add a token to an ended session.
    async fn in_family(
        &self,
        token_hash: [u8; 32],
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<Vec<Row>>> {
        let found =
            self.fetch("SELECT family, user_id FROM sessions WHERE token_hash = $1", &[&&token_hash[..]]).await?;
        let Some(row) = found.first() else { return Ok(None) };
        let (family, user): (Uuid, Uuid) = (row.get(0), row.get(1));
        let (_, turn) = family.as_u64_pair();
        let mut transaction = self.transaction().await?;
        transaction.begin().await?;
        transaction.query("SELECT pg_advisory_xact_lock($1)", &[&turn.cast_signed()]).await?;
        // Ending all sessions locks the account's row: the next statement sees that they were deleted.
        transaction.query("SELECT 1 FROM users WHERE id = $1 FOR SHARE", &[&user]).await?;
        let rows = transaction.query(sql, params).await?;
        transaction.commit().await?;
        transaction.finished();
        Ok(Some(rows))
    }
}

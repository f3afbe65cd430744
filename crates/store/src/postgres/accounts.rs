//! Accounts, sessions and sign-in attempts.

use super::Postgres;
use crate::accounts::{AccountStore, Attempt, Credentials, NewUser, Rotation, Session, User, email_taken};
use async_trait::async_trait;
use std::time::Duration;
use tokio_postgres::Row;
use toolrest_core::{Result, Timestamp, ToolError, UserId, now};
use uuid::Uuid;

fn user(row: &Row) -> User {
    User {
        id: UserId(row.get(0)),
        email: row.get(1),
        full_name: row.get(2),
        created_at: row.get(3),
        updated_at: row.get(4),
    }
}

#[async_trait]
impl AccountStore for Postgres {
    async fn create_user(&self, new: NewUser) -> Result<User> {
        let sql = "INSERT INTO users (id, email, password_hash, full_name, created_at, updated_at)
                   VALUES ($1, $2, $3, $4, $5, $5) ON CONFLICT DO NOTHING
                   RETURNING id, email, full_name, created_at, updated_at";
        let rows =
            self.change(sql, &[&UserId::new().0, &new.email, &new.password_hash, &new.full_name, &now()]).await?;
        rows.first().map(user).ok_or_else(|| email_taken(&new.email))
    }

    async fn credentials(&self, email: &str) -> Result<Option<Credentials>> {
        let sql = "SELECT id, email, full_name, created_at, updated_at, password_hash FROM users WHERE email = $1";
        let rows = self.look(sql, &[&email]).await?;
        Ok(rows.first().map(|row| Credentials { user: user(row), password_hash: row.get(5) }))
    }

    async fn user(&self, id: UserId) -> Result<Option<User>> {
        let sql = "SELECT id, email, full_name, created_at, updated_at FROM users WHERE id = $1";
        Ok(self.look(sql, &[&id.0]).await?.first().map(user))
    }

    async fn open_session(&self, user: UserId, session: Session) -> Result<()> {
        let sql = "WITH ended AS (DELETE FROM sessions WHERE expires_at < $1)
                   INSERT INTO sessions (token_hash, family, user_id, expires_at) VALUES ($2, $3, $4, $5)";
        let params: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
            [&now(), &&session.token_hash[..], &Uuid::now_v7(), &user.0, &session.expires_at];
        self.change(sql, &params).await.map(drop)
    }

    async fn rotate_session(&self, token_hash: [u8; 32], next: Session) -> Result<Rotation> {
        // The row is locked before it is judged, so that of two who present the same token one finds it spent.
        let sql = "WITH found AS (
                SELECT token_hash, family, user_id, spent_at IS NOT NULL AS spent FROM sessions
                WHERE token_hash = $1 AND (spent_at IS NOT NULL OR expires_at > $2) FOR UPDATE
            ), revoked AS (
                DELETE FROM sessions s USING found f WHERE f.spent AND s.family = f.family
            ), used AS (
                UPDATE sessions s SET spent_at = $2 FROM found f WHERE s.token_hash = f.token_hash AND NOT f.spent
            ), kept AS (
                INSERT INTO sessions (token_hash, family, user_id, expires_at)
                SELECT $3, family, user_id, $4 FROM found WHERE NOT spent
            )
            SELECT user_id, spent FROM found";
        let rows = self.change(sql, &[&&token_hash[..], &now(), &&next.token_hash[..], &next.expires_at]).await?;
        Ok(match rows.first() {
            None => Rotation::Invalid,
            Some(row) if row.get(1) => Rotation::Reused,
            Some(row) => Rotation::Rotated(UserId(row.get(0))),
        })
    }

    async fn close_session(&self, token_hash: [u8; 32]) -> Result<bool> {
        let sql = "DELETE FROM sessions WHERE family = (SELECT family FROM sessions WHERE token_hash = $1)
                   RETURNING 1";
        Ok(!self.change(sql, &[&&token_hash[..]]).await?.is_empty())
    }

    async fn count_attempts(&self, attempts: Vec<Attempt>, window: Duration) -> Result<Option<Duration>> {
        let now = now();
        let begun = now.checked_sub(window).map_err(ToolError::internal)?;
        let keys: Vec<&str> = attempts.iter().map(|attempt| attempt.key.as_str()).collect();
        let sql = "INSERT INTO sign_in_attempts AS a (key, window_start, count)
                   SELECT key, $2, 1 FROM unnest($1::text[]) AS key ORDER BY key
                   ON CONFLICT (key) DO UPDATE SET
                       count = CASE WHEN a.window_start <= $3 THEN 1 ELSE a.count + 1 END,
                       window_start = CASE WHEN a.window_start <= $3 THEN $2 ELSE a.window_start END
                   RETURNING key, count, window_start";
        let mut wait = None;
        for row in self.change(sql, &[&keys, &now, &begun]).await? {
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
        self.change(sql, &[&keys]).await.map(drop)
    }

    async fn secret(&self, name: &str, candidate: &str) -> Result<String> {
        // The update changes nothing but makes an existing row come back.
        let sql = "INSERT INTO secrets AS s (name, value) VALUES ($1, $2)
                   ON CONFLICT (name) DO UPDATE SET value = s.value RETURNING value";
        let rows = self.change(sql, &[&name, &candidate]).await?;
        rows.first().map(|row| row.get(0)).ok_or_else(|| ToolError::internal("a secret was not kept"))
    }
}

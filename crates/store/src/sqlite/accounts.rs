//! Accounts, sessions and sign-in attempts.

use super::row::{find, micros, optional_time, run, time};
use super::{Sqlite, to_store_error};
use crate::accounts::{AccountStore, Attempt, Credentials, NewUser, Rotation, Session, User};
use crate::error::{Result, StoreError};
use async_trait::async_trait;
use rusqlite::{Connection, ErrorCode, Row};
use std::time::Duration;
use toolrest_core::{Timestamp, UserId, now};
use uuid::Uuid;

pub(super) const USER_COLUMNS: &str = "id, email, full_name, created_at, updated_at, disabled_at, token_epoch";

pub(super) fn user(row: &Row<'_>) -> rusqlite::Result<User> {
    Ok(User {
        id: UserId(row.get(0)?),
        email: row.get(1)?,
        full_name: row.get(2)?,
        created_at: time(row, 3)?,
        updated_at: time(row, 4)?,
        disabled_at: optional_time(row, 5)?,
        token_epoch: row.get(6)?,
    })
}

#[async_trait]
impl AccountStore for Sqlite {
    async fn create_user(&self, new: NewUser) -> Result<User> {
        self.write(move |db| {
            let now = now();
            let user = User {
                id: UserId::new(),
                email: new.email,
                full_name: new.full_name,
                created_at: now,
                updated_at: now,
                disabled_at: None,
                token_epoch: 0,
            };
            let inserted = db
                .prepare_cached(
                    "INSERT INTO users (id, email, password_hash, full_name, created_at, updated_at)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?5)",
                )
                .and_then(|mut insert| {
                    insert.execute((user.id.0, &user.email, &new.password_hash, &user.full_name, micros(now)))
                });
            match inserted {
                Ok(_) => Ok(user),
                Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                    Err(StoreError::EmailTaken(user.email))
                }
                Err(error) => Err(to_store_error(error)),
            }
        })
        .await
    }

    async fn credentials(&self, email: &str) -> Result<Option<Credentials>> {
        let email = email.to_owned();
        self.read(move |db| {
            let sql = format!("SELECT {USER_COLUMNS}, password_hash FROM users WHERE email = ?1");
            find(db, &sql, [email], |row| Ok(Credentials { user: user(row)?, password_hash: row.get(7)? }))
        })
        .await
    }

    async fn user(&self, id: UserId) -> Result<Option<User>> {
        self.read(move |db| find(db, &format!("SELECT {USER_COLUMNS} FROM users WHERE id = ?1"), [id.0], user)).await
    }

    async fn open_session(&self, user: UserId, token_epoch: i64, session: Session) -> Result<bool> {
        self.write(move |db| {
            let sql = "SELECT 1 FROM users WHERE id = ?1 AND token_epoch = ?2 AND disabled_at IS NULL";
            if find(db, sql, (user.0, token_epoch), |_| Ok(()))?.is_none() {
                return Ok(false);
            }
            insert_session(db, user.0, Uuid::now_v7(), &session).map(|()| true)
        })
        .await
    }

    async fn rotate_session(&self, token_hash: [u8; 32], next: Session) -> Result<Rotation> {
        self.write(move |db| {
            let now = micros(now());
            let found = find(
                db,
                "SELECT user_id, family, expires_at, spent_at FROM sessions WHERE token_hash = ?1",
                [token_hash],
                |row| {
                    Ok((
                        row.get::<_, Uuid>(0)?,
                        row.get::<_, Uuid>(1)?,
                        row.get::<_, i64>(2)?,
                        row.get::<_, Option<i64>>(3)?,
                    ))
                },
            )?;
            let Some((user, family, expires_at, spent_at)) = found else { return Ok(Rotation::Invalid) };
            if spent_at.is_some() {
                run(db, "DELETE FROM sessions WHERE family = ?1", [family])?;
                return Ok(Rotation::Reused);
            }
            if expires_at <= now {
                return Ok(Rotation::Invalid);
            }
            run(db, "UPDATE sessions SET spent_at = ?2 WHERE token_hash = ?1", (token_hash, now))?;
            insert_session(db, user, family, &next)?;
            Ok(Rotation::Rotated(UserId(user)))
        })
        .await
    }

    async fn session(&self, token_hash: [u8; 32]) -> Result<Option<(UserId, Timestamp)>> {
        self.read(move |db| {
            let sql = "SELECT user_id, expires_at FROM sessions
                       WHERE token_hash = ?1 AND spent_at IS NULL AND expires_at > ?2";
            find(db, sql, (token_hash, micros(now())), |row| Ok((UserId(row.get(0)?), time(row, 1)?)))
        })
        .await
    }

    async fn close_session(&self, token_hash: [u8; 32]) -> Result<bool> {
        self.write(move |db| {
            let sql = "DELETE FROM sessions WHERE family = (SELECT family FROM sessions WHERE token_hash = ?1)";
            Ok(run(db, sql, [token_hash])? > 0)
        })
        .await
    }

    async fn count_attempts(&self, attempts: Vec<Attempt>, window: Duration) -> Result<Option<Duration>> {
        self.write(move |db| {
            let now = micros(now());
            let window = i64::try_from(window.as_micros()).map_err(StoreError::internal)?;
            let mut wait = None;
            for attempt in attempts {
                let (count, start): (u32, i64) = find(
                    db,
                    "INSERT INTO sign_in_attempts (key, window_start, count) VALUES (?1, ?2, 1)
                     ON CONFLICT (key) DO UPDATE SET
                         count = CASE WHEN window_start <= ?3 THEN 1 ELSE count + 1 END,
                         window_start = CASE WHEN window_start <= ?3 THEN ?2 ELSE window_start END
                     RETURNING count, window_start",
                    (attempt.key, now, now - window),
                    |row| Ok((row.get(0)?, row.get(1)?)),
                )?
                .unwrap_or((1, now));
                if count > attempt.limit {
                    wait = wait.max(Some(start + window - now));
                }
            }
            Ok(wait.map(|micros: i64| Duration::from_micros(micros.try_into().unwrap_or(0))))
        })
        .await
    }

    async fn forgive_attempts(&self, keys: Vec<String>) -> Result<()> {
        self.write(move |db| {
            for key in keys {
                run(db, "UPDATE sign_in_attempts SET count = max(count - 1, 0) WHERE key = ?1", [key])?;
            }
            Ok(())
        })
        .await
    }

    async fn secret(&self, name: &str, candidate: &str) -> Result<String> {
        let (name, candidate) = (name.to_owned(), candidate.to_owned());
        let known = name.clone();
        let known =
            move |db: &Connection| find(db, "SELECT value FROM secrets WHERE name = ?1", [&known], |row| row.get(0));
        if let Some(known) = self.read(known).await? {
            return Ok(known);
        }
        self.write(move |db| {
            run(db, "INSERT INTO secrets (name, value) VALUES (?1, ?2) ON CONFLICT DO NOTHING", (&name, &candidate))?;
            let value = find(db, "SELECT value FROM secrets WHERE name = ?1", [&name], |row| row.get(0))?;
            value.ok_or_else(|| StoreError::internal("a secret vanished"))
        })
        .await
    }
}

fn insert_session(db: &Connection, user: Uuid, family: Uuid, session: &Session) -> Result<()> {
    let sql = "INSERT INTO sessions (token_hash, family, user_id, expires_at) VALUES (?1, ?2, ?3, ?4)";
    run(db, sql, (session.token_hash, family, user, micros(session.expires_at))).map(drop)
}

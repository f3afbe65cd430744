//! Account administration by an operator.

use super::accounts::{USER_COLUMNS, user};
use super::row::{collect, find, micros, run};
use super::{Sqlite, approvals, keys};
use crate::accounts::{AccountAdmin, Revocation, User, no_such_account};
use crate::error::Result;
use crate::store::new_revision;
use async_trait::async_trait;
use rusqlite::Connection;
use std::collections::BTreeSet;
use toolrest_core::{Timestamp, UserId, now};
use uuid::Uuid;

#[async_trait]
impl AccountAdmin for Sqlite {
    async fn users(&self) -> Result<Vec<User>> {
        self.read(|db| collect(db, &format!("SELECT {USER_COLUMNS} FROM users ORDER BY email"), [], user)).await
    }

    async fn disable_user(&self, user: UserId) -> Result<()> {
        self.write_and_wake(move |db| {
            let id = user.0;
            if is_disabled(db, id)? {
                return Ok(BTreeSet::new());
            }
            revoke_tokens(db, id)?;
            run(db, "UPDATE users SET disabled_at = ?2, updated_at = ?2 WHERE id = ?1", (id, micros(now())))?;
            let suspend = "INSERT INTO suspended_members (ws, user_id, role, created_at, via, max_role)
                           SELECT ws, user_id, role, created_at, via, max_role FROM members
                           WHERE user_id = ?1 OR via = ?1 ON CONFLICT DO NOTHING";
            run(db, suspend, [id])?;
            run(db, "DELETE FROM members WHERE user_id = ?1 OR via = ?1", [id])?;
            approvals::cancel(db, "user_id = ?1", [id], "the account was disabled")
        })
        .await
    }

    async fn enable_user(&self, user: UserId) -> Result<()> {
        self.write(move |db| {
            let id = user.0;
            if !is_disabled(db, id)? {
                return Ok(());
            }
            revoke_tokens(db, id)?;
            run(db, "UPDATE users SET disabled_at = NULL, updated_at = ?2 WHERE id = ?1", (id, micros(now())))?;
            let resume = "INSERT INTO members (ws, user_id, role, created_at, via, max_role, rules_rev)
                          SELECT s.ws, s.user_id, min(person.role, coalesce(s.max_role, person.role)), s.created_at,
                              s.via, s.max_role, ?2
                          FROM suspended_members s
                          JOIN suspended_members person ON person.ws = s.ws AND person.user_id = ?1
                          JOIN workspaces w ON w.id = s.ws AND w.deleted_at IS NULL
                          WHERE (s.user_id = ?1 OR s.via = ?1) AND s.is_held = 0 ON CONFLICT DO NOTHING";
            run(db, resume, (id, new_revision(now())))?;
            let gone = "DELETE FROM suspended_members WHERE (user_id = ?1 OR via = ?1) AND is_held = 0";
            run(db, gone, [id]).map(drop)
        })
        .await
    }

    async fn end_sessions(&self, user: UserId) -> Result<u64> {
        let wakeups = self.wakeups.clone();
        let end = move |db: &Connection| Ok((suspend_keys(db, user.0)?, revoke_tokens(db, user.0)?));
        let wake = move |ended: &Result<(BTreeSet<Uuid>, u64)>| {
            for ws in ended.iter().flat_map(|(cancelled, _)| cancelled) {
                wakeups.wake(*ws);
            }
        };
        Ok(self.write_then(end, wake).await?.1)
    }

    async fn set_password(&self, user: UserId, password_hash: String) -> Result<()> {
        self.write_and_wake(move |db| {
            let cancelled = suspend_keys(db, user.0)?;
            revoke_tokens(db, user.0)?;
            let sql = "UPDATE users SET password_hash = ?2, updated_at = ?3 WHERE id = ?1";
            run(db, sql, (user.0, &password_hash, micros(now())))?;
            Ok(cancelled)
        })
        .await
    }

    async fn revocations(&self, since: Timestamp) -> Result<Vec<Revocation>> {
        self.read(move |db| {
            let sql = "SELECT id, token_epoch, disabled_at IS NOT NULL FROM users WHERE tokens_revoked_at >= ?1";
            collect(db, sql, [micros(since)], |row| {
                Ok(Revocation { user: UserId(row.get(0)?), token_epoch: row.get(1)?, is_disabled: row.get(2)? })
            })
        })
        .await
    }
}

fn is_disabled(db: &Connection, user: Uuid) -> Result<bool> {
    let found = find(db, "SELECT disabled_at IS NOT NULL FROM users WHERE id = ?1", [user], |row| row.get(0))?;
    Ok(found.ok_or_else(no_such_account)?)
}

/// Suspends the keys of the user in all workspaces, and cancels their approvals. The user can make each of them active
/// again. Returns the workspaces of the approvals.
fn suspend_keys(db: &Connection, user: Uuid) -> Result<BTreeSet<Uuid>> {
    keys::suspend(db, "via = ?1", [user])?;
    let cancelled = approvals::cancel(db, "user_id = ?1 AND principal <> user_id", [user], "the key was suspended")?;
    let sql = "UPDATE keys SET suspended_at = ?2
               WHERE user_id = ?1 AND suspended_at IS NULL AND revoked_at IS NULL AND expires_at > ?2";
    run(db, sql, (user, micros(now())))?;
    Ok(cancelled)
}

/// Deletes all sessions of the user and increments the token epoch. Returns the number of sessions that were still
/// valid.
fn revoke_tokens(db: &Connection, user: Uuid) -> Result<u64> {
    let sql = "UPDATE users SET token_epoch = token_epoch + 1, tokens_revoked_at = ?2 WHERE id = ?1";
    if run(db, sql, (user, micros(now())))? == 0 {
        return Err(no_such_account().into());
    }
    let live = "SELECT count(*) FROM sessions WHERE user_id = ?1 AND spent_at IS NULL AND expires_at > ?2";
    let live: Option<i64> = find(db, live, (user, micros(now())), |row| row.get(0))?;
    run(db, "DELETE FROM sessions WHERE user_id = ?1", [user])?;
    Ok(live.unwrap_or(0).unsigned_abs())
}

//! Agent keys.

use super::row::{authorised, collect, find, micros, optional_time, run, time};
use super::{Sqlite, approvals};
use crate::error::{Result, StoreError};
use crate::keys::{
    KeyInfo, KeyState, KeyStore, KeyUse, MAX_LISTED_KEYS, MAX_LIVE_KEYS, NewKey, check_manages, joined, joined_actions,
    key_has_ended, split, split_actions, too_many_keys,
};
use crate::store::new_revision;
use async_trait::async_trait;
use rusqlite::{Connection, Row};
use toolrest_core::{Access, KeyId, Role, Timestamp, UserId, WorkspaceId, now};
use uuid::Uuid;

const COLUMNS: &str =
    "id, user_id, name, toolsets, actions, created_at, expires_at, suspended_at, revoked_at, last_used_at";

fn info(row: &Row<'_>) -> rusqlite::Result<KeyInfo> {
    Ok(KeyInfo {
        id: KeyId(row.get(0)?),
        user_id: UserId(row.get(1)?),
        name: row.get(2)?,
        toolsets: split(row.get_ref(3)?.as_str()?),
        actions: split_actions(row.get_ref(4)?.as_str()?),
        created_at: time(row, 5)?,
        expires_at: time(row, 6)?,
        suspended_at: optional_time(row, 7)?,
        revoked_at: optional_time(row, 8)?,
        last_used_at: optional_time(row, 9)?,
    })
}

#[async_trait]
impl KeyStore for Sqlite {
    async fn create_key(&self, access: Access, key: NewKey) -> Result<KeyInfo> {
        self.write(move |db| {
            authorised(db, access)?;
            let (ws, user, at) = (access.workspace.0, access.user.0, now());
            let person = person_role(db, ws, user)?.ok_or(StoreError::NotAMember)?;
            let sql = "SELECT count(*) FROM keys
                       WHERE ws = ?1 AND user_id = ?2 AND revoked_at IS NULL AND expires_at > ?3";
            let live = find(db, sql, (ws, user, micros(at)), |row| row.get(0))?.unwrap_or(0);
            if live >= MAX_LIVE_KEYS {
                return Err(too_many_keys(live));
            }
            let (id, max_role) = (KeyId::new(), key.max_role());
            run(
                db,
                "INSERT INTO keys (ws, id, user_id, name, toolsets, actions, created_at, expires_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                (
                    ws,
                    id.0,
                    user,
                    &key.name,
                    joined(key.toolsets.iter().map(String::as_str)),
                    joined_actions(key.actions),
                    micros(at),
                    micros(key.expires_at),
                ),
            )?;
            run(
                db,
                "INSERT INTO members (ws, user_id, role, created_at, via, max_role, rules_rev)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                (ws, id.0, person.min(max_role).code(), micros(at), user, max_role.code(), new_revision(at)),
            )?;
            Ok(key.created(id, access.user, at))
        })
        .await
    }

    async fn keys(&self, access: Access) -> Result<Vec<KeyInfo>> {
        self.read(move |db| {
            let sees_all = authorised(db, access)? == Role::Owner;
            let sql = format!(
                "SELECT {COLUMNS} FROM keys WHERE ws = ?1 AND (?2 OR user_id = ?3)
                 ORDER BY revoked_at IS NOT NULL, id DESC LIMIT ?4"
            );
            collect(db, &sql, (access.workspace.0, sees_all, access.user.0, MAX_LISTED_KEYS), info)
        })
        .await
    }

    async fn key(&self, workspace: WorkspaceId, key: KeyId) -> Result<Option<KeyInfo>> {
        self.read(move |db| {
            let sql = format!("SELECT {COLUMNS} FROM keys WHERE ws = ?1 AND id = ?2");
            find(db, &sql, (workspace.0, key.0), info)
        })
        .await
    }

    async fn set_key_state(&self, access: Access, key: KeyId, state: KeyState) -> Result<KeyInfo> {
        let (wakeups, ws) = (self.wakeups.clone(), access.workspace.0);
        let wake = move |_: &Result<KeyInfo>| wakeups.wake(ws);
        let change = move |db: &Connection| {
            let person = managed(db, access, key)?;
            let now = micros(now());
            let suspended_at = if state == KeyState::Suspended { "coalesce(suspended_at, ?3)" } else { "NULL" };
            let sql = format!(
                "UPDATE keys SET suspended_at = {suspended_at}
                 WHERE ws = ?1 AND id = ?2 AND revoked_at IS NULL AND expires_at > ?3 RETURNING {COLUMNS}"
            );
            let changed = find(db, &sql, (ws, key.0, now), info)?.ok_or_else(|| key_has_ended(key))?;
            match (state, person_role(db, ws, person.0)?) {
                (KeyState::Suspended, _) => {
                    suspend(db, "ws = ?1 AND user_id = ?2", (ws, key.0))?;
                    approvals::cancel(db, "ws = ?1 AND principal = ?2", (ws, key.0), "the key was suspended")?;
                }
                (KeyState::Active, Some(role)) => {
                    let resume = "INSERT INTO members (ws, user_id, role, created_at, via, max_role, rules_rev)
                                  SELECT ws, user_id, min(max_role, ?3), created_at, via, max_role, ?4
                                  FROM suspended_members WHERE ws = ?1 AND user_id = ?2 AND via IS NOT NULL";
                    run(db, resume, (ws, key.0, role.code(), now))?;
                    let gone = "DELETE FROM suspended_members WHERE ws = ?1 AND user_id = ?2 AND via IS NOT NULL";
                    run(db, gone, (ws, key.0))?;
                }
                // The account is disabled: the key becomes active with it.
                (KeyState::Active, None) => {
                    let sql = "UPDATE suspended_members SET is_held = 0 WHERE ws = ?1 AND user_id = ?2";
                    run(db, sql, (ws, key.0))?;
                }
            }
            Ok(changed)
        };
        self.write_then(change, wake).await
    }

    async fn revoke_key(&self, access: Access, key: KeyId) -> Result<KeyInfo> {
        let (wakeups, ws) = (self.wakeups.clone(), access.workspace.0);
        let wake = move |_: &Result<KeyInfo>| wakeups.wake(ws);
        let revoke = move |db: &Connection| {
            managed(db, access, key)?;
            approvals::cancel(db, "ws = ?1 AND principal = ?2", (ws, key.0), "the key was revoked")?;
            for table in ["members", "suspended_members"] {
                let sql = format!("DELETE FROM {table} WHERE ws = ?1 AND user_id = ?2 AND via IS NOT NULL");
                run(db, &sql, (ws, key.0))?;
            }
            let sql = format!(
                "UPDATE keys SET revoked_at = coalesce(revoked_at, ?3) WHERE ws = ?1 AND id = ?2 RETURNING {COLUMNS}"
            );
            find(db, &sql, (ws, key.0, micros(now())), info)?.ok_or_else(|| StoreError::not_found("Key", key))
        };
        self.write_then(revoke, wake).await
    }

    async fn record_key_uses(&self, uses: Vec<KeyUse>) -> Result<()> {
        self.write(move |db| {
            for used in uses {
                let sql = "UPDATE keys SET last_used_at = ?3
                           WHERE ws = ?1 AND id = ?2 AND revoked_at IS NULL AND suspended_at IS NULL
                             AND (last_used_at IS NULL OR last_used_at < ?3)";
                run(db, sql, (used.workspace.0, used.key.0, micros(used.at)))?;
            }
            Ok(())
        })
        .await
    }

    async fn end_expired_keys(&self, since: Timestamp) -> Result<()> {
        let (since, now) = (micros(since), micros(now()));
        let sql = "SELECT 1 FROM keys WHERE expires_at > ?1 AND expires_at <= ?2 LIMIT 1";
        if self.read(move |db| find(db, sql, (since, now), |_| Ok(()))).await?.is_none() {
            return Ok(());
        }
        self.write_and_wake(move |db| {
            for table in ["members", "suspended_members"] {
                let sql = format!(
                    "DELETE FROM {table} WHERE via IS NOT NULL AND (ws, user_id) IN
                        (SELECT ws, id FROM keys WHERE expires_at > ?1 AND expires_at <= ?2)"
                );
                run(db, &sql, (since, now))?;
            }
            let expired = "(ws, principal) IN (SELECT ws, id FROM keys WHERE expires_at > ?1 AND expires_at <= ?2)";
            approvals::cancel(db, expired, (since, now), "the key expired")
        })
        .await
    }
}

/// Returns the role of a person; none if the person is not a member at the moment.
fn person_role(db: &Connection, ws: Uuid, user: Uuid) -> Result<Option<Role>> {
    let sql = "SELECT role FROM members WHERE ws = ?1 AND user_id = ?2 AND via IS NULL";
    Ok(find(db, sql, (ws, user), |row| row.get(0))?.and_then(Role::from_code))
}

/// Returns the person of a key that the caller manages.
fn managed(db: &Connection, access: Access, key: KeyId) -> Result<UserId> {
    let role = authorised(db, access)?;
    let sql = "SELECT user_id FROM keys WHERE ws = ?1 AND id = ?2";
    let of = find(db, sql, (access.workspace.0, key.0), |row| row.get(0))?;
    check_manages(access, role, key, of.map(UserId))
}

/// Suspends the keys that the condition selects, so that only resuming each of them restores it.
pub(super) fn suspend(db: &Connection, condition: &str, params: impl rusqlite::Params + Copy) -> Result<()> {
    let held = format!("UPDATE suspended_members SET is_held = 1 WHERE via IS NOT NULL AND {condition}");
    let copy = format!(
        "INSERT INTO suspended_members (ws, user_id, role, created_at, via, max_role, is_held)
         SELECT ws, user_id, role, created_at, via, max_role, 1 FROM members WHERE via IS NOT NULL AND {condition}"
    );
    let gone = format!("DELETE FROM members WHERE via IS NOT NULL AND {condition}");
    for sql in [held, copy, gone] {
        run(db, &sql, params)?;
    }
    Ok(())
}

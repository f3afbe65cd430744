//! Agent keys.
//!
//! Every change locks the account, the workspace and the membership of the key's person, in this order. Disabling the
//! account, deleting the workspace, and changing or removing the member lock the same rows first, so that they see all
//! keys.

use super::row::{authorised, role};
use super::transaction::Transaction;
use super::{Postgres, approvals};
use crate::approvals::IS_OPEN;
use crate::error::{Result, StoreError};
use crate::files::FileStore;
use crate::keys::{
    KeyInfo, KeyState, KeyStore, KeyUse, MAX_LISTED_KEYS, MAX_LIVE_KEYS, NewKey, check_manages, joined, joined_actions,
    key_has_ended, split, split_actions, too_many_keys,
};
use crate::store::{check_role, new_revision};
use async_trait::async_trait;
use std::collections::BTreeSet;
use tokio_postgres::{Row, types::ToSql};
use toolrest_core::{Access, KeyId, Role, Timestamp, UserId, WorkspaceId, now};
use uuid::Uuid;

const COLUMNS: &str =
    "id, user_id, name, toolsets, actions, created_at, expires_at, suspended_at, revoked_at, last_used_at";

fn info(row: &Row, at: usize) -> KeyInfo {
    KeyInfo {
        id: KeyId(row.get(at)),
        user_id: UserId(row.get(at + 1)),
        name: row.get(at + 2),
        toolsets: split(row.get(at + 3)),
        actions: split_actions(row.get(at + 4)),
        created_at: row.get(at + 5),
        expires_at: row.get(at + 6),
        suspended_at: row.get(at + 7),
        revoked_at: row.get(at + 8),
        last_used_at: row.get(at + 9),
    }
}

#[async_trait]
impl KeyStore for Postgres {
    async fn create_key(&self, access: Access, key: NewKey) -> Result<KeyInfo> {
        // Strangers are refused before anything is locked.
        self.authorise(access).await?;
        let (ws, user, at) = (access.workspace.0, access.user.0, now());
        let mut transaction = self.transaction().await?;
        transaction.begin().await?;
        let person = lock_person(&transaction, access.workspace, access.user).await?;
        let person = check_role(access, person)?;
        let sql = "SELECT count(*) FROM keys
                   WHERE ws = $1 AND user_id = $2 AND revoked_at IS NULL AND expires_at > $3";
        let live = transaction.query(sql, &[&ws, &user, &at]).await?.first().map_or(0, |row| row.get(0));
        if live >= MAX_LIVE_KEYS {
            return Err(too_many_keys(live));
        }
        let (id, max_role) = (KeyId::new(), key.max_role());
        let (toolsets, actions) = (joined(key.toolsets.iter().map(String::as_str)), joined_actions(key.actions));
        let insert = "WITH listed AS (
                INSERT INTO keys (ws, id, user_id, name, toolsets, actions, created_at, expires_at)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
            )
            INSERT INTO members (ws, user_id, role, created_at, via, max_role, rules_rev)
            VALUES ($1, $2, $9, $7, $3, $10, $11)";
        let params: [&(dyn ToSql + Sync); 11] = [
            &ws,
            &id.0,
            &user,
            &key.name,
            &toolsets,
            &actions,
            &at,
            &key.expires_at,
            &person.min(max_role).code(),
            &max_role.code(),
            &new_revision(at),
        ];
        transaction.query(insert, &params).await?;
        transaction.commit().await?;
        transaction.finished();
        Ok(key.created(id, access.user, at))
    }

    async fn keys(&self, access: Access) -> Result<Vec<KeyInfo>> {
        let sql = format!(
            "SELECT m.rights, k.* FROM members m LEFT JOIN LATERAL (
                 SELECT {COLUMNS} FROM keys k WHERE k.ws = $1 AND (m.role = 3 OR k.user_id = $2)
                 ORDER BY k.revoked_at IS NOT NULL, k.id DESC LIMIT $3
             ) k ON true
             WHERE m.ws = $1 AND m.user_id = $2"
        );
        let rows = self.fetch(&sql, &[&access.workspace.0, &access.user.0, &MAX_LISTED_KEYS]).await?;
        authorised(access, &rows, 0)?;
        Ok(rows.iter().filter(|row| row.get::<_, Option<Uuid>>(1).is_some()).map(|row| info(row, 1)).collect())
    }

    async fn key(&self, workspace: WorkspaceId, key: KeyId) -> Result<Option<KeyInfo>> {
        let sql = format!("SELECT {COLUMNS} FROM keys WHERE ws = $1 AND id = $2");
        let rows = self.fetch(&sql, &[&workspace.0, &key.0]).await?;
        Ok(rows.first().map(|row| info(row, 0)))
    }

    async fn set_key_state(&self, access: Access, key: KeyId, state: KeyState) -> Result<KeyInfo> {
        let person = self.managed(access, key).await?;
        let (ws, now) = (access.workspace.0, now());
        let transaction = self.transaction().await?;
        transaction.begin().await?;
        let mut cancelled = BTreeSet::new();
        let person = lock_person(&transaction, access.workspace, person).await?;
        let suspended_at = if state == KeyState::Suspended { "coalesce(suspended_at, $3)" } else { "NULL" };
        let sql = format!(
            "UPDATE keys SET suspended_at = {suspended_at}
             WHERE ws = $1 AND id = $2 AND revoked_at IS NULL AND expires_at > $3 RETURNING {COLUMNS}"
        );
        let changed = transaction.query(&sql, &[&ws, &key.0, &now]).await?;
        let changed = changed.first().map(|row| info(row, 0)).ok_or_else(|| key_has_ended(key))?;
        match (state, person) {
            (KeyState::Suspended, _) => {
                suspend(&transaction, "ws = $1 AND user_id = $2", &[&ws, &key.0]).await?;
                cancelled = approvals::cancel(&transaction, OF_KEY, &[&ws, &key.0], "the key was suspended").await?;
            }
            (KeyState::Active, Some(role)) => {
                let resume = "WITH back AS (
                        DELETE FROM suspended_members WHERE ws = $1 AND user_id = $2 AND via IS NOT NULL
                        RETURNING ws, user_id, created_at, via, max_role
                    )
                    INSERT INTO members (ws, user_id, role, created_at, via, max_role, rules_rev)
                    SELECT ws, user_id, least(max_role, $3::smallint), created_at, via, max_role, $4 FROM back";
                transaction.query(resume, &[&ws, &key.0, &role.code(), &new_revision(now)]).await?;
            }
            // The account is disabled: the key becomes active with it.
            (KeyState::Active, None) => {
                let sql = "UPDATE suspended_members SET is_held = false WHERE ws = $1 AND user_id = $2";
                transaction.query(sql, &[&ws, &key.0]).await?;
            }
        }
        self.commit_and_wake(transaction, cancelled).await?;
        Ok(changed)
    }

    async fn revoke_key(&self, access: Access, key: KeyId) -> Result<KeyInfo> {
        let person = self.managed(access, key).await?;
        let ws = access.workspace.0;
        let transaction = self.transaction().await?;
        transaction.begin().await?;
        lock_person(&transaction, access.workspace, person).await?;
        let sql = format!(
            "WITH member AS (
                 DELETE FROM members WHERE ws = $1 AND user_id = $2 AND via IS NOT NULL
             ), suspended AS (
                 DELETE FROM suspended_members WHERE ws = $1 AND user_id = $2 AND via IS NOT NULL
             )
             UPDATE keys SET revoked_at = coalesce(revoked_at, $3) WHERE ws = $1 AND id = $2 RETURNING {COLUMNS}"
        );
        let rows = transaction.query(&sql, &[&ws, &key.0, &now()]).await?;
        let revoked = rows.first().map(|row| info(row, 0)).ok_or_else(|| StoreError::not_found("Key", key))?;
        let cancelled = approvals::cancel(&transaction, OF_KEY, &[&ws, &key.0], "the key was revoked").await?;
        self.commit_and_wake(transaction, cancelled).await?;
        Ok(revoked)
    }

    async fn record_key_uses(&self, mut uses: Vec<KeyUse>) -> Result<()> {
        uses.sort_by_key(|used| used.key);
        let workspaces: Vec<Uuid> = uses.iter().map(|used| used.workspace.0).collect();
        let keys: Vec<Uuid> = uses.iter().map(|used| used.key.0).collect();
        let times: Vec<Timestamp> = uses.iter().map(|used| used.at).collect();
        let sql = "UPDATE keys k SET last_used_at = used.at
                   FROM unnest($1::uuid[], $2::uuid[], $3::timestamptz[]) AS used (ws, id, at)
                   WHERE k.ws = used.ws AND k.id = used.id AND k.revoked_at IS NULL AND k.suspended_at IS NULL
                     AND (k.last_used_at IS NULL OR k.last_used_at < used.at)";
        self.execute(sql, &[&workspaces, &keys, &times]).await.map(drop)
    }

    async fn end_expired_keys(&self, since: Timestamp) -> Result<()> {
        let sql = "WITH expired AS (
                SELECT ws, id FROM keys WHERE expires_at > $1 AND expires_at <= $2
            ), suspended AS (
                DELETE FROM suspended_members s USING expired e
                WHERE s.ws = e.ws AND s.user_id = e.id AND s.via IS NOT NULL
            )
            DELETE FROM members m USING expired e WHERE m.ws = e.ws AND m.user_id = e.id AND m.via IS NOT NULL";
        let now = now();
        self.execute(sql, &[&since, &now]).await?;
        let expired = "(a.ws, a.principal) IN (SELECT ws, id FROM keys WHERE expires_at > $1 AND expires_at <= $2)";
        let exists = format!("SELECT 1 FROM approvals a WHERE a.{IS_OPEN} AND {expired} LIMIT 1");
        if self.fetch(&exists, &[&since, &now]).await?.is_empty() {
            return Ok(());
        }
        let transaction = self.transaction().await?;
        transaction.begin().await?;
        let cancelled = approvals::cancel(&transaction, expired, &[&since, &now], "the key expired").await?;
        self.commit_and_wake(transaction, cancelled).await
    }
}

/// The condition of the approvals of a key.
const OF_KEY: &str = "a.ws = $1 AND a.principal = $2";

impl Postgres {
    /// Returns the person of a key that the caller manages.
    async fn managed(&self, access: Access, key: KeyId) -> Result<UserId> {
        let sql = "SELECT m.rights, k.user_id FROM members m LEFT JOIN keys k ON k.ws = m.ws AND k.id = $3
                   WHERE m.ws = $1 AND m.user_id = $2";
        let rows = self.fetch(sql, &[&access.workspace.0, &access.user.0, &key.0]).await?;
        let role = authorised(access, &rows, 0)?;
        check_manages(access, role, key, rows.first().and_then(|row| row.get::<_, Option<Uuid>>(1)).map(UserId))
    }
}

/// Locks a person's account, workspace and membership. Returns the person's role; none if the person is not a member at
/// the moment.
async fn lock_person(transaction: &Transaction, workspace: WorkspaceId, person: UserId) -> Result<Option<Role>> {
    transaction.query("SELECT 1 FROM users WHERE id = $1 FOR SHARE", &[&person.0]).await?;
    transaction.query("SELECT 1 FROM workspaces WHERE id = $1 FOR SHARE", &[&workspace.0]).await?;
    let sql = "SELECT role FROM members WHERE ws = $1 AND user_id = $2 AND via IS NULL FOR NO KEY UPDATE";
    let rows = transaction.query(sql, &[&workspace.0, &person.0]).await?;
    Ok(role(rows.first().and_then(|row| row.get(0))))
}

/// Suspends the keys that the condition selects, so that only resuming each of them restores it.
pub(super) async fn suspend(transaction: &Transaction, condition: &str, params: &[&(dyn ToSql + Sync)]) -> Result<()> {
    let held = format!("UPDATE suspended_members SET is_held = true WHERE via IS NOT NULL AND {condition}");
    let moved = format!(
        "WITH gone AS (
             DELETE FROM members WHERE via IS NOT NULL AND {condition}
             RETURNING ws, user_id, role, created_at, via, max_role
         )
         INSERT INTO suspended_members (ws, user_id, role, created_at, via, max_role, is_held)
         SELECT gone.*, true FROM gone"
    );
    transaction.query(&held, params).await?;
    transaction.query(&moved, params).await.map(drop)
}

//! Account administration by an operator.
//!
//! Every change locks the account's row first. Signing in, renewing a session, adding a member and changing a key share
//! that lock, so that no session or membership is added during the change.

use super::accounts::{USER_COLUMNS, user};
use super::transaction::Transaction;
use super::{Postgres, approvals, keys};
use crate::accounts::{AccountAdmin, Revocation, User, no_such_account};
use crate::error::Result;
use crate::store::new_revision;
use async_trait::async_trait;
use std::collections::BTreeSet;
use toolrest_core::{Timestamp, UserId, now};
use uuid::Uuid;

#[async_trait]
impl AccountAdmin for Postgres {
    async fn users(&self) -> Result<Vec<User>> {
        let sql = format!("SELECT {USER_COLUMNS} FROM users ORDER BY email COLLATE \"C\"");
        Ok(self.fetch(&sql, &[]).await?.iter().map(user).collect())
    }

    async fn disable_user(&self, user: UserId) -> Result<()> {
        let transaction = self.transaction().await?;
        transaction.begin().await?;
        let mut cancelled = BTreeSet::new();
        if !is_disabled(&transaction, user).await? {
            revoke_tokens(&transaction, user).await?;
            let sql = "UPDATE users SET disabled_at = $2, updated_at = $2 WHERE id = $1";
            transaction.query(sql, &[&user.0, &now()]).await?;
            let suspend = "WITH gone AS (
                    DELETE FROM members WHERE user_id = $1 OR via = $1
                    RETURNING ws, user_id, role, created_at, via, max_role
                )
                INSERT INTO suspended_members (ws, user_id, role, created_at, via, max_role) SELECT * FROM gone
                ON CONFLICT DO NOTHING";
            transaction.query(suspend, &[&user.0]).await?;
            cancelled =
                approvals::cancel(&transaction, "a.user_id = $1", &[&user.0], "the account was disabled").await?;
        }
        self.commit_and_wake(transaction, cancelled).await
    }

    async fn enable_user(&self, user: UserId) -> Result<()> {
        let mut transaction = self.transaction().await?;
        transaction.begin().await?;
        if is_disabled(&transaction, user).await? {
            revoke_tokens(&transaction, user).await?;
            let sql = "UPDATE users SET disabled_at = NULL, updated_at = $2 WHERE id = $1";
            transaction.query(sql, &[&user.0, &now()]).await?;
            let resume = "WITH back AS (
                    DELETE FROM suspended_members WHERE (user_id = $1 OR via = $1) AND NOT is_held
                    RETURNING ws, user_id, role, created_at, via, max_role
                ), room AS (
                    SELECT id FROM workspaces WHERE id IN (SELECT ws FROM suspended_members WHERE user_id = $1)
                    AND deleted_at IS NULL FOR SHARE
                )
                INSERT INTO members (ws, user_id, role, created_at, via, max_role, rules_rev)
                SELECT back.ws, back.user_id, least(person.role, back.max_role), back.created_at, back.via, back.max_role,
                    $2
                FROM back JOIN back person ON person.ws = back.ws AND person.user_id = $1 JOIN room ON room.id = back.ws
                ON CONFLICT DO NOTHING";
            transaction.query(resume, &[&user.0, &new_revision(now())]).await?;
        }
        transaction.commit().await?;
        transaction.finished();
        Ok(())
    }

    async fn end_sessions(&self, user: UserId) -> Result<u64> {
        let transaction = self.transaction().await?;
        transaction.begin().await?;
        let ended = revoke_tokens(&transaction, user).await?;
        let cancelled = suspend_keys(&transaction, user).await?;
        self.commit_and_wake(transaction, cancelled).await?;
        Ok(ended)
    }

    async fn set_password(&self, user: UserId, password_hash: String) -> Result<()> {
        let transaction = self.transaction().await?;
        transaction.begin().await?;
        revoke_tokens(&transaction, user).await?;
        let cancelled = suspend_keys(&transaction, user).await?;
        let sql = "UPDATE users SET password_hash = $2, updated_at = $3 WHERE id = $1";
        transaction.query(sql, &[&user.0, &password_hash, &now()]).await?;
        self.commit_and_wake(transaction, cancelled).await
    }

    async fn revocations(&self, since: Timestamp) -> Result<Vec<Revocation>> {
        let sql = "SELECT id, token_epoch, disabled_at IS NOT NULL FROM users WHERE tokens_revoked_at >= $1";
        let rows = self.fetch(sql, &[&since]).await?;
        let revocation = |row: &tokio_postgres::Row| Revocation {
            user: UserId(row.get(0)),
            token_epoch: row.get(1),
            is_disabled: row.get(2),
        };
        Ok(rows.iter().map(revocation).collect())
    }
}

/// Returns whether an account is disabled. Its row is locked until the transaction ends.
async fn is_disabled(transaction: &Transaction, user: UserId) -> Result<bool> {
    let sql = "SELECT disabled_at IS NOT NULL FROM users WHERE id = $1 FOR UPDATE";
    let rows = transaction.query(sql, &[&user.0]).await?;
    Ok(rows.first().map(|row| row.get(0)).ok_or_else(no_such_account)?)
}

/// Suspends the keys of the account in all workspaces, and cancels their approvals. Its person can make each of them active
/// again. Returns the workspaces of the approvals.
async fn suspend_keys(transaction: &Transaction, user: UserId) -> Result<BTreeSet<Uuid>> {
    keys::suspend(transaction, "via = $1", &[&user.0]).await?;
    let sql = "UPDATE keys SET suspended_at = $2
               WHERE user_id = $1 AND suspended_at IS NULL AND revoked_at IS NULL AND expires_at > $2";
    transaction.query(sql, &[&user.0, &now()]).await?;
    let of_keys = "a.user_id = $1 AND a.principal <> a.user_id";
    approvals::cancel(transaction, of_keys, &[&user.0], "the key was suspended").await
}

/// Ends every session and starts a new token epoch; returns how many sessions there were.
async fn revoke_tokens(transaction: &Transaction, user: UserId) -> Result<u64> {
    let sql = "UPDATE users SET token_epoch = token_epoch + 1, tokens_revoked_at = $2 WHERE id = $1 RETURNING 1";
    if transaction.query(sql, &[&user.0, &now()]).await?.is_empty() {
        return Err(no_such_account().into());
    }
    // A separate statement, which sees the sessions of the transactions that the previous one waited for.
    let sql = "DELETE FROM sessions WHERE user_id = $1 RETURNING spent_at IS NULL AND expires_at > $2";
    let rows = transaction.query(sql, &[&user.0, &now()]).await?;
    Ok(rows.iter().filter(|row| row.get(0)).count() as u64)
}

//! Rules and grants.
//!
//! Every change locks the workspace first. Adding or resuming a member or a key shares that lock, so that no membership is
//! added which keeps its revision during the change.

use super::Postgres;
use super::row::authorised;
use super::transaction::Transaction;
use crate::approvals::{ENDED_FOR, IS_OPEN};
use crate::error::{Result, StoreError};
use crate::files::FileStore;
use crate::rules::{RuleStore, VisibleGrants, check_person, check_revision, grant_json, grant_of};
use crate::store::new_revision;
use async_trait::async_trait;
use tokio_postgres::Row;
use toolrest_core::{Access, Grant, GrantId, MemberRules, Role, WorkspaceId, now};
use uuid::Uuid;

/// Locks the workspace of the caller and checks the caller's rights.
pub(super) async fn lock_workspace(transaction: &Transaction, access: Access) -> Result<Role> {
    let ws = access.workspace.0;
    transaction.query("SELECT 1 FROM workspaces WHERE id = $1 FOR NO KEY UPDATE", &[&ws]).await?;
    let sql = "SELECT rights FROM members WHERE ws = $1 AND user_id = $2";
    authorised(access, &transaction.query(sql, &[&ws, &access.user.0]).await?, 0)
}

/// Gives memberships a new revision, which invalidates what was judged by the earlier one.
async fn raise_revisions(transaction: &Transaction, ws: Uuid, member: Option<Uuid>) -> Result<()> {
    // Locked in the same order as by the statements that change members.
    let lock = "SELECT 1 FROM members WHERE ws = $1 AND ($2::uuid IS NULL OR user_id = $2)
                ORDER BY via IS NOT NULL, user_id FOR NO KEY UPDATE";
    transaction.query(lock, &[&ws, &member]).await?;
    let sql = "UPDATE members SET rules_rev = greatest(rules_rev + 1, $2)
               WHERE ws = $1 AND ($3::uuid IS NULL OR user_id = $3)";
    transaction.query(sql, &[&ws, &new_revision(now()), &member]).await.map(drop)
}

/// Stores a grant in the current transaction, which has locked the workspace.
pub(super) async fn insert_grant(transaction: &Transaction, ws: WorkspaceId, grant: &Grant) -> Result<()> {
    let sql = "INSERT INTO grants (ws, id, principal, expires_at, body) VALUES ($1, $2, $3, $4, $5)";
    let body = grant_json(grant)?;
    transaction.query(sql, &[&ws.0, &grant.id.0, &grant.principal, &grant.grant.expires_at, &body]).await?;
    raise_revisions(transaction, ws.0, Some(grant.principal)).await
}

/// Replaces the rules of the workspace in the current transaction, which has locked the workspace. Returns their revision.
pub(super) async fn replace(
    transaction: &Transaction,
    access: Access,
    if_match: Option<i64>,
    body: &str,
) -> Result<i64> {
    let ws = access.workspace.0;
    let found = transaction.query("SELECT rev FROM rules WHERE ws = $1", &[&ws]).await?;
    let current = found.first().map_or(0, |row| row.get(0));
    check_revision(if_match, current)?;
    let (at, rev) = (now(), new_revision(now()).max(current + 1));
    let sql = "INSERT INTO rules (ws, rev, body, updated_by, updated_at) VALUES ($1, $2, $3, $4, $5)
               ON CONFLICT (ws) DO UPDATE SET rev = excluded.rev, body = excluded.body,
                   updated_by = excluded.updated_by, updated_at = excluded.updated_at";
    transaction.query(sql, &[&ws, &rev, &body, &access.person.0, &at]).await?;
    raise_revisions(transaction, ws, None).await?;
    Ok(rev)
}

/// The live grants that a caller sees. `$1` is the workspace, `$2` the time, `$3` the person or key.
fn visible(which: VisibleGrants) -> (&'static str, Option<Uuid>) {
    match which {
        VisibleGrants::All => {
            ("SELECT body FROM grants WHERE ws = $1 AND expires_at > $2 AND $3::uuid IS NULL ORDER BY id", None)
        }
        VisibleGrants::OfPerson(person) => (
            "SELECT body FROM grants WHERE ws = $1 AND expires_at > $2 AND (
                 principal = $3 OR principal IN (SELECT id FROM keys WHERE ws = $1 AND user_id = $3)) ORDER BY id",
            Some(person.0),
        ),
        VisibleGrants::OfKey(key) => {
            ("SELECT body FROM grants WHERE ws = $1 AND expires_at > $2 AND principal = $3 ORDER BY id", Some(key))
        }
    }
}

fn grants_of(rows: &[Row]) -> Result<Vec<Grant>> {
    rows.iter().map(|row| grant_of(row.get(0))).collect()
}

#[async_trait]
impl RuleStore for Postgres {
    async fn member_rules(&self, access: Access) -> Result<MemberRules> {
        let sql = format!(
            "SELECT m.rights, m.rules_rev, r.body, ARRAY(
                 SELECT g.body FROM grants g WHERE g.ws = m.ws AND g.principal = m.user_id AND g.expires_at > $3
                 ORDER BY g.id),
                 EXISTS (SELECT 1 FROM approvals a WHERE a.ws = m.ws AND a.principal = m.user_id
                     AND (a.{IS_OPEN} OR (a.delivered_at IS NULL AND a.changed_at > $4)))
             FROM members m LEFT JOIN rules r ON r.ws = m.ws WHERE m.ws = $1 AND m.user_id = $2"
        );
        let since = now().checked_sub(ENDED_FOR).map_err(StoreError::internal)?;
        let rows = self.fetch(&sql, &[&access.workspace.0, &access.user.0, &now(), &since]).await?;
        authorised(access, &rows, 0)?;
        let row = rows.first().ok_or(StoreError::NotAMember)?;
        let grants = row.get::<_, Vec<&str>>(3).into_iter().map(grant_of).collect::<Result<_>>()?;
        Ok(MemberRules { revision: row.get(1), rules: row.get(2), grants, has_unanswered: row.get(4) })
    }

    async fn rules(&self, access: Access) -> Result<(i64, Option<String>)> {
        let sql = "SELECT m.rights, coalesce(r.rev, 0), r.body FROM members m LEFT JOIN rules r ON r.ws = m.ws
                   WHERE m.ws = $1 AND m.user_id = $2";
        let rows = self.fetch(sql, &[&access.workspace.0, &access.user.0]).await?;
        authorised(access, &rows, 0)?;
        check_person(access)?;
        rows.first().map(|row| (row.get(1), row.get(2))).ok_or(StoreError::NotAMember)
    }

    async fn set_rules(&self, access: Access, if_match: Option<i64>, body: String) -> Result<i64> {
        // Strangers are refused before anything is locked.
        self.authorise(access).await?;
        check_person(access)?;
        let ws = access.workspace.0;
        let mut transaction = self.transaction().await?;
        transaction.begin().await?;
        lock_workspace(&transaction, access).await?;
        let rev = replace(&transaction, access, if_match, &body).await?;
        transaction.commit().await?;
        transaction.finished();
        self.signals.changed(ws);
        Ok(rev)
    }

    async fn grants(&self, access: Access) -> Result<Vec<Grant>> {
        let ws = access.workspace.0;
        let transaction = self.transaction().await?;
        let rights = "SELECT rights FROM members WHERE ws = $1 AND user_id = $2";
        let rows = transaction.begin_snapshot((rights, &[&ws, &access.user.0])).await?;
        let (sql, id) = visible(VisibleGrants::of(access, authorised(access, &rows, 0)?));
        let found = transaction.query(sql, &[&ws, &now(), &id]).await?;
        transaction.rollback().await?;
        grants_of(&found)
    }

    async fn revoke_grants(&self, access: Access, grant: Option<GrantId>) -> Result<u64> {
        self.authorise(access).await?;
        check_person(access)?;
        let ws = access.workspace.0;
        let mut transaction = self.transaction().await?;
        transaction.begin().await?;
        let role = lock_workspace(&transaction, access).await?;
        let (sql, id) = visible(VisibleGrants::of(access, role));
        let mut revoked = grants_of(&transaction.query(sql, &[&ws, &now(), &id]).await?)?;
        revoked.retain(|found| grant.is_none_or(|grant| grant == found.id));
        if let Some(grant) = grant.filter(|_| revoked.is_empty()) {
            return Err(StoreError::not_found("Grant", grant));
        }
        // Sorted, like all locks on members.
        revoked.sort_by_key(|grant| grant.principal);
        for grant in &revoked {
            transaction.query("DELETE FROM grants WHERE ws = $1 AND id = $2", &[&ws, &grant.id.0]).await?;
            raise_revisions(&transaction, ws, Some(grant.principal)).await?;
        }
        transaction.commit().await?;
        transaction.finished();
        Ok(revoked.len() as u64)
    }
}

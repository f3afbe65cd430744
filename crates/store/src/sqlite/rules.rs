//! Rules and grants.

use super::Sqlite;
use super::row::{authorised, collect, find, micros, run};
use crate::approvals::{ENDED_FOR, IS_OPEN};
use crate::error::{Result, StoreError};
use crate::rules::{RuleStore, VisibleGrants, check_person, check_revision, grant_json, grant_of};
use crate::store::new_revision;
use async_trait::async_trait;
use rusqlite::Connection;
use toolrest_core::{Access, Grant, GrantId, MemberRules, WorkspaceId, now};
use uuid::Uuid;

fn stored_rules(db: &Connection, ws: Uuid) -> Result<Option<(i64, String)>> {
    find(db, "SELECT rev, body FROM rules WHERE ws = ?1", [ws], |row| Ok((row.get(0)?, row.get(1)?)))
}

/// Gives memberships a new revision, which invalidates what was judged by the earlier one.
fn raise_revisions(db: &Connection, ws: Uuid, member: Option<Uuid>) -> Result<()> {
    let sql = "UPDATE members SET rules_rev = max(rules_rev + 1, ?2) WHERE ws = ?1 AND (?3 IS NULL OR user_id = ?3)";
    run(db, sql, (ws, new_revision(now()), member)).map(drop)
}

/// Stores a grant in the current transaction.
pub(super) fn insert_grant(db: &Connection, ws: WorkspaceId, grant: &Grant) -> Result<()> {
    run(
        db,
        "INSERT INTO grants (ws, id, principal, expires_at, body) VALUES (?1, ?2, ?3, ?4, ?5)",
        (ws.0, grant.id.0, grant.principal, micros(grant.grant.expires_at), grant_json(grant)?),
    )?;
    raise_revisions(db, ws.0, Some(grant.principal))
}

/// Replaces the rules of the workspace in the current transaction. Returns their revision.
pub(super) fn replace(db: &Connection, access: Access, if_match: Option<i64>, body: &str) -> Result<i64> {
    authorised(db, access)?;
    check_person(access)?;
    let ws = access.workspace.0;
    let current = stored_rules(db, ws)?.map_or(0, |(rev, _)| rev);
    check_revision(if_match, current)?;
    let (at, rev) = (now(), new_revision(now()).max(current + 1));
    run(
        db,
        "INSERT INTO rules (ws, rev, body, updated_by, updated_at) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (ws) DO UPDATE SET rev = excluded.rev, body = excluded.body, updated_by = excluded.updated_by,
             updated_at = excluded.updated_at",
        (ws, rev, body, access.person.0, micros(at)),
    )?;
    raise_revisions(db, ws, None)?;
    Ok(rev)
}

/// Lists the live grants that a caller sees.
fn visible(db: &Connection, ws: Uuid, which: VisibleGrants) -> Result<Vec<Grant>> {
    let (condition, id) = match which {
        VisibleGrants::All => ("?3 IS NULL", None),
        VisibleGrants::OfPerson(person) => {
            ("(principal = ?3 OR principal IN (SELECT id FROM keys WHERE ws = ?1 AND user_id = ?3))", Some(person.0))
        }
        VisibleGrants::OfKey(key) => ("principal = ?3", Some(key)),
    };
    let sql = format!("SELECT body FROM grants WHERE ws = ?1 AND expires_at > ?2 AND {condition} ORDER BY id");
    let bodies: Vec<String> = collect(db, &sql, (ws, micros(now()), id), |row| row.get(0))?;
    bodies.iter().map(|body| grant_of(body)).collect()
}

#[async_trait]
impl RuleStore for Sqlite {
    async fn member_rules(&self, access: Access) -> Result<MemberRules> {
        self.read_inline(move |db| {
            authorised(db, access)?;
            let (ws, member) = (access.workspace.0, access.user.0);
            let sql = "SELECT rules_rev FROM members WHERE ws = ?1 AND user_id = ?2";
            let revision = find(db, sql, (ws, member), |row| row.get(0))?.ok_or(StoreError::NotAMember)?;
            let rules = stored_rules(db, ws)?.map(|(_, body)| body);
            let unanswered = format!(
                "SELECT 1 FROM approvals WHERE ws = ?1 AND principal = ?2
                     AND ({IS_OPEN} OR (delivered_at IS NULL AND changed_at > ?3)) LIMIT 1"
            );
            let since = micros(now()) - i64::try_from(ENDED_FOR.as_micros()).unwrap_or(i64::MAX);
            let has_unanswered = find(db, &unanswered, (ws, member, since), |_| Ok(()))?.is_some();
            let grants = visible(db, ws, VisibleGrants::OfKey(member))?;
            Ok(MemberRules { revision, rules, grants, has_unanswered })
        })
        .await
    }

    async fn rules(&self, access: Access) -> Result<(i64, Option<String>)> {
        self.read(move |db| {
            authorised(db, access)?;
            check_person(access)?;
            Ok(stored_rules(db, access.workspace.0)?.map_or((0, None), |(rev, body)| (rev, Some(body))))
        })
        .await
    }

    async fn set_rules(&self, access: Access, if_match: Option<i64>, body: String) -> Result<i64> {
        let (wakeups, ws) = (self.wakeups.clone(), access.workspace.0);
        let wake = move |changed: &Result<i64>| {
            if changed.is_ok() {
                wakeups.wake(ws);
            }
        };
        self.write_then(move |db| replace(db, access, if_match, &body), wake).await
    }

    async fn grants(&self, access: Access) -> Result<Vec<Grant>> {
        self.read(move |db| {
            let role = authorised(db, access)?;
            visible(db, access.workspace.0, VisibleGrants::of(access, role))
        })
        .await
    }

    async fn revoke_grants(&self, access: Access, grant: Option<GrantId>) -> Result<u64> {
        self.write(move |db| {
            let role = authorised(db, access)?;
            check_person(access)?;
            let ws = access.workspace.0;
            let mut revoked = 0;
            for found in visible(db, ws, VisibleGrants::of(access, role))? {
                if grant.is_none_or(|grant| grant == found.id) {
                    run(db, "DELETE FROM grants WHERE ws = ?1 AND id = ?2", (ws, found.id.0))?;
                    raise_revisions(db, ws, Some(found.principal))?;
                    revoked += 1;
                }
            }
            match grant {
                Some(grant) if revoked == 0 => Err(StoreError::not_found("Grant", grant)),
                _ => Ok(revoked),
            }
        })
        .await
    }
}

//! Workspaces and their members.

use super::row::{authorised, role};
use super::transaction::Transaction;
use super::{Postgres, approvals};
use crate::accounts::no_such_account;
use crate::error::{Result, StoreError};
use crate::store::{
    Location, Member, WorkspaceChange, WorkspaceInfo, WorkspaceStore, already_member, check_role, last_owner,
    new_revision, no_such_member, no_such_user, role_of, settings_of,
};
use async_trait::async_trait;
use tokio_postgres::{Row, types::ToSql};
use toolrest_core::{Access, FileId, FileType, Role, UserId, WorkspaceId, WorkspaceSettings, now};

fn info(row: &Row) -> WorkspaceInfo {
    WorkspaceInfo {
        id: WorkspaceId(row.get(0)),
        name: row.get(1),
        owner_id: UserId(row.get(2)),
        role: role_of(row.get(3)).unwrap_or(Role::Viewer),
        location: Location::from_row(row.get(6), row.get(7)),
        settings: settings_of(row.get(8)),
        created_at: row.get(4),
        updated_at: row.get(5),
    }
}

fn member(row: &Row, at: usize) -> Member {
    Member {
        user_id: UserId(row.get(at)),
        email: row.get(at + 1),
        full_name: row.get(at + 2),
        role: role(row.get(at + 3)).unwrap_or(Role::Viewer),
        created_at: row.get(at + 4),
    }
}

/// Locks the members of a workspace, so that concurrent statements cannot remove the last two owners. The statement after
/// it also sees the keys that the members created before.
const LOCK: &str = "SELECT 1 FROM members WHERE ws = $1 AND via IS NULL ORDER BY user_id FOR UPDATE";

/// The role of the caller, and the member that is to be changed. A key is neither.
const TARGET: &str = "WITH members_now AS (
        SELECT m.user_id, m.role FROM members m WHERE m.ws = $1 AND m.via IS NULL
    ), me AS (
        SELECT role FROM members_now WHERE user_id = $2
    ), target AS (
        SELECT user_id, role, role = 3 AND NOT EXISTS (
            SELECT 1 FROM members_now o WHERE o.role = 3 AND o.user_id <> $4
        ) AS is_last_owner FROM members_now WHERE user_id = $4 AND (SELECT role FROM me) >= $3
    )";

#[async_trait]
impl WorkspaceStore for Postgres {
    async fn create_workspace(&self, owner: UserId, name: String, location: Location) -> Result<WorkspaceInfo> {
        let (id, at) = (WorkspaceId::new(), now());
        let sql = "WITH account AS (
                SELECT id FROM users WHERE id = $3 AND disabled_at IS NULL FOR SHARE
            ), room AS (
                INSERT INTO workspaces (id, name, owner_id, created_at, updated_at, kind, root)
                SELECT $1, $2, id, $4, $4, $8, $9 FROM account
            ), owner AS (
                INSERT INTO members (ws, user_id, role, created_at) SELECT $1, id, $5, $4 FROM account
            )
            INSERT INTO files (ws, id, path, dir, name, kind, created_at, updated_at)
            SELECT $1, $6, '/', '', '', $7, $4, $4 FROM account RETURNING 1";
        let root = FileId::new().0;
        let (kind, folder) = (location.code(), location.root());
        let params: [&(dyn ToSql + Sync); 9] =
            [&id.0, &name, &owner.0, &at, &Role::Owner.code(), &root, &FileType::Folder.code(), &kind, &folder];
        let mut transaction = self.transaction().await?;
        transaction.begin().await?;
        // The account's row is locked, so that workspaces created concurrently are counted.
        transaction.query("SELECT 1 FROM users WHERE id = $1 FOR NO KEY UPDATE", &[&owner.0]).await?;
        let count = "SELECT count(*) FROM workspaces WHERE owner_id = $1 AND deleted_at IS NULL";
        let existing = transaction.query(count, &[&owner.0]).await?.first().map_or(0, |row| row.get(0));
        let made = match self.usage.check_workspaces(existing) {
            Ok(()) => transaction.query(sql, &params).await?,
            Err(error) => {
                transaction.rollback().await?;
                return Err(error);
            }
        };
        if made.is_empty() {
            transaction.rollback().await?;
            return Err(no_such_account().into());
        }
        transaction.commit().await?;
        transaction.finished();
        let (role, settings) = (Role::Owner, Some(WorkspaceSettings::default()));
        Ok(WorkspaceInfo { id, name, owner_id: owner, role, location, settings, created_at: at, updated_at: at })
    }

    async fn location(&self, workspace: WorkspaceId) -> Result<Option<(Location, String)>> {
        let sql =
            "SELECT w.kind, w.root, coalesce(u.email, '') FROM workspaces w LEFT JOIN users u ON u.id = w.owner_id
                   WHERE w.id = $1";
        let rows = self.fetch(sql, &[&workspace.0]).await?;
        Ok(rows.first().map(|row| (Location::from_row(row.get(0), row.get(1)), row.get(2))))
    }

    async fn workspaces_of(&self, member: UserId) -> Result<Vec<WorkspaceInfo>> {
        let sql = "SELECT w.id, w.name, w.owner_id, m.rights, w.created_at, w.updated_at, w.kind, w.root, w.settings
                   FROM members m JOIN workspaces w ON w.id = m.ws WHERE m.user_id = $1 ORDER BY w.id";
        Ok(self.fetch(sql, &[&member.0]).await?.iter().map(info).collect())
    }

    async fn workspace(&self, access: Access) -> Result<WorkspaceInfo> {
        let sql = "SELECT w.id, w.name, w.owner_id, m.rights, w.created_at, w.updated_at, w.kind, w.root, w.settings
                   FROM members m JOIN workspaces w ON w.id = m.ws WHERE m.ws = $1 AND m.user_id = $2";
        let rows = self.fetch(sql, &[&access.workspace.0, &access.user.0]).await?;
        authorised(access, &rows, 3)?;
        rows.first().map(info).ok_or_else(|| StoreError::internal("a workspace vanished"))
    }

    async fn change_workspace(&self, access: Access, change: WorkspaceChange) -> Result<WorkspaceInfo> {
        let settings = change.settings_json()?;
        // Unreadable settings are replaced.
        let is_readable = settings.is_none() || self.workspace(access).await?.settings.is_some();
        let sql = "WITH me AS (SELECT role, rights FROM members WHERE ws = $1 AND user_id = $2), changed AS (
                UPDATE workspaces w SET name = coalesce($4, name), updated_at = $6, settings = CASE
                    WHEN $5::text::jsonb -> 'run' IS NULL THEN CASE WHEN $7 THEN settings ELSE '{}' END
                    WHEN jsonb_typeof($5::text::jsonb -> 'run') = 'null' THEN '{}'
                    ELSE jsonb_build_object('run', jsonb_strip_nulls(
                        coalesce((CASE WHEN $7 THEN settings ELSE '{}' END)::jsonb -> 'run', '{}')
                            || ($5::text::jsonb -> 'run')))::text
                END
                FROM me WHERE w.id = $1 AND me.role >= $3
                RETURNING w.id, w.name, w.owner_id, w.created_at, w.updated_at, w.kind, w.root, w.settings
            )
            SELECT c.id, c.name, c.owner_id, me.rights, c.created_at, c.updated_at, c.kind, c.root, c.settings
            FROM me LEFT JOIN changed c ON true";
        let params: [&(dyn ToSql + Sync); 7] =
            [&access.workspace.0, &access.user.0, &access.need.code(), &change.name, &settings, &now(), &is_readable];
        let rows = self.execute(sql, &params).await?;
        authorised(access, &rows, 3)?;
        rows.first().map(info).ok_or_else(|| StoreError::internal("a workspace vanished"))
    }

    async fn delete_workspace(&self, access: Access) -> Result<()> {
        let close = "WITH me AS (SELECT role, rights FROM members WHERE ws = $1 AND user_id = $2), closed AS (
                UPDATE workspaces w SET deleted_at = $4 FROM me WHERE w.id = $1 AND me.role >= $3 RETURNING w.id
            )
            SELECT rights FROM me";
        let transaction = self.transaction().await?;
        transaction.begin().await?;
        let params: [&(dyn ToSql + Sync); 4] = [&access.workspace.0, &access.user.0, &access.need.code(), &now()];
        let rows = transaction.query(close, &params).await?;
        if let Err(error) = authorised(access, &rows, 0) {
            transaction.rollback().await?;
            return Err(error);
        }
        // A separate statement, which also sees the members added by transactions that the previous one waited for.
        let ws = access.workspace.0;
        transaction.query("DELETE FROM members WHERE ws = $1", &[&ws]).await?;
        let cancelled = approvals::cancel(&transaction, "a.ws = $1", &[&ws], "the workspace was deleted").await?;
        self.commit_and_wake(transaction, cancelled).await
    }

    async fn members(&self, access: Access) -> Result<Vec<Member>> {
        let sql = "SELECT me.rights, m.user_id, u.email, u.full_name, m.role, m.created_at
                   FROM members me JOIN members m ON m.ws = me.ws AND m.via IS NULL JOIN users u ON u.id = m.user_id
                   WHERE me.ws = $1 AND me.user_id = $2 ORDER BY m.created_at, m.user_id";
        let rows = self.fetch(sql, &[&access.workspace.0, &access.user.0]).await?;
        authorised(access, &rows, 0)?;
        Ok(rows.iter().map(|row| member(row, 1)).collect())
    }

    async fn add_member(&self, access: Access, email: String, role: Role) -> Result<Member> {
        let sql = "WITH me AS (SELECT role, rights FROM members WHERE ws = $1 AND user_id = $2), account AS (
                SELECT id, email, full_name FROM users WHERE email = $4 AND disabled_at IS NULL FOR SHARE
            ), room AS (
                SELECT id FROM workspaces WHERE id = $1 AND deleted_at IS NULL FOR SHARE
            ), added AS (
                INSERT INTO members (ws, user_id, role, created_at, rules_rev)
                SELECT room.id, account.id, $5, $6, $7 FROM room, account, me WHERE me.role >= $3
                ON CONFLICT DO NOTHING RETURNING user_id, role, created_at
            )
            SELECT me.rights, account.id IS NOT NULL, added.user_id, account.email, account.full_name, added.role,
                   added.created_at
            FROM me LEFT JOIN account ON true LEFT JOIN added ON true";
        let at = now();
        let params: [&(dyn ToSql + Sync); 7] =
            [&access.workspace.0, &access.user.0, &access.need.code(), &email, &role.code(), &at, &new_revision(at)];
        let rows = self.execute(sql, &params).await?;
        authorised(access, &rows, 0)?;
        let row = rows.first().filter(|row| row.get(1)).ok_or_else(|| no_such_user(&email))?;
        if row.get::<_, Option<uuid::Uuid>>(2).is_none() {
            return Err(already_member(&email));
        }
        Ok(member(row, 2))
    }

    async fn set_role(&self, access: Access, user: UserId, role: Role) -> Result<Member> {
        let sql = format!(
            "{TARGET}, changed AS (
                UPDATE members m SET role = CASE WHEN m.via IS NULL THEN $5 ELSE least(m.max_role, $5) END FROM target t
                WHERE m.ws = $1 AND (m.user_id = t.user_id OR m.via = t.user_id)
                    AND NOT (t.is_last_owner AND $5::smallint < 3)
                RETURNING m.user_id, m.role, m.created_at
            )
            SELECT (SELECT role FROM me), t.is_last_owner, c.user_id, u.email, u.full_name, c.role, c.created_at
            FROM target t LEFT JOIN changed c ON c.user_id = t.user_id LEFT JOIN users u ON u.id = t.user_id
            UNION ALL SELECT (SELECT role FROM me), NULL, NULL, NULL, NULL, NULL, NULL
            WHERE NOT EXISTS (SELECT 1 FROM target)"
        );
        let params: [&(dyn ToSql + Sync); 5] =
            [&access.workspace.0, &access.user.0, &access.need.code(), &user.0, &role.code()];
        let (transaction, rows) = self.with_locked_members(access, &sql, &params).await?;
        self.commit_and_wake(transaction, []).await?;
        let row = target_row(access, &rows, user)?;
        if row.get::<_, Option<uuid::Uuid>>(2).is_none() {
            return Err(last_owner());
        }
        Ok(member(row, 2))
    }

    async fn remove_member(&self, access: Access, user: UserId) -> Result<()> {
        let sql = format!(
            "{TARGET}, removed AS (
                DELETE FROM members m USING target t
                WHERE m.ws = $1 AND (m.user_id = t.user_id OR m.via = t.user_id) AND NOT t.is_last_owner
            ), suspended AS (
                DELETE FROM suspended_members s USING target t
                WHERE s.ws = $1 AND s.via = t.user_id AND NOT t.is_last_owner
            ), revoked AS (
                UPDATE keys k SET revoked_at = $5 FROM target t
                WHERE k.ws = $1 AND k.user_id = t.user_id AND k.revoked_at IS NULL AND NOT t.is_last_owner
            )
            SELECT (SELECT role FROM me), t.is_last_owner FROM target t
            UNION ALL SELECT (SELECT role FROM me), NULL WHERE NOT EXISTS (SELECT 1 FROM target)"
        );
        let params: [&(dyn ToSql + Sync); 5] =
            [&access.workspace.0, &access.user.0, &access.need.code(), &user.0, &now()];
        let (transaction, rows) = self.with_locked_members(access, &sql, &params).await?;
        if target_row(access, &rows, user)?.get(1) {
            return Err(last_owner());
        }
        let (condition, ws) = ("a.ws = $1 AND a.user_id = $2", access.workspace.0);
        let cancelled = approvals::cancel(&transaction, condition, &[&ws, &user.0], "the member was removed").await?;
        self.commit_and_wake(transaction, cancelled).await
    }
}

impl Postgres {
    /// Runs a statement about a member while the members of the workspace are locked. Returns also the open transaction.
    async fn with_locked_members(
        &self,
        access: Access,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<(Transaction, Vec<Row>)> {
        let transaction = self.transaction().await?;
        transaction.begin().await?;
        // The workspace is locked before its members, like by changes of rules and grants.
        transaction.query("SELECT 1 FROM workspaces WHERE id = $1 FOR SHARE", &[&access.workspace.0]).await?;
        transaction.query(LOCK, &[&access.workspace.0]).await?;
        let rows = transaction.query(sql, params).await?;
        Ok((transaction, rows))
    }
}

/// Returns the row about a member, after checking the caller's role and that the member exists.
fn target_row(access: Access, rows: &[Row], user: UserId) -> Result<&Row> {
    let first = rows.first();
    check_role(access, role(first.and_then(|row| row.get(0))))?;
    first.filter(|row| row.get::<_, Option<bool>>(1).is_some()).ok_or_else(|| no_such_member(user))
}

//! Workspaces and their members.

use super::row::{authorised, collect, find, micros, role_of, run, time};
use super::{Sqlite, approvals};
use crate::accounts::no_such_account;
use crate::error::{Result, StoreError};
use crate::store::{
    Location, Member, WorkspaceChange, WorkspaceInfo, WorkspaceStore, already_member, last_owner, new_revision,
    no_such_member, no_such_user, settings_of,
};
use async_trait::async_trait;
use rusqlite::{Connection, Row};
use std::sync::Arc;
use toolrest_core::{Access, FileId, FileType, Role, UserId, WorkspaceId, WorkspaceSettings, now};
use uuid::Uuid;

const INFO: &str = "SELECT w.id, w.name, w.owner_id, m.role, w.created_at, w.updated_at, w.kind, w.root, w.settings
    FROM members m JOIN workspaces w ON w.id = m.ws";
const MEMBER: &str = "SELECT m.user_id, u.email, u.full_name, m.role, m.created_at
    FROM members m JOIN users u ON u.id = m.user_id AND m.via IS NULL";

fn info(row: &Row<'_>) -> rusqlite::Result<WorkspaceInfo> {
    Ok(WorkspaceInfo {
        id: WorkspaceId(row.get(0)?),
        name: row.get(1)?,
        owner_id: UserId(row.get(2)?),
        role: Role::from_code(row.get(3)?).unwrap_or(Role::Viewer),
        location: Location::from_row(row.get(6)?, row.get(7)?),
        settings: settings_of(row.get_ref(8)?.as_str()?),
        created_at: time(row, 4)?,
        updated_at: time(row, 5)?,
    })
}

fn member(row: &Row<'_>) -> rusqlite::Result<Member> {
    Ok(Member {
        user_id: UserId(row.get(0)?),
        email: row.get(1)?,
        full_name: row.get(2)?,
        role: Role::from_code(row.get(3)?).unwrap_or(Role::Viewer),
        created_at: time(row, 4)?,
    })
}

fn info_of(db: &Connection, access: Access) -> Result<WorkspaceInfo> {
    authorised(db, access)?;
    let sql = format!("{INFO} WHERE m.ws = ?1 AND m.user_id = ?2");
    find(db, &sql, (access.workspace.0, access.user.0), info)?
        .ok_or_else(|| StoreError::internal("a workspace vanished"))
}

fn member_of(db: &Connection, ws: WorkspaceId, user: UserId) -> Result<Member> {
    let sql = format!("{MEMBER} WHERE m.ws = ?1 AND m.user_id = ?2");
    find(db, &sql, (ws.0, user.0), member)?.ok_or_else(|| no_such_member(user))
}

/// Whether the workspace would have no owner without this member.
fn is_last_owner(db: &Connection, ws: Uuid, user: Uuid) -> Result<bool> {
    let sql = "SELECT count(*) FROM members WHERE ws = ?1 AND user_id <> ?2 AND role = ?3";
    let others: i64 = find(db, sql, (ws, user, Role::Owner.code()), |row| row.get(0))?.unwrap_or(0);
    Ok(others == 0 && role_of(db, ws, user)? == Some(Role::Owner))
}

#[async_trait]
impl WorkspaceStore for Sqlite {
    async fn create_workspace(&self, owner: UserId, name: String, location: Location) -> Result<WorkspaceInfo> {
        let usage = Arc::clone(&self.usage);
        self.write(move |db| {
            let (id, at) = (WorkspaceId::new(), now());
            let enabled = "SELECT 1 FROM users WHERE id = ?1 AND disabled_at IS NULL";
            find(db, enabled, [owner.0], |_| Ok(()))?.ok_or_else(no_such_account)?;
            let count = "SELECT count(*) FROM workspaces WHERE owner_id = ?1 AND deleted_at IS NULL";
            usage.check_workspaces(find(db, count, [owner.0], |row| row.get(0))?.unwrap_or(0))?;
            run(
                db,
                "INSERT INTO workspaces (id, name, owner_id, created_at, updated_at, kind, root)
                 VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6)",
                (id.0, &name, owner.0, micros(at), location.code(), location.root()),
            )?;
            run(
                db,
                "INSERT INTO members (ws, user_id, role, created_at) VALUES (?1, ?2, ?3, ?4)",
                (id.0, owner.0, Role::Owner.code(), micros(at)),
            )?;
            run(
                db,
                "INSERT INTO files (ws, id, path, dir, name, kind, created_at, updated_at)
                 VALUES (?1, ?2, '/', '', '', ?3, ?4, ?4)",
                (id.0, FileId::new().0, FileType::Folder.code(), micros(at)),
            )?;
            let (role, settings) = (Role::Owner, Some(WorkspaceSettings::default()));
            Ok(WorkspaceInfo { id, name, owner_id: owner, role, location, settings, created_at: at, updated_at: at })
        })
        .await
    }

    async fn location(&self, workspace: WorkspaceId) -> Result<Option<(Location, String)>> {
        let sql =
            "SELECT w.kind, w.root, coalesce(u.email, '') FROM workspaces w LEFT JOIN users u ON u.id = w.owner_id
                   WHERE w.id = ?1";
        let placed = |row: &Row<'_>| Ok((Location::from_row(row.get(0)?, row.get(1)?), row.get(2)?));
        self.read_inline(move |db| find(db, sql, [workspace.0], placed)).await
    }

    async fn workspaces_of(&self, member: UserId) -> Result<Vec<WorkspaceInfo>> {
        self.read(move |db| collect(db, &format!("{INFO} WHERE m.user_id = ?1 ORDER BY w.id"), [member.0], info)).await
    }

    async fn workspace(&self, access: Access) -> Result<WorkspaceInfo> {
        self.read_inline(move |db| info_of(db, access)).await
    }

    async fn change_workspace(&self, access: Access, change: WorkspaceChange) -> Result<WorkspaceInfo> {
        let settings = change.settings_json()?;
        self.write(move |db| {
            authorised(db, access)?;
            // Settings that cannot be parsed are replaced instead of patched.
            let is_readable = info_of(db, access)?.settings.is_some();
            let sql = "UPDATE workspaces SET name = coalesce(?2, name), updated_at = ?4, settings = CASE
                           WHEN ?3 IS NULL THEN settings
                           ELSE json_patch(CASE WHEN ?5 THEN settings ELSE '{}' END, ?3)
                       END WHERE id = ?1";
            run(db, sql, (access.workspace.0, change.name, settings, micros(now()), is_readable))?;
            info_of(db, access)
        })
        .await
    }

    async fn delete_workspace(&self, access: Access) -> Result<()> {
        self.write_and_wake(move |db| {
            authorised(db, access)?;
            let sql = "UPDATE workspaces SET deleted_at = ?2 WHERE id = ?1";
            run(db, sql, (access.workspace.0, micros(now())))?;
            run(db, "DELETE FROM members WHERE ws = ?1", [access.workspace.0])?;
            approvals::cancel(db, "ws = ?1", [access.workspace.0], "the workspace was deleted")
        })
        .await
    }

    async fn members(&self, access: Access) -> Result<Vec<Member>> {
        self.read(move |db| {
            authorised(db, access)?;
            let sql = format!("{MEMBER} WHERE m.ws = ?1 ORDER BY m.created_at, m.user_id");
            collect(db, &sql, [access.workspace.0], member)
        })
        .await
    }

    async fn add_member(&self, access: Access, email: String, role: Role) -> Result<Member> {
        self.write(move |db| {
            authorised(db, access)?;
            let enabled = "SELECT id FROM users WHERE email = ?1 AND disabled_at IS NULL";
            let user: Option<Uuid> = find(db, enabled, [&email], |row| row.get(0))?;
            let user = user.ok_or_else(|| no_such_user(&email))?;
            let sql = "INSERT INTO members (ws, user_id, role, created_at, rules_rev) VALUES (?1, ?2, ?3, ?4, ?5)
                       ON CONFLICT DO NOTHING";
            let at = now();
            if run(db, sql, (access.workspace.0, user, role.code(), micros(at), new_revision(at)))? == 0 {
                return Err(already_member(&email));
            }
            member_of(db, access.workspace, UserId(user))
        })
        .await
    }

    async fn set_role(&self, access: Access, user: UserId, role: Role) -> Result<Member> {
        self.write(move |db| {
            authorised(db, access)?;
            let ws = access.workspace.0;
            if role != Role::Owner && is_last_owner(db, ws, user.0)? {
                return Err(last_owner());
            }
            let sql = "UPDATE members SET role = CASE WHEN via IS NULL THEN ?3 ELSE min(max_role, ?3) END
                       WHERE ws = ?1 AND ((user_id = ?2 AND via IS NULL) OR via = ?2)";
            run(db, sql, (ws, user.0, role.code()))?;
            member_of(db, access.workspace, user)
        })
        .await
    }

    async fn remove_member(&self, access: Access, user: UserId) -> Result<()> {
        self.write_and_wake(move |db| {
            authorised(db, access)?;
            let ws = access.workspace.0;
            if is_last_owner(db, ws, user.0)? {
                return Err(last_owner());
            }
            if run(db, "DELETE FROM members WHERE ws = ?1 AND user_id = ?2 AND via IS NULL", (ws, user.0))? == 0 {
                return Err(no_such_member(user));
            }
            for table in ["members", "suspended_members"] {
                run(db, &format!("DELETE FROM {table} WHERE ws = ?1 AND via = ?2"), (ws, user.0))?;
            }
            let sql = "UPDATE keys SET revoked_at = ?3 WHERE ws = ?1 AND user_id = ?2 AND revoked_at IS NULL";
            run(db, sql, (ws, user.0, micros(now())))?;
            approvals::cancel(db, "ws = ?1 AND user_id = ?2", (ws, user.0), "the member was removed")
        })
        .await
    }
}

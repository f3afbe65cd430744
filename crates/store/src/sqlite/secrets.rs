//! Encrypted secrets.

use super::Sqlite;
use super::row::{authorised, collect, find, micros, run, time};
use crate::error::Result;
use crate::secrets::{MAX_SECRETS, SealedSecret, SecretInfo, SecretStore, check_person, no_secret, too_many_secrets};
use async_trait::async_trait;
use rusqlite::{Connection, Row};
use toolrest_core::{Access, UserId, WorkspaceId, now};

fn info(row: &Row<'_>) -> rusqlite::Result<SecretInfo> {
    Ok(SecretInfo {
        name: row.get(0)?,
        created_at: time(row, 1)?,
        updated_at: time(row, 2)?,
        updated_by: UserId(row.get(3)?),
    })
}

#[async_trait]
impl SecretStore for Sqlite {
    async fn set_secret(&self, access: Access, secret: SealedSecret) -> Result<SecretInfo> {
        self.write(move |db| {
            authorised(db, access)?;
            check_person(access)?;
            let ws = access.workspace.0;
            let others = "SELECT count(*) FROM workspace_secrets WHERE ws = ?1 AND name <> ?2";
            if find(db, others, (ws, &secret.name), |row| row.get(0))?.unwrap_or(0) >= MAX_SECRETS {
                return Err(too_many_secrets());
            }
            let sql = "INSERT INTO workspace_secrets (ws, name, sealing_key, sealed, created_at, updated_at, updated_by)
                       VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6)
                       ON CONFLICT (ws, name) DO UPDATE SET sealing_key = excluded.sealing_key, sealed = excluded.sealed,
                           updated_at = excluded.updated_at, updated_by = excluded.updated_by
                       RETURNING name, created_at, updated_at, updated_by";
            let SealedSecret { name, sealing_key, sealed } = &secret;
            let set = find(db, sql, (ws, name, sealing_key, sealed, micros(now()), access.person.0), info)?;
            set.ok_or_else(|| crate::StoreError::internal("an upsert returned no row"))
        })
        .await
    }

    async fn list_secrets(&self, access: Access) -> Result<Vec<SecretInfo>> {
        self.read(move |db| {
            authorised(db, access)?;
            check_person(access)?;
            let sql =
                "SELECT name, created_at, updated_at, updated_by FROM workspace_secrets WHERE ws = ?1 ORDER BY name";
            collect(db, sql, [access.workspace.0], info)
        })
        .await
    }

    async fn delete_secret(&self, access: Access, name: String) -> Result<()> {
        self.write(move |db| {
            authorised(db, access)?;
            check_person(access)?;
            let sql = "DELETE FROM workspace_secrets WHERE ws = ?1 AND name = ?2";
            if run(db, sql, (access.workspace.0, &name))? == 0 { Err(no_secret(&name)) } else { Ok(()) }
        })
        .await
    }

    async fn sealed_secrets(&self, access: Access, names: Vec<String>) -> Result<Vec<SealedSecret>> {
        let read = move |db: &Connection| {
            authorised(db, access)?;
            let sql = "SELECT sealing_key, sealed FROM workspace_secrets WHERE ws = ?1 AND name = ?2";
            let mut found = Vec::new();
            for name in &names {
                found.extend(find(db, sql, (access.workspace.0, name), |row| {
                    Ok(SealedSecret { name: name.clone(), sealing_key: row.get(0)?, sealed: row.get(1)? })
                })?);
            }
            Ok(found)
        };
        self.read_inline(read).await
    }

    async fn secrets_to_reseal(&self, sealing_key: Vec<u8>, limit: u32) -> Result<Vec<(WorkspaceId, SealedSecret)>> {
        self.read(move |db| {
            let sql = "SELECT ws, name, sealing_key, sealed FROM workspace_secrets WHERE sealing_key <> ?1 LIMIT ?2";
            collect(db, sql, (&sealing_key, limit), |row| {
                let sealed = SealedSecret { name: row.get(1)?, sealing_key: row.get(2)?, sealed: row.get(3)? };
                Ok((WorkspaceId(row.get(0)?), sealed))
            })
        })
        .await
    }

    async fn reseal_secret(&self, workspace: WorkspaceId, old: SealedSecret, new: SealedSecret) -> Result<()> {
        self.write(move |db| {
            let sql = "UPDATE workspace_secrets SET sealing_key = ?3, sealed = ?4 WHERE ws = ?1 AND name = ?2 AND sealed = ?5";
            run(db, sql, (workspace.0, &old.name, &new.sealing_key, &new.sealed, &old.sealed)).map(drop)
        })
        .await
    }
}

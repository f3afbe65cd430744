//! Encrypted secrets.

use super::Postgres;
use super::row::authorised;
use crate::error::{Result, StoreError};
use crate::files::FileStore;
use crate::secrets::{MAX_SECRETS, SealedSecret, SecretInfo, SecretStore, check_person, no_secret, too_many_secrets};
use async_trait::async_trait;
use tokio_postgres::{Row, types::ToSql};
use toolrest_core::{Access, UserId, WorkspaceId, now};

/// Reads the columns from `at` on.
fn info(row: &Row, at: usize) -> SecretInfo {
    SecretInfo {
        name: row.get(at),
        created_at: row.get(at + 1),
        updated_at: row.get(at + 2),
        updated_by: UserId(row.get(at + 3)),
    }
}

#[async_trait]
impl SecretStore for Postgres {
    async fn set_secret(&self, access: Access, secret: SealedSecret) -> Result<SecretInfo> {
        // Strangers are refused before anything is locked.
        self.authorise(access).await?;
        check_person(access)?;
        let (ws, now) = (access.workspace.0, now());
        let SealedSecret { name, sealing_key, sealed } = &secret;
        let mut transaction = self.transaction().await?;
        transaction.begin().await?;
        // The workspace is locked, so that the secrets are counted one change after the other.
        super::rules::lock_workspace(&transaction, access).await?;
        let others = "SELECT count(*) FROM workspace_secrets WHERE ws = $1 AND name <> $2";
        let others = transaction.query(others, &[&ws, name]).await?;
        if others.first().map_or(0, |row| row.get::<_, i64>(0)) >= MAX_SECRETS {
            return Err(too_many_secrets());
        }
        let sql = "INSERT INTO workspace_secrets (ws, name, sealing_key, sealed, created_at, updated_at, updated_by)
                   VALUES ($1, $2, $3, $4, $5, $5, $6)
                   ON CONFLICT (ws, name) DO UPDATE SET sealing_key = excluded.sealing_key, sealed = excluded.sealed,
                       updated_at = excluded.updated_at, updated_by = excluded.updated_by
                   RETURNING name, created_at, updated_at, updated_by";
        let params: [&(dyn ToSql + Sync); 6] = [&ws, name, sealing_key, sealed, &now, &access.person.0];
        let rows = transaction.query(sql, &params).await?;
        let set = rows.first().map(|row| info(row, 0));
        let set = set.ok_or_else(|| StoreError::internal("an upsert returned no row"))?;
        transaction.commit().await?;
        transaction.finished();
        Ok(set)
    }

    async fn list_secrets(&self, access: Access) -> Result<Vec<SecretInfo>> {
        let sql = "SELECT m.rights, s.name, s.created_at, s.updated_at, s.updated_by FROM members m
                   LEFT JOIN workspace_secrets s ON s.ws = m.ws WHERE m.ws = $1 AND m.user_id = $2 ORDER BY s.name";
        let rows = self.fetch(sql, &[&access.workspace.0, &access.user.0]).await?;
        authorised(access, &rows, 0)?;
        check_person(access)?;
        Ok(rows.iter().filter(|row| row.get::<_, Option<&str>>(1).is_some()).map(|row| info(row, 1)).collect())
    }

    async fn delete_secret(&self, access: Access, name: String) -> Result<()> {
        self.authorise(access).await?;
        check_person(access)?;
        let ws = access.workspace.0;
        let mut transaction = self.transaction().await?;
        transaction.begin().await?;
        super::rules::lock_workspace(&transaction, access).await?;
        let sql = "DELETE FROM workspace_secrets WHERE ws = $1 AND name = $2 RETURNING 1";
        if transaction.query(sql, &[&ws, &name]).await?.is_empty() {
            return Err(no_secret(&name));
        }
        transaction.commit().await?;
        transaction.finished();
        Ok(())
    }

    async fn sealed_secrets(&self, access: Access, names: Vec<String>) -> Result<Vec<SealedSecret>> {
        let sql = "SELECT m.rights, s.name, s.sealing_key, s.sealed FROM members m
                   LEFT JOIN workspace_secrets s ON s.ws = m.ws AND s.name = ANY($3) WHERE m.ws = $1 AND m.user_id = $2";
        let rows = self.fetch(sql, &[&access.workspace.0, &access.user.0, &names]).await?;
        authorised(access, &rows, 0)?;
        let found = rows.iter().filter(|row| row.get::<_, Option<&str>>(1).is_some());
        Ok(found.map(|row| sealed_secret(row, 1)).collect())
    }

    async fn secrets_to_reseal(&self, sealing_key: Vec<u8>, limit: u32) -> Result<Vec<(WorkspaceId, SealedSecret)>> {
        let sql = "SELECT ws, name, sealing_key, sealed FROM workspace_secrets WHERE sealing_key <> $1 LIMIT $2";
        let rows = self.fetch(sql, &[&sealing_key, &i64::from(limit)]).await?;
        Ok(rows.iter().map(|row| (WorkspaceId(row.get(0)), sealed_secret(row, 1))).collect())
    }

    async fn reseal_secret(&self, workspace: WorkspaceId, old: SealedSecret, new: SealedSecret) -> Result<()> {
        let sql =
            "UPDATE workspace_secrets SET sealing_key = $3, sealed = $4 WHERE ws = $1 AND name = $2 AND sealed = $5";
        let params: [&(dyn ToSql + Sync); 5] = [&workspace.0, &old.name, &new.sealing_key, &new.sealed, &old.sealed];
        self.execute(sql, &params).await.map(drop)
    }
}

fn sealed_secret(row: &Row, at: usize) -> SealedSecret {
    SealedSecret { name: row.get(at), sealing_key: row.get(at + 1), sealed: row.get(at + 2) }
}

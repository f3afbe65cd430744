//! Storage usage of workspaces.

use super::Sqlite;
use super::row::{find, run};
use crate::error::Result;
use crate::files::FileStore;
use crate::quota::{Quotas, StoredUse, Usage, UseStore};
use async_trait::async_trait;
use rusqlite::Connection;
use std::sync::Arc;
use toolrest_core::{Access, UserId, WorkspaceId};
use uuid::Uuid;

impl Sqlite {
    /// Sets the limits of accounts and workspaces.
    #[must_use]
    pub fn limited(mut self, quotas: Quotas) -> Self {
        self.usage = Usage::new(quotas);
        self
    }
}

#[async_trait]
impl UseStore for Sqlite {
    async fn stored_use(&self, workspaces: Vec<WorkspaceId>) -> Result<Vec<StoredUse>> {
        self.read_inline(move |db| {
            let sql = "SELECT w.owner_id, coalesce(u.bytes, 0), (
                           SELECT coalesce(sum(x.bytes), 0) FROM workspaces o JOIN storage_used x ON x.ws = o.id
                           WHERE o.owner_id = w.owner_id
                       ) FROM workspaces w LEFT JOIN storage_used u ON u.ws = w.id WHERE w.id = ?1";
            let mut found = Vec::new();
            for workspace in &workspaces {
                found.extend(find(db, sql, [workspace.0], |row| {
                    let (workspace, owner) = (*workspace, UserId(row.get(0)?));
                    Ok(StoredUse { workspace, owner, bytes: row.get(1)?, of_owner: row.get(2)? })
                })?);
            }
            Ok(found)
        })
        .await
    }

    async fn add_use(&self, added: Vec<(WorkspaceId, i64)>) -> Result<()> {
        self.write(move |db| added.iter().try_for_each(|(workspace, bytes)| add(db, workspace.0, *bytes))).await
    }

    async fn is_member(&self, access: Access) -> Result<()> {
        self.authorise(access).await
    }

    fn usage(&self) -> &Arc<Usage> {
        &self.usage
    }
}

/// Adds to the usage of a workspace.
pub(super) fn add(db: &Connection, ws: Uuid, bytes: i64) -> Result<()> {
    let sql = "INSERT INTO storage_used (ws, bytes) SELECT ?1, max(0, ?2) FROM workspaces WHERE id = ?1
               ON CONFLICT (ws) DO UPDATE SET bytes = max(0, storage_used.bytes + ?2)";
    run(db, sql, (ws, bytes)).map(drop)
}

/// Subtracts unused contents from the usage. Contents of folders were never counted.
pub(super) fn free_contents(db: &Connection, ws: Uuid, bytes: i64) -> Result<()> {
    let sql = "UPDATE storage_used SET bytes = max(0, bytes - ?2)
               WHERE ws = (SELECT id FROM workspaces WHERE id = ?1 AND kind = 0)";
    run(db, sql, (ws, bytes)).map(drop)
}

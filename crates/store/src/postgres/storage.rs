//! Storage usage of workspaces.

use super::Postgres;
use crate::error::Result;
use crate::files::FileStore;
use crate::quota::{Quotas, StoredUse, Usage, UseStore};
use async_trait::async_trait;
use std::sync::Arc;
use toolrest_core::{Access, UserId, WorkspaceId};
use uuid::Uuid;

/// Adds to the usage of workspaces. Each workspace occurs once.
pub(super) const ADD_USE: &str = "INSERT INTO storage_used AS u (ws, bytes)
    SELECT a.ws, a.bytes FROM unnest($1::uuid[], $2::bigint[]) AS a (ws, bytes) JOIN workspaces w ON w.id = a.ws
    ORDER BY a.ws ON CONFLICT (ws) DO UPDATE SET bytes = greatest(0, u.bytes + excluded.bytes)";

impl Postgres {
    /// Sets the limits of accounts and workspaces.
    #[must_use]
    pub fn limited(mut self, quotas: Quotas) -> Self {
        self.usage = Usage::new(quotas);
        self
    }
}

#[async_trait]
impl UseStore for Postgres {
    async fn stored_use(&self, workspaces: Vec<WorkspaceId>) -> Result<Vec<StoredUse>> {
        let sql = "SELECT w.id, w.owner_id, coalesce(u.bytes, 0), (
                       SELECT coalesce(sum(x.bytes), 0)::bigint FROM workspaces o JOIN storage_used x ON x.ws = o.id
                       WHERE o.owner_id = w.owner_id
                   ) FROM workspaces w LEFT JOIN storage_used u ON u.ws = w.id WHERE w.id = ANY($1)";
        let ids: Vec<Uuid> = workspaces.iter().map(|workspace| workspace.0).collect();
        let rows = self.fetch(sql, &[&ids]).await?;
        let stored = rows.iter().map(|row| StoredUse {
            workspace: WorkspaceId(row.get(0)),
            owner: UserId(row.get(1)),
            bytes: row.get(2),
            of_owner: row.get(3),
        });
        Ok(stored.collect())
    }

    async fn add_use(&self, added: Vec<(WorkspaceId, i64)>) -> Result<()> {
        let (ids, bytes): (Vec<Uuid>, Vec<i64>) =
            added.into_iter().map(|(workspace, bytes)| (workspace.0, bytes)).unzip();
        self.execute(ADD_USE, &[&ids, &bytes]).await.map(drop)
    }

    async fn is_member(&self, access: Access) -> Result<()> {
        self.authorise(access).await
    }

    fn usage(&self) -> &Arc<Usage> {
        &self.usage
    }
}

//! A transaction whose statements are pipelined.

use super::{Postgres, Query, to_store_error};
use crate::error::{Result, StoreError};
use deadpool_postgres::Object;
use tokio_postgres::{Row, types::ToSql};

/// A connection with an open transaction.
///
/// Statements that are awaited together are sent together, in the order in which they are first polled, and take one
/// round trip. Dropping the transaction before its end rolls it back.
pub(super) struct Transaction {
    client: Option<Object>,
}

impl Postgres {
    pub(super) async fn transaction(&self) -> Result<Transaction> {
        Ok(Transaction { client: Some(self.client().await?) })
    }
}

impl Transaction {
    fn client(&self) -> Result<&Object> {
        self.client.as_ref().ok_or_else(|| StoreError::internal("the transaction is over"))
    }

    /// Begins a read-only transaction with one snapshot.
    pub(super) async fn begin_reading(&self) -> Result<()> {
        self.client()?.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await.map_err(to_store_error)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.as_ref().is_none_or(|client| client.is_closed())
    }

    pub(super) async fn begin(&self) -> Result<()> {
        self.client()?.batch_execute("BEGIN").await.map_err(to_store_error)
    }

    pub(super) async fn query(&self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        super::query(self.client()?, sql, params).await
    }

    /// Begins a read-only transaction and runs its first query, in one round trip.
    pub(super) async fn begin_snapshot(&self, query: Query<'_>) -> Result<Vec<Row>> {
        self.prepare(&[query.0]).await?;
        let ((), rows) = tokio::try_join!(biased; self.begin_reading(), self.query(query.0, query.1))?;
        Ok(rows)
    }

    /// Runs two queries in one snapshot and one round trip.
    pub(super) async fn fetch_both(&self, first: Query<'_>, second: Query<'_>) -> Result<(Vec<Row>, Vec<Row>)> {
        self.prepare(&[first.0, second.0]).await?;
        let ((), one, two, ()) = tokio::try_join!(
            biased;
            self.begin_reading(),
            self.query(first.0, first.1),
            self.query(second.0, second.1),
            self.commit(),
        )?;
        Ok((one, two))
    }

    /// Prepares statements that will be sent together. Preparing takes a round trip the first time.
    pub(super) async fn prepare(&self, statements: &[&str]) -> Result<()> {
        let client = self.client()?;
        for sql in statements {
            client.prepare_cached(sql).await.map_err(to_store_error)?;
        }
        Ok(())
    }

    /// Commits. If sent together with the last statements, it saves a round trip: if one of them failed, the database
    /// rolls back instead.
    pub(super) async fn commit(&self) -> Result<()> {
        self.client()?.batch_execute("COMMIT").await.map_err(to_store_error)
    }

    /// Rolls back and returns the connection to the pool.
    pub(super) async fn rollback(mut self) -> Result<()> {
        self.client()?.batch_execute("ROLLBACK").await.map_err(to_store_error)?;
        self.finished();
        Ok(())
    }

    /// Returns the connection to the pool.
    pub(super) fn finished(&mut self) {
        self.client = None;
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let Some(client) = self.client.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            // The connection is removed from the pool and closed: the database rolls back.
            drop(Object::take(client));
            return;
        };
        // The connection counts towards the pool until the rollback is done, so that abandoned calls cannot open more
        // connections than the pool allows.
        runtime.spawn(async move {
            if client.batch_execute("ROLLBACK").await.is_err() {
                drop(Object::take(client));
            }
        });
    }
}

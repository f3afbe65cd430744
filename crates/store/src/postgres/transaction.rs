//! A transaction whose statements can be sent without waiting for each other.

use super::{Postgres, Query, fault};
use crate::error::{Result, StoreError};
use deadpool_postgres::Object;
use tokio_postgres::{Row, types::ToSql};

/// A connection with a transaction open on it.
///
/// Statements that are awaited together go out together, in the order in which they are first polled, and cost one
/// round trip. Dropped before its end, it takes back whatever the transaction did.
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

    /// Begins a transaction in which everything is seen as at one moment.
    async fn begin_reading(&self) -> Result<()> {
        self.client()?.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await.map_err(fault)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.as_ref().is_none_or(|client| client.is_closed())
    }

    pub(super) async fn begin(&self) -> Result<()> {
        self.client()?.batch_execute("BEGIN").await.map_err(fault)
    }

    pub(super) async fn query(&self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        super::query(self.client()?, sql, params).await
    }

    /// Begins to look at one moment, with a first query.
    pub(super) async fn look_first(&self, query: Query<'_>) -> Result<Vec<Row>> {
        self.prepare(&[query.0]).await?;
        let ((), rows) = tokio::try_join!(biased; self.begin_reading(), self.query(query.0, query.1))?;
        Ok(rows)
    }

    /// Looks twice at the same moment.
    pub(super) async fn look_twice(&self, first: Query<'_>, second: Query<'_>) -> Result<(Vec<Row>, Vec<Row>)> {
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

    /// Prepares statements that are about to be sent together; preparing is a round trip of its own the first time.
    pub(super) async fn prepare(&self, statements: &[&str]) -> Result<()> {
        let client = self.client()?;
        for sql in statements {
            client.prepare_cached(sql).await.map_err(fault)?;
        }
        Ok(())
    }

    /// Asks for the commit. Sent together with the last statements it saves a round trip: if one of them failed, the
    /// database rolls back instead.
    pub(super) async fn commit(&self) -> Result<()> {
        self.client()?.batch_execute("COMMIT").await.map_err(fault)
    }

    /// Takes everything back and keeps the connection.
    pub(super) async fn rollback(mut self) -> Result<()> {
        self.client()?.batch_execute("ROLLBACK").await.map_err(fault)?;
        self.finished();
        Ok(())
    }

    /// Gives the connection back for others to use.
    pub(super) fn finished(&mut self) {
        self.client = None;
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let Some(client) = self.client.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            // Out of the pool and closed: the database rolls back.
            drop(Object::take(client));
            return;
        };
        // The connection keeps its place in the pool until it can be used again, so that callers who give up cannot
        // make more of them than the pool allows.
        runtime.spawn(async move {
            if client.batch_execute("ROLLBACK").await.is_err() {
                drop(Object::take(client));
            }
        });
    }
}

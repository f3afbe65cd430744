//! The liveness and readiness probes.

use super::App;
use super::reply::{Answer, Reply, ok};
use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;
use std::{sync::Arc, time::Duration};
use toolrest_core::{ErrorKind, ToolError};

const DATABASE_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Serialize, JsonSchema)]
pub(crate) struct Live {
    status: &'static str,
    service: &'static str,
    version: &'static str,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Ready {
    status: &'static str,
    database: &'static str,
}

/// Answers 200 while the process runs.
pub(crate) async fn live() -> Answer<Reply<Live>> {
    ok(&Live { status: "ok", service: "toolrest", version: env!("CARGO_PKG_VERSION") })
}

/// Answers 200 while the database answers. Migrations are done before the server listens.
pub(crate) async fn ready(State(app): State<Arc<App>>) -> Answer<Reply<Ready>> {
    let late = |_| ToolError::new(ErrorKind::Unavailable, "The database does not answer");
    tokio::time::timeout(DATABASE_TIMEOUT, app.store.ready()).await.map_err(late)??;
    ok(&Ready { status: "ready", database: "ok" })
}

//! The liveness and readiness probes.

use super::App;
use super::reply::{Answer, ok};
use axum::extract::State;
use serde_json::json;
use std::{sync::Arc, time::Duration};
use toolrest_core::{ErrorKind, ToolError};

const DATABASE_TIMEOUT: Duration = Duration::from_secs(2);

/// Answers 200 while the process runs.
pub(crate) async fn live() -> Answer {
    ok(&json!({ "status": "ok", "service": "toolrest", "version": env!("CARGO_PKG_VERSION") }))
}

/// Answers 200 while the database answers. Migrations are done before the server listens.
pub(crate) async fn ready(State(app): State<Arc<App>>) -> Answer {
    let late = |_| ToolError::new(ErrorKind::Unavailable, "The database does not answer");
    tokio::time::timeout(DATABASE_TIMEOUT, app.store.ready()).await.map_err(late)??;
    ok(&json!({ "status": "ready", "database": "ok" }))
}

//! What counts towards the storage quota.

use crate::test_workspace::{TestWorkspace, path, put};
use std::time::{Duration, Instant};
use tokio_postgres::NoTls;
use toolrest_core::{Change, ContentHash, ErrorKind};
use toolrest_store::Quotas;

const QUOTA: Quotas =
    Quotas { bytes_per_workspace: Some(10_000), bytes_per_account: None, workspaces_per_account: None };

fn text() -> String {
    "x".repeat(6_000)
}

/// Waits until something is the case.
async fn eventually(is_so: impl AsyncFn() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !is_so().await {
        assert!(Instant::now() < until, "it does not happen");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Runs changes that store [`text`] until the statement that writes waits in the database. Then disconnects, and lets the
/// statement go on.
async fn disconnect_during(ws: &TestWorkspace, url: &str, changes: Vec<Change>) {
    let (other, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    // Another transaction stores the same content, so that the statement waits for its end.
    other.batch_execute("BEGIN").await.unwrap();
    let store = "INSERT INTO blobs (ws, key, size, encoding, data) VALUES ($1, $2, 1, 0, '')";
    let key = ContentHash::of(text().as_bytes());
    other.execute(store, &[&ws.workspace.0, &&key.0[..]]).await.unwrap();
    let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid' AND pid IN
        (SELECT pid FROM pg_stat_activity WHERE datname = current_database())";
    let waits = eventually(async || other.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) > 0);
    tokio::select! {
        _ = ws.all(changes) => panic!("the write does not wait"),
        () = waits => {}
    }
    other.batch_execute("ROLLBACK").await.unwrap();
}

async fn is_full(ws: &TestWorkspace) -> bool {
    let write = ws.all(vec![put("/b", &"b".repeat(6_000))]).await;
    matches!(write, Err(error) if error.kind() == ErrorKind::QuotaExceeded)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_put_whose_caller_disconnects_is_counted() {
    let (ws, url) = TestWorkspace::on_postgres_with(QUOTA).await;
    disconnect_during(&ws, &url, vec![put("/a", &text())]).await;
    eventually(async || ws.read("/a").await.is_ok()).await;
    assert!(is_full(&ws).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_caller_disconnects_is_counted() {
    let (ws, url) = TestWorkspace::on_postgres_with(QUOTA).await;
    disconnect_during(&ws, &url, vec![Change::MakeDir(path("/d")), put("/d/a", &text())]).await;
    eventually(async || ws.read("/d/a").await.is_ok()).await;
    assert!(is_full(&ws).await);
}

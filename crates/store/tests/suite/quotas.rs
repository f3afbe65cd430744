//! What counts towards the storage quota.

use crate::test_workspace::{TestWorkspace, path, put};
use std::time::{Duration, Instant};
use tokio_postgres::NoTls;
use toolrest_core::{Change, ErrorKind};
use toolrest_store::Quotas;

const QUOTA: Quotas =
    Quotas { bytes_per_workspace: Some(10_000), bytes_per_account: None, workspaces_per_account: None };

/// A session that holds a lock on a table, so that statements that write to it wait.
struct Lock(tokio_postgres::Client);

impl Lock {
    async fn on(url: &str, table: &str) -> Self {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(&format!("BEGIN; LOCK TABLE {table} IN SHARE MODE")).await.unwrap();
        Self(client)
    }

    async fn statements_that_wait(&self) -> i64 {
        let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        self.0.query_one(waiting, &[]).await.unwrap().get(0)
    }

    async fn release(self) {
        self.0.batch_execute("COMMIT").await.unwrap();
    }
}

/// Waits until something is the case.
async fn eventually(is_so: impl AsyncFn() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !is_so().await {
        assert!(Instant::now() < until, "it does not happen");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Runs a write until its statement waits for a lock on a table, disconnects, and lets the statement go on.
async fn disconnect_during<T>(url: &str, table: &str, write: impl Future<Output = T>) {
    let lock = Lock::on(url, table).await;
    let waits = eventually(async || lock.statements_that_wait().await > 0);
    tokio::select! {
        _ = write => panic!("the write does not wait for the lock"),
        () = waits => {}
    }
    lock.release().await;
}

async fn is_full(ws: &TestWorkspace) -> bool {
    let write = ws.all(vec![put("/b", &"b".repeat(6_000))]).await;
    matches!(write, Err(error) if error.kind() == ErrorKind::QuotaExceeded)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_put_whose_caller_disconnects_is_counted() {
    let (ws, url) = TestWorkspace::on_postgres_with(QUOTA).await;
    ws.put("/a", "a").await;
    let text = "x".repeat(6_000);
    disconnect_during(&url, "versions", ws.all(vec![put("/a", &text)])).await;
    eventually(async || ws.text("/a").await == text).await;
    assert!(is_full(&ws).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_caller_disconnects_is_counted() {
    let (ws, url) = TestWorkspace::on_postgres_with(QUOTA).await;
    let changes = vec![Change::MakeDir(path("/d")), put("/d/a", &"x".repeat(6_000))];
    disconnect_during(&url, "versions", ws.all(changes)).await;
    eventually(async || ws.read("/d/a").await.is_ok()).await;
    assert!(is_full(&ws).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_whose_caller_disconnects_is_counted() {
    let (ws, url) = TestWorkspace::on_postgres_with(QUOTA).await;
    let chat = ws.store.create_chat(ws.access(), "chat".into()).await.unwrap().id;
    let add = ws.store.add_message(ws.access(), chat, "user".into(), "x".repeat(6_000));
    disconnect_during(&url, "chat_messages", add).await;
    eventually(async || !ws.store.chat(ws.access(), chat).await.unwrap().messages.is_empty()).await;
    assert!(is_full(&ws).await);
}

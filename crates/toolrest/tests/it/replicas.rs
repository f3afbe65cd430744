//! Several servers on one database, and databases of newer versions.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use toolrest_testkit::{Account, Backend, Port, Postgres, Server, unique_email};

use crate::on::{options_on, text_at, workspace_at};
use crate::processes::start;
use crate::toolset::SYSTEM;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_started_together_on_an_empty_database_all_come_up() {
    for _ in 0..3 {
        let backend = Backend::Postgres(Postgres::shared().create_database());
        let servers: Vec<Server> = std::thread::scope(|scope| {
            let starting: Vec<_> = (0..3).map(|_| scope.spawn(|| options_on(backend.clone()).start())).collect();
            starting.into_iter().map(|start| start.join().expect("the replica starts")).collect()
        });
        let workspace = workspace_at(&servers[0]).await;
        workspace.write("/a.txt", "written by the first").await;
        for server in &servers {
            let seen = workspace.through(&server.client());
            assert_eq!(seen.text("/a.txt").await, "written by the first");
            seen.write("/a.txt", "written by the first").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_ends_soon_after_another_replica_removes_its_starter() {
    let backend = Backend::Postgres(Postgres::shared().create_database());
    let start_server = || options_on(backend.clone()).env("TOOLREST__RUN__BACKGROUND_COMMIT_MS", "600000").start();
    let (first, second) = (start_server(), start_server());
    let owners = workspace_at(&first).await;
    let editor = Account::register(&first.client(), &unique_email("editor")).await;
    owners.add_member(&editor, "editor").await;
    let code = "while true; do echo tick >> ticks; sleep 0.05; done";
    let id = start(&owners.for_user(&editor), code).await;
    owners.through(&second.client()).delete(&format!("/members/{}", editor.id)).await.success();
    let ended = SYSTEM.ok(&owners, "wait_process", json!({"id": id, "timeout": 9})).await;
    assert_eq!(ended["state"], "ended", "{ended}");
    assert!(text_at(&ended, "/reason").contains("may not change the workspace any more"), "{ended}");
    assert_eq!(ended.get("commitId"), None, "{ended}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_database_newer_than_the_binary_is_refused() {
    let postgres = Postgres::shared();
    let url = postgres.create_database();
    let mut server = options_on(Backend::Postgres(url.clone())).start();
    server.stop();
    postgres.execute(&url, "UPDATE schema_version SET version = version + 1000");
    refuses_as_newer(&mut server);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sqlite_database_newer_than_the_binary_is_refused() {
    let mut server = options_on(Backend::Sqlite).start();
    server.stop();
    let database = rusqlite::Connection::open(sqlite_file(server.data_folder())).unwrap();
    let version: i64 = database.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert!(version > 0, "migrations count in PRAGMA user_version");
    database.pragma_update(None, "user_version", version + 1000).unwrap();
    drop(database);
    refuses_as_newer(&mut server);
}

#[track_caller]
fn refuses_as_newer(server: &mut Server) {
    let refusal = server.try_restart(Port::New).expect_err("the server must not start");
    let status = refusal.status.expect("it ends by itself");
    assert!(!status.success(), "{refusal:?}");
    let output = refusal.output.to_lowercase();
    assert!(output.contains("newer"), "{refusal:?}");
    assert!(!output.contains("panicked"), "{refusal:?}");
}

fn sqlite_file(folder: &Path) -> PathBuf {
    let is_database = |path: &PathBuf| fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"SQLite format 3\0"));
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(is_database)
        .expect("a database in the data folder")
}

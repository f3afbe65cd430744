//! Databases written by an earlier version.

use crate::test_workspace::{SEARCH_CACHE_BYTES, path};
use rusqlite::Connection;
use std::{sync::Arc, time::Duration};
use tempfile::tempdir;
use toolrest_core::{Access, Caller, Content, ContentHash, Role, UserId, WorkspaceId};
use toolrest_store::{FileStore, Postgres, PostgresOptions, Sqlite, Store};
use uuid::Uuid;

const SQLITE_1: &str = include_str!("../../migrations/sqlite/0001_ground_floor.sql");
const POSTGRES_1: &str = include_str!("../../migrations/postgres/0001_ground_floor.sql");

const TEXT: &str = "written before there were signatures\n";

/// A workspace with one member and one file, as the first version wrote them.
struct Old {
    access: Access,
    file: Uuid,
    version: Uuid,
}

impl Old {
    fn new() -> Self {
        let access = Caller::person(UserId::new()).access(WorkspaceId::new(), Role::Editor);
        Self { access, file: Uuid::now_v7(), version: Uuid::now_v7() }
    }

    /// The rows as SQL. `id` and `bytes` format values for the database; `now` is a time and `no` is false.
    fn rows(&self, id: fn(Uuid) -> String, bytes: fn(&[u8]) -> String, now: &str, no: &str) -> String {
        let (ws, user) = (id(self.access.workspace.0), id(self.access.user.0));
        let (file, version, root, commit) = (id(self.file), id(self.version), id(Uuid::now_v7()), id(Uuid::now_v7()));
        let (hash, text, size) = (bytes(&ContentHash::of(TEXT.as_bytes()).0), bytes(TEXT.as_bytes()), TEXT.len());
        let owner = Role::Owner.code();
        format!(
            "INSERT INTO users VALUES ({user}, 'old@example.com', 'none', NULL, {now}, {now});
             INSERT INTO workspaces VALUES ({ws}, 'old', {user}, {now}, {now}, NULL);
             INSERT INTO members VALUES ({ws}, {user}, {owner}, {now});
             INSERT INTO files VALUES ({ws}, {root}, '/', '', '', NULL, 0, {no}, NULL, NULL, NULL, NULL, NULL, 0,
                {now}, {now}, NULL);
             INSERT INTO files VALUES ({ws}, {file}, '/old.txt', '/', 'old.txt', NULL, 1, {no}, 1, {version}, {hash},
                {hash}, 0, {size}, {now}, {now}, NULL);
             INSERT INTO versions VALUES ({ws}, {file}, 1, {version}, {hash}, 0, {hash}, {size}, {user}, {commit}, {now});
             INSERT INTO blobs (ws, key, size, encoding, data) VALUES ({ws}, {hash}, {size}, 0, {text});"
        )
    }

    /// Checks that the old file is read, found and changed like a new one.
    async fn is_usable(&self, store: Arc<dyn Store>) {
        let file = FileStore::read(&*store, self.access, &path("/old.txt"), i64::MAX).await.unwrap();
        assert_eq!(file.content, Some(Content::Text(TEXT.into())));
        for round in 0..2 {
            let found = store.search(self.access, crate::test_workspace::search_for("signatures")).await.unwrap();
            let paths: Vec<&str> = found.matches.iter().map(|line| line.path.as_str()).collect();
            let expected = if round == 0 { &["/old.txt"][..] } else { &["/new.txt", "/old.txt"] };
            assert_eq!(paths, expected);
            crate::test_workspace::commit(
                &*store,
                self.access,
                vec![crate::test_workspace::put("/new.txt", "new signatures")],
            )
            .await
            .unwrap();
        }
        crate::test_workspace::commit(&*store, self.access, vec![crate::test_workspace::put("/old.txt", "nothing")])
            .await
            .unwrap();
        let found = store.search(self.access, crate::test_workspace::search_for("signatures")).await.unwrap();
        assert_eq!(found.matches.len(), 1);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)]))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sqlite_file_of_the_first_version_is_migrated() {
    let (folder, old) = (tempdir().unwrap(), Old::new());
    let place = folder.path().join("old.db");
    let blob = |bytes: &[u8]| format!("x'{}'", hex(bytes));
    let rows = old.rows(|id| format!("x'{}'", id.simple()), blob, "1700000000000000", "0");
    let db = Connection::open(&place).unwrap();
    db.execute_batch(&format!("{SQLITE_1}; {rows} PRAGMA user_version = 1;")).unwrap();
    drop(db);
    for _ in 0..2 {
        let store = Sqlite::open(&place, SEARCH_CACHE_BYTES).unwrap();
        store.ready().await.unwrap();
    }
    old.is_usable(Arc::new(Sqlite::open(&place, SEARCH_CACHE_BYTES).unwrap())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_database_of_the_first_version_is_migrated() {
    let old = Old::new();
    let blob = |bytes: &[u8]| format!("'\\x{}'", hex(bytes));
    let rows = old.rows(|id| format!("'{id}'"), blob, "now()", "false");
    let url = tokio::task::spawn_blocking(move || {
        let postgres = toolrest_testkit::Postgres::shared();
        let url = postgres.create_database();
        let version = "CREATE TABLE schema_version (version integer NOT NULL); INSERT INTO schema_version VALUES (1);";
        postgres.execute(&url, &format!("{POSTGRES_1}; {rows} {version}"));
        url
    });
    let url = url.await.unwrap();
    let patience = Duration::from_secs(30);
    let options = PostgresOptions {
        pool_size: 3,
        statement_timeout: patience,
        wait_timeout: patience,
        search_cache_bytes: SEARCH_CACHE_BYTES,
    };
    old.is_usable(Arc::new(Postgres::connect(&url, options).await.unwrap())).await;
}

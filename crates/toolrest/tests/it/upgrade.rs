//! Opens data that earlier versions wrote.
//!
//! `upgrade/schema-N.*` were written by the last version with schema N: a database file, compressed with zstd, and a dump
//! of PostgreSQL (`pg_dump --inserts --no-owner`). Both hold the accounts ada@example.com and grace@example.com, and the
//! workspaces `Archive` and `Folder` of the first. Never change them; add the next.

mod old_rows;

use std::fs;
use std::path::Path;

use old_rows::{FILES, IN_JOURNAL, LATIN_1, interrupt_commit, record};
use serde_json::{Value, json};
use toolrest_testkit::{Account, Backend, Postgres, Server, Workspace, data_folder, new_home};

use crate::encodings::bytes_of;
use crate::on::{list_at, options_on, text_at};
use crate::toolset::{FILE, SYSTEM};

const SQLITE_4: &[u8] = include_bytes!("upgrade/schema-4.db.zst");
const POSTGRES_4: &str = include_str!("upgrade/schema-4.sql");

/// Makes the folder of the workspace `Folder` as it was left, where the server allows one; gives its path.
fn make_folder(home: &Path) -> String {
    let root = home.join("folders/folder");
    fs::create_dir_all(&root).unwrap();
    fs::write(root.join("a.txt"), "folder 2\n").unwrap();
    fs::write(root.join(&LATIN_1.path[1..]), LATIN_1.bytes).unwrap();
    root.canonicalize().unwrap().to_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_file_of_schema_4_is_upgraded_and_works() {
    let home = new_home();
    let database = data_folder(home.path()).join("toolrest.db");
    fs::write(&database, zstd::decode_all(SQLITE_4).unwrap()).unwrap();
    let root = make_folder(home.path());
    let connection = rusqlite::Connection::open(&database).unwrap();
    connection.execute("UPDATE workspaces SET root = ?1 WHERE kind = 1", [&root]).unwrap();
    let find = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
    let [archive, folder] =
        ["Archive", "Folder"].map(|name| find(&format!("SELECT hex(id) FROM workspaces WHERE name = '{name}'")));
    let [archive, folder, ada] =
        [archive, folder, find("SELECT hex(id) FROM users WHERE email = 'ada@example.com'")].map(|hex| dashed(&hex));
    connection.execute_batch(&record(&old_rows::SQLITE, &archive, &ada, &FILES, 1)).unwrap();
    connection.execute_batch(&record(&old_rows::SQLITE, &folder, &ada, &[LATIN_1], 2)).unwrap();
    connection.close().unwrap();
    interrupt_commit(&data_folder(home.path()).join("journals"), Path::new(&root), &folder, &ada);
    // What is older than the retention would go.
    let options = options_on(Backend::Sqlite).env("TOOLREST__RETENTION__TRASH_DAYS", "0");
    let server = options.start_in(home);
    let connection = rusqlite::Connection::open(server.data_folder().join("toolrest.db")).unwrap();
    let counted =
        "SELECT count(*) FROM storage_used u JOIN workspaces w ON w.id = u.ws WHERE w.kind = 1 AND u.bytes > 0";
    let counted: i64 = connection.query_row(counted, [], |row| row.get(0)).unwrap();
    assert_eq!(counted, 0, "the history of folders is not counted");
    expect_upgraded(&server).await;
}

/// An id as it is written, from its 32 digits.
fn dashed(hex: &str) -> String {
    let hex = hex.to_lowercase();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_of_schema_4_is_upgraded_and_works() {
    let postgres = Postgres::shared();
    let url = postgres.create_database();
    let home = new_home();
    let root = make_folder(home.path());
    postgres.execute(&url, POSTGRES_4);
    postgres.execute(&url, &format!("UPDATE workspaces SET root = '{root}' WHERE kind = 1"));
    let [archive, folder, ada] = ["'Archive'", "'Folder'", "'ada@example.com'"].map(|name| {
        let line = POSTGRES_4.lines().find(|line| line.starts_with("INSERT") && line.contains(name)).unwrap();
        line.split('\'').nth(1).unwrap()
    });
    postgres.execute(&url, &record(&old_rows::POSTGRES, archive, ada, &FILES, 1));
    postgres.execute(&url, &record(&old_rows::POSTGRES, folder, ada, &[LATIN_1], 2));
    interrupt_commit(&data_folder(home.path()).join("journals"), Path::new(&root), folder, ada);
    let options = options_on(Backend::Postgres(url.clone())).env("TOOLREST__RETENTION__TRASH_DAYS", "0");
    let server = options.start_in(home);
    let counted = "DO $$ BEGIN IF EXISTS (
                       SELECT 1 FROM storage_used u JOIN workspaces w ON w.id = u.ws WHERE w.kind = 1 AND u.bytes > 0
                   ) THEN RAISE 'the history of folders is counted'; END IF; END $$";
    postgres.execute(&url, counted);
    expect_upgraded(&server).await;
}

async fn expect_upgraded(server: &Server) {
    let ada = Account::login(&server.client(), "ada@example.com").await;
    let listed = ada.get("/workspaces").await.success();
    let id = |name: &str| {
        let found = list_at(&listed, "/workspaces").iter().find(|workspace| workspace["name"] == name);
        text_at(found.unwrap(), "/id").to_owned()
    };
    let (archive, folder) = (ada.in_workspace(&id("Archive")), ada.in_workspace(&id("Folder")));
    expect_calls(&archive).await;
    expect_renewed(&archive).await;
    expect_archive(&archive).await;
    expect_folder(&folder).await;
    let grace = Account::login(&server.client(), "grace@example.com").await;
    let seen = grace.in_workspace(&id("Archive"));
    assert_eq!(seen.text("/moved.txt").await, "moved\n");
    seen.refused(403, "FORBIDDEN", "write", json!({"path": "/no.txt", "content": "a viewer"})).await;
}

/// What the old version took for bytes, or for plain text, is the text that it is.
async fn expect_renewed(workspace: &Workspace) {
    let listed = workspace.ok("ls", json!({"path": "/"})).await;
    let type_of = |path: &str| {
        let entry = list_at(&listed, "/entries").iter().find(|entry| entry["path"] == path);
        text_at(entry.unwrap(), "/file_type").to_owned()
    };
    for (path, file_type) in [
        ("/latin1.txt", "Document"),
        ("/utf16.txt", "Document"),
        ("/marked.txt", "Document"),
        ("/bytes.old", "File"),
        ("/old.canvas", "Canvas"),
    ] {
        assert_eq!(type_of(path), file_type, "{path}");
    }
    let found = workspace.ok("grep", json!({"pattern": "of old"})).await.to_string();
    for path in ["/latin1.txt", "/utf16.txt", "/marked.txt"] {
        assert!(found.contains(path), "{path}: {found}");
    }
    let found = workspace.ok("grep", json!({"pattern": "^of old"})).await.to_string();
    assert!(found.contains("/marked.txt"), "behind the byte order mark: {found}");
    let shown = SYSTEM.ok(workspace, "read_file", json!({"path": "old.canvas"})).await;
    let sizes = FILE.ok(workspace, "file.list", json!({})).await;
    let size = list_at(&sizes, "/files").iter().find(|entry| entry["path"] == "old.canvas").unwrap()["size"].clone();
    assert_eq!(size, text_at(&shown, "/content").len(), "{sizes}");
    expect_encoding_kept(workspace, "/latin1.txt").await;
}

/// A text in Latin-1 stays one when it is written.
async fn expect_encoding_kept(workspace: &Workspace, path: &str) {
    workspace.write(path, "th\u{e9}\n").await;
    assert_eq!(bytes_of(workspace, path).await, b"th\xe9\n");
}

/// The records of the old version are there, in the terms of this one.
async fn expect_calls(workspace: &Workspace) {
    let listed = workspace.get("/calls").await.success();
    let old: Vec<&Value> = list_at(&listed, "/calls").iter().filter(|call| call["args"].is_null()).collect();
    assert!(!old.is_empty(), "{listed}");
    for call in old {
        let outcome = text_at(call, "/outcome");
        assert_eq!(outcome, outcome.to_lowercase(), "{call}");
        assert_eq!(call["correlation_id"], call["id"], "{call}");
        assert!(call["user_id"].is_string() && call["key_id"].is_null(), "{call}");
        assert!(!call["started_at"].is_null() && !call["duration_us"].is_null(), "{call}");
    }
}

async fn expect_archive(workspace: &Workspace) {
    let shown = workspace.get("").await.success();
    assert_eq!(shown["workspace"]["settings"]["run"]["timeout_ms"], 5000, "{shown}");
    for (path, text) in [
        ("/notes/a.txt", "version 3\n"),
        ("/notes/b.txt", "needle in the previous release\n"),
        ("/notes/moved.txt", "moved\n"),
        ("/long.txt", "short now\n"),
    ] {
        assert_eq!(workspace.text(path).await, text, "{path}");
    }
    assert!(workspace.paths_in("/").await.contains(&"/empty".to_owned()));
    let bytes = workspace.call_of("system", "read_file", &json!({"path": "bytes.bin", "encoding": "base64"})).await;
    assert!(bytes.text.contains("AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"), "{bytes}");
    let found = workspace.ok("grep", json!({"pattern": "needle"})).await;
    assert!(found.to_string().contains("/notes/b.txt"), "{found}");

    let file = text_at(&workspace.write("/notes/a.txt", "version 4\n").await, "/file_id").to_owned();
    let versions = workspace.get(&format!("/files/{file}/versions")).await.success();
    let ids: Vec<&str> = list_at(&versions, "/versions").iter().map(|version| text_at(version, "/id")).collect();
    assert_eq!(ids.len(), 4);
    for (id, number) in ids.iter().zip([4, 3, 2, 1]) {
        let version = workspace.get(&format!("/files/{file}/versions/{id}")).await.success();
        assert_eq!(version["content"], format!("version {number}\n"), "{version}");
    }

    let commits = workspace.get("/commits").await.success();
    let undo = async |is_it: &dyn Fn(&Value) -> bool| {
        let commit = list_at(&commits, "/commits").iter().find(|commit| is_it(commit)).expect("the commit");
        workspace.post(&format!("/commits/{}/undo", text_at(commit, "/id")), &json!({})).await.success();
    };
    undo(&|commit| commit["tool"] == "edit").await;
    assert_eq!(workspace.text("/notes/b.txt").await, "needle in the old release\n");
    undo(&|commit| commit["tool"] == "mv").await;
    assert_eq!(workspace.text("/moved.txt").await, "moved\n");
    undo(&|commit| commit["tool"] == "write" && commit["changes"].to_string().contains("/long.txt")).await;
    assert_eq!(workspace.text("/long.txt").await, "a long line of an old file\n".repeat(200));

    let trash = workspace.get("/trash").await.success();
    let gone = list_at(&trash, "/files").iter().find(|file| file["path"] == "/gone.txt").expect("it is in the trash");
    let id = gone["file_id"].as_str().or(gone["id"].as_str()).unwrap();
    workspace.post(&format!("/files/{id}/restore"), &json!({})).await.success();
    assert_eq!(workspace.text("/gone.txt").await, "in the trash\n");

    let chats = workspace.paths_in("/chats").await;
    let chat = workspace.call("read", &json!({"path": chats[0]})).await;
    assert!(chat.text.contains("hello from before"), "{chat}");
}

async fn expect_folder(workspace: &Workspace) {
    assert_eq!(workspace.text("/a.txt").await, "folder 2\n");
    let commits = workspace.get("/commits").await.success();
    // The journal described an interrupted commit.
    assert_eq!(text_at(&commits, "/commits/0/changes/0/path"), IN_JOURNAL.0, "{commits}");
    assert_eq!(bytes_of(workspace, IN_JOURNAL.0).await, IN_JOURNAL.1);
    for path in [LATIN_1.path, IN_JOURNAL.0] {
        expect_encoding_kept(workspace, path).await;
    }
    let rewritten = text_at(&workspace.get("/commits").await.success(), "/commits/0/id").to_owned();
    workspace.post(&format!("/commits/{rewritten}/undo"), &json!({})).await.success();
    assert_eq!(bytes_of(workspace, IN_JOURNAL.0).await, IN_JOURNAL.1);
    let undo = async |path: &str, tool: &str| {
        let mut found = list_at(&commits, "/commits").iter();
        let commit = found.find(|commit| commit["tool"] == tool && commit["changes"].to_string().contains(path));
        let id = text_at(commit.expect("the commit"), "/id");
        workspace.post(&format!("/commits/{id}/undo"), &json!({})).await.success();
    };
    undo("/a.txt", "write").await;
    assert_eq!(workspace.text("/a.txt").await, "folder 1\n");
    undo("/b.txt", "rm").await;
    assert_eq!(workspace.text("/b.txt").await, "removed later\n");
}

//! No result is silently empty: patterns that cannot match are refused, and unreadable folders are named.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use toolrest_testkit::{Account, Request, unique_email};

use crate::agent;
use crate::on::{On, list_at};
use crate::toolset::{CODING, FILE, SYSTEM};

on_every_backend![
    a_glob_that_cannot_match_is_refused,
    a_glob_may_start_like_a_path,
    a_path_pattern_may_start_like_a_path,
    an_empty_regular_expression_matches_every_line,
];

async fn a_glob_that_cannot_match_is_refused(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/src/a.rs", "fn a\n").await;
    for glob in ["", "../*", "src/../../*", "{a,../b}/*", "!", "!../*"] {
        CODING.refused(&workspace, 400, "INVALID_PATTERN", "glob", json!({"pattern": glob})).await;
        FILE.refused(&workspace, 400, "invalid_pattern", "file.list", json!({"pattern": glob})).await;
        let args = json!({"pattern": "fn", "glob": glob});
        FILE.refused(&workspace, 400, "invalid_pattern", "file.search", args).await;
    }
}

async fn a_glob_may_start_like_a_path(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/src/a.rs", "fn a\n").await;
    workspace.write("/b.rs", "fn b\n").await;
    for glob in
        ["src/*.rs", "./src/*.rs", "/src/*.rs", "src//./*.rs", "/workspace/src/*.rs", "src/", "./src/./", "src/**"]
    {
        let found = CODING.ok(&workspace, "glob", json!({"pattern": glob})).await;
        assert_eq!(found["files"], json!(["src/a.rs"]), "{glob}");
        let found = FILE.ok(&workspace, "file.search", json!({"pattern": "fn", "glob": glob})).await;
        assert_eq!(list_at(&found, "/matches").len(), 1, "{glob}");
    }
    let below = json!({"path": "src", "pattern": "/workspace/src/*.rs"});
    assert_eq!(list_at(&FILE.ok(&workspace, "file.list", below).await, "/files").len(), 1);
    let elsewhere = json!({"path": "src", "pattern": "/workspace/lib/*.rs"});
    FILE.refused(&workspace, 400, "invalid_pattern", "file.list", elsewhere).await;
}

async fn a_path_pattern_may_start_like_a_path(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/src/a.rs", "fn a\n").await;
    workspace.write("/b.txt", "fn b\n").await;
    for (pattern, count) in
        [("./src/*", 1), ("../src/*", 1), ("../*", 2), ("src/../*.txt", 1), ("/workspace/src/*", 1), ("", 2), (".", 2)]
    {
        let found = workspace.ok("grep", json!({"pattern": "fn", "path_pattern": pattern})).await;
        assert_eq!(list_at(&found, "/matches").len(), count, "{pattern}");
    }
}

async fn an_empty_regular_expression_matches_every_line(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "one\ntwo").await;
    let found = workspace.ok("grep", json!({"pattern": ""})).await;
    assert_eq!(list_at(&found, "/matches").len(), 2, "{found}");
    let found = FILE.ok(&workspace, "file.search", json!({"pattern": ""})).await;
    assert_eq!(list_at(&found, "/matches").len(), 2, "{found}");
}

/// What only folders can hold: folders that nobody may enter, and names that are not text.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recursive_listing_names_the_folders_that_it_could_not_enter() {
    let server = On::Folder.options().as_ordinary_user().start();
    let folder = server.new_folder();
    let account = Account::register(&server.client(), &unique_email("someone")).await;
    let workspace = account.folder_workspace("Bench", &folder).await;
    fs::create_dir_all(folder.join("open/closed")).unwrap();
    fs::write(folder.join("open/closed/a.txt"), "").unwrap();
    fs::write(folder.join("open/secret.txt"), "text\n").unwrap();
    fs::set_permissions(folder.join("open/secret.txt"), fs::Permissions::from_mode(0o000)).unwrap();
    let odd = std::os::unix::ffi::OsStringExt::from_vec(b"caf\xe9".to_vec());
    fs::write(folder.join::<std::ffi::OsString>(odd), "").unwrap();
    let closed = folder.join("open/closed");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let grep = workspace.ok("grep", json!({"pattern": "text"})).await;
    let search = FILE.ok(&workspace, "file.search", json!({"pattern": "text"})).await;
    let files = FILE.ok(&workspace, "file.list", json!({"pattern": "**"})).await;
    let listings = [
        (workspace.ok("ls", json!({"recursive": true})).await, "/open/closed"),
        (SYSTEM.ok(&workspace, "list_directory", json!({"path": ".", "recursive": true})).await, "open/closed"),
        (CODING.ok(&workspace, "ls", json!({"dirPath": ".", "recursive": true})).await, "open/closed"),
    ];
    let found = agent::text(&workspace, "grep", json!({"pattern": "nowhere"})).await;
    let tree = agent::text(&workspace, "ls", json!({"path": "open"})).await;
    // As a text for models.
    let list = json!({"name": "listFiles", "arguments": {"path": "."}});
    let request = Request::new("POST", &format!("/api/v1/workspaces/{}/mcp?toolset=backend", workspace.id))
        .bearer(&account.access_token)
        .header("Accept", "application/json, text/event-stream")
        .json(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": list}));
    let listed = server.client().send(request).await;
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(listed.text.contains("1 with an invalid name"), "{listed}");
    assert!(found.contains("2 not searched: could not be read"), "{found}");
    assert!(found.contains("1 not searched: no path can name"), "{found}");
    assert!(tree.contains("\nclosed/ could not be read\n") && !tree.contains("ignored"), "{tree}");
    for (listing, path) in listings {
        assert_eq!(listing["skipped"]["unreadable"], json!([path]), "{listing}");
        assert_eq!(listing["skipped"]["unnamed"], 1, "{listing}");
    }
    for found in [grep, search] {
        assert_eq!(found["skipped"]["unreadable"], 2, "a folder and a file: {found}");
    }
    assert_eq!(files["unreadable"], 1, "{files}");
}

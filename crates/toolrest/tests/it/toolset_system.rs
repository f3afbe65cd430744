//! The file tools of the `system` toolset: specification 002.

use serde_json::{Value, json};

use crate::on::{On, list_at, text_at};
use crate::toolset::SYSTEM;

on_every_backend![
    directories_are_listed,
    files_are_read_and_written_in_both_encodings,
    missing_parents_are_created_only_with_create_dirs,
    files_and_directories_are_deleted,
    a_move_replaces_a_file_only_with_overwrite,
    a_file_can_change_between_bytes_and_text,
    errors_have_the_codes_of_the_specification,
];

async fn directories_are_listed(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "12345").await;
    workspace.write("/.env", "x").await;
    workspace.write("/src/main.rs", "").await;
    workspace.write("/src/.cache/x", "").await;
    let names = async |args: Value| -> Vec<String> {
        let listed = SYSTEM.ok(&workspace, "list_directory", args).await;
        list_at(&listed, "/entries").iter().map(|entry| text_at(entry, "/name").to_owned()).collect()
    };
    assert_eq!(names(json!({"path": "."})).await, ["a.txt", "src"]);
    assert_eq!(names(json!({"path": "", "includeHidden": true})).await, [".env", "a.txt", "src"]);
    assert_eq!(names(json!({"path": ".", "recursive": true})).await, ["a.txt", "src", "src/main.rs"]);
    assert_eq!(
        names(json!({"path": "src", "recursive": true, "includeHidden": true})).await,
        [".cache", ".cache/x", "main.rs"]
    );
    let listed = SYSTEM.ok(&workspace, "list_directory", json!({"path": "."})).await;
    let file = &listed["entries"][0];
    assert_eq!((&file["type"], &file["size"]), (&json!("file"), &json!(5)));
    assert!(text_at(file, "/modified").ends_with('Z'), "{file}");
    assert_eq!(listed["entries"][1]["type"], "directory");
}

async fn files_are_read_and_written_in_both_encodings(on: On) {
    let workspace = on.workspace().await;
    let written = SYSTEM.ok(&workspace, "write_file", json!({"path": "a.txt", "content": "grüße"})).await;
    assert_eq!((&written["path"], &written["size"]), (&json!("a.txt"), &json!(7)));
    let read = SYSTEM.ok(&workspace, "read_file", json!({"path": "a.txt"})).await;
    assert_eq!((&read["content"], &read["size"]), (&json!("grüße"), &json!(7)));
    let encoded = SYSTEM.ok(&workspace, "read_file", json!({"path": "a.txt", "encoding": "base64"})).await;
    assert_eq!(encoded["content"], "Z3LDvMOfZQ==");
    let bytes = json!({"path": "b.bin", "content": "AAECAwD/", "encoding": "base64"});
    assert_eq!(SYSTEM.ok(&workspace, "write_file", bytes).await["size"], 6);
    SYSTEM.refused(&workspace, 400, "BINARY_FILE", "read_file", json!({"path": "b.bin"})).await;
    let back = SYSTEM.ok(&workspace, "read_file", json!({"path": "b.bin", "encoding": "base64"})).await;
    assert_eq!((&back["content"], &back["size"]), (&json!("AAECAwD/"), &json!(6)));
    let wrong = json!({"path": "c", "content": "not base64!", "encoding": "base64"});
    SYSTEM.refused(&workspace, 400, "INVALID_ARGUMENT", "write_file", wrong).await;
    let wrong = json!({"path": "c", "content": "x", "encoding": "latin1"});
    SYSTEM.refused(&workspace, 400, "INVALID_ARGUMENT", "write_file", wrong).await;
}

async fn missing_parents_are_created_only_with_create_dirs(on: On) {
    let workspace = on.workspace().await;
    SYSTEM.refused(&workspace, 404, "FILE_NOT_FOUND", "write_file", json!({"path": "a/b.txt", "content": "x"})).await;
    assert!(workspace.paths_below("/").await.is_empty());
    SYSTEM.ok(&workspace, "write_file", json!({"path": "a/b.txt", "content": "x", "createDirs": true})).await;
    assert_eq!(workspace.paths_below("/").await, ["/a", "/a/b.txt"]);
}

async fn files_and_directories_are_deleted(on: On) {
    let workspace = on.workspace().await;
    for path in ["/a.txt", "/dir/b.txt", "/dir/sub/c.txt"] {
        workspace.write(path, "x").await;
    }
    assert_eq!(SYSTEM.ok(&workspace, "delete_file", json!({"path": "a.txt"})).await, json!({"deleted": ["a.txt"]}));
    SYSTEM.refused(&workspace, 409, "NOT_EMPTY", "delete_file", json!({"path": "dir"})).await;
    let deleted = SYSTEM.ok(&workspace, "delete_file", json!({"path": "dir", "recursive": true})).await;
    assert_eq!(deleted, json!({"deleted": ["dir", "dir/b.txt", "dir/sub", "dir/sub/c.txt"]}));
    assert!(workspace.paths_below("/").await.is_empty());
    let commits = workspace.get("/commits").await.success();
    let newest = text_at(&list_at(&commits, "/commits")[0], "/id").to_owned();
    workspace.post(&format!("/commits/{newest}/undo"), &json!({})).await.success();
    assert_eq!(workspace.paths_below("/").await, ["/dir", "/dir/b.txt", "/dir/sub", "/dir/sub/c.txt"]);
    SYSTEM
        .refused(&workspace, 404, "FILE_NOT_FOUND", "delete_file", json!({"path": "nowhere", "recursive": true}))
        .await;
}

async fn a_move_replaces_a_file_only_with_overwrite(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "a").await;
    workspace.write("/b.txt", "b").await;
    workspace.write("/dir/c.txt", "c").await;
    SYSTEM.refused(&workspace, 409, "CONFLICT", "move_file", json!({"from": "a.txt", "to": "b.txt"})).await;
    let moved = SYSTEM.ok(&workspace, "move_file", json!({"from": "a.txt", "to": "b.txt", "overwrite": true})).await;
    assert_eq!(moved, json!({"from": "a.txt", "to": "b.txt"}));
    assert_eq!(workspace.text("/b.txt").await, "a");
    SYSTEM.refused(&workspace, 409, "CONFLICT", "move_file", json!({"from": "b.txt", "to": "dir"})).await;
    let onto_folder = json!({"from": "b.txt", "to": "dir", "overwrite": true});
    SYSTEM.refused(&workspace, 400, "INVALID_PATH", "move_file", onto_folder).await;
    SYSTEM.refused(&workspace, 404, "FILE_NOT_FOUND", "move_file", json!({"from": "b.txt", "to": "no/b.txt"})).await;
    SYSTEM.refused(&workspace, 404, "FILE_NOT_FOUND", "move_file", json!({"from": "x", "to": "y"})).await;
    SYSTEM.ok(&workspace, "move_file", json!({"from": "dir", "to": "other"})).await;
    assert_eq!(workspace.paths_below("/").await, ["/b.txt", "/other", "/other/c.txt"]);
}

async fn a_file_can_change_between_bytes_and_text(on: On) {
    let workspace = on.workspace().await;
    let file_type = async || {
        let listing = workspace.ok("ls", json!({})).await;
        text_at(&listing, "/entries/0/file_type").to_owned()
    };
    SYSTEM.ok(&workspace, "write_file", json!({"path": "a", "content": "text"})).await;
    assert_eq!(file_type().await, "Document");
    SYSTEM.ok(&workspace, "write_file", json!({"path": "a", "content": "AP8=", "encoding": "base64"})).await;
    assert_eq!(file_type().await, "File");
    workspace.refused(400, "VALIDATION_ERROR", "read", json!({"path": "/a"})).await;
    SYSTEM.ok(&workspace, "write_file", json!({"path": "a", "content": "text again"})).await;
    assert_eq!(file_type().await, "Document");
    assert_eq!(workspace.text("/a").await, "text again");
    let commits = workspace.get("/commits").await.success();
    let newest = text_at(&list_at(&commits, "/commits")[0], "/id").to_owned();
    workspace.post(&format!("/commits/{newest}/undo"), &json!({})).await.success();
    assert_eq!(file_type().await, "File");
}

async fn errors_have_the_codes_of_the_specification(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "x").await;
    SYSTEM.refused(&workspace, 404, "FILE_NOT_FOUND", "read_file", json!({"path": "b.txt"})).await;
    for path in ["../a.txt", "/a.txt"] {
        SYSTEM.refused(&workspace, 400, "INVALID_PATH", "read_file", json!({"path": path})).await;
    }
    SYSTEM.refused(&workspace, 400, "INVALID_ARGUMENT", "read_file", json!({})).await;
    SYSTEM
        .refused(&workspace, 400, "INVALID_ARGUMENT", "read_file", json!({"path": "a.txt", "encodign": "utf-8"}))
        .await;
    let stale = json!({"path": "a.txt", "content": "y", "expectedHash": "0".repeat(64)});
    SYSTEM.refused(&workspace, 409, "CONFLICT", "write_file", stale).await;
    let stranger = workspace.for_user(&on.account().await);
    SYSTEM.refused(&stranger, 403, "PERMISSION_DENIED", "read_file", json!({"path": "a.txt"})).await;
}

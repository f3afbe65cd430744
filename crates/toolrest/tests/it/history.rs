//! Versions, trash, restore and the record of calls.

use std::time::Duration;

use serde_json::{Value, json};
use toolrest_testkit::{Workspace, eventually, sha256_hex};

use crate::on::{On, list_at, text_at};

on_every_backend![
    a_file_is_found_by_its_id,
    versions_are_listed_newest_first,
    an_old_version_is_read_as_it_was,
    removed_files_are_in_the_trash,
    a_restored_file_is_as_it_was,
    a_restore_brings_back_the_folder_that_is_gone,
    a_restore_goes_into_a_folder_made_anew,
    a_restore_onto_a_taken_path_is_a_conflict,
    a_restore_through_a_file_is_a_conflict,
    a_removed_folder_can_be_restored,
    commits_are_listed_newest_first_with_their_changes,
    a_read_and_a_refusal_make_no_commit,
    every_call_is_recorded_reads_writes_and_failures;
    an_old_version_of_json_is_read_as_it_was_given,
];

async fn restore(workspace: &Workspace, file: &Value) -> toolrest_testkit::Reply {
    let id = text_at(file, "/file_id");
    workspace.post(&format!("/files/{id}/restore"), &json!({})).await
}

async fn trash(workspace: &Workspace) -> Vec<String> {
    let trash = workspace.get("/trash").await.success();
    let files = list_at(&trash, "/files");
    assert_eq!(trash["count"], files.len());
    files.iter().map(|file| text_at(file, "/path").to_owned()).collect()
}

async fn a_file_is_found_by_its_id(on: On) {
    let workspace = on.workspace().await;
    let written = workspace.write("/d/a.txt", "text").await;
    let id = text_at(&written, "/file_id");
    let found = workspace.get(&format!("/files/{id}")).await.success();
    let file = &found["file"];
    assert_eq!(file["id"], id);
    assert_eq!(file["path"], "/d/a.txt");
    assert_eq!(file["name"], "a.txt");
    assert_eq!(file["display_name"], "a.txt");
    assert_eq!(file["file_type"], "Document");
    assert_eq!(file["is_virtual"], false);
    assert_eq!(file["size"], 4);
    assert_eq!(file["hash"], sha256_hex("text"));
    assert_eq!(file["version_id"], written["version_id"]);
    assert_eq!(file["deleted_at"], Value::Null);
    assert_eq!(found["content"], "text");
}

async fn versions_are_listed_newest_first(on: On) {
    let workspace = on.workspace().await;
    let mut written = Vec::new();
    for text in ["one", "two!", "three"] {
        written.push(workspace.write("/a.txt", text).await);
    }
    let id = text_at(&written[0], "/file_id");
    let listed = workspace.get(&format!("/files/{id}/versions")).await.success();
    let versions = list_at(&listed, "/versions");
    assert_eq!(versions.len(), 3);
    for (version, (written, text)) in versions.iter().zip(written.iter().zip(["one", "two!", "three"]).rev()) {
        assert_eq!(version["id"], written["version_id"]);
        assert_eq!(version["hash"], sha256_hex(text));
        assert_eq!(version["size"], text.len());
        assert!(version["commit_id"].is_string(), "{version}");
    }
    let numbers: Vec<_> = versions.iter().map(|v| v["seq"].as_i64().unwrap()).collect();
    assert!(numbers.is_sorted_by(|a, b| a > b), "{numbers:?}");
}

async fn an_old_version_is_read_as_it_was(on: On) {
    let workspace = on.workspace().await;
    let first = workspace.write("/a.txt", "first\r\n").await;
    workspace.write("/a.txt", "second").await;
    let id = text_at(&first, "/file_id");
    let version = text_at(&first, "/version_id");
    let path = format!("/files/{id}/versions/{version}");
    let old = workspace.get(&path).await.success();
    assert_eq!(old["content"], "first\r\n");
    assert_eq!(old["version"]["id"], version);
    assert_eq!(old["version"]["hash"], first["hash"]);
}

async fn an_old_version_of_json_is_read_as_it_was_given(on: On) {
    let workspace = on.workspace().await;
    let content = r#"{"z":1.0,"a":1e5}"#;
    let call = format!(r#"{{"tool":"write","args":{{"path":"/a","content":{content},"file_type":"canvas"}}}}"#);
    let first = workspace.call_text(&call).await.result();
    workspace.ok("write", json!({"path": "/a", "content": {}})).await;
    let id = text_at(&first, "/file_id");
    let version = text_at(&first, "/version_id");
    let old = workspace.get(&format!("/files/{id}/versions/{version}")).await;
    old.success();
    assert!(old.text.contains(content), "{old}");
}

async fn removed_files_are_in_the_trash(on: On) {
    let workspace = on.workspace().await;
    assert!(trash(&workspace).await.is_empty());
    let written = workspace.write("/a.txt", "text").await;
    workspace.write("/kept.txt", "text").await;
    workspace.ok("rm", json!({"path": "/a.txt"})).await;
    let listed = workspace.get("/trash").await.success();
    assert_eq!(list_at(&listed, "/files").len(), 1);
    assert_eq!(listed["files"][0]["id"], written["file_id"]);
    assert_eq!(listed["files"][0]["path"], "/a.txt");
    assert!(listed["files"][0]["deleted_at"].is_string(), "{listed}");
}

async fn a_restored_file_is_as_it_was(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "first").await;
    let file = workspace.write("/a.txt", "second").await;
    workspace.ok("rm", json!({"path": "/a.txt"})).await;
    let restored = restore(&workspace, &file).await.success();
    assert_eq!(restored["file"]["id"], file["file_id"]);
    assert_eq!(restored["file"]["path"], "/a.txt");
    assert_eq!(restored["file"]["deleted_at"], Value::Null);
    assert_eq!(workspace.text("/a.txt").await, "second");
    assert!(trash(&workspace).await.is_empty());
    let id = text_at(&file, "/file_id");
    let versions = workspace.get(&format!("/files/{id}/versions")).await.success();
    assert!(list_at(&versions, "/versions").len() >= 2, "{versions}");
}

async fn a_restore_brings_back_the_folder_that_is_gone(on: On) {
    let workspace = on.workspace().await;
    let file = workspace.write("/d/e/a.txt", "text").await;
    for path in ["/d/e/a.txt", "/d/e", "/d"] {
        workspace.ok("rm", json!({"path": path})).await;
    }
    restore(&workspace, &file).await.success();
    assert_eq!(workspace.paths_below("/").await, ["/d", "/d/e", "/d/e/a.txt"], "no orphan");
    assert_eq!(workspace.paths_in("/d/e").await, ["/d/e/a.txt"]);
    assert_eq!(workspace.text("/d/e/a.txt").await, "text");
    workspace.refused(409, "CONFLICT", "rm", json!({"path": "/d"})).await;
}

async fn a_restore_goes_into_a_folder_made_anew(on: On) {
    let workspace = on.workspace().await;
    let file = workspace.write("/d/a.txt", "text").await;
    workspace.ok("rm", json!({"path": "/d/a.txt"})).await;
    workspace.ok("rm", json!({"path": "/d"})).await;
    workspace.write("/d/b.txt", "other").await;
    restore(&workspace, &file).await.success();
    assert_eq!(workspace.paths_below("/").await, ["/d", "/d/a.txt", "/d/b.txt"]);
}

async fn a_restore_onto_a_taken_path_is_a_conflict(on: On) {
    let workspace = on.workspace().await;
    let file = workspace.write("/a.txt", "old").await;
    workspace.ok("rm", json!({"path": "/a.txt"})).await;
    workspace.write("/a.txt", "new").await;
    restore(&workspace, &file).await.refused(409, "CONFLICT");
    assert_eq!(workspace.text("/a.txt").await, "new");
    assert_eq!(trash(&workspace).await, ["/a.txt"]);
}

async fn a_restore_through_a_file_is_a_conflict(on: On) {
    let workspace = on.workspace().await;
    let file = workspace.write("/d/a.txt", "old").await;
    workspace.ok("rm", json!({"path": "/d/a.txt"})).await;
    workspace.ok("rm", json!({"path": "/d"})).await;
    workspace.write("/d", "a file now").await;
    restore(&workspace, &file).await.refused(409, "CONFLICT");
    assert_eq!(workspace.paths_below("/").await, ["/d"]);
}

async fn a_removed_folder_can_be_restored(on: On) {
    let workspace = on.workspace().await;
    let folder = workspace.ok("mkdir", json!({"path": "/d"})).await;
    workspace.ok("rm", json!({"path": "/d"})).await;
    let restored = restore(&workspace, &folder).await.success();
    assert_eq!(restored["file"]["file_type"], "Folder");
    assert_eq!(workspace.paths_below("/").await, ["/d"]);
}

async fn commits_are_listed_newest_first_with_their_changes(on: On) {
    let workspace = on.workspace().await;
    let file = workspace.write("/a.txt", "text").await;
    let moved = json!({"source": "/a.txt", "destination": "/b.txt"});
    workspace.ok("mv", moved).await;
    workspace.ok("rm", json!({"path": "/b.txt"})).await;
    let listed = workspace.get("/commits").await.success();
    let commits = list_at(&listed, "/commits");
    let tools: Vec<_> = commits.iter().map(|c| text_at(c, "/tool")).collect();
    assert_eq!(tools, ["rm", "mv", "write"]);
    for commit in commits {
        assert_eq!(commit["toolset"], "workspace");
        assert_eq!(commit["undoes"], Value::Null);
        assert!(commit["call_id"].is_string(), "{commit}");
        assert!(commit["author"].is_string() || commit["author"].is_object());
        let changes = list_at(commit, "/changes");
        assert_eq!(changes.len(), 1, "{commit}");
        assert_eq!(changes[0]["file_id"], file["file_id"]);
    }
    assert_eq!(commits[1]["changes"][0]["path"], "/b.txt");
    assert_eq!(commits[1]["changes"][0]["from"], "/a.txt");
}

async fn a_read_and_a_refusal_make_no_commit(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "text").await;
    workspace.read("/a.txt").await;
    workspace.ok("ls", json!({})).await;
    workspace.refused(404, "NOT_FOUND", "rm", json!({"path": "/missing"})).await;
    let listed = workspace.get("/commits").await.success();
    assert_eq!(list_at(&listed, "/commits").len(), 1);
}

async fn every_call_is_recorded_reads_writes_and_failures(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "text").await;
    workspace.read("/a.txt").await;
    workspace.refused(404, "NOT_FOUND", "read", json!({"path": "/missing"})).await;
    workspace.refused(404, "NOT_FOUND", "rm", json!({"path": "/missing"})).await;
    workspace.refused(400, "VALIDATION_ERROR", "ls", json!({"pth": "/"})).await;
    let calls = eventually("all calls are recorded", Duration::from_secs(5), async || {
        let listed = workspace.get("/calls").await.success();
        let calls = list_at(&listed, "/calls").to_vec();
        (calls.len() == 5).then_some(calls)
    })
    .await;
    let tools: Vec<_> = calls.iter().map(|call| text_at(call, "/tool")).collect();
    assert_eq!(tools, ["ls", "rm", "read", "read", "write"], "newest first");
    let success = &calls[4]["outcome"];
    assert_eq!(&calls[3]["outcome"], success);
    for (failed, call) in calls[..3].iter().enumerate() {
        assert_ne!(&call["outcome"], success, "failure {failed}");
    }
    let commits = workspace.get("/commits").await.success();
    assert_eq!(calls[4]["commit_id"], commits["commits"][0]["id"]);
    assert_eq!(calls[4]["id"], commits["commits"][0]["call_id"]);
    for call in &calls {
        assert_eq!(call["toolset"], "workspace");
        assert!(call["duration_us"].is_u64(), "{call}");
        assert!(call["started_at"].is_string(), "{call}");
    }
}

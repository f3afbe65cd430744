//! `mv` of the `workspace` toolset.

use serde_json::json;
use toolrest_testkit::Workspace;

use crate::on::{On, text_at};

on_every_backend![
    a_move_keeps_the_file_and_its_history,
    a_move_into_an_existing_folder_keeps_the_name,
    a_destination_with_a_slash_must_be_a_folder_that_exists,
    a_missing_source_is_not_found,
    a_missing_parent_is_not_found_and_not_made,
    a_parent_that_is_a_file_is_a_conflict,
    an_existing_file_is_never_overwritten,
    a_move_onto_itself_is_a_conflict,
    a_folder_cannot_be_moved_into_itself,
    a_folder_moves_with_all_that_is_below_it,
    a_folder_moves_without_folders_of_similar_names,
    a_rename_may_change_only_the_case,
    a_move_can_go_to_the_root,
    a_move_leaves_what_was_removed_in_the_trash,
];

async fn moved(workspace: &Workspace, source: &str, destination: &str) -> String {
    let args = json!({"source": source, "destination": destination});
    let result = workspace.ok("mv", args).await;
    text_at(&result, "/to_path").to_owned()
}

async fn refused(workspace: &Workspace, source: &str, destination: &str, status: u16, code: &str) {
    let before = workspace.paths_below("/").await;
    let args = json!({"source": source, "destination": destination});
    workspace.refused(status, code, "mv", args).await;
    assert_eq!(workspace.paths_below("/").await, before);
}

async fn a_move_keeps_the_file_and_its_history(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "first").await;
    let file = workspace.write("/a.txt", "second").await;
    assert_eq!(moved(&workspace, "/a.txt", "/b.txt").await, "/b.txt");
    let id = text_at(&file, "/file_id");
    let found = workspace.get(&format!("/files/{id}")).await.success();
    assert_eq!(found["file"]["path"], "/b.txt");
    assert_eq!(found["file"]["name"], "b.txt");
    assert_eq!(found["content"], "second");
    let versions = workspace.get(&format!("/files/{id}/versions")).await.success();
    let hashes: Vec<_> = versions["versions"].as_array().unwrap().iter().collect();
    assert!(hashes.len() >= 2, "{versions}");
    let again = workspace.write("/b.txt", "third").await;
    assert_eq!(again["file_id"], file["file_id"]);
    let listing = workspace.ok("ls", json!({})).await;
    assert_eq!(listing["entries"][0]["display_name"], "b.txt");
}

async fn a_move_into_an_existing_folder_keeps_the_name(on: On) {
    let workspace = on.workspace().await;
    workspace.ok("mkdir", json!({"path": "/d/e"})).await;
    workspace.write("/a.txt", "text").await;
    assert_eq!(moved(&workspace, "/a.txt", "/d").await, "/d/a.txt");
    assert_eq!(moved(&workspace, "/d/a.txt", "/d/e/").await, "/d/e/a.txt");
    assert_eq!(workspace.text("/d/e/a.txt").await, "text");
}

async fn a_destination_with_a_slash_must_be_a_folder_that_exists(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/x", "text").await;
    workspace.write("/file", "text").await;
    refused(&workspace, "/x", "/newdir/", 404, "NOT_FOUND").await;
    refused(&workspace, "/x", "/file/", 409, "CONFLICT").await;
}

async fn a_missing_source_is_not_found(on: On) {
    let workspace = on.workspace().await;
    workspace.ok("mkdir", json!({"path": "/d"})).await;
    for destination in ["/b", "/d", "/d/"] {
        refused(&workspace, "/missing", destination, 404, "NOT_FOUND").await;
    }
}

async fn a_missing_parent_is_not_found_and_not_made(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "text").await;
    workspace.write("/d/b.txt", "text").await;
    refused(&workspace, "/a.txt", "/no/a.txt", 404, "NOT_FOUND").await;
    refused(&workspace, "/d", "/no/where/d", 404, "NOT_FOUND").await;
}

async fn a_parent_that_is_a_file_is_a_conflict(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "text").await;
    workspace.write("/file", "text").await;
    workspace.write("/d/b.txt", "text").await;
    refused(&workspace, "/a.txt", "/file/a.txt", 409, "CONFLICT").await;
    refused(&workspace, "/d", "/file/d", 409, "CONFLICT").await;
}

async fn an_existing_file_is_never_overwritten(on: On) {
    let workspace = on.workspace().await;
    for path in ["/a.txt", "/b.txt", "/d/a.txt"] {
        workspace.write(path, path).await;
    }
    refused(&workspace, "/a.txt", "/b.txt", 409, "CONFLICT").await;
    refused(&workspace, "/a.txt", "/d", 409, "CONFLICT").await;
    refused(&workspace, "/a.txt", "/d/", 409, "CONFLICT").await;
    refused(&workspace, "/d", "/a.txt", 409, "CONFLICT").await;
    for path in ["/a.txt", "/b.txt", "/d/a.txt"] {
        assert_eq!(workspace.text(path).await, path);
    }
}

async fn a_move_onto_itself_is_a_conflict(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/d/a.txt", "text").await;
    refused(&workspace, "/d/a.txt", "/d/a.txt", 409, "CONFLICT").await;
    refused(&workspace, "/d/a.txt", "/d/", 409, "CONFLICT").await;
    refused(&workspace, "/d/a.txt", "/d", 409, "CONFLICT").await;
    refused(&workspace, "/d", "/", 409, "CONFLICT").await;
}

async fn a_folder_cannot_be_moved_into_itself(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/d/e/a.txt", "text").await;
    for destination in ["/d/e", "/d/e/", "/d/e/f", "/d/new"] {
        refused(&workspace, "/d", destination, 400, "VALIDATION_ERROR").await;
    }
    // Onto itself, or into itself: the specification of the `workspace` toolset names both, and either is refused.
    let args = json!({"source": "/d", "destination": "/d"});
    let reply = workspace.call("mv", &args).await;
    assert!([400, 409].contains(&reply.status), "{reply}");
    assert_eq!(workspace.paths_below("/").await, ["/d", "/d/e", "/d/e/a.txt"]);
}

async fn a_folder_moves_with_all_that_is_below_it(on: On) {
    let workspace = on.workspace().await;
    let file = workspace.write("/d/e/f/a.txt", "a").await;
    workspace.write("/d/b.txt", "b").await;
    workspace.ok("mkdir", json!({"path": "/d/empty"})).await;
    workspace.ok("mkdir", json!({"path": "/to"})).await;
    assert_eq!(moved(&workspace, "/d", "/to").await, "/to/d");
    assert_eq!(
        workspace.paths_below("/").await,
        ["/to", "/to/d", "/to/d/b.txt", "/to/d/e", "/to/d/e/f", "/to/d/e/f/a.txt", "/to/d/empty"]
    );
    assert_eq!(workspace.paths_in("/to/d/e").await, ["/to/d/e/f"]);
    assert_eq!(workspace.text("/to/d/e/f/a.txt").await, "a");
    workspace.refused(404, "NOT_FOUND", "read", json!({"path": "/d/b.txt"})).await;
    let id = text_at(&file, "/file_id");
    let found = workspace.get(&format!("/files/{id}")).await.success();
    assert_eq!(found["file"]["path"], "/to/d/e/f/a.txt");
    let commits = workspace.get("/commits").await.success();
    assert_eq!(commits["commits"][0]["tool"], "mv", "one step: {commits}");
    assert_ne!(commits["commits"][1]["tool"], "mv", "one step: {commits}");
}

async fn a_folder_moves_without_folders_of_similar_names(on: On) {
    let workspace = on.workspace().await;
    for path in ["/a_b/x", "/axb/x", "/a_bc/x", "/A_B/x", "/a_b.txt"] {
        workspace.write(path, path).await;
    }
    moved(&workspace, "/a_b", "/moved").await;
    assert_eq!(
        workspace.paths_below("/").await,
        ["/A_B", "/A_B/x", "/a_b.txt", "/a_bc", "/a_bc/x", "/axb", "/axb/x", "/moved", "/moved/x"]
    );
}

async fn a_rename_may_change_only_the_case(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/readme.md", "text").await;
    moved(&workspace, "/readme.md", "/README.md").await;
    assert_eq!(workspace.paths_in("/").await, ["/README.md"]);
}

async fn a_move_can_go_to_the_root(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/d/a.txt", "text").await;
    assert_eq!(moved(&workspace, "/d/a.txt", "/").await, "/a.txt");
    assert_eq!(workspace.paths_below("/").await, ["/a.txt", "/d"]);
}

async fn a_move_leaves_what_was_removed_in_the_trash(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/d/kept.txt", "kept").await;
    let gone = workspace.write("/d/gone.txt", "gone").await;
    workspace.ok("rm", json!({"path": "/d/gone.txt"})).await;
    moved(&workspace, "/d", "/e").await;
    assert_eq!(workspace.paths_below("/").await, ["/e", "/e/kept.txt"]);
    let id = text_at(&gone, "/file_id");
    workspace.post(&format!("/files/{id}/restore"), &json!({})).await.success();
    let paths = workspace.paths_below("/").await;
    let restored = paths.iter().find(|path| path.ends_with("/gone.txt"));
    let restored = restored.unwrap_or_else(|| panic!("not restored: {paths:?}"));
    assert_eq!(workspace.text(restored).await, "gone");
    let parent = restored.rsplit_once('/').unwrap().0;
    assert!(paths.iter().any(|path| path == parent), "orphan: {paths:?}");
}

//! Undo: the inverse of a commit, under the same checks.

use serde_json::json;
use toolrest_testkit::{Reply, Workspace};

use crate::on::{On, text_at};

on_every_backend![
    undoing_the_write_of_a_new_file_removes_it,
    undoing_an_update_brings_the_former_content_back,
    undoing_an_edit_brings_the_former_content_back,
    undoing_a_mkdir_removes_the_folder,
    undoing_an_rm_brings_the_file_back,
    undoing_a_move_moves_back,
    undoing_the_move_of_a_folder_moves_all_of_it_back,
    an_undo_can_be_undone,
    an_undo_is_refused_when_the_file_changed_since,
    commits_are_undone_one_after_the_other,
    an_undo_is_refused_when_the_same_content_was_written_again,
    an_undo_of_an_rm_is_refused_when_the_path_is_taken,
    an_undo_of_a_mkdir_is_refused_when_the_folder_is_in_use,
    an_unknown_commit_is_not_found,
    a_commit_is_shown_as_a_diff,
];

async fn last_commit(workspace: &Workspace) -> String {
    let listed = workspace.get("/commits").await.success();
    text_at(&listed, "/commits/0/id").to_owned()
}

async fn undo(workspace: &Workspace, commit: &str) -> Reply {
    workspace.post(&format!("/commits/{commit}/undo"), &json!({})).await
}

async fn undo_last(workspace: &Workspace) {
    let commit = last_commit(workspace).await;
    let done = undo(workspace, &commit).await.success();
    assert_eq!(done["commit"]["undoes"], commit);
    assert_eq!(text_at(&done, "/commit/id"), last_commit(workspace).await, "an undo is a commit too");
}

async fn undoing_the_write_of_a_new_file_removes_it(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/kept.txt", "kept").await;
    workspace.write("/a.txt", "text").await;
    undo_last(&workspace).await;
    assert_eq!(workspace.paths_below("/").await, ["/kept.txt"]);
}

async fn undoing_an_update_brings_the_former_content_back(on: On) {
    let workspace = on.workspace().await;
    let first = workspace.write("/a.txt", "first").await;
    workspace.write("/a.txt", "second").await;
    undo_last(&workspace).await;
    let read = workspace.read("/a.txt").await;
    assert_eq!(read["content"], "first");
    assert_eq!(read["hash"], first["hash"]);
}

async fn undoing_an_edit_brings_the_former_content_back(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "one\r\ntwo").await;
    let args = json!({"path": "/a.txt", "old_string": "two", "new_string": "2"});
    workspace.ok("edit", args).await;
    undo_last(&workspace).await;
    assert_eq!(workspace.text("/a.txt").await, "one\r\ntwo");
}

async fn undoing_a_mkdir_removes_the_folder(on: On) {
    let workspace = on.workspace().await;
    workspace.ok("mkdir", json!({"path": "/d"})).await;
    undo_last(&workspace).await;
    assert!(workspace.paths_below("/").await.is_empty());
}

async fn undoing_an_rm_brings_the_file_back(on: On) {
    let workspace = on.workspace().await;
    let file = workspace.write("/d/a.txt", "text").await;
    workspace.ok("rm", json!({"path": "/d/a.txt"})).await;
    undo_last(&workspace).await;
    assert_eq!(workspace.text("/d/a.txt").await, "text");
    let again = workspace.write("/d/a.txt", "new").await;
    assert_eq!(again["file_id"], file["file_id"]);
}

async fn undoing_a_move_moves_back(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "text").await;
    let args = json!({"source": "/a.txt", "destination": "/b.txt"});
    workspace.ok("mv", args).await;
    undo_last(&workspace).await;
    assert_eq!(workspace.paths_below("/").await, ["/a.txt"]);
    assert_eq!(workspace.text("/a.txt").await, "text");
}

async fn undoing_the_move_of_a_folder_moves_all_of_it_back(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/d/e/a.txt", "text").await;
    let args = json!({"source": "/d", "destination": "/x"});
    workspace.ok("mv", args).await;
    undo_last(&workspace).await;
    assert_eq!(workspace.paths_below("/").await, ["/d", "/d/e", "/d/e/a.txt"]);
    assert_eq!(workspace.text("/d/e/a.txt").await, "text");
}

async fn an_undo_can_be_undone(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "first").await;
    workspace.write("/a.txt", "second").await;
    undo_last(&workspace).await;
    undo_last(&workspace).await;
    assert_eq!(workspace.text("/a.txt").await, "second");
}

async fn an_undo_is_refused_when_the_file_changed_since(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "first").await;
    let created = last_commit(&workspace).await;
    workspace.write("/a.txt", "second").await;
    let updated = last_commit(&workspace).await;
    workspace.write("/a.txt", "third").await;
    for commit in [created, updated] {
        undo(&workspace, &commit).await.refused(409, "CONFLICT");
    }
    assert_eq!(workspace.text("/a.txt").await, "third");
}

async fn an_undo_of_an_rm_is_refused_when_the_path_is_taken(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "old").await;
    workspace.ok("rm", json!({"path": "/a.txt"})).await;
    let removal = last_commit(&workspace).await;
    workspace.write("/a.txt", "new").await;
    undo(&workspace, &removal).await.refused(409, "CONFLICT");
    assert_eq!(workspace.text("/a.txt").await, "new");
}

async fn an_undo_of_a_mkdir_is_refused_when_the_folder_is_in_use(on: On) {
    let workspace = on.workspace().await;
    workspace.ok("mkdir", json!({"path": "/d"})).await;
    let made = last_commit(&workspace).await;
    workspace.write("/d/a.txt", "text").await;
    undo(&workspace, &made).await.refused(409, "CONFLICT");
    assert_eq!(workspace.text("/d/a.txt").await, "text");
}

async fn commits_are_undone_one_after_the_other(on: On) {
    let workspace = on.workspace().await;
    let mut commits = Vec::new();
    for text in ["one", "two", "three", "four"] {
        workspace.write("/a.txt", text).await;
        commits.push(last_commit(&workspace).await);
    }
    for (commit, text) in commits.iter().zip(["", "one", "two", "three"]).skip(1).rev() {
        undo(&workspace, commit).await.success();
        assert_eq!(workspace.text("/a.txt").await, text);
    }
    undo(&workspace, &commits[0]).await.success();
    assert!(workspace.paths_below("/").await.is_empty());
}

async fn an_undo_is_refused_when_the_same_content_was_written_again(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "one").await;
    let first = last_commit(&workspace).await;
    workspace.write("/a.txt", "two").await;
    workspace.write("/a.txt", "one").await;
    undo(&workspace, &first).await.refused(409, "CONFLICT");
    assert_eq!(workspace.text("/a.txt").await, "one");
}

async fn an_unknown_commit_is_not_found(on: On) {
    let workspace = on.workspace().await;
    undo(&workspace, "019b97ac-e5f5-735b-b0a6-f3a34fcd4ff1").await.refused(404, "NOT_FOUND");
}

async fn a_commit_is_shown_as_a_diff(on: On) {
    let workspace = on.workspace().await;
    let diff = async || {
        let path = format!("/commits/{}/diff", last_commit(&workspace).await);
        text_at(&workspace.get(&path).await.success(), "/diff").to_owned()
    };
    workspace.write("/a.txt", "one\ntwo\n").await;
    assert_eq!(diff().await, "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n");
    workspace.ok("edit", json!({"path": "/a.txt", "old_string": "two", "new_string": "2"})).await;
    let edited = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n";
    assert_eq!(diff().await, edited);
    undo_last(&workspace).await;
    assert_eq!(diff().await, "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-2\n+two\n");
    workspace.ok("mv", json!({"source": "/a.txt", "destination": "/b.txt"})).await;
    assert_eq!(diff().await, "diff --git a/a.txt b/b.txt\nrename from a.txt\nrename to b.txt\n");
    workspace.ok("rm", json!({"path": "/b.txt"})).await;
    assert_eq!(diff().await, "--- a/b.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n");
    let stranger = on.account().await;
    let path = format!("/commits/{}/diff", last_commit(&workspace).await);
    workspace.for_user(&stranger).get(&path).await.refused(403, "FORBIDDEN");
}

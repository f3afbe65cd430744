//! Every id in a route is looked up only in the workspace of the route.

use serde_json::{Value, json};
use toolrest_testkit::Workspace;

use crate::on::{On, text_at};

on_both_databases![
    ids_of_one_workspace_are_not_found_in_another,
    a_version_of_one_file_is_not_found_under_another,
    equal_paths_in_two_workspaces_are_two_files,
    an_id_that_is_no_id_is_refused_in_shape,
];

/// Ids of everything that a workspace has.
struct Ids {
    file: String,
    version: String,
    removed: String,
    commit: String,
    chat: String,
    member: String,
}

const SECRET: &str = "the secret of workspace A";

async fn furnish(on: On, workspace: &Workspace) -> Ids {
    let file = workspace.write("/plans.txt", SECRET).await;
    let removed = workspace.write("/removed.txt", SECRET).await;
    workspace.ok("rm", json!({"path": "/removed.txt"})).await;
    workspace.write("/plans.txt", SECRET).await;
    let commits = workspace.get("/commits").await.success();
    let chat = workspace.post("/chats", &json!({"title": SECRET})).await;
    let chat = text_at(&chat.success(), "/chat/id").to_owned();
    let message = json!({"role": "user", "content": SECRET});
    workspace.post(&format!("/chats/{chat}/messages"), &message).await.success();
    let member = on.account().await;
    workspace.add_member(&member, "editor").await;
    let text = |value: &Value, pointer: &str| text_at(value, pointer).to_owned();
    Ids {
        file: text(&file, "/file_id"),
        version: text(&file, "/version_id"),
        removed: text(&removed, "/file_id"),
        commit: text(&commits, "/commits/0/id"),
        chat,
        member: member.id,
    }
}

async fn ids_of_one_workspace_are_not_found_in_another(on: On) {
    let theirs = on.workspace().await;
    let ids = furnish(on, &theirs).await;
    let own = on.workspace().await;
    let own_file = own.write("/own.txt", "own").await;
    let own_file = text_at(&own_file, "/file_id");
    let before = theirs.paths_below("/").await;
    let message = json!({"role": "user", "content": "hello"});
    for (method, path, body) in [
        ("GET", format!("/files/{}", ids.file), None),
        ("GET", format!("/files/{}/versions", ids.file), None),
        ("GET", format!("/files/{}/versions/{}", ids.file, ids.version), None),
        ("GET", format!("/files/{own_file}/versions/{}", ids.version), None),
        ("POST", format!("/files/{}/restore", ids.removed), Some(json!({}))),
        ("POST", format!("/commits/{}/undo", ids.commit), Some(json!({}))),
        ("GET", format!("/chats/{}", ids.chat), None),
        ("POST", format!("/chats/{}/messages", ids.chat), Some(message)),
        ("PATCH", format!("/members/{}", ids.member), Some(json!({"role": "owner"}))),
        ("DELETE", format!("/members/{}", ids.member), None),
        ("DELETE", format!("/members/{}", theirs.account.id), None),
    ] {
        let reply = own.send(method, &path, body.as_ref()).await;
        reply.refused(404, "NOT_FOUND");
        assert!(!reply.text.contains(SECRET), "{reply}");
    }
    assert_eq!(theirs.paths_below("/").await, before);
    assert_eq!(theirs.text("/plans.txt").await, SECRET);
    assert_eq!(theirs.get("/trash").await.success()["count"], 1);
    assert_eq!(theirs.get("/members").await.success()["count"], 2);
    let chat = theirs.get(&format!("/chats/{}", ids.chat)).await.success();
    assert_eq!(chat["chat"]["messages"].as_array().unwrap().len(), 1);
    for path in ["/trash", "/commits", "/members", "/calls"] {
        let reply = own.get(path).await;
        reply.success();
        assert!(!reply.text.contains(&ids.file), "{reply}");
    }
}

async fn a_version_of_one_file_is_not_found_under_another(on: On) {
    let workspace = on.workspace().await;
    let one = workspace.write("/one.txt", "one").await;
    let other = workspace.write("/other.txt", "other").await;
    let path = format!("/files/{}/versions/{}", text_at(&one, "/file_id"), text_at(&other, "/version_id"));
    workspace.get(&path).await.refused(404, "NOT_FOUND");
}

async fn equal_paths_in_two_workspaces_are_two_files(on: On) {
    let account = on.account().await;
    let (one, other) = (account.workspace("One").await, account.workspace("Other").await);
    one.write("/a.txt", "one").await;
    other.write("/a.txt", "other").await;
    assert_eq!(one.text("/a.txt").await, "one");
    assert_eq!(other.text("/a.txt").await, "other");
    one.ok("rm", json!({"path": "/a.txt"})).await;
    assert_eq!(other.paths_below("/").await, ["/a.txt"]);
}

async fn an_id_that_is_no_id_is_refused_in_shape(on: On) {
    let workspace = on.workspace().await;
    for path in [
        "/files/no-uuid",
        "/files/no-uuid/versions",
        "/files/019b97ac-e5f5-735b-b0a6-f3a34fcd4ff1/versions/1",
        "/files/%00",
        "/chats/no-uuid",
    ] {
        let reply = workspace.get(path).await;
        reply.error_shape();
        assert!([400, 404].contains(&reply.status), "{reply}");
    }
}

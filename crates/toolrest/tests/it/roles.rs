//! The rights of owners, editors and viewers.

use serde_json::json;
use toolrest_testkit::{Account, Workspace};

use crate::on::{On, list_at, text_at};

on_both_databases![
    a_viewer_can_read_everything,
    a_viewer_cannot_change_anything_by_any_tool,
    a_viewer_cannot_change_anything_by_any_route,
    a_viewer_is_refused_before_the_arguments_are_checked,
    an_editor_can_use_every_tool,
    an_editor_cannot_change_their_own_role,
    a_changed_role_counts_at_once,
    members_are_listed_with_their_roles,
    an_unknown_role_or_user_is_refused,
];

async fn with_member(on: On, role: &str) -> (Workspace, Account) {
    let workspace = on.workspace().await;
    let member = on.account().await;
    workspace.add_member(&member, role).await;
    (workspace, member)
}

async fn a_viewer_can_read_everything(on: On) {
    let (workspace, viewer) = with_member(on, "viewer").await;
    let file = workspace.write("/a.txt", "text").await;
    let seen = workspace.for_user(&viewer);
    assert_eq!(seen.text("/a.txt").await, "text");
    assert_eq!(seen.paths_in("/").await, ["/a.txt"]);
    let id = text_at(&file, "/file_id");
    for path in ["", "/members", "/trash", "/commits", &format!("/files/{id}"), &format!("/files/{id}/versions")] {
        seen.get(path).await.success();
    }
}

async fn a_viewer_cannot_change_anything_by_any_tool(on: On) {
    let (workspace, viewer) = with_member(on, "viewer").await;
    workspace.write("/a.txt", "text").await;
    workspace.ok("mkdir", json!({"path": "/d"})).await;
    let seen = workspace.for_user(&viewer);
    let edit = json!({"path": "/a.txt", "old_string": "text", "new_string": "x"});
    for (tool, args) in [
        ("write", json!({"path": "/a.txt", "content": "x"})),
        ("write", json!({"path": "/new.txt", "content": "x"})),
        ("write", json!({"path": "/f", "content": {}, "file_type": "folder"})),
        ("rm", json!({"path": "/a.txt"})),
        ("rm", json!({"path": "/d"})),
        ("mv", json!({"source": "/a.txt", "destination": "/d/"})),
        ("touch", json!({"path": "/a.txt"})),
        ("touch", json!({"path": "/new.txt"})),
        ("mkdir", json!({"path": "/new"})),
        ("mkdir", json!({"path": "/d"})),
        ("edit", edit.clone()),
        ("edit-many", edit),
    ] {
        seen.refused(403, "FORBIDDEN", tool, args.clone()).await;
        let body = json!({"tool": tool, "args": args});
        seen.post("/toolsets/workspace", &body).await.refused(403, "FORBIDDEN");
    }
    assert_eq!(workspace.text("/a.txt").await, "text");
    assert_eq!(workspace.paths_below("/").await, ["/a.txt", "/d"]);
    let commits = workspace.get("/commits").await.success();
    assert_eq!(list_at(&commits, "/commits").len(), 2);
}

async fn a_viewer_cannot_change_anything_by_any_route(on: On) {
    let (workspace, viewer) = with_member(on, "viewer").await;
    let file = workspace.write("/a.txt", "text").await;
    let commits = workspace.get("/commits").await.success();
    let commit = text_at(&commits, "/commits/0/id");
    let chat = workspace.post("/chats", &json!({"title": "Plans"})).await;
    let chat = text_at(&chat.success(), "/chat/id").to_owned();
    let gone = workspace.write("/gone.txt", "text").await;
    workspace.ok("rm", json!({"path": "/gone.txt"})).await;
    let other = on.account().await;
    let seen = workspace.for_user(&viewer);
    let id = text_at(&gone, "/file_id");
    for (method, path, body) in [
        ("PATCH", String::new(), Some(json!({"name": "Mine"}))),
        ("DELETE", String::new(), None),
        ("POST", "/members".into(), Some(json!({"email": other.email, "role": "viewer"}))),
        ("PATCH", format!("/members/{}", viewer.id), Some(json!({"role": "owner"}))),
        ("DELETE", format!("/members/{}", workspace.account.id), None),
        ("POST", format!("/files/{id}/restore"), Some(json!({}))),
        ("POST", format!("/commits/{commit}/undo"), Some(json!({}))),
        ("POST", "/chats".into(), Some(json!({"title": "Mine"}))),
        ("POST", format!("/chats/{chat}/messages"), Some(json!({"role": "user", "content": "hello"}))),
    ] {
        seen.send(method, &path, body.as_ref()).await.refused(403, "FORBIDDEN");
    }
    let kept = format!("/files/{}", text_at(&file, "/file_id"));
    assert_eq!(workspace.get(&kept).await.success()["content"], "text");
    assert_eq!(workspace.get("/trash").await.success()["count"], 1);
}

async fn a_viewer_is_refused_before_the_arguments_are_checked(on: On) {
    let (workspace, viewer) = with_member(on, "viewer").await;
    let seen = workspace.for_user(&viewer);
    for (tool, args) in [
        ("rm", json!({"path": "/missing.txt"})),
        ("edit", json!({"path": "/missing.txt", "old_string": "a", "new_string": "b"})),
    ] {
        seen.refused(403, "FORBIDDEN", tool, args).await;
    }
}

async fn an_editor_can_use_every_tool(on: On) {
    let (workspace, editor) = with_member(on, "editor").await;
    let seen = workspace.for_user(&editor);
    seen.write("/a.txt", "text").await;
    let edit = json!({"path": "/a.txt", "old_string": "text", "new_string": "texts"});
    seen.ok("edit", edit.clone()).await;
    seen.ok("edit-many", edit).await;
    seen.ok("touch", json!({"path": "/a.txt"})).await;
    seen.ok("mkdir", json!({"path": "/d"})).await;
    let to = json!({"source": "/a.txt", "destination": "/d/"});
    seen.ok("mv", to).await;
    assert_eq!(workspace.text("/d/a.txt").await, "textss");
    seen.ok("rm", json!({"path": "/d/a.txt"})).await;
}

async fn an_editor_cannot_change_their_own_role(on: On) {
    let (workspace, editor) = with_member(on, "editor").await;
    let seen = workspace.for_user(&editor);
    let friend = on.account().await;
    for (method, path, body) in [
        ("PATCH", format!("/members/{}", editor.id), Some(json!({"role": "owner"}))),
        ("DELETE", format!("/members/{}", workspace.account.id), None),
        ("POST", "/members".into(), Some(json!({"email": friend.email, "role": "owner"}))),
        ("DELETE", String::new(), None),
    ] {
        seen.send(method, &path, body.as_ref()).await.refused(403, "FORBIDDEN");
    }
}

async fn a_changed_role_counts_at_once(on: On) {
    let (workspace, member) = with_member(on, "editor").await;
    let seen = workspace.for_user(&member);
    seen.write("/a.txt", "text").await;
    let path = format!("/members/{}", member.id);
    let changed = workspace.patch(&path, &json!({"role": "viewer"})).await;
    assert_eq!(changed.success()["member"]["role"], "viewer");
    let args = json!({"path": "/a.txt", "content": "x"});
    seen.refused(403, "FORBIDDEN", "write", args).await;
    let changed = workspace.patch(&path, &json!({"role": "editor"})).await;
    changed.success();
    seen.write("/a.txt", "again").await;
}

async fn members_are_listed_with_their_roles(on: On) {
    let (workspace, viewer) = with_member(on, "viewer").await;
    let listed = workspace.get("/members").await.success();
    assert_eq!(listed["count"], 2);
    let role_of = |id: &str| {
        list_at(&listed, "/members")
            .iter()
            .find(|member| member["user_id"] == id)
            .map(|member| text_at(member, "/role").to_owned())
    };
    assert_eq!(role_of(&workspace.account.id).as_deref(), Some("owner"));
    assert_eq!(role_of(&viewer.id).as_deref(), Some("viewer"));
}

async fn an_unknown_role_or_user_is_refused(on: On) {
    let workspace = on.workspace().await;
    let guest = on.account().await;
    let body = json!({"email": guest.email, "role": "emperor"});
    workspace.post("/members", &body).await.refused(400, "VALIDATION_ERROR");
    let body = json!({"email": "nobody-at-all@example.com", "role": "viewer"});
    workspace.post("/members", &body).await.refused(404, "NOT_FOUND");
    let body = json!({"role": "viewer"});
    let path = "/members/019b97ac-e5f5-735b-b0a6-f3a34fcd4ff1";
    workspace.patch(path, &body).await.refused(404, "NOT_FOUND");
    workspace.delete(path).await.refused(404, "NOT_FOUND");
}

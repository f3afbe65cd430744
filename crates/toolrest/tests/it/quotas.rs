//! Quotas of accounts and workspaces.

use serde_json::json;
use std::time::Duration;
use toolrest_testkit::{Account, Port, Server, unique_email};

use crate::on::{On, text_at, workspace_at};
use crate::toolset::{CODING, FILE, SYSTEM};

on_both_databases![
    a_write_over_the_storage_quota_is_refused_in_every_toolset,
    writes_of_members_count_against_the_owner,
    storage_usage_is_known_after_a_restart,
    the_workspaces_of_an_account_are_limited,
    program_changes_over_the_quota_are_refused_with_the_output,
];

fn server_with(on: On, setting: &str, value: &str) -> Server {
    on.options().env(&format!("TOOLREST__QUOTAS__{setting}"), value).start()
}

async fn account_at(server: &Server) -> Account {
    Account::register(&server.client(), &unique_email("someone")).await
}

/// A text of so many bytes that no other has.
fn text(letter: &str, bytes: usize) -> String {
    letter.repeat(bytes)
}

async fn a_write_over_the_storage_quota_is_refused_in_every_toolset(on: On) {
    let server = server_with(on, "BYTES_PER_WORKSPACE", "100000");
    let (workspace, stranger) = (workspace_at(&server).await, account_at(&server).await);
    workspace.write("/a", &text("a", 40_000)).await;
    workspace.write("/b", &text("b", 40_000)).await;
    let more = text("c", 40_000);
    let refused = workspace.refused(429, "QUOTA_EXCEEDED", "write", json!({"path": "/c", "content": more})).await;
    let message = text_at(&refused, "/error");
    assert!(message.contains("100000") && message.contains("quotas.bytes_per_workspace"), "{message}");
    let args = json!({"path": "c", "content": more});
    FILE.refused(&workspace, 429, "quota_exceeded", "file.write", args.clone()).await;
    SYSTEM.refused(&workspace, 429, "QUOTA_EXCEEDED", "write_file", args).await;
    let args = json!({"filePath": "c", "content": more});
    CODING.refused(&workspace, 429, "QUOTA_EXCEEDED", "write", args).await;
    let chat = workspace.post("/chats", &json!({"title": "t"})).await.success();
    let path = format!("/chats/{}/messages", text_at(&chat, "/chat/id"));
    let message = json!({"role": "user", "content": more});
    workspace.post(&path, &message).await.refused(429, "QUOTA_EXCEEDED");
    // Strangers do not learn how full it is; what stores nothing new goes on; other workspaces have their own.
    let args = json!({"path": "/c", "content": more});
    workspace.for_user(&stranger).refused(403, "FORBIDDEN", "write", args).await;
    workspace.ok("mv", json!({"source": "/a", "destination": "/d"})).await;
    workspace.ok("rm", json!({"path": "/d"})).await;
    workspace.write("/small", "still fits").await;
    workspace.account.workspace("other").await.write("/c", &more).await;
}

async fn writes_of_members_count_against_the_owner(on: On) {
    let server = server_with(on, "BYTES_PER_ACCOUNT", "100000");
    let (owner, editor) = (account_at(&server).await, account_at(&server).await);
    let (first, second) = (owner.workspace("first").await, owner.workspace("second").await);
    first.add_member(&editor, "editor").await;
    first.for_user(&editor).write("/a", &text("a", 60_000)).await;
    let more = json!({"path": "/b", "content": text("b", 60_000)});
    let refused = second.refused(429, "QUOTA_EXCEEDED", "write", more.clone()).await;
    assert!(text_at(&refused, "/error").contains("quotas.bytes_per_account"), "{refused}");
    first.for_user(&editor).refused(429, "QUOTA_EXCEEDED", "write", more.clone()).await;
    editor.workspace("the editor's own").await.ok("write", more).await;
}

async fn storage_usage_is_known_after_a_restart(on: On) {
    let mut server = server_with(on, "BYTES_PER_WORKSPACE", "100000");
    let workspace = workspace_at(&server).await;
    workspace.write("/a", &text("a", 60_000)).await;
    assert!(server.stop().success());
    server.restart(Port::Same);
    let workspace = workspace.through(&server.client());
    let more = json!({"path": "/b", "content": text("b", 60_000)});
    workspace.refused(429, "QUOTA_EXCEEDED", "write", more).await;
}

async fn the_workspaces_of_an_account_are_limited(on: On) {
    let server = server_with(on, "WORKSPACES_PER_ACCOUNT", "3");
    let account = account_at(&server).await;
    let mut making = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let account = account.through(&server.client());
        making.spawn(async move { account.post("/workspaces", &json!({"name": "one of many"})).await });
    }
    let replies = making.join_all().await;
    let (made, refused): (Vec<_>, Vec<_>) = replies.into_iter().partition(|reply| reply.status == 200);
    assert_eq!(made.len(), 3, "{refused:?}");
    for reply in refused {
        reply.refused(429, "QUOTA_EXCEEDED");
    }
    let id = text_at(&made[0].json(), "/workspace/id").to_owned();
    account.in_workspace(&id).delete("").await.success();
    account.workspace("in its place").await;
}

async fn program_changes_over_the_quota_are_refused_with_the_output(on: On) {
    let server = server_with(on, "BYTES_PER_WORKSPACE", "100000");
    let workspace = workspace_at(&server).await;
    let code = "head -c 200000 /dev/urandom | base64 > big; echo printed";
    let reply = workspace.call_of("system", "run_code", &json!({"language": "bash", "code": code})).await;
    let error = reply.json()["error"].take();
    assert_eq!((reply.status, text_at(&error, "/code")), (429, "QUOTA_EXCEEDED"), "{reply}");
    assert_eq!(error["details"]["stdout"], "printed\n", "{reply}");
    workspace.refused(404, "NOT_FOUND", "read", json!({"path": "/big"})).await;
}

#[tokio::test]
async fn the_event_streams_of_an_account_are_limited() {
    let server = server_with(On::Folder, "EVENT_STREAMS_PER_ACCOUNT", "2");
    let workspace = On::Folder.workspace_at(&server).await;
    let mut streams = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let workspace = workspace.through(&server.client());
        streams.spawn(async move { workspace.get("/events").await });
    }
    // A stream that was opened never ends, so that the one that ends is the one that was refused.
    let refused = tokio::time::timeout(Duration::from_secs(20), streams.join_next()).await;
    refused.expect("a third stream was opened").unwrap().unwrap().refused(429, "QUOTA_EXCEEDED");
    let another = tokio::time::timeout(Duration::from_secs(2), streams.join_next()).await;
    assert!(another.is_err(), "a stream within the limit ended: {}", another.unwrap().unwrap().unwrap());
}

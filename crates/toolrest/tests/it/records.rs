//! The records of calls say what really happened.

use std::time::Duration;

use serde_json::{Value, json};
use toolrest_testkit::{Port, Workspace, eventually};

use crate::on::{On, list_at, text_at};
use crate::toolset::SYSTEM;

on_every_backend!(
    a_record_has_the_principal_the_path_and_redacted_arguments,
    changes_over_rest_are_recorded,
    calls_are_filtered_and_paged,
    a_running_program_is_listed_and_recorded_as_cancelled_when_its_caller_leaves,
    a_program_that_dies_with_its_server_is_recorded_as_interrupted,
    a_clean_shutdown_leaves_no_running_call,
);

const SOON: Duration = Duration::from_secs(10);
/// Longer than it takes until a server process counts as dead.
const UNTIL_DEAD: Duration = Duration::from_secs(60);

async fn calls(workspace: &Workspace, query: &str) -> Vec<Value> {
    let listed = workspace.get(&format!("/calls{query}")).await.success();
    list_at(&listed, "/calls").to_vec()
}

/// Waits for the newest call that the query finds.
async fn recorded(workspace: &Workspace, query: &str, limit: Duration) -> Value {
    eventually("the call is recorded", limit, async || calls(workspace, query).await.into_iter().next()).await
}

async fn a_record_has_the_principal_the_path_and_redacted_arguments(on: On) {
    let workspace = on.workspace().await;
    let long = "hunter2".repeat(100);
    workspace.write("/d/a.txt", &long).await;
    let write = recorded(&workspace, "?tool=write", SOON).await;
    assert_eq!((text_at(&write, "/path"), text_at(&write, "/outcome")), ("/d/a.txt", "ok"), "{write}");
    assert_eq!(write["args"]["content"]["bytes"], 700, "{write}");
    assert_eq!(text_at(&write, "/args/content/hash").len(), 16, "{write}");
    assert!(!write.to_string().contains("hunter2"), "{write}");
    assert!(write["commit_id"].is_string() && write["user_id"].is_string(), "{write}");
    assert!(write["key_id"].is_null() && write["error"].is_null(), "{write}");
    let refused = json!({"path": "/a\u{0}b", "password": "hunter2"});
    assert_eq!(workspace.call("read", &refused).await.status, 400);
    let read = recorded(&workspace, "?tool=read", SOON).await;
    assert_eq!(text_at(&read, "/outcome"), "invalid_argument", "{read}");
    assert_eq!(read["args"], json!({"path": "/a\u{0}b", "password": {"redacted": true}}));
    assert!(!text_at(&read, "/error").is_empty(), "{read}");
}

async fn changes_over_rest_are_recorded(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "text").await;
    let write = recorded(&workspace, "?tool=write", SOON).await;
    let commit = text_at(&write, "/commit_id");
    let undone = workspace.post(&format!("/commits/{commit}/undo"), &json!({})).await.success();
    let undo = recorded(&workspace, "?tool=undo", SOON).await;
    assert_eq!((text_at(&undo, "/toolset"), text_at(&undo, "/outcome")), ("api", "ok"), "{undo}");
    assert_eq!(undo["args"], json!({"commit": commit}));
    assert_eq!(undo["commit_id"], undone["commit"]["id"]);
    let nobody = json!({"email": "nobody@example.com", "role": "viewer"});
    assert_eq!(workspace.post("/members", &nobody).await.status, 404);
    let add = recorded(&workspace, "?tool=add_member", SOON).await;
    assert_eq!((text_at(&add, "/outcome"), &add["args"]), ("not_found", &nobody), "{add}");
    assert!(text_at(&add, "/error").contains("nobody@example.com"), "{add}");
    workspace.patch("", &json!({"name": "Renamed"})).await.success();
    let change = recorded(&workspace, "?tool=change_workspace", SOON).await;
    assert_eq!((text_at(&change, "/outcome"), &change["args"]["name"]), ("ok", &json!("Renamed")));
    let api = calls(&workspace, "?toolset=api").await;
    let tools: Vec<&str> = api.iter().map(|call| text_at(call, "/tool")).collect();
    assert_eq!(tools, ["change_workspace", "add_member", "undo"]);
}

async fn calls_are_filtered_and_paged(on: On) {
    let workspace = on.workspace().await;
    for path in ["/d/1.txt", "/d/2.txt", "/dx.txt"] {
        workspace.write(path, path).await;
    }
    workspace.refused(404, "NOT_FOUND", "read", json!({"path": "/missing"})).await;
    let missing = recorded(&workspace, "?outcome=not_found", SOON).await;
    let me = text_at(&missing, "/user_id");
    let count = async |query: &str| calls(&workspace, query).await.len();
    assert_eq!(count("?path=/d").await, 2);
    assert_eq!(count("?path=/d/1.txt&tool=write&outcome=ok").await, 1);
    assert_eq!(count(&format!("?principal={me}")).await, 4);
    assert_eq!(count("?principal=00000000-0000-7000-8000-000000000000").await, 0);
    assert_eq!(count("?since=2026-01-01T00:00:00Z&until=2400-01-01T00:00:00Z").await, 4);
    assert_eq!(count("?until=2020-01-01T00:00:00Z").await, 0);
    assert_eq!(count("?state=running").await, 0);
    let second = &calls(&workspace, "?path=/d/2.txt").await[0];
    let of_commit = calls(&workspace, &format!("?commit={}", text_at(second, "/commit_id"))).await;
    assert_eq!(of_commit, std::slice::from_ref(second));
    let (mut seen, mut query) = (Vec::new(), "?limit=3".to_owned());
    loop {
        let page = workspace.get(&format!("/calls{query}")).await.success();
        seen.extend(list_at(&page, "/calls").iter().map(|call| text_at(call, "/id").to_owned()));
        assert_eq!(page["truncated"].as_bool().unwrap(), page["next"].is_string(), "{page}");
        let Some(next) = page["next"].as_str() else { break };
        query = format!("?limit=3&before={next}");
    }
    assert_eq!(seen.len(), 4);
    assert!(seen.is_sorted_by(|newer, older| newer > older), "newest first, each once: {seen:?}");
    for bad in [
        "state=ran",
        "outcome=Timeout",
        "toolset=none",
        "tool=%00",
        "principal=me",
        "commit=1",
        "since=yesterday",
        "path=/a%00",
        "state=running&outcome=ok",
        "limit=0",
    ] {
        assert_eq!(workspace.get(&format!("/calls?{bad}")).await.status, 400, "{bad}");
    }
}

/// Starts a program that writes a file and waits, in a task of its own, and waits until it runs.
async fn start_program(workspace: &Workspace) -> (tokio::task::JoinHandle<()>, Value) {
    let (caller, code) = (workspace.clone(), "echo began > file; sleep 100");
    let call = tokio::spawn(async move {
        let _ = caller
            .try_post(
                "/toolsets/system",
                &json!({"tool": "run_code", "args": {"language": "bash", "code": code, "timeout": 90}}),
            )
            .await;
    });
    let running = recorded(workspace, "?state=running", SOON).await;
    assert_eq!((text_at(&running, "/tool"), &running["outcome"]), ("run_code", &Value::Null), "{running}");
    assert_eq!(running["args"]["code"], code);
    (call, running)
}

async fn a_running_program_is_listed_and_recorded_as_cancelled_when_its_caller_leaves(on: On) {
    let workspace = on.workspace().await;
    let (call, running) = start_program(&workspace).await;
    assert_eq!(calls(&workspace, "?tool=run_code").await, [] as [Value; 0], "it has not ended");
    call.abort();
    let ended = recorded(&workspace, "?tool=run_code", SOON).await;
    assert_eq!((&ended["id"], text_at(&ended, "/outcome")), (&running["id"], "cancelled"), "{ended}");
    assert!(ended["commit_id"].is_null(), "{ended}");
    assert_eq!(calls(&workspace, "?state=running").await, [] as [Value; 0]);
    let ran = SYSTEM.ok(&workspace, "run_code", json!({"language": "bash", "code": "echo kept > kept"})).await;
    // The record is durable when the answer is sent.
    let newest = &calls(&workspace, "?tool=run_code").await[0];
    assert_eq!(text_at(newest, "/outcome"), "ok", "{ran}");
    assert!(newest["commit_id"].is_string(), "{newest}");
}

async fn a_program_that_dies_with_its_server_is_recorded_as_interrupted(on: On) {
    let mut server = on.options().start();
    let workspace = on.workspace_at(&server).await;
    SYSTEM.ok(&workspace, "run_code", json!({"language": "bash", "code": "echo first > first"})).await;
    let (call, running) = start_program(&workspace).await;
    server.kill9();
    call.abort();
    server.restart(Port::New);
    let workspace = workspace.through(&server.client());
    let done = &calls(&workspace, "?tool=run_code&outcome=ok").await;
    assert!(done.len() == 1 && done[0]["commit_id"].is_string(), "what was answered is recorded: {done:?}");
    let ended = recorded(&workspace, "?outcome=interrupted", UNTIL_DEAD).await;
    assert_eq!(ended["id"], running["id"]);
    assert!(ended["commit_id"].is_null(), "{ended}");
    assert_eq!(calls(&workspace, "?state=running").await, [] as [Value; 0]);
}

async fn a_clean_shutdown_leaves_no_running_call(on: On) {
    let mut server = on.options().env("TOOLREST__SERVER__SHUTDOWN_GRACE_MS", "0").start();
    let workspace = on.workspace_at(&server).await;
    let (call, running) = start_program(&workspace).await;
    server.stop();
    call.abort();
    server.restart(Port::New);
    let workspace = workspace.through(&server.client());
    let ended = recorded(&workspace, "?tool=run_code", SOON).await;
    assert_eq!(ended["id"], running["id"]);
    assert!(["interrupted", "cancelled"].contains(&text_at(&ended, "/outcome")), "{ended}");
    assert_eq!(calls(&workspace, "?state=running").await, [] as [Value; 0]);
}
